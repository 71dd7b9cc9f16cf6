from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from oarsman.job.job import Job, Resources, Role
from oarsman.job.launch import LaunchLine
from oarsman.job.observed import Exit, Observed, Phase, RankReport
from oarsman.job.state import Status
from oarsman.status import causes
from oarsman.status.causes import Lost
from tests.builders import MPIRUN, a_job, a_launcher, a_rank, at

JOB = a_job()

OPENMPI4_SIGNAL = """\
--------------------------------------------------------------------------
Primary job  terminated normally, but 1 process returned
a non-zero exit code. Per user-direction, the job has been aborted.
--------------------------------------------------------------------------
--------------------------------------------------------------------------
mpirun noticed that process rank 1 with PID 0 on node pi-worker-0 exited on signal 9 (Killed).
--------------------------------------------------------------------------"""
OPENMPI5_SIGNAL = """\
--------------------------------------------------------------------------
prterun noticed that process rank 1 with PID 19496 on node pi-worker-0 exited on
signal 11 (Segmentation fault).
--------------------------------------------------------------------------"""
OPENMPI4_CODE = """\
ValueError: shapes do not match
--------------------------------------------------------------------------
mpirun detected that one or more processes exited with non-zero status, thus causing
the job to be terminated. The first process to do so was:

  Process name: [[9703,1],1]
  Exit code:    3
--------------------------------------------------------------------------"""
OPENMPI5_CODE = OPENMPI4_CODE.replace("[[9703,1],1]", "[prterun-vm-19439@1,1]").replace("mpirun", "prterun")
OPENMPI4_ABORT = """\
--------------------------------------------------------------------------
MPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD
with errorcode 7.

NOTE: invoking MPI_ABORT causes Open MPI to kill all MPI processes.
--------------------------------------------------------------------------"""
OPENMPI5_ABORT = OPENMPI4_ABORT.replace("with errorcode 7.", "  Proc: [[59890,1],1]\n  Errorcode: 7")
MPICH_ABORT = "application called MPI_Abort(MPI_COMM_WORLD, 7) - process 1"
MPICH = """\
===================================================================================
=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES
=   PID 9665 RUNNING AT pi-worker-0
=   EXIT CODE: 9
=   CLEANING UP REMAINING PROCESSES
=   YOU CAN IGNORE THE BELOW CLEANUP MESSAGES
===================================================================================
YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)
This typically refers to a problem with your application.
Please see the FAQ page for debugging suggestions"""
MPICH_CODE = MPICH.split("YOUR APPLICATION TERMINATED")[0].replace("EXIT CODE: 9", "EXIT CODE: 3")
INTEL = """\
===================================================================================
=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES
=   RANK 0 PID 2447371 RUNNING AT pi-worker-0
=   KILLED BY SIGNAL: 9 (Killed)
===================================================================================

===================================================================================
=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES
=   RANK 1 PID 2447372 RUNNING AT pi-worker-1
=   KILLED BY SIGNAL: 11 (Segmentation fault)
==================================================================================="""


@pytest.mark.parametrize(
    ("text", "summary"),
    [
        (OPENMPI4_SIGNAL, "rank 1 on pi-worker-0 was killed by signal 9 (Killed); who sent it is not known"),
        (OPENMPI5_SIGNAL, "rank 1 on pi-worker-0 was killed by signal 11 (Segmentation fault)"),
        (OPENMPI4_CODE, "rank 1 exited with code 3: ValueError: shapes do not match"),
        (OPENMPI5_CODE, "rank 1 exited with code 3: ValueError: shapes do not match"),
        (OPENMPI4_ABORT, "rank 1 called MPI_Abort with code 7"),
        (OPENMPI5_ABORT, "rank 1 called MPI_Abort with code 7"),
        (
            MPICH_ABORT,
            "rank 1 called MPI_Abort with code 7",
        ),
        (MPICH, "a rank on pi-worker-0 was killed by signal 9 (Killed); who sent it is not known"),
        (
            MPICH_CODE,
            "a rank on pi-worker-0 exited with code 3",
        ),
        (
            "ValueError: bad\n" + MPICH_CODE + "[mpiexec@a] main (mpiexec.c:270): process manager error",
            "a rank on pi-worker-0 exited with code 3: ValueError: bad",
        ),
        (INTEL, "rank 1 on pi-worker-1 was killed by signal 11 (Segmentation fault)"),
    ],
)
def test_without_reports_the_process_the_launcher_blames_is_named(text: str, summary: str) -> None:
    seen = Observed(launcher_lines=tuple(text.splitlines()))
    cause = causes.of_failed_launcher(JOB, seen, a_launcher(Phase.FAILED, code=137))
    assert cause.summary == summary


