"""Ranks that have loaded another MPI than their launcher's: what is said while they run, and of how they ended."""

from __future__ import annotations

from dataclasses import replace

from oarsman import names
from oarsman.job.observed import Observed, OtherMpi, Phase
from oarsman.plan.reconcile import reconcile
from oarsman.status import causes, other_mpi
from tests.builders import a_job, a_launcher, a_rank, a_worker, at, launched

FIVE_BY_FOUR = OtherMpi(
    library="/env/lib/libmpi.so.40",
    family="Open MPI 5",
    launcher="/usr/bin/mpirun",
    launched_by="Open MPI 4",
    own="/env/bin/mpirun",
)
FIVE_BY_MPICH = OtherMpi(
    library="/env/lib/libmpi.so.40", family="Open MPI 5", launcher="/opt/mpich/bin/mpirun", launched_by="MPICH"
)


def test_which_library_which_launcher_and_what_to_do() -> None:
    ranks = (a_rank(0), a_rank(1, "pi-worker-1.pi.default", other_mpi=FIVE_BY_FOUR))
    assert other_mpi.of_running(ranks, {"pi-worker-1": "node2"}) == (
        "rank 1 on pi-worker-1 (node2) has loaded /env/lib/libmpi.so.40 of Open MPI 5, but /usr/bin/mpirun of "
        "Open MPI 4 started it: such ranks may wait for each other for ever; start it with its own launcher: "
        "--mpi /env/bin/mpirun"
    )
    told = other_mpi.of_running((a_rank(0, other_mpi=FIVE_BY_MPICH),), {})
    assert "its ranks cannot reach each other; name the launcher of its own MPI (--mpi PATH)" in told
    assert told.endswith("or use a program built for MPICH")


def test_nothing_is_said_of_those_that_have_ended() -> None:
    assert other_mpi.of_running((a_rank(0), a_rank(1, code=0, other_mpi=FIVE_BY_FOUR)), {}) == ""


def test_it_is_an_event_once_and_the_message_of_the_running_job() -> None:
    ranks = (a_rank(0, other_mpi=FIVE_BY_FOUR), a_rank(1, other_mpi=FIVE_BY_FOUR))
    seen = Observed(
        status=launched(), workers=(a_worker(0), a_worker(1)), launcher=a_launcher(Phase.RUNNING), ranks=ranks
    )
    first = reconcile(a_job(), seen, at(5))
    assert [event.reason for event in first.events if event.severity.value == "Warning"] == [names.REASON_OTHER_MPI]
    running = first.status.condition(names.RUNNING)
    assert running is not None
    assert running.message == other_mpi.of_running(ranks, {})
    again = reconcile(a_job(), replace(seen, status=first.status), at(6))
    assert again.events == ()
    done = replace(seen, status=first.status, ranks=(a_rank(0, code=0), a_rank(1, code=0)))
    running = reconcile(a_job(), done, at(7)).status.condition(names.RUNNING)
    assert running is not None
    assert running.reason == names.REASON_RUNNING


def test_open_mpi_4_and_5_may_get_along_so_an_end_of_its_own_is_the_cause() -> None:
    failed = a_rank(1, code=3, last_lines=("no input",), finished_at=at(9), other_mpi=FIVE_BY_FOUR)
    seen = Observed(ranks=(a_rank(0), failed))
    cause = causes.of_failed_launcher(a_job(), seen, a_launcher(Phase.FAILED, code=3))
    assert cause.summary == "rank 1 on pi-worker-1 exited with code 3: no input"
    assert cause.hint is None


def test_of_one_that_fails_in_mpi_init_the_hint_names_both() -> None:
    said = "It looks like MPI_INIT failed for some reason; your parallel process is"
    failed = a_rank(1, code=1, last_lines=(said,), finished_at=at(9), other_mpi=FIVE_BY_FOUR)
    seen = Observed(ranks=(a_rank(0), failed))
    assert causes.of_failed_launcher(a_job(), seen, a_launcher(Phase.FAILED, code=1)).hint == (
        "the program has loaded /env/lib/libmpi.so.40 of Open MPI 5, and /usr/bin/mpirun of Open MPI 4 started it; "
        "start it with its own launcher: --mpi /env/bin/mpirun"
    )
