"""A rank whose traceback is the last it wrote, and that has not ended, is told of while others run."""

from __future__ import annotations

import os

from for_every import for_every_row

from oarsman.engines.hosts.core.log_lines import Recorder
from oarsman.status.exceptions import stuck
from tests.builders import a_rank

TRACEBACK = 'Traceback (most recent call last):\n  File "x.py", line 5, in <module>\n    raise ValueError("no")\n'


@for_every_row(
    [
        (TRACEBACK + "ValueError: no\n", "ValueError: no"),
        ("step 1\n" + TRACEBACK.replace("\n", "\r\n") + "KeyboardInterrupt\r\n", "KeyboardInterrupt"),
        (TRACEBACK + "ValueError: no\n\nDuring handling of it:\n\n" + TRACEBACK + "OSError: gone\n", "OSError: gone"),
        (TRACEBACK, ""),  # its end is not there yet
        (TRACEBACK + "ValueError: no\nwent on\n", ""),
        ("ValueError: no\n", ""),
        ("", ""),
    ]
)
def test_only_a_whole_traceback_at_the_end_is_an_exception(text: str, line: str) -> None:
    recorder = Recorder("/tmp", rank="1", host="w-1", stream="err", merge=False, opened=(_null(), -1))
    recorder.feed(text.encode())
    assert recorder.exception() == line
    recorder.finish()


def _null() -> int:
    return os.open(os.devnull, os.O_WRONLY)


def test_the_rank_the_host_and_the_exception_are_named() -> None:
    told = stuck((a_rank(0), a_rank(1, "pi-worker-1.pi.default", raised="ValueError: no")))
    assert told.startswith("rank 1 on pi-worker-1 raised ValueError: no and has not ended")


def test_nothing_is_said_of_one_that_ended_or_that_nobody_can_wait_for() -> None:
    assert stuck(()) == ""
    assert stuck((a_rank(0), a_rank(1))) == ""
    assert stuck((a_rank(0), a_rank(1, code=1, raised="ValueError: no"))) == ""
    assert stuck((a_rank(0, code=0), a_rank(1, raised="ValueError: no"))) == ""