@pytest.mark.parametrize(
    ("code", "lines", "summary"),
    [
        (3, ("start", "ValueError: bad", ""), "rank 1 on pi-worker-1 exited with code 3: ValueError: bad"),
        (3, (), "rank 1 on pi-worker-1 exited with code 3"),
        (126, (), "rank 1 on pi-worker-1 exited with code 126"),
        (127, (), "rank 1 on pi-worker-1 exited with code 127"),
        (134, ("x",), "rank 1 on pi-worker-1 was killed by signal 6 (Aborted)"),
        (135, (), "rank 1 on pi-worker-1 was killed by signal 7 (Bus error)"),
        (137, (), "rank 1 on pi-worker-1 was killed by signal 9 (Killed); who sent it is not known"),
        (139, (), "rank 1 on pi-worker-1 was killed by signal 11 (Segmentation fault)"),
        (143, (), "rank 1 on pi-worker-1 was killed by signal 15 (Terminated)"),
    ],
)
def test_a_rank_that_failed_is_named_with_what_it_means(code: int, lines: tuple[str, ...], summary: str) -> None:
    seen = Observed(ranks=(a_rank(0), a_rank(1, code=code, last_lines=lines)))
    cause = causes.of_failed_launcher(JOB, seen, a_launcher(Phase.FAILED, code=1))
    assert cause.summary == summary
    assert (cause.rank, cause.host, cause.exit_code, cause.last_lines) == (1, "pi-worker-1", code, lines)


@pytest.mark.parametrize(
    "seen",
    [
        Observed(machines={"pi-worker-1": "node2"}),
        Observed(status=Status(machines={"pi-worker-1": "node2"})),  # the host itself is gone already
    ],
)
def test_the_machine_of_a_host_is_named_with_it(seen: Observed) -> None:
    seen = replace(seen, ranks=(a_rank(0), a_rank(1, code=3)))
    cause = causes.of_failed_launcher(JOB, seen, a_launcher(Phase.FAILED, code=1))
    assert cause.summary == "rank 1 on pi-worker-1 (node2) exited with code 3"
    assert cause.host == "pi-worker-1"


def test_a_memory_limit_that_was_hit_is_said() -> None:
    rank = a_rank(1, exit=Exit(code=137, signal=9, memory_limit_hit=True))
    cause = causes.of_failed_launcher(JOB, Observed(ranks=(rank,)), a_launcher(Phase.FAILED, code=137))
    assert cause.memory_limit_hit
    assert cause.summary == "rank 1 on pi-worker-1 was killed by signal 9 (Killed): its memory limit was reached"
    assert cause.hint is not None
    assert "memory limit" in cause.hint


def ended(rank: int, code: int, when: float) -> RankReport:
    return a_rank(rank, code=code, finished_at=at(when))


