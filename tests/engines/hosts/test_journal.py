"""The journal: nothing noted is lost, and nothing of it is left open or lying about."""

from __future__ import annotations

import errno
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from oarsman.engines.hosts.core import journal as notes
from oarsman.engines.hosts.core.journal import (
    Fact,
    Journal,
    JournalReader,
    LauncherStarted,
    Noted,
    RankEnd,
    add_note,
)
from oarsman.engines.hosts.core.journal_state import Seen
from oarsman.engines.hosts.core.messages import RankStarted, WorldStarted
from oarsman.text.sentence import Text, dump

MADE = notes.HostMade("x", index=0, launcher=False, pid=1, started="", address="", unset=[])


def noted(folder: Path) -> list[Fact]:
    return [noted.fact for noted in JournalReader(str(folder)).news()]


def test_the_reserve_is_there_while_the_journal_is_open_and_no_longer(tmp_path: Path) -> None:
    journal = Journal(str(tmp_path))
    assert (tmp_path / "reserve").stat().st_size == 1 << 20
    journal.note(notes.AgentEnded())
    journal.close()
    assert [path.name for path in tmp_path.iterdir()] == ["journal.jsonl"]
    assert noted(tmp_path) == [notes.AgentEnded()]


def test_a_note_from_outside_leaves_no_file_open(tmp_path: Path) -> None:
    before = os.listdir("/proc/self/fd")
    for _ in range(3):
        add_note(str(tmp_path), notes.LauncherGone(1))
    assert len(os.listdir("/proc/self/fd")) == len(before)
    assert noted(tmp_path) == [notes.LauncherGone(1)] * 3
    assert not (tmp_path / "reserve").exists()


def test_a_note_that_the_full_disk_cut_short_is_written_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(str(tmp_path))
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[:7] if (tmp_path / "reserve").exists() else data))
    journal.note(notes.LauncherGone(1))
    journal.note(notes.AgentEnded())
    assert noted(tmp_path) == [notes.LauncherGone(1), notes.AgentEnded()]


TORN = b'{"t":1.0,"e":"laun'  # by a full disk, or a machine that lost its power


def test_a_torn_line_does_not_swallow_the_next_fact(tmp_path: Path) -> None:
    (tmp_path / "journal.jsonl").write_bytes(TORN)
    journal = Journal(str(tmp_path))
    journal.note(notes.LauncherGone(1))
    assert noted(tmp_path) == [notes.LauncherGone(1)]
    with (tmp_path / "journal.jsonl").open("ab") as file:
        file.write(TORN)  # by somebody else, while it is open
    journal.note(notes.LauncherGone(2))
    with (tmp_path / "journal.jsonl").open("ab") as file:
        file.write(TORN)
    add_note(str(tmp_path), notes.LauncherGone(3))
    journal.close()
    assert noted(tmp_path) == [notes.LauncherGone(number) for number in (1, 2, 3)]


def test_a_reader_that_has_seen_a_torn_line_goes_on_after_it(tmp_path: Path) -> None:
    reader = JournalReader(str(tmp_path))
    (tmp_path / "journal.jsonl").write_bytes(TORN)
    assert list(reader.news()) == []
    add_note(str(tmp_path), notes.LauncherGone(1))
    assert [noted.fact for noted in reader.news()] == [notes.LauncherGone(1)]


def test_a_note_from_outside_that_the_full_disk_cut_short_is_not_taken_for_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    with monkeypatch.context() as full:
        full.setattr(os, "write", lambda fd, data: write(fd, data[:7]))
        with pytest.raises(OSError, match="No space left"):
            add_note(str(tmp_path), notes.LauncherGone(1))
    add_note(str(tmp_path), notes.LauncherGone(1))
    assert noted(tmp_path) == [notes.LauncherGone(1)]


@pytest.mark.parametrize("taken", [0, 7])
def test_what_a_disk_without_any_room_does_not_take_is_written_when_there_is_some(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, taken: int
) -> None:
    journal = Journal(str(tmp_path))
    write = os.write

    def full(fd: int, data: bytes) -> int:
        if not taken:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(fd, data[:taken])

    with monkeypatch.context() as disk:
        disk.setattr(os, "write", full)
        for number in (1, 2):
            journal.note(notes.LauncherGone(number))
        assert noted(tmp_path) == []
    journal.catch_up()
    journal.note(notes.LauncherGone(3))
    assert noted(tmp_path) == [notes.LauncherGone(number) for number in (1, 2, 3)]
    journal.close()


