"""What ranks on SSH hosts find around them: variables, a place to meet, the folder of the job."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from ssh_hosts import Rack

from oarsman import names

from ..machine import mpi_folder, mpijob
from .ssh_machine import SshMachine

pytestmark = [pytest.mark.mpi, pytest.mark.timeout(300)]

MPIS = ("debian", "openmpi5", "mpich", "intel")
# Meets the others as PyTorch does: rank 0 listens, all others come. No MPI library is needed for that.
PROGRAM = """\
import json, os, socket, sys, time
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
place = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
met = []
if rank == 0:
    with socket.create_server(place) as server:
        while len(met) < size - 1:
            met += [int(server.accept()[0].recv(9))]
else:
    while True:
        try:
            connection = socket.create_connection(place)
            break
        except ConnectionRefusedError:
            time.sleep(0.05)
    connection.sendall(str(rank).encode())
told = {"node": os.uname().nodename, "folder": os.getcwd(), "met": sorted(met), "variables": dict(os.environ)}
sys.stdout.write(json.dumps(told) + "\\n")
"""
FIELDS = {"MEMBER": "metadata.name", "NODE": "spec.nodeName", "ADDRESS": "status.hostIP"}


def container() -> dict[str, Any]:
    fields = [{"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}} for name, path in FIELDS.items()]
    values = [{"name": "GREETING", "value": 'it\'s a "$HOME" \\ on $(NODE)'}, {"name": "NCCL_ALGO", "value": "Ring"}]
    return {"env": [*fields, *values]}


def job(name: str, mpi: str, *, workers: int = 2, slots: int = 2, **annotations: str) -> dict[str, Any]:
    words = ["mpirun", "-n", str(workers * slots), str(mpi_folder(mpi) / "bin/python3"), "program.py"]
    given = {f"oarsman.dev/{key}": value for key, value in annotations.items()}
    return mpijob(
        name, words, workers=workers, slots=slots, annotations=given, launcher=container(), worker=container()
    )


@pytest.fixture(scope="module")
def submitter(shared_rack: Rack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshMachine]:
    """Some variables are set where jobs are submitted; all jobs of this module are, and each test waits for its own."""
    given = {"NCCL_DEBUG": "WARN", "OMP_NUM_THREADS": "3", "OARSMAN_LEAK": "leak", "LD_LIBRARY_PATH": "/nonexistent"}
    with closing(SshMachine(tmp_path_factory.mktemp("around") / "state", shared_rack, **given)) as machine:
        (machine.folder / "program.py").write_text(PROGRAM)
        for mpi in MPIS:
            inventory = str(machine.inventory_with(mpi))
            machine.submit(job(mpi, mpi, inventory=inventory))
            machine.submit(job(f"sharing-{mpi}", mpi, slots=1, inventory=inventory))
        yield machine


def told(submitter: SshMachine, name: str) -> dict[int, dict[str, Any]]:
    """What each rank wrote."""
    record = submitter.until_finished(f"default/{name}")
    assert record.status.is_true(names.SUCCEEDED), f"{record.status}\n{submitter.log_of(f'default/{name}')}"
    lines = [line for line in submitter.jobs.logs(f"default/{name}") if line.rank is not None and line.stream == "out"]
    return {line.rank: json.loads(line.text) for line in lines if line.rank is not None}


def variables(submitter: SshMachine, name: str, *wanted: str) -> dict[int, tuple[str | None, ...]]:
    found = told(submitter, name)
    return {rank: tuple(found[rank]["variables"].get(variable) for variable in wanted) for rank in sorted(found)}


@pytest.mark.parametrize("mpi", MPIS)
def test_all_ranks_meet_at_the_first(mpi: str, submitter: SshMachine) -> None:
    found = told(submitter, mpi)
    assert found[0]["met"] == [1, 2, 3]
    machines = submitter.machine_of(f"default/{mpi}")
    first = submitter.rack.host(machines[f"{mpi}-worker-0"])
    wanted = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR")
    assert variables(submitter, mpi, *wanted) == {
        rank: (str(rank), "4", str(rank % 2), "2", first.address) for rank in range(4)
    }


@pytest.mark.parametrize("mpi", MPIS)
def test_variables_of_the_submitter_and_of_the_manifest_reach_every_rank(mpi: str, submitter: SshMachine) -> None:
    found = variables(submitter, mpi, "NCCL_DEBUG", "OMP_NUM_THREADS", "NCCL_ALGO", "NCCL_SOCKET_IFNAME")
    assert found == dict.fromkeys(range(4), ("WARN", "3", "Ring", "=eth0"))


@pytest.mark.parametrize("mpi", MPIS)
def test_what_is_meant_for_this_machine_reaches_no_rank(mpi: str, submitter: SshMachine) -> None:
    for each in told(submitter, mpi).values():
        ours = {name for name in each["variables"] if name.startswith("OARSMAN_")}
        assert not ours & {"OARSMAN_LEAK", "OARSMAN_STATE", "OARSMAN_HOSTS"}
        assert each["variables"].get("LD_LIBRARY_PATH") != "/nonexistent"
        assert each["variables"]["HOME"] == "/home/rower"


@pytest.mark.parametrize("mpi", MPIS)
def test_the_programs_of_the_host_come_before_those_beside_the_mpi(mpi: str, submitter: SshMachine) -> None:
    """Open MPI puts its own folder in front; in it may be another python3, as in /usr/bin."""
    found = variables(submitter, mpi, "PATH")
    launcher = str(submitter.jobs.get(f"default/{mpi}").mpi).rpartition("(")[2].rstrip(")")
    folder = launcher.rpartition("/")[0]
    for [path] in found.values():
        first, *_, last = str(path).split(":")
        assert (first != folder, last) == (True, folder), path


@pytest.mark.parametrize("name", [*MPIS, *(f"sharing-{mpi}" for mpi in MPIS)])
def test_every_rank_knows_its_own_worker(name: str, submitter: SshMachine) -> None:
    found = variables(submitter, name, "MEMBER", "NODE", "ADDRESS", "OARSMAN_HOST")
    per_worker = len(found) // 2
    machines = submitter.machine_of(f"default/{name}")
    assert found == {
        rank: (
            worker := f"{name}-worker-{rank // per_worker}",
            machines[worker],
            submitter.rack.host(machines[worker]).address,
            worker,
        )
        for rank in range(len(found))
    }


@pytest.mark.parametrize("mpi", MPIS)
def test_values_with_quotes_and_references_arrive_as_they_are_meant(mpi: str, submitter: SshMachine) -> None:
    [greeting] = variables(submitter, mpi, "GREETING")[0]
    node = submitter.machine_of(f"default/{mpi}")[f"{mpi}-worker-0"]
    assert greeting == f'it\'s a "$HOME" \\ on {node}'


def test_the_folder_is_copied_and_what_changed_is_copied_again(submitter: SshMachine) -> None:
    subfolder = submitter.folder / "sub"
    subfolder.mkdir(exist_ok=True)
    at = {"workingDir": "sub"}
    for text in ("first", "second"):
        (subfolder / "say.sh").write_text(f"echo {text} from $(basename $PWD)\n")
        key = submitter.submit(mpijob(f"{text}-text", ["mpirun", "-n", "2", "sh", "say.sh"], launcher=at, worker=at))
        submitter.until_finished(key)
        assert submitter.rank_lines(key) == [f"{text} from sub"] * 2, submitter.log_of(key)


def test_a_shared_folder_is_used_where_it_is(submitter: SshMachine, shared_rack: Rack) -> None:
    submitter.until_free()  # by node is a wish: where only one host has room, both workers go there
    folder = Path(tempfile.mkdtemp(dir=shared_rack.shared))
    folder.chmod(0o777)
    (folder / "say.sh").write_text("pwd; hostname > written-$RANK\n")
    inventory = submitter.write_inventory("shared.yaml", shared=str(shared_rack.shared))
    given = {names.ANNOTATION_INVENTORY: str(inventory), names.ANNOTATION_PLACEMENT: "node"}
    document = mpijob("in-place", ["mpirun", "-n", "2", "sh", "say.sh"], annotations=given)
    key = submitter.jobs.submit(document, environment=submitter.environment, folder=folder).job.key
    submitter.until_finished(key)
    assert submitter.rank_lines(key) == [str(folder)] * 2, submitter.log_of(key)
    machines = submitter.machine_of(key)
    written = [(folder / f"written-{rank}").read_text().strip() for rank in range(2)]
    assert written == [machines[f"in-place-worker-{rank}"] for rank in range(2)]
    assert len(set(written)) == 2