@pytest.mark.parametrize(
    ("ranks", "first"),
    [
        pytest.param((ended(0, 1, 5), ended(1, 3, 4)), 1, id="by time"),
        pytest.param((ended(0, 0, 1), ended(1, 3, 4)), 1, id="not the one that was well"),
        pytest.param((ended(0, 143, 3.9), ended(1, 3, 4)), 1, id="clocks that differ a little"),
        pytest.param((a_rank(0, code=143), a_rank(1, code=3)), 1, id="terminated, no times"),
        pytest.param((ended(0, 143, 1), ended(1, 1, 60)), 0, id="terminated long before"),
        pytest.param((ended(0, 143, 1), a_rank(1, code=3)), 1, id="terminated, one time"),
        pytest.param((ended(0, 1, 5), ended(1, 137, 4)), 1, id="killed first"),
        pytest.param((ended(0, 137, 5), ended(1, 2, 4)), 1, id="killed later"),
        pytest.param((a_rank(0), a_rank(1)), None, id="none"),
    ],
)
def test_the_first_failure_is_the_cause_and_not_its_consequences(
    ranks: tuple[RankReport, ...], first: int | None
) -> None:
    found = causes.first_failure(ranks)
    assert (found.rank if found else None) == first


def failed(ranks: tuple[RankReport, ...], words: str, code: int = 1) -> causes.Cause:
    launcher = a_launcher(Phase.FAILED, exit=Exit(code=code))
    return causes.of_failed_launcher(JOB, Observed(ranks=ranks, launcher_lines=tuple(words.splitlines())), launcher)


@pytest.mark.parametrize(("words", "first"), [(MPICH, 0), (OPENMPI5_CODE, 1)])
def test_whom_hydra_kills_for_a_rank_that_was_terminated_is_not_the_cause(words: str, first: int) -> None:
    """Open MPI terminates the others, Hydra kills them."""
    assert failed((ended(0, 143, 1), ended(1, 137, 1.1)), words).rank == first


def test_a_rank_that_was_terminated_first_and_that_the_launcher_blames_is_the_cause() -> None:
    """One that Open MPI ends for it may be killed, if it does not end soon enough."""
    words = "mpirun noticed that process rank 1 with PID 7 on node pi-worker-1 exited on signal 15 (Terminated)."
    cause = failed((ended(0, 137, 1.5), ended(1, 143, 1)), words)
    assert (cause.rank, cause.signal) == (1, 15)


def test_a_rank_that_was_terminated_first_and_whose_code_the_launcher_hands_on_is_the_cause() -> None:
    """Hydra says nothing of a rank whose shell told its end as a code."""
    cause = failed((ended(0, 137, 2.2), ended(1, 143, 1)), "", code=143)
    assert (cause.rank, cause.signal) == (1, 15)


@pytest.mark.parametrize("lines", [("begun 2", "[node3:00000] *** An error occurred in Socket closed"), ("begun 2",)])
def test_a_rank_that_missed_one_that_was_terminated_is_not_the_cause_although_it_was_gone_sooner(
    lines: tuple[str, ...],
) -> None:
    missed = a_rank(2, "pi-worker-1", code=14, finished_at=at(8), last_lines=lines)
    ranks = (a_rank(0, code=143, finished_at=at(9)), a_rank(1, code=143, finished_at=at(8.1)), missed)
    assert failed(ranks, "", code=143).rank == 1


def test_a_rank_that_was_terminated_was_not_left_alone_by_one_that_ended_well() -> None:
    assert failed((ended(0, 0, 1), ended(1, 143, 2)), "").hint is None


def test_the_rank_that_called_abort_is_the_cause_even_if_another_was_gone_sooner() -> None:
    cause = failed((ended(0, 14, 1), ended(1, 7, 2)), OPENMPI5_ABORT, code=7)
    assert (cause.rank, cause.exit_code) == (1, 7)


def test_the_rank_that_called_abort_is_the_cause_even_if_it_never_reported_its_end() -> None:
    cause = failed((ended(0, 14, 1), a_rank(1)), OPENMPI5_ABORT, code=7)
    assert (cause.rank, cause.host, cause.exit_code) == (1, "pi-worker-1", 7)
    assert "called MPI_Abort with code 7" in cause.summary


