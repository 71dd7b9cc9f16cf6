"""Pages of a job's log through the door, and lines as they come."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from oarsman.backends.base import LogPage, LogQuery
from oarsman.backends.local.backend import LocalBackend
from oarsman.errors import NotFoundError, UserError
from oarsman.job.state import Attempt, Status
from oarsman.status.codec import to_wire
from oarsman.store.paths import Paths

from .local_backends import NOW, document, finished, line, listening, local_backend, merged_log, without_a_supervisor


@pytest.fixture
def jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LocalBackend:
    without_a_supervisor(monkeypatch)
    return local_backend(Paths(tmp_path / "state"))


def texts(page: LogPage) -> list[str]:
    return [placed.line.text for placed in page.lines]


def running(jobs: LocalBackend) -> str:
    return jobs.submit(document(), environment={}, folder=Path("/")).job.uid


def end(jobs: LocalBackend, uid: str, attempt: int = 1) -> None:
    status = Status(attempts=(Attempt(number=attempt, started=NOW, ended=NOW, outcome="Succeeded"),))
    jobs._store.write_status(uid, to_wire(status), finished=False, now=NOW)


def add(path: Path, *lines: str) -> None:
    with open(path, "a") as file:
        file.write("".join(lines))


def test_pages_go_up_from_the_end_and_down_again(jobs: LocalBackend) -> None:
    add(merged_log(jobs, finished(jobs)), *(line(f"line {number}") for number in range(10)))
    last = jobs.log_page("default/pi", limit=4)
    assert texts(last) == ["line 6", "line 7", "line 8", "line 9"]
    middle = jobs.log_page("default/pi", before=last.before, limit=4)
    assert texts(middle) == ["line 2", "line 3", "line 4", "line 5"]
    top = jobs.log_page("default/pi", before=middle.before, limit=4)
    assert (texts(top), top.before) == (["line 0", "line 1"], None)
    assert texts(jobs.log_page("default/pi", after=top.after, limit=4)) == texts(middle)
    assert texts(jobs.log_page("default/pi", after=top.lines[0].after, limit=2)) == ["line 1", "line 2"]
    nothing = jobs.log_page("default/pi", after=last.after)
    assert (nothing.lines, nothing.after, nothing.attempt) == ((), last.after, 1)


def test_what_comes_later_follows_the_end_of_a_page(jobs: LocalBackend) -> None:
    path = merged_log(jobs, finished(jobs))
    add(path, line("one"), "2026-11-15T04:05:06.0")
    page = jobs.log_page("default/pi")
    assert texts(page) == ["one"]
    add(path, "00000Z 0 h out two\n")
    assert texts(jobs.log_page("default/pi", after=page.after)) == ["two"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"ranks": (1,)}, ["b"]),
        ({"workers": (1,)}, ["b"]),
        ({"launcher_only": True}, ["Mpirun says"]),
        ({"stream": "err"}, ["b", "Mpirun says"]),
        ({"since": datetime(2026, 11, 15, 4, 5, 8, tzinfo=UTC)}, ["Mpirun says", "late"]),
        ({"search": "MPI"}, ["Mpirun says"]),  # case is ignored
        ({"search": "a", "ranks": (0,)}, ["a", "late"]),
        ({"search": "worker-0"}, []),  # that is where it ran, not what it wrote
    ],
)
def test_the_same_lines_are_left_out_of_pages_and_of_the_whole(
    query: dict[str, Any], expected: list[str], jobs: LocalBackend
) -> None:
    add(
        merged_log(jobs, finished(jobs)),
        line("a"),
        line("b", 1, "pi-worker-1", "err", 7),
        line("Mpirun says", "-", "pi-launcher", "err", 8),
        line("late", 0, second=9),
    )
    wanted = LogQuery(**query)
    assert texts(jobs.log_page("default/pi", wanted)) == expected
    assert texts(jobs.log_page("default/pi", wanted, after="1:0")) == expected
    assert [found.text for found in jobs.logs("default/pi", wanted)] == expected
    assert [text for page in jobs.log_follow("default/pi", wanted) for text in texts(page)] == expected


def test_a_page_is_of_the_newest_attempt_unless_said_otherwise(jobs: LocalBackend) -> None:
    uid = finished(jobs)
    for attempt in (1, 2, 10):
        add(merged_log(jobs, uid, attempt), line(f"attempt {attempt}"))
    page = jobs.log_page("default/pi")
    assert (texts(page), page.attempt) == (["attempt 10"], 10)
    assert texts(jobs.log_page("default/pi", LogQuery(attempt=2))) == ["attempt 2"]
    assert texts(jobs.log_page("default/pi", after="1:0")) == ["attempt 1"]


@pytest.mark.parametrize(
    "place",
    [
        "",
        "x",
        "1",
        "1:",
        ":1",
        "1:3",
        "1:99999",
        "0:0",
        "-1:0",
        "1:-1",
        "1:0x",
        "2:5",
        "1:0\n",
        f"1:{9**40}",
        f"1:{10**17}",
    ],
)
def test_a_place_that_is_none_is_refused(place: str, jobs: LocalBackend) -> None:
    add(merged_log(jobs, finished(jobs)), line("one"))
    for field in ("after", "before"):
        with pytest.raises(UserError, match="no place in this log") as caught:
            jobs.log_page("default/pi", **{field: place})
        assert caught.value.field == field
    with pytest.raises(UserError) as caught:
        next(jobs.log_follow("default/pi", after=place))
    assert caught.value.field == "after"


def test_of_another_job_that_has_the_name_by_now_no_line_is_read(jobs: LocalBackend) -> None:
    add(merged_log(jobs, finished(jobs)), line("one"))
    before = LogQuery(uid="of the one before")
    for read in (lambda: jobs.log_page("default/pi", before), lambda: list(jobs.logs("default/pi", before))):
        with pytest.raises(NotFoundError):
            read()
    with pytest.raises(NotFoundError):
        next(jobs.log_follow("default/pi", before))


def test_what_makes_no_sense_is_refused(jobs: LocalBackend) -> None:
    add(merged_log(jobs, finished(jobs)), line("one"))
    with pytest.raises(UserError) as caught:
        jobs.log_page("default/pi", after="1:0", before="1:0")
    assert caught.value.field == "before"
    with pytest.raises(UserError) as caught:
        jobs.log_page("default/pi", limit=0)
    assert caught.value.field == "limit"
    with pytest.raises(UserError) as caught:
        jobs.log_page("default/pi", LogQuery(attempt=2), after="1:0")
    assert caught.value.field == "after"
    with pytest.raises(NotFoundError):
        jobs.log_page("default/nobody")


def test_lines_are_followed_from_the_beginning_until_the_attempt_is_over(jobs: LocalBackend) -> None:
    uid = running(jobs)
    with listening(jobs.log_follow("default/pi")) as heard:
        path = merged_log(jobs, uid)
        add(path, line("one"), line("two"))
        assert texts(heard.next()) == ["one", "two"]
        add(path, line("three"))
        assert texts(heard.next()) == ["three"]
        add(path, line("last"))
        end(jobs, uid)
        assert texts(heard.next()) == ["last"]
        assert heard.ends()


def test_a_follower_that_lost_its_connection_goes_on_where_it_was(jobs: LocalBackend) -> None:
    uid = running(jobs)
    path = merged_log(jobs, uid)
    add(path, line("one"), line("two"), line("three"))
    with listening(jobs.log_follow("default/pi")) as heard:
        first = heard.next().lines[0]
    with listening(jobs.log_follow("default/pi", after=first.after)) as heard:
        page = heard.next()
        assert (texts(page), page.before) == (["two", "three"], first.after)


def test_a_follower_of_a_job_that_is_deleted_comes_to_an_end(jobs: LocalBackend) -> None:
    uid = running(jobs)
    with listening(jobs.log_follow("default/pi")) as heard:
        add(merged_log(jobs, uid), line("one"))
        heard.next()
        jobs._store.remove(uid)
        assert heard.ends()


def test_a_follower_can_be_sent_away_by_another_thread(jobs: LocalBackend) -> None:
    running(jobs)
    pages = jobs.log_follow("default/pi")
    with listening(pages) as heard:
        pages.close()
        assert heard.ends()


def test_a_log_that_is_complete_is_followed_without_waiting_for_anything(
    jobs: LocalBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_given: object, **_more: object) -> None:
        raise AssertionError("nothing is awaited")

    monkeypatch.setattr("oarsman.backends.local.follow.LocalChanges", refuse)
    add(merged_log(jobs, finished(jobs)), *(line(str(number)) for number in range(2500)))
    found = [len(page.lines) for page in jobs.log_follow("default/pi")]
    assert found == [1000, 1000, 500]
