"""Pages of a log: whatever their size and direction, no line is lost and none comes twice. The kubelet is played."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oarsman import names
from oarsman.backends.base import JobRecord, LogPage, LogQuery
from oarsman.backends.kube import log_lines, log_pages, pod_log
from oarsman.engines.kube.client import NotFound, Unavailable, resources
from oarsman.errors import NotFoundError, UnsupportedError, UserError
from oarsman.job.state import Attempt, Cause, Status
from oarsman.manifest import job_from_document

from .played import a_document

T0 = datetime(2026, 1, 1, 8, tzinfo=UTC)
LAUNCHER = "pi-launcher-1"


def raw(second: float, text: str) -> bytes:
    moment = T0 + timedelta(microseconds=round(second * 1e6))
    return f"{moment:%Y-%m-%dT%H:%M:%S.%f}789Z {text}".encode()


def a_pod(*, ended: bool = True) -> dict[str, Any]:
    state: dict[str, Any] = {"terminated" if ended else "running": {"startedAt": "2026-01-01T08:00:00Z"}}
    return {
        "metadata": {
            "name": LAUNCHER,
            "creationTimestamp": "2026-01-01T07:59:00Z",
            "resourceVersion": "1",
            "namespace": "default",
            "annotations": {names.ANNOTATION_ATTEMPT: "1"},
        },
        "spec": {"restartPolicy": "Never"},
        "status": {"phase": "Succeeded" if ended else "Running", "containerStatuses": [{"name": "l", "state": state}]},
    }


class Kubelet:
    """Has logs, and honours what it is asked; breaks off as often as it is told to."""

    def __init__(self, lines: Sequence[bytes] = (), *, ended: bool = True, **others: Sequence[bytes]) -> None:
        self.logs = {LAUNCHER: list(lines)} | {name.replace("_", "-"): list(log) for name, log in others.items()}
        self.ended = ended
        self.asked: list[dict[str, Any]] = []
        self.told = 0
        self.breaks: list[int] = []
        self.pods = [a_pod(ended=ended)]

    async def log(
        self, pod: str, namespace: str, *, tail: int | None, since_time: str | None, **asked: Any
    ) -> AsyncIterator[bytes]:
        self.asked.append({"pod": pod, "tail": tail, "since_time": since_time, **asked})
        if pod not in self.logs:
            raise NotFound("get", "gone")
        lines = [line for line in self.logs[pod] if since_time is None or line.decode()[:19] >= since_time[:19]]
        until_broken = self.breaks.pop(0) if self.breaks else None
        for number, line in enumerate(lines if tail is None else lines[-tail:]):
            if number == until_broken:
                raise Unavailable("get", "reset")
            self.told += 1
            yield line

    async def list(self, resource: Any, namespace: str, **selected: str) -> list[dict[str, Any]]:
        return self.pods

    async def get(self, resource: Any, name: str, namespace: str) -> dict[str, Any]:
        if resource is resources.MPIJOBS:
            raise NotFound("get", "gone")
        return self.pods[0]

    async def pages(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        from oarsman.engines.kube.client.codec import Listed

        yield Listed(self.pods, "1", first=True)


def a_record(status: Status = Status()) -> JobRecord:  # noqa: B008
    job = job_from_document(a_document(annotations={names.ANNOTATION_TAG_OUTPUT: "true"}))
    return JobRecord(job=job, status=status, created_at=T0, owner="ada", folder=None, engine="kube")


def page(kubelet: Kubelet, query: LogQuery = LogQuery(), *, record: JobRecord | None = None, **at: Any) -> LogPage:  # noqa: B008
    given = {"after": None, "before": None, "limit": 500} | at
    return asyncio.run(log_pages.page(kubelet, record or a_record(), query, **given))  # type: ignore[arg-type]


def follow(kubelet: Kubelet, query: LogQuery = LogQuery(), after: str | None = None) -> list[LogPage]:  # noqa: B008
    async def work() -> list[LogPage]:
        return [found async for found in log_pages.pages(kubelet, a_record(), query, after)]  # type: ignore[arg-type]

    return asyncio.run(asyncio.wait_for(work(), 60))


def texts(*pages: LogPage) -> list[str]:
    return [placed.line.text for one in pages for placed in one.lines]


def upwards(kubelet: Kubelet, query: LogQuery = LogQuery(), *, limit: int) -> list[str]:  # noqa: B008
    """Everything, from the end to the beginning, page by page."""
    found = page(kubelet, query, limit=limit)
    lines = texts(found)
    while found.before is not None:
        found = page(kubelet, query, before=found.before, limit=limit)
        lines = texts(found) + lines
    return lines


def onwards(kubelet: Kubelet, query: LogQuery = LogQuery(), *, limit: int) -> list[str]:  # noqa: B008
    """Everything, from the beginning to the end."""
    lines, at = [], "1"
    while (found := page(kubelet, query, after=at, limit=limit)).after != at:
        lines += texts(found)
        at = found.after
    return lines


def many(count: int, *, apart: float = 0.1) -> list[bytes]:
    return [raw(number * apart, f"[1,{number % 4}]<stdout>:line {number}") for number in range(count)]


def plain(count: int) -> list[str]:
    return [f"line {number}" for number in range(count)]


def test_the_end_of_a_long_log_costs_one_short_answer() -> None:
    kubelet = Kubelet(many(20_000))
    found = page(kubelet, limit=100)
    assert texts(found) == plain(20_000)[-100:]
    assert (len(kubelet.asked), found.attempt) == (1, 1)
    assert kubelet.told < 200
    above = page(kubelet, before=found.before, limit=100)
    assert texts(above) == plain(20_000)[-200:-100]
    assert kubelet.told < 2_000


@pytest.mark.parametrize("limit", [1, 7, 64, 10_000])
def test_pages_up_and_down_have_every_line_once(limit: int) -> None:
    lines = many(150)
    assert upwards(Kubelet(lines), limit=limit) == plain(150)
    assert onwards(Kubelet(lines), limit=limit) == plain(150)


# Steps back in time happen where several write at once; steps of zero where a clock is coarse.
STEPS = st.lists(st.sampled_from([0.0, 0.0, 0.0, -0.000002, 0.00001, 0.3, 3.0, 40.0]), max_size=120)


@settings(max_examples=60, deadline=None)
@given(STEPS, st.integers(1, 50))
def test_lines_of_one_moment_and_lines_out_of_order_are_told_apart(steps: list[float], limit: int) -> None:
    moments = [sum(steps[: number + 1], 1.0) for number in range(len(steps))]
    lines = [raw(moment, f"line {number}") for number, moment in enumerate(moments)]
    assert upwards(Kubelet(lines), limit=limit) == plain(len(lines))
    assert onwards(Kubelet(lines), limit=limit) == plain(len(lines))
    at = page(Kubelet(lines), after="1", limit=limit).after
    assert texts(*follow(Kubelet(lines), after=at)) == plain(len(lines))[limit:]


def test_every_line_has_the_place_behind_it() -> None:
    kubelet = Kubelet(many(40))
    for number, placed in enumerate(page(kubelet, limit=20).lines, 20):
        assert texts(page(kubelet, after=placed.after, limit=2)) == plain(40)[number + 1 : number + 3]


def test_what_is_written_later_is_on_the_next_page() -> None:
    kubelet = Kubelet(many(5), ended=False)
    end = page(kubelet).after
    assert texts(page(kubelet, after=end)) == []
    kubelet.logs[LAUNCHER] = many(7)
    assert texts(page(kubelet, after=end)) == plain(7)[5:]


def test_a_log_that_has_not_begun_has_an_empty_page_and_a_place_to_go_on_from() -> None:
    for kubelet in (Kubelet(ended=False), Kubelet()):
        if kubelet.ended:
            kubelet.pods = []
        found = page(kubelet)
        assert (found.lines, found.before) == ((), None)
        kubelet.pods, kubelet.logs[LAUNCHER] = [a_pod()], many(3)
        assert texts(page(kubelet, after=found.after)) == plain(3)


# -- filters -------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("search", "kept"),
    [("error", ["an Error", "ERROR", "error"]), ("Error", ["an Error", "ERROR", "error"]), ("nothing", [])],
)
def test_a_search_ignores_case(search: str, kept: list[str]) -> None:
    lines = [raw(number, text) for number, text in enumerate(["an Error", "fine", "ERROR", "error"])]
    assert texts(page(Kubelet(lines), LogQuery(search=search))) == kept


@pytest.mark.parametrize("query", [LogQuery(ranks=(3,)), LogQuery(search="9"), LogQuery(ranks=(0, 1), search="1")])
@pytest.mark.parametrize("limit", [3, 40])
def test_pages_of_a_filtered_log_have_every_wanted_line_once(query: LogQuery, limit: int) -> None:
    wanted = [
        f"line {number}"
        for number in range(400)
        if (not query.ranks or number % 4 in query.ranks) and (not query.search or query.search in f"line {number}")
    ]
    assert upwards(Kubelet(many(400)), query, limit=limit) == wanted
    assert onwards(Kubelet(many(400)), query, limit=limit) == wanted


def test_a_search_reads_no_more_than_agreed_and_goes_on_from_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_lines, "MOST_BYTES", 20_000)
    lines = [raw(0, "the needle"), *(raw(1 + number, "x" * 100) for number in range(4_000))]
    query = LogQuery(search="needle")
    kubelet = Kubelet(lines)
    found = page(kubelet, query, limit=10)
    assert (texts(found), found.before is None) == ([], False)
    assert kubelet.told < 600
    assert upwards(Kubelet(lines), query, limit=10) == ["the needle"]
    assert onwards(Kubelet(lines), query, limit=10) == ["the needle"]


def test_lines_longer_than_a_kubelet_counts_do_not_make_an_end_look_like_the_whole() -> None:
    """It cuts them into parts, so that fewer come than were asked for."""

    class Cutting(Kubelet):
        def log(self, pod: str, namespace: str, *, tail: int | None, **asked: Any) -> AsyncIterator[bytes]:
            return super().log(pod, namespace, tail=None if tail is None else -(-tail // 3), **asked)

    lines = [raw(number, f"{number} " + "x" * 5000) for number in range(300)]
    found = upwards(Cutting(lines), limit=20)
    assert [text.split()[0] for text in found] == [str(number) for number in range(300)]


def test_words_of_workers_are_between_those_of_the_launcher() -> None:
    own = [raw(number + 0.5, f"sshd {number}") for number in range(30)]
    kubelet = Kubelet(many(60, apart=1.0), pi_worker_1=own)
    query = LogQuery(workers=(1,))
    wanted = [(number, f"line {number}") for number in range(60) if number % 4 in (2, 3)]
    wanted += [(number + 0.5, f"sshd {number}") for number in range(30)]
    in_order = [text for _, text in sorted(wanted)]
    for limit in (1, 8, 500):
        assert upwards(kubelet, query, limit=limit) == in_order
        assert onwards(kubelet, query, limit=limit) == in_order
    assert sorted(texts(*follow(kubelet, query))) == sorted(in_order)


def test_a_rank_cannot_be_told_from_lines_without_tags() -> None:
    with pytest.raises(UnsupportedError):
        page(Kubelet([raw(0, "plain")]), LogQuery(ranks=(0,)))


def test_a_line_that_never_ended_is_shown_once_its_log_is_over() -> None:
    """Two ranks shared the last line, and the first of them said no more."""
    lines = [*many(3), raw(9, "[1,0]<stdout>:unfinished[1,1]<stdout>:other")]
    assert texts(page(Kubelet(lines, ended=False))) == [*plain(3), "other"]
    whole = [*plain(3), "other", "unfinished"]
    for limit in (1, 2, 10):
        assert upwards(Kubelet(lines), limit=limit) == whole
        assert onwards(Kubelet(lines), limit=limit) == whole
    (all_of_it,) = follow(Kubelet(lines))
    assert texts(all_of_it) == whole
    assert follow(Kubelet(lines), after=all_of_it.after) == []
    assert texts(*follow(Kubelet(lines), after=all_of_it.lines[-2].after)) == ["unfinished"]


# -- as it comes ---------------------------------------------------------------------------------------
def test_lines_that_are_there_together_share_a_page() -> None:
    pages = follow(Kubelet(many(1_200)))
    assert texts(*pages) == plain(1_200)
    assert len(pages) <= 5
    assert pages[0].before is None
    assert [one.before for one in pages[1:]] == [one.after for one in pages[:-1]]


def test_a_stream_that_breaks_goes_on_without_a_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_log, "_PAUSE_SECONDS", 0.0)
    kubelet = Kubelet(many(100))
    kubelet.breaks = [30, 25, 60]
    kubelet.pods = [a_pod(ended=False)]

    async def get(*_: Any) -> dict[str, Any]:
        return a_pod(ended=not kubelet.breaks)

    kubelet.get = get  # type: ignore[method-assign]
    assert texts(*follow(kubelet, after="1")) == plain(100)
    assert len(kubelet.asked) == 4


def test_following_goes_on_from_any_place() -> None:
    kubelet = Kubelet(many(50))
    for placed in page(kubelet, limit=3).lines:
        rest = plain(50)[int(placed.line.text.split()[1]) + 1 :]
        assert texts(*follow(kubelet, after=placed.after)) == rest


# -- mistakes and losses -------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "place",
    [
        "",
        "x",
        "0",
        "1.",
        "-1",
        "1.0-5-1",
        "1.0-20261301080000000000000-1",
        "1.0-00010101000000000000000-1",
        "1" * 200_000,
        "1.0-2026010108000000000000٣-1",
        "1.0-20260101080000000000000-1\n",
    ],
)
def test_what_is_no_place_is_refused(place: str) -> None:
    for which in ("after", "before"):
        with pytest.raises(UserError) as caught:
            page(Kubelet(many(3)), **{which: place})
        assert caught.value.field == which
    with pytest.raises(UserError) as caught:
        follow(Kubelet(many(3)), after=place)
    assert caught.value.field == "after"


def test_a_place_belongs_to_its_attempt() -> None:
    with pytest.raises(UserError) as caught:
        page(Kubelet(many(3)), LogQuery(attempt=2), after="1")
    assert caught.value.field == "after"
    with pytest.raises(UserError) as caught:
        page(Kubelet(many(3)), after="1", before="1")
    assert caught.value.field == "before"
    with pytest.raises(UserError) as caught:
        page(Kubelet(many(3)), limit=0)
    assert caught.value.field == "limit"


def test_of_a_pod_that_is_gone_the_last_lines_are_a_page() -> None:
    kubelet = Kubelet()
    kubelet.pods = []
    cause = Cause(summary="rank 1 failed", rank=1, host="pi-worker-0", last_lines=("Traceback", "ValueError"))
    record = a_record(Status(attempts=(Attempt(number=2, ended=T0),), cause=cause))
    found = page(kubelet, record=record)
    assert (texts(found), found.before, found.attempt) == (["Traceback", "ValueError"], None, 2)
    assert page(kubelet, record=record, after=found.after).lines == ()
    assert page(kubelet, record=record, before=found.after).before is None
    with pytest.raises(NotFoundError, match="is gone, and its log with it"):
        page(kubelet, record=a_record(Status(attempts=(Attempt(number=1, ended=T0),))))