def test_a_rank_that_called_abort_with_code_1_is_told_in_its_own_words() -> None:
    ranks = (ended(0, 14, 1), replace(ended(1, 1, 2), last_lines=("ValueError: bad",)))
    cause = failed(ranks, OPENMPI5_ABORT.replace("Errorcode: 7", "Errorcode: 1"))
    assert (cause.rank, cause.exit_code, cause.last_lines) == (1, 1, ("ValueError: bad",))


def test_a_rank_that_reports_an_earlier_end_than_the_one_the_launcher_blames_is_the_cause() -> None:
    cause = failed((ended(0, 14, 1), ended(1, 3, 2)), OPENMPI5_CODE, code=3)
    assert (cause.rank, cause.exit_code) == (0, 14)


UNFINALIZED = """\
--------------------------------------------------------------------------
mpirun has exited due to process rank 1 with PID 0 on
node pi-worker-1 exiting improperly. There are three reasons this could occur:
--------------------------------------------------------------------------"""


@pytest.mark.parametrize("others", [(), (ended(0, 143, 1),)])
def test_a_rank_that_ended_without_mpi_finalize_is_the_cause_although_its_code_is_0(
    others: tuple[RankReport, ...],
) -> None:
    cause = failed((*others, ended(1, 0, 1)), UNFINALIZED)
    assert cause.summary == "rank 1 on pi-worker-1 ended without calling MPI_Finalize"
    assert (cause.rank, cause.host) == (1, "pi-worker-1")


def test_a_rank_that_failed_by_itself_is_the_cause_although_another_missed_mpi_finalize() -> None:
    assert failed((ended(0, 3, 1), ended(1, 0, 2)), UNFINALIZED).rank == 0


@pytest.mark.parametrize(("given", "code"), [(7, 7), (256 + 7, 7), (-1, 255)])
def test_a_rank_that_hydra_killed_for_its_abort_has_the_code_it_aborted_with(given: int, code: int) -> None:
    words = MPICH_ABORT.replace("7", str(given))
    cause = failed((ended(0, 137, 1), replace(ended(1, 137, 2), last_lines=("ValueError: bad", words))), "")
    assert cause.summary == f"rank 1 on pi-worker-1 exited with code {code}: ValueError: bad"
    assert (cause.exit_code, cause.signal) == (code, None)


def test_a_rank_that_repeats_what_another_said_did_not_abort() -> None:
    cause = failed((ended(0, 3, 1), replace(ended(2, 137, 2), last_lines=(MPICH_ABORT,))), "")
    assert (cause.rank, cause.exit_code) == (0, 3)


def test_a_lost_host_explains_an_abort_of_a_rank_that_never_reported() -> None:
    lost = Lost(host="pi-worker-1", reason="Evicted", words="it was evicted")
    seen = Observed(launcher_lines=tuple(OPENMPI5_ABORT.splitlines()))
    assert causes.of_failed_launcher(JOB, seen, a_launcher(Phase.FAILED, code=7), (lost,)).host == "pi-worker-1"


@pytest.mark.parametrize(
    ("launch", "code", "summary"),
    [
        (MPIRUN, 3, "a rank exited with code 3"),
        (replace(MPIRUN, in_shell=True), 3, "the launcher exited with code 3"),
        (None, 3, "the launcher exited with code 3"),
        (MPIRUN, None, "the launcher failed"),
    ],
)
def test_the_code_of_mpirun_is_that_of_a_rank_it_does_not_name(
    launch: LaunchLine | None, code: int | None, summary: str
) -> None:
    seen = Observed(launcher_lines=tuple(OPENMPI4_SIGNAL.splitlines()[:4]))
    assert causes.of_failed_launcher(a_job(launch=launch), seen, a_launcher(Phase.FAILED, code=code)).summary == summary


