"""Logs of pods: streams that break, lines without tags, ends. The kubelet is played; the real one is met elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from oarsman import names
from oarsman.backends.base import JobRecord, LogLine, LogQuery
from oarsman.backends.kube import logs, pod_log
from oarsman.backends.kube.pod_log import PodLog
from oarsman.engines.kube.client import NotFound, Unavailable
from oarsman.errors import UnsupportedError
from oarsman.job.state import Status
from oarsman.manifest import job_from_document

from .played import a_document

T0 = datetime(2026, 1, 1, 8, tzinfo=UTC)


def at(second: int, text: str) -> bytes:
    return f"{T0 + timedelta(seconds=second):%Y-%m-%dT%H:%M:%S}.000000000Z {text}".encode()


def a_pod(attempt: int = 1, *, ended: bool = True) -> dict[str, Any]:
    state: dict[str, Any] = {"terminated": {"exitCode": 0}} if ended else {"running": {}}
    return {
        "metadata": {
            "name": f"pi-launcher-{attempt}",
            "creationTimestamp": f"2026-01-01T08:00:0{attempt}Z",
            "annotations": {names.ANNOTATION_ATTEMPT: str(attempt)},
        },
        "spec": {"restartPolicy": "Never"},
        "status": {"phase": "Succeeded" if ended else "Running", "containerStatuses": [{"name": "l", "state": state}]},
    }


class Kubelet:
    """Answers every request for a log with the next script: lines, and an error to end with."""

    def __init__(self, *scripts: Sequence[bytes | Exception], pods: Sequence[dict[str, Any]] = ()) -> None:
        self.scripts = list(scripts)
        self.pods = list(pods) or [a_pod()]
        self.asked: list[dict[str, Any]] = []

    async def log(self, pod: str, namespace: str, **asked: Any) -> AsyncIterator[bytes]:
        self.asked.append({"pod": pod, **asked})
        for line in self.scripts.pop(0):
            if isinstance(line, Exception):
                raise line
            yield line

    async def get(self, resource: Any, name: str, namespace: str) -> dict[str, Any]:
        return a_pod(ended=not self.scripts)

    async def list(self, resource: Any, namespace: str, **selected: str) -> list[dict[str, Any]]:
        return self.pods


def read(kubelet: Kubelet, query: LogQuery = LogQuery(), *, tagged: bool = True) -> list[LogLine]:  # noqa: B008
    annotations = {names.ANNOTATION_TAG_OUTPUT: "true"} if tagged else {}
    job = job_from_document(a_document(annotations=annotations))
    record = JobRecord(job=job, status=Status(), created_at=T0, owner="ada", folder=None, engine="kube")

    async def work() -> list[LogLine]:
        return [line async for batch in logs.read(kubelet, record, query) for line in batch]  # type: ignore[arg-type]

    return asyncio.run(work())


def texts(lines: list[LogLine]) -> list[str]:
    return [line.text for line in lines]


def test_ranks_have_the_hosts_they_are_meant_to_be_on() -> None:
    lines = read(Kubelet([at(0, "[1,0]<stdout>:a"), at(1, "[1,3]<stderr>:b"), at(2, "mpirun says")]))
    assert [tuple(line[1:]) for line in lines] == [
        (0, "pi-worker-0", "out", "a"),
        (3, "pi-worker-1", "err", "b"),
        (None, "pi-launcher", "out", "mpirun says"),
    ]
    assert lines[0].time == T0


SPOKEN = [at(0, "hello"), at(1, "[1,0]<stdout>:a"), at(2, "[1,2]<stdout>:b"), at(3, "[1,2]<stderr>:c")]


@pytest.mark.parametrize(
    ("query", "kept"),
    [
        (LogQuery(), ["hello", "a", "b", "c"]),
        (LogQuery(ranks=(2,)), ["b", "c"]),
        (LogQuery(launcher_only=True), ["hello"]),
        (LogQuery(stream="err"), ["c"]),
        (LogQuery(since=T0 + timedelta(seconds=2)), ["b", "c"]),
        (LogQuery(ranks=(2,), tail=1), ["c"]),
        (LogQuery(ranks=(0, 2), tail=2), ["b", "c"]),
    ],
)
def test_only_what_was_asked_for_is_shown(query: LogQuery, kept: list[str]) -> None:
    assert texts(read(Kubelet(SPOKEN), query)) == kept


def test_ranks_on_a_worker_and_its_own_words_come_in_their_order() -> None:
    kubelet = Kubelet(SPOKEN, [at(0, "sshd listens"), at(9, "sshd ends")])
    assert texts(read(kubelet, LogQuery(workers=(1,)))) == ["sshd listens", "b", "c", "sshd ends"]
    assert [asked["pod"] for asked in kubelet.asked] == ["pi-launcher-1", "pi-worker-1"]


def test_the_server_counts_lines_where_every_line_is_wanted() -> None:
    kubelet = Kubelet([at(1, "[1,0]<stdout>:x")], [at(1, "[1,0]<stdout>:x")])
    read(kubelet, LogQuery(tail=5))
    read(kubelet, LogQuery(tail=5, ranks=(0,)))
    assert [asked["tail"] for asked in kubelet.asked] == [5, None]


@pytest.mark.parametrize("tagged", [True, False])
def test_a_rank_cannot_be_told_from_lines_without_tags(tagged: bool) -> None:
    with pytest.raises(UnsupportedError, match="do not say which rank wrote them") as caught:
        read(Kubelet([at(0, "plain"), at(1, "words")]), LogQuery(ranks=(0,)), tagged=tagged)
    assert names.ANNOTATION_TAG_OUTPUT in (caught.value.hint or "")


def test_the_attempt_that_was_asked_for_is_shown_and_else_the_newest() -> None:
    pods = [a_pod(1), a_pod(2)]
    for query, pod in ((LogQuery(attempt=1), "pi-launcher-1"), (LogQuery(), "pi-launcher-2")):
        kubelet = Kubelet([at(0, "x")], pods=pods)
        read(kubelet, query)
        assert kubelet.asked[0]["pod"] == pod


def test_a_pod_that_vanished_while_we_looked_has_no_lines() -> None:
    assert read(Kubelet([NotFound("get", "gone")])) == []


def test_a_broken_stream_goes_on_where_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_log, "_PAUSE_SECONDS", 0.0)
    kubelet = Kubelet(
        [at(0, "one"), at(1, "two"), at(1, "two again"), Unavailable("get", "reset")],
        [at(0, "one"), at(1, "two"), at(1, "two again"), at(1, "three"), at(2, "four")],
        [at(2, "four"), at(3, "five")],
    )

    async def work() -> list[str]:
        log = PodLog(kubelet, "default", "pi-launcher-1", "l")  # type: ignore[arg-type]
        return [text async for batch in log.read(follow=True, tail=10) for _, text in batch]

    assert asyncio.run(work()) == ["one", "two", "two again", "three", "four", "five"]
    assert [asked["tail"] for asked in kubelet.asked] == [10, None, None]
    assert [asked["since_time"] for asked in kubelet.asked] == [None, "2026-01-01T07:59:59Z", "2026-01-01T08:00:00Z"]


def test_a_stream_that_breaks_is_an_error_for_those_who_do_not_follow() -> None:
    with pytest.raises(Unavailable):
        read(Kubelet([at(0, "one"), Unavailable("get", "reset")]))


def test_hydra_is_known_by_the_implementation_the_job_states() -> None:
    job = job_from_document(a_document(annotations={}))
    document = {**job.document, "spec": {**job.document["spec"], "mpiImplementation": "MPICH"}}
    record = JobRecord(
        job=replace(job_from_document(document)), status=Status(), created_at=T0, owner="", folder=None, engine="kube"
    )

    async def work() -> list[LogLine]:
        kubelet = Kubelet([at(0, "[3] hi"), at(1, "[4] no rank")])
        return [line async for batch in logs.read(kubelet, record, LogQuery()) for line in batch]  # type: ignore[arg-type]

    assert [(line.rank, line.text) for line in asyncio.run(work())] == [(3, "hi"), (None, "[4] no rank")]


def test_what_the_kubelet_says_of_a_log_that_is_gone_is_no_line_of_it() -> None:
    """It says so in the log's place, where a line would begin with its time."""
    lost = b"unable to retrieve container logs for containerd://413a0ae5d2d5"
    assert [line.text for line in read(Kubelet([at(1, "[1,0]<stdout>:kept"), lost]))] == ["kept"]


@pytest.mark.parametrize("size", [16384, 8192])
@pytest.mark.parametrize("length", [8192, 16384, 16385, 40_000])
def test_a_line_that_was_kept_in_parts_is_one_line(size: int, length: int) -> None:
    """Older kubelets put a time before every part. What only looks like one stays."""
    text = ("2026-01-01T08:00:00Z " * 4000)[:length]
    parts = [text[start : start + size] for start in range(0, length, size)]
    told = "".join(f"2026-01-01T08:00:0{second}.12Z {part}" for second, part in enumerate(parts))
    assert pod_log.parse(told.encode()) == ("2026-01-01T08:00:00.120000000Z", text)