def test_why_a_host_was_lost_is_noted_with_what_it_is_made_of(tmp_path: Path) -> None:
    why = Text("{who} gave no sign of life for {seconds} seconds", who=Text("it"), seconds=9)
    for fact in (MADE, notes.HostTrouble("x", why), notes.LogTrouble("plain")):
        add_note(str(tmp_path), fact)
    seen = Seen()
    for news in JournalReader(str(tmp_path)).news():
        seen.learn(news)
    assert dump(seen.hosts["x"].trouble) == dump(why)
    assert seen.log_trouble == "plain"


def test_a_host_is_lost_from_the_moment_it_was_found_silent_and_not_when_its_last_process_was_gone() -> None:
    """Its ranks are killed in between: they must not look like what came first."""
    seen = Seen()
    told: list[Fact] = [
        MADE,
        notes.HostUp("x"),
        notes.HostTrouble("x", "silent"),
    ]
    for moment, fact in enumerate(told):
        seen.learn(Noted(float(moment), fact))
    found = seen.hosts["x"]
    assert (found.up, found.trouble, found.down_at) == (False, "silent", datetime.fromtimestamp(2, UTC))
    seen.learn(Noted(3.0, notes.HostDown("x", "killed", memory=False)))
    assert (found.trouble, found.down_at) == ("silent", datetime.fromtimestamp(2, UTC))


@pytest.mark.parametrize("lost", [False, True])
def test_hosts_that_ended_after_their_launcher_are_remembered_as_they_were_then(lost: bool) -> None:
    """A job agent that nobody comes back to ends them; only what went before was lost."""
    seen = Seen()
    down = notes.HostDown("x", "silent", memory=False)
    told: list[Fact] = [
        MADE,
        notes.HostUp("x"),
        notes.LauncherStarted(1),
        *([down] if lost else []),
        notes.LauncherEnded(1, code=3, signal=None, memory=False, lines=[]),
        *([] if lost else [down]),
        notes.AgentEnded(),
    ]
    for moment, fact in enumerate(told):
        seen.learn(Noted(float(moment), fact))
    assert not seen.hosts
    assert seen.launcher is not None
    assert [(host.name, host.down_at is not None) for host in seen.launcher.workers] == [("x", lost)]


def test_hosts_that_are_told_to_go_while_a_launcher_runs_are_remembered_until_the_next_one() -> None:
    told = [MADE, notes.HostUp("x"), notes.LauncherStarted(1), notes.HostEnding("x"), notes.HostDown("x", "", False)]
    seen = worlds(*told)
    assert seen.taken_away == {"x": datetime.fromtimestamp(3, UTC)}
    seen.learn(Noted(6.0, notes.LauncherStarted(2)))
    assert not seen.taken_away
    ended = notes.LauncherEnded(1, code=0, signal=None, memory=False, lines=[])
    assert not worlds(MADE, notes.LauncherStarted(1), ended, notes.HostEnding("x")).taken_away


JOURNAL_BEFORE = """\
{"t":1.0,"e":"keeper","pid":7,"started":"5@boot"}
{"t":2.0,"e":"host-made","host":"x","index":0,"launcher":false,"pid":8,"started":"6@boot","address":"","unset":["CPU"]}
{"t":3.0,"e":"host-up","host":"x"}
{"t":3.5,"e":"what a later version may say","host":"x"}
{"t":4.0,"e":"launcher-start","attempt":1}
{"t":5.0,"e":"rank-start","rank":0,"size":1,"local":0,"host":"x","attempt":1,"world":"w","pid":9}
{"t":6.0,"e":"rank-end","attempt":1,"world":"w","rank":0,"host":"x","code":3,"signal":null,"memory":false,"lines":["bye"],"reason":""}
{"t":7.0,"e":"host-down","host":"x","index":0,"launcher":false,"reason":"silent","memory":true}
"""


def test_a_journal_of_an_earlier_version_is_read(tmp_path: Path) -> None:
    (tmp_path / "journal.jsonl").write_text(JOURNAL_BEFORE)
    seen = Seen()
    for fact in JournalReader(str(tmp_path)).news():
        seen.learn(fact)
    assert seen.agent == (7, "5@boot")
    host = seen.hosts["x"]
    assert (host.machine, host.trouble, host.memory_limit_hit) == ("", "silent", True)
    rank = seen.ranks[0]
    assert (rank.pid, rank.last_lines, rank.finished_at) == (9, ("bye",), datetime.fromtimestamp(6, UTC))
    assert not seen.ranks_may_fail


def worlds(*told: Fact) -> Seen:
    seen = Seen()
    for moment, fact in enumerate(told):
        seen.learn(Noted(float(moment), fact))
    return seen


def rank_of(world: str, rank: int = 0, size: int = 1, host: str = "x") -> RankStarted:
    return RankStarted(rank, size, 0, host, 1, world)


def end_of(world: str, rank: int = 0) -> RankEnd:
    return RankEnd(1, world, rank, 0, None, False, [], "")