@pytest.mark.parametrize(
    "words",
    [
        "[pi-worker-0:00000] *** An error occurred in Socket closed",
        "An MPI communication peer process has unexpectedly disconnected.  This",
    ],
)
@pytest.mark.parametrize("number", [9, 15])
def test_a_rank_that_only_lost_its_peer_is_not_the_cause(words: str, number: int) -> None:
    noticed = replace(ended(0, 14, 1.5), last_lines=(words,))
    cause = failed((noticed, ended(1, 128 + number, 1)), "")
    assert (cause.rank, cause.signal) == (1, number)
    assert failed((replace(noticed, finished_at=at(0.5)), ended(1, 137, 1)), "", code=14).rank == 1


def test_a_rank_of_which_the_launcher_reports_that_its_peer_was_gone_is_not_the_cause() -> None:
    words = (
        "[pi-worker-0:00000] *** An error occurred in Socket closed\n"
        "[pi-worker-0:00000] *** reported by process [1215102977,0]\n"
        "[pi-worker-0:00000] *** on a NULL communicator"
    )
    cause = failed((ended(0, 14, 1), ended(1, 137, 9)), words)
    assert (cause.rank, cause.signal) == (1, 9)


@pytest.mark.parametrize("code", [4, 7, 9])
def test_an_exit_code_is_not_taken_for_a_signal(code: int) -> None:
    cause = failed((ended(1, code, 1),), "", code=code)
    assert cause.signal is None
    assert cause.hint is None


def test_ranks_that_a_killed_launcher_took_along_are_not_the_cause() -> None:
    launcher = a_launcher(Phase.FAILED, exit=Exit(code=137, signal=9))
    cause = causes.of_failed_launcher(JOB, Observed(ranks=(ended(0, 143, 1), ended(1, 137, 2))), launcher)
    assert cause.rank is None
    assert cause.signal == 9


def test_a_lost_host_comes_before_the_ranks_it_took_along() -> None:
    lost = Lost(host="pi-worker-1", reason="Evicted", words="it was evicted", at=at(4))
    seen = Observed(ranks=(a_rank(0, code=1, finished_at=at(6)), a_rank(1, code=137, finished_at=at(4))))
    cause = causes.of_failed_launcher(JOB, seen, a_launcher(Phase.FAILED, code=1), (lost,))
    assert cause.summary == "pi-worker-1 was lost: it was evicted"
    assert cause.rank == 1


def test_a_rank_that_failed_long_before_a_host_was_lost_is_the_cause() -> None:
    lost = Lost(host="pi-worker-1", reason="Evicted", words="it was evicted", at=at(60))
    seen = Observed(ranks=(a_rank(0, code=3, finished_at=at(4)),))
    cause = causes.of_failed_launcher(JOB, seen, a_launcher(Phase.FAILED, code=3), (lost,))
    assert cause.rank == 0


@pytest.mark.parametrize(
    ("lost_at", "ended_at", "rank"),
    [(4, 4, None), (6, 4, None), (6.1, 4, 0), (None, 4, 0), (4, None, 0), (None, None, 0)],
)
def test_a_host_that_was_lost_no_later_than_a_rank_failed_is_the_cause(
    lost_at: float | None, ended_at: float | None, rank: int | None
) -> None:
    """Clocks differ by up to two seconds."""
    lost = Lost(
        host="pi-worker-1", reason="Evicted", words="it was evicted", at=None if lost_at is None else at(lost_at)
    )
    failed_rank = a_rank(0, code=3, finished_at=None if ended_at is None else at(ended_at))
    cause = causes.of_failed_launcher(JOB, Observed(ranks=(failed_rank,)), a_launcher(Phase.FAILED, code=3), (lost,))
    assert cause.rank == rank


