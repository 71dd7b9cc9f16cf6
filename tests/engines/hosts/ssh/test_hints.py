"""Real failures on SSH hosts: what their cause says, and the hint, or that there is none. See ../test_hints.py."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest
import yaml
from ssh_hosts import Rack

from oarsman import names
from oarsman.job.state import Cause, Status

from ..machine import mpi_folder, mpijob
from ..test_hints import is_told
from .ssh_machine import SshMachine

pytestmark = [pytest.mark.mpi, pytest.mark.timeout(300)]
ONLY_ON_NODE1 = "/home/rower/only-there"


@pytest.fixture
def machine(tmp_path: Path, rack: Rack) -> Iterator[SshMachine]:
    """Two hosts, each of which takes one worker of a job."""
    with closing(SshMachine(tmp_path / "state", rack)) as machine:
        yield machine
        rack.repair()


def ended(machine: SshMachine, name: str, words: Sequence[str], mpi: str, *, deadline: int = 200) -> Cause | None:
    document = yaml.safe_load(machine.inventory_with(mpi).read_text())
    document["hosts"] = document["hosts"][:2]
    inventory = machine.inventory.with_name("two.yaml")
    inventory.write_text(yaml.safe_dump(document))
    annotations = {names.ANNOTATION_CODE: "none", names.ANNOTATION_INVENTORY: str(inventory)}
    policy = {"activeDeadlineSeconds": deadline}
    key = machine.submit(
        mpijob(name, ["mpirun", "-n", "4", *words], slots=2, annotations=annotations, run_policy=policy)
    )
    return machine.until_finished(key).status.cause


@pytest.mark.parametrize("mpi", ["debian", "openmpi5", "mpich"])
def test_a_missing_module_is_named_with_the_host_whose_python_lacks_it(mpi: str, machine: SshMachine) -> None:
    cause = ended(machine, "module", ["python3", "-S", "-c", "import mpi4py"], mpi)
    is_told(
        cause, ("on module-worker-", "No module named 'mpi4py'"), "install mpi4py in the Python that ran on module-"
    )


@pytest.mark.parametrize("mpi", ["debian", "openmpi5", "mpich"])
def test_a_python_that_ends_with_an_error_does_not_wait_for_the_others(mpi: str, machine: SshMachine) -> None:
    program = "from mpi4py import MPI; import sys; c = MPI.COMM_WORLD\nif c.rank == 1: sys.exit(17)\nc.barrier()\n"
    cause = ended(machine, "exits", [str(mpi_folder(mpi) / "bin/python3"), "-c", program], mpi)
    is_told(cause, ("rank 1 on exits-worker-0 (node1) exited with code 17",), None)


@pytest.mark.parametrize("mpi", ["debian", "openmpi5", "mpich"])
def test_an_exception_that_the_other_ranks_wait_for_is_told_while_the_job_runs(mpi: str, machine: SshMachine) -> None:
    lines = "'Traceback (most recent call last):\\n  File\\nValueError: no\\n'"
    program = f"if [ $RANK = 1 ]; then printf {lines} >&2; fi; sleep 300"
    annotations = {names.ANNOTATION_CODE: "none", names.ANNOTATION_INVENTORY: str(machine.inventory_with(mpi))}
    words = ["mpirun", "-n", "2", "sh", "-c", program]
    key = machine.submit(mpijob("stuck", words, annotations=annotations))

    def told(status: Status) -> str:
        found = status.condition(names.RUNNING)
        return found.message if found is not None and found.reason == names.REASON_EXCEPTION else ""

    said = told(machine.until(key, lambda status: bool(told(status))).status)
    assert said.startswith("rank 1 on stuck-worker-1 (node1) raised ValueError: no and has not ended"), said
    machine.ok("stop", "stuck")
    machine.until_finished(key)


@pytest.mark.parametrize("mpi", ["debian", "openmpi5", "mpich"])
def test_a_program_that_one_host_lacks_is_named_with_that_host(mpi: str, machine: SshMachine, rack: Rack) -> None:
    rack.host("node1").write(ONLY_ON_NODE1, "#!/bin/sh\necho up\nexec sleep 600\n", user="rower", mode=0o755)
    cause = ended(machine, "lacks", [ONLY_ON_NODE1], mpi)
    is_told(
        cause,
        ("on lacks-worker-1 (node2) ", "code 127", f"{ONLY_ON_NODE1}: command not found"),
        "lacks-worker-1 lacks the program, lacks-worker-0 started it",
    )


MEETS = "from mpi4py import MPI; MPI.COMM_WORLD.Barrier()"


def meeting(mpi: str) -> list[str]:
    """Niced, because ranks that wait for each other use all processors."""
    return ["nice", "-n", "19", str(mpi_folder(mpi) / "bin/python3"), "-c", MEETS]


WALLED = {
    "openmpi5": ("A daemon failed to report back", "let no firewall stand between the hosts"),
    "mpich": ("(Connection timed out)", "a firewall on the way drops the connection"),
}


@pytest.fixture
def walled(rack: Rack) -> Rack:
    """What node1 and node2 send each other vanishes."""
    for here, there in (("node1", "node2"), ("node2", "node1")):
        rack.host(here).faults.drop_connections_from(rack.host(there))
    return rack


@pytest.mark.parametrize("mpi", WALLED)
def test_a_firewall_is_named_once_a_connection_has_timed_out(mpi: str, machine: SshMachine, walled: Rack) -> None:
    for host in ("node1", "node2"):
        walled.host(host).faults.impatient()
    cause = ended(machine, "walled", meeting(mpi), mpi)
    is_told(cause, (WALLED[mpi][0],), WALLED[mpi][1])


@pytest.mark.parametrize("mpi", ["debian", *WALLED])
def test_a_firewall_is_not_guessed_while_nobody_has_complained(mpi: str, machine: SshMachine, walled: Rack) -> None:
    """Open MPI 4 never does."""
    cause = ended(machine, "mute", meeting(mpi), mpi, deadline=10)
    is_told(cause, ("deadline of 10 s",), None)


@pytest.mark.parametrize(
    ("launcher", "mpi", "said"),
    [
        ("openmpi4", "openmpi5", "of Open MPI 5, but {}/bin/mpirun of Open MPI 4 started it: such ranks may wait"),
        (
            "mpich",
            "openmpi4",
            "of Open MPI 4, but {}/bin/mpirun of MPICH started it: its ranks cannot reach each other",
        ),
        (
            "openmpi5",
            "intel",
            "of Intel MPI, but {}/bin/mpirun of Open MPI 5 started it: its ranks cannot reach each other",
        ),
    ],
)
def test_a_library_of_another_mpi_is_told_while_the_job_runs(
    launcher: str, mpi: str, said: str, machine: SshMachine
) -> None:
    """Loaded only: some fail in MPI_Init."""
    program = "import mpi4py, time; mpi4py.rc.initialize = False; from mpi4py import MPI; time.sleep(300)"
    annotations = {names.ANNOTATION_CODE: "none", names.ANNOTATION_INVENTORY: str(machine.inventory_with(launcher))}
    rank = ["env", "-u", "LD_LIBRARY_PATH", str(mpi_folder(mpi) / "bin/python3"), "-c", program]
    key = machine.submit(mpijob("mixed", ["mpirun", "-n", "2", *rank], annotations=annotations))

    def warning(status: Status) -> str:
        found = status.condition(names.RUNNING)
        return found.message if found is not None and found.reason == names.REASON_OTHER_MPI else ""

    told = warning(machine.until(key, lambda status: bool(warning(status))).status)
    assert told.startswith("rank 0 on mixed-worker-0 (node1) has loaded ")
    assert said.format(mpi_folder(launcher)) in told
    machine.ok("stop", "mixed")
    machine.until_finished(key)


@pytest.mark.parametrize("mpi", ["debian", "openmpi5", "mpich", "intel"])
def test_nothing_is_said_of_a_library_that_is_the_launchers(mpi: str, machine: SshMachine) -> None:
    """Whoever looks has gone when the program has ended."""
    program = "from mpi4py import MPI; import time; time.sleep(7); print(MPI.COMM_WORLD.size, flush=True)"
    annotations = {names.ANNOTATION_CODE: "none", names.ANNOTATION_INVENTORY: str(machine.inventory_with(mpi))}
    rank = [str(mpi_folder(mpi) / "bin/python3"), "-c", program]
    key = machine.submit(mpijob("fine", ["mpirun", "-n", "2", *rank], annotations=annotations))
    assert machine.until_finished(key).status.is_true(names.SUCCEEDED), machine.log_of(key)
    assert [rank.other_mpi for rank in machine.seen(key).ranks.values()] == [None, None]
