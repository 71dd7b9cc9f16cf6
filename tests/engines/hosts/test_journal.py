"""The journal: nothing noted is lost, and nothing of it is left open or lying about."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from oarsman.engines.hosts.core.journal import Journal, JournalReader, add_note
from oarsman.engines.hosts.core.journal_state import Seen
from oarsman.text.sentence import Text, dump


def noted(folder: Path) -> list[str]:
    return [fact["e"] for fact in JournalReader(str(folder)).news()]


def test_the_reserve_is_there_while_the_journal_is_open_and_no_longer(tmp_path: Path) -> None:
    journal = Journal(str(tmp_path))
    assert (tmp_path / "reserve").stat().st_size == 1 << 20
    journal.note("end")
    journal.close()
    assert [path.name for path in tmp_path.iterdir()] == ["journal.jsonl"]
    assert noted(tmp_path) == ["end"]


def test_a_note_from_outside_leaves_no_file_open(tmp_path: Path) -> None:
    before = os.listdir("/proc/self/fd")
    for _ in range(3):
        add_note(str(tmp_path), "launcher-gone", attempt=1)
    assert len(os.listdir("/proc/self/fd")) == len(before)
    assert noted(tmp_path) == ["launcher-gone"] * 3
    assert not (tmp_path / "reserve").exists()


def test_a_note_that_the_full_disk_cut_short_is_written_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(str(tmp_path))
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[:7] if (tmp_path / "reserve").exists() else data))
    journal.note("launcher-end", attempt=1)
    journal.note("end")
    assert noted(tmp_path) == ["launcher-end", "end"]


def test_why_a_host_was_lost_is_noted_with_what_it_is_made_of(tmp_path: Path) -> None:
    why = Text("{who} gave no sign of life for {seconds} seconds", who=Text("it"), seconds=9)
    made = {"pid": 1, "started": "1", "index": 0, "launcher": False, "address": "", "unset": []}
    add_note(str(tmp_path), "host-made", host="a", **made)
    add_note(str(tmp_path), "host-trouble", host="a", reason=why)
    add_note(str(tmp_path), "log-trouble", reason="plain")
    seen = Seen()
    for fact in JournalReader(str(tmp_path)).news():
        seen.learn(fact)
    assert dump(seen.hosts["a"].trouble) == dump(why)
    assert seen.log_trouble == "plain"


def test_a_host_is_lost_from_the_moment_it_was_found_silent_and_not_when_its_last_process_was_gone() -> None:
    """Its ranks are killed in between: they must not look like what came first."""
    seen = Seen()
    made = {"pid": 1, "started": "", "host": "x", "index": 0, "launcher": False, "address": "", "unset": []}
    for moment, fact in enumerate(
        (
            {"e": "host-made", **made},
            {"e": "host-up", "host": "x"},
            {"e": "host-trouble", "host": "x", "reason": "silent"},
            {"e": "host-down", "host": "x", "reason": "killed", "memory": False},
        )
    ):
        seen.learn({"t": float(moment), **fact})
    found = seen.hosts["x"]
    assert (found.trouble, found.down_at) == ("silent", datetime.fromtimestamp(2, UTC))


@pytest.mark.parametrize("lost", [False, True])
def test_hosts_that_ended_after_their_launcher_are_remembered_as_they_were_then(lost: bool) -> None:
    """A job agent that nobody comes back to ends them; only what went before was lost."""
    seen = Seen()
    made = {"pid": 1, "started": "", "host": "x", "index": 0, "launcher": False, "address": "", "unset": []}
    down = {"e": "host-down", "host": "x", "reason": "silent", "memory": False}
    for moment, fact in enumerate(
        (
            {"e": "host-made", **made},
            {"e": "host-up", "host": "x"},
            {"e": "launcher-start", "attempt": 1},
            *([down] if lost else []),
            {"e": "launcher-end", "attempt": 1, "code": 3, "signal": None, "memory": False, "lines": []},
            *([] if lost else [down]),
            {"e": "end"},
        )
    ):
        seen.learn({"t": float(moment), **fact})
    assert not seen.hosts
    assert seen.launcher is not None
    assert [(host.name, host.down_at is not None) for host in seen.launcher.workers] == [("x", lost)]