def test_the_rank_on_a_lost_host_is_named_if_it_was_the_only_one() -> None:
    lost = Lost(host="pi-worker-1", reason="OOMKilled", words="it ran out of memory", memory_limit_hit=True)
    for ranks, rank in (
        ((), None),
        ((a_rank(1),), 1),
        ((a_rank(1, "pi-worker-1.pi.x"),), 1),
        ((a_rank(0),), None),
        ((a_rank(1), a_rank(2, "pi-worker-1")), None),
    ):
        cause = causes.of_lost_worker(Observed(ranks=ranks, launcher_lines=("x",)), (lost,))
        assert (cause.rank, cause.host, cause.memory_limit_hit) == (rank, "pi-worker-1", True)
        assert (cause.summary, cause.last_lines) == ("pi-worker-1 was lost: it ran out of memory", ("x",))


def test_a_missing_launcher_is_explained_by_a_lost_host_or_a_rank_that_failed() -> None:
    lost = Lost(host="pi-worker-1", reason="Evicted", words="it was evicted")
    seen = Observed(ranks=(a_rank(0, code=3),))
    assert causes.of_missing_launcher(JOB, seen, (lost,)).host == "pi-worker-1"
    assert causes.of_missing_launcher(JOB, seen).rank == 0
    assert causes.of_missing_launcher(JOB, Observed(ranks=(a_rank(0, code=0),))).rank is None


def test_the_reason_of_a_rank_is_told_unless_the_words_have_it() -> None:
    for reason, summary in (
        ("DiskFull", "rank 1 on pi-worker-1 exited with code 3 (DiskFull)"),
        ("code 3", "rank 1 on pi-worker-1 exited with code 3"),
    ):
        cause = failed((a_rank(1, code=3, reason=reason),), "")
        assert cause.summary == summary
    assert (
        failed((a_rank(0, code=0, reason="DiskFull"),), "").summary
        == "rank 0 on pi-worker-0 exited with code 0 (DiskFull)"
    )


def test_only_the_last_lines_are_kept() -> None:
    lines = tuple(str(number) for number in range(100))
    assert failed((a_rank(1, code=3, last_lines=lines),), "").last_lines == lines[80:]


@pytest.mark.parametrize(
    ("launcher", "lines", "summary"),
    [
        (
            a_launcher(Phase.FAILED, code=1),
            ("mpirun has detected an attempt to run as root.", "", "Running as root is"),
            "the launcher exited with code 1: mpirun has detected an attempt to run as root.",
        ),
        (a_launcher(Phase.FAILED, code=1), (), "the launcher exited with code 1: it wrote nothing"),
        (a_launcher(Phase.FAILED, code=1), ("", " "), "the launcher exited with code 1: it wrote nothing"),
        (a_launcher(Phase.FAILED, code=2), ("-" * 40,), "the launcher exited with code 2"),
        (a_launcher(Phase.FAILED), ("-" * 40,), "the launcher failed"),
        (
            a_launcher(Phase.FAILED, code=255),
            ("bye",),
            "the launcher ended with code 255, as it does when a host or the daemon on it is lost: bye",
        ),
        (
            a_launcher(Phase.FAILED, reason="OOMKilled", message="limit 1Gi"),
            (),
            "the launcher failed (OOMKilled): limit 1Gi",
        ),
        (
            a_launcher(Phase.FAILED, code=2),
            ("its own words", "-" * 40, "a report"),
            "the launcher exited with code 2: its own words",
        ),
        (
            a_launcher(Phase.FAILED, code=2),
            ("-" * 40, "a report", "goes on"),
            "the launcher exited with code 2: a report",
        ),
    ],
)
def test_the_launcher_alone_is_blamed_with_its_own_words(
    launcher: object, lines: tuple[str, ...], summary: str
) -> None:
    cause = causes.of_failed_launcher(JOB, Observed(launcher_lines=lines), launcher)  # type: ignore[arg-type]
    assert cause.summary == summary


def test_the_summary_is_one_line_of_bounded_length() -> None:
    rank = a_rank(1, code=3, last_lines=("a\tb\r" + "x" * 1000,))
    summary = causes.of_failed_launcher(JOB, Observed(ranks=(rank,)), a_launcher(Phase.FAILED, code=3)).summary
    assert len(summary) == 300
    assert summary.endswith("x...")
    assert "\r" not in summary