def test_a_log_that_could_not_be_written_is_the_trouble_of_its_own_attempt() -> None:
    full = worlds(notes.LauncherStarted(1), notes.LogTrouble("no room"))
    assert full.log_trouble == "no room"
    assert not worlds(notes.LauncherStarted(1), notes.LogTrouble("no room"), notes.LauncherStarted(2)).log_trouble


def test_worlds_at_the_same_time_keep_all_their_ranks() -> None:
    told = [rank_of(world, rank, 2) for rank in range(2) for world in "ab"]
    seen = worlds(LauncherStarted(1), *told, end_of("a", 1))
    assert [sorted(world.ranks) for world in seen.worlds.values()] == [[0, 1], [0, 1]]
    assert seen.worlds[1, "a"].ranks[1].exit is not None
    assert seen.ranks[1].exit is None  # of the one that began last


def test_a_rank_that_writes_nothing_has_its_cpu_until_that_is_over() -> None:
    told = [LauncherStarted(1), rank_of("a", 1, 2), rank_of("a", 0, 2), notes.RankSilence(1, "a", 1, 0)]
    assert [rank.cpu for rank in worlds(*told).ranks.values()] == [0, None]
    assert [rank.cpu for rank in worlds(*told, notes.RankSilence(1, "a", 1, None)).ranks.values()] == [None, None]
    assert not worlds(*told, notes.RankSilence(1, "a", 7, 0)).ranks.get(7)


@pytest.mark.parametrize("late", [False, True], ids=["told before", "told after its first rank"])
def test_a_world_has_its_own_words(late: bool) -> None:
    told = [WorldStarted(["mpirun", "-n", "1"], 1, "b"), rank_of("b")]
    seen = worlds(LauncherStarted(1), rank_of("a"), *(reversed(told) if late else told))
    lines = [world.line for world in seen.worlds.values()]
    assert [line and line.processes for line in lines] == [None, 1]


def test_words_that_say_nothing_are_not_taken_for_those_of_the_manifest() -> None:
    line = worlds(WorldStarted([], 1, "a"), rank_of("a")).worlds[1, "a"].line
    assert line is not None
    assert line.unclear


def test_of_worlds_without_number_the_newest_are_remembered() -> None:
    """Whatever ranks claim: they are looked at in each turn of the job, while all other jobs wait for theirs."""
    told: list[Fact] = []
    for number in range(3000):
        told += [WorldStarted([], 1, f"{number}{more}") for more in ("", "-more")]
        told.append(rank_of(f"{number}", size=2))
    seen = worlds(LauncherStarted(1), *told)
    assert max(len(seen.worlds), len(seen.launched)) == 1000
    assert next(reversed(seen.worlds)) == (1, "2999")


def test_of_a_thousand_worlds_that_were_alike_one_is_kept_beside_the_newest() -> None:
    told = [fact for number in range(1000) for fact in (rank_of(f"{number}"), end_of(f"{number}"))]
    seen = worlds(LauncherStarted(1), rank_of("other", host="y"), end_of("other"), *told)
    assert list(seen.worlds) == [(1, "other"), (1, "0"), (1, "999")]
    seen.learn(Noted(0.0, LauncherStarted(2)))
    assert not seen.worlds


def test_a_world_keeps_the_hosts_of_its_start_and_the_machines_of_those_that_left() -> None:
    made = MADE._replace(machine="node1")
    told = [notes.Published(["x"]), rank_of("a"), notes.Published([]), notes.HostDown("x", "", False)]
    seen = worlds(LauncherStarted(1), made, *told)
    assert seen.worlds[1, "a"].hosts == ("x",)
    assert (seen.hosts, seen.machines) == ({}, {"x": "node1"})


def test_a_list_that_changes_while_a_launcher_reads_it_counts_as_it_was_and_as_it_is() -> None:
    told = [notes.Published(["x", "y"]), WorldStarted(["mpirun"], 1, "a"), notes.Published(["x"]), rank_of("a")]
    assert worlds(LauncherStarted(1), *told).worlds[1, "a"].hosts == ("x", "y")


@pytest.mark.parametrize(("trouble", "memory", "lost"), [(True, False, "silent"), (False, False, ""), (True, True, "")])
def test_a_launcher_ends_with_its_host_if_that_fell_silent(trouble: bool, memory: bool, lost: str) -> None:
    made = MADE._replace(launcher=True)
    told = [notes.HostTrouble("x", "silent")] if trouble else []
    end = [notes.HostDown("x", "killed", False), notes.LauncherEnded(1, 137, 9, memory, [])]
    launcher = worlds(made, notes.HostUp("x"), LauncherStarted(1), *told, *end).launcher
    assert launcher is not None
    assert launcher.host_lost == lost
    assert launcher.finished_at == datetime.fromtimestamp(3 if lost else 4 + trouble, UTC)