def test_hints_come_from_the_rank_first_and_then_from_the_launcher() -> None:
    rank = a_rank(1, code=1, last_lines=("ModuleNotFoundError: No module named 'torch'",))
    lines = ("There are not enough slots available in the system",)
    cause = causes.of_failed_launcher(
        JOB, Observed(ranks=(rank,), launcher_lines=lines), a_launcher(Phase.FAILED, code=1)
    )
    assert cause.hint is not None
    assert "install the module" in cause.hint


def test_a_launcher_that_vanished_is_called_lost() -> None:
    cause = causes.of_missing_launcher(JOB, Observed(launcher_lines=("step 1",)))
    assert cause.summary == "launcher lost: pi-launcher vanished before it ended"
    assert cause.last_lines == ("step 1",)


@pytest.mark.parametrize(
    ("ranks", "summary", "rank"),
    [
        ((a_rank(0, code=143, finished_at=at(9)), a_rank(1, code=137, finished_at=at(8))), "rank 1", 1),
        ((a_rank(0, code=143, finished_at=at(8)), a_rank(1, code=143, finished_at=at(9))), "rank 1", 1),
        ((a_rank(0, code=143), a_rank(1, code=137), a_rank(2, "pi-worker-1", code=137)), "rank 1, 2", None),
    ],
)
def test_a_host_that_was_scaled_away_is_why_its_ranks_ended(
    ranks: tuple[RankReport, ...], summary: str, rank: int | None
) -> None:
    cause = causes.of_failed_launcher(a_job(workers=1), Observed(ranks=ranks), a_launcher(Phase.FAILED, code=1))
    assert cause.summary == f"pi-worker-1 was removed while {summary} ran there: the number of workers was set to 1"
    assert (cause.host, cause.rank, cause.hint, cause.memory_limit_hit) == ("pi-worker-1", rank, None, False)


@pytest.mark.parametrize(
    "ranks",
    [
        pytest.param((a_rank(0, code=3), a_rank(1, code=143)), id="another failed by itself"),
        pytest.param((a_rank(0, code=137), a_rank(1, code=0)), id="those there had ended"),
        pytest.param(
            (a_rank(0, exit=Exit(code=137, signal=9, memory_limit_hit=True)), a_rank(1, code=143)), id="out of memory"
        ),
    ],
)
def test_a_host_that_was_scaled_away_does_not_explain_what_came_before(ranks: tuple[RankReport, ...]) -> None:
    cause = causes.of_failed_launcher(a_job(workers=1), Observed(ranks=ranks), a_launcher(Phase.FAILED, code=1))
    assert cause.rank == 0


@pytest.mark.parametrize(("went", "rank"), [(7, 1), (8, 1), (9, 0)])
def test_a_rank_that_fails_without_a_word_once_a_host_was_scaled_away_is_not_the_cause(went: float, rank: int) -> None:
    """Open MPI 5 ends a rank that lost its peers with 14; whoever failed before the host went did so by itself."""
    ranks = (a_rank(0, code=14, finished_at=at(8), last_lines=("begun 0",)), a_rank(1))
    seen = Observed(ranks=ranks, taken_away={"pi-worker-1": at(went)})
    cause = causes.of_failed_launcher(a_job(workers=1), seen, a_launcher(Phase.FAILED, code=14))
    assert cause.rank == rank
    assert ("was removed" in cause.summary) == (rank == 1)


TRACEBACK = ("begun 0", "Traceback (most recent call last):", "ModuleNotFoundError: No module named 'mpi4py'")


@pytest.mark.parametrize(
    ("lines", "code", "said", "rank", "told"),
    [
        pytest.param(("begun 0",), 3, "", None, "the launcher exited with code 3: it wrote nothing", id="nobody tells"),
        pytest.param(TRACEBACK, 1, "", 0, "rank 0 on pi-worker-0 exited with code 1: Module", id="one tells"),
        pytest.param(("begun 0",), 9, "", 1, "rank 1 on pi-worker-1 was killed by signal 9", id="somebody killed it"),
        pytest.param(("begun 0",), 9, MPICH, 1, "rank 1 on pi-worker-1 was killed by signal 9", id="Hydra tells so"),
    ],
)
def test_ranks_that_hydra_killed_for_an_abort_nobody_heard_of_are_not_the_cause(
    lines: tuple[str, ...], code: int, said: str, rank: int | None, told: str
) -> None:
    """It kills all of them, ends with the code of the one that aborted, and on a busy machine says nothing."""
    first = a_rank(1, code=137, finished_at=at(8), last_lines=("begun 1",))
    seen = Observed(
        ranks=(first, a_rank(0, code=137, finished_at=at(9), last_lines=lines)), launcher_lines=tuple(said.splitlines())
    )
    cause = causes.of_failed_launcher(JOB, seen, a_launcher(Phase.FAILED, code=code))
    assert cause.summary.startswith(told)
    assert cause.rank == rank


MANY = "9" * 5000


@pytest.mark.parametrize(
    "words",
    [
        f"mpirun noticed that process rank {MANY} with PID 1 on node h exited on signal {MANY}",
        f"Process name: [[1,1],{MANY}]\nExit code: {MANY}",
        f"MPI_ABORT was invoked on rank {MANY} in communicator x\nwith errorcode {MANY}",
        f"application called MPI_Abort(x, {MANY}) - process {MANY}",
        f"BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES RANK {MANY} PID 1 RUNNING AT h EXIT CODE: {MANY}",
        f"An error occurred in Socket closed. reported by process [1,{MANY}]",
        f"*** An error occurred in MPI_X x reported by process [1,{MANY}] *** MPI_ERR_X: x *** MPI_ERRORS_ARE_FATAL",
    ],
)
def test_a_number_that_a_program_writes_without_end_is_none(words: str) -> None:
    """Else the job would never end: its end could not be told."""
    rank = replace(a_rank(0), exit=Exit(code=1), last_lines=tuple(words.split("\n")))
    assert failed((rank,), words).summary


def limited(role: Role, mebibytes: int) -> Role:
    resources = Resources(limits={"memory": Decimal(mebibytes << 20)})
    return replace(role, containers=(replace(role.container, resources=resources),))


def test_the_memory_limit_that_was_reached_is_named_where_it_can_be_raised() -> None:
    assert JOB.worker is not None
    both = replace(JOB, launcher=limited(JOB.launcher, 64), worker=limited(JOB.worker, 300))
    killed = Exit(code=137, signal=9, memory_limit_hit=True)

    def hint_of_rank(job: Job, host: str) -> str | None:
        seen = Observed(ranks=(a_rank(0, code=143), a_rank(1, host, exit=killed)))
        return causes.of_failed_launcher(job, seen, a_launcher(Phase.FAILED, code=137)).hint

    of_worker = (
        "the worker's memory limit is 300Mi: raise it (limits.memory in a manifest, --memory on the command line), "
        "or use less memory per rank"
    )
    of_launcher = "the launcher's memory limit is 64Mi: raise it (limits.memory of the launcher), or use less memory"
    assert hint_of_rank(both, "pi-worker-1.pi.default") == of_worker
    assert hint_of_rank(both, "pi-launcher") == of_launcher
    assert (hint_of_rank(JOB, "pi-worker-1") or "").startswith("raise the memory limit of the role that ran it")
    lines = tuple(OPENMPI4_SIGNAL.splitlines())
    blamed = Observed(launcher_lines=lines, ranks_report=False, out_of_memory=("pi-worker-0",))
    assert causes.of_failed_launcher(both, blamed, a_launcher(Phase.FAILED, code=137)).hint == of_worker
    own = a_launcher(Phase.FAILED, exit=killed)
    assert causes.of_failed_launcher(both, Observed(), own).hint == of_launcher
