"""Jobs run on SSH hosts with every MPI: ranks land where planned, their lines are theirs, nothing stays on a host."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from ssh_hosts import Rack

from oarsman import names
from oarsman.backends.base import JobRecord

from ..machine import EVERY_MPI, mpi_folder, mpijob
from .ssh_machine import SshMachine

pytestmark = [pytest.mark.mpi, pytest.mark.timeout(300)]

RANKS = range(8)
# Lines are written in pieces, as programs without buffers do.
PROGRAM = """\
import os, sys
from mpi4py import MPI
world = MPI.COMM_WORLD
total = world.allreduce(world.rank + 1)
for words in (["rank", world.rank, "of", world.size, "on", os.uname().nodename], ["sum", total], ["[3]", "said"]):
    for word in words:
        os.write(1, f"{word} ".encode())
    os.write(1, b"\\n")
os.write(1, b"50%\\r100%\\n")
print("complaint of", world.rank, file=sys.stderr, flush=True)
for number in range(1000):
    print("line", number, "of a program that has much to say")
"""
ODD_WORDS = ("x  y", 'it\'s "said" \\n $HOME', "ü*?", "", "%s")


def python_of(mpi: str) -> str:
    return str(mpi_folder(mpi) / "bin/python3")


def wide(mpi: str) -> dict[str, Any]:
    return mpijob(f"wide-{mpi}", ["mpirun", "-n", "8", python_of(mpi), "program.py"], workers=4, slots=2)


def pairs(mpi: str) -> dict[str, Any]:
    return mpijob(f"pairs-{mpi}", ["mpirun", "-n", "8", python_of(mpi), "program.py"], workers=8, slots=1)


def three(mpi: str) -> dict[str, Any]:
    program = 'hostname; printf "<%s>\\n" "$@"; seq 1000'
    return mpijob(f"three-{mpi}", ["mpirun", "-n", "3", "sh", "-c", program, "sh", *ODD_WORDS], workers=3, slots=1)


def without_workers(job: dict[str, Any]) -> dict[str, Any]:
    del job["spec"]["mpiReplicaSpecs"]["Worker"]
    return job


def with_annotations(job: dict[str, Any], **given: str) -> dict[str, Any]:
    job["metadata"]["annotations"] |= {f"oarsman.dev/{name}": value for name, value in given.items()}
    return job


@pytest.fixture(scope="module")
def submitter(shared_rack: Rack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshMachine]:
    """With all jobs of this module submitted, one queue for all: each test waits for its own."""
    with closing(SshMachine(tmp_path_factory.mktemp("running") / "state", shared_rack)) as machine:
        (machine.folder / "program.py").write_text(PROGRAM)
        for mpi in EVERY_MPI:
            for job in (wide(mpi), three(mpi)):
                machine.submit(with_annotations(job, inventory=str(machine.inventory_with(mpi))))
        for job in (pairs("debian"), *OTHERS):
            machine.submit(job)
        yield machine


OTHERS = [
    with_annotations(
        mpijob("by-path", ["mpirun", "-n", "2", python_of("openmpi5"), "program.py"]), mpi=str(mpi_folder("openmpi5"))
    ),
    without_workers(mpijob("alone", ["sh", "-c", "hostname; echo again >&2"])),
    without_workers(mpijob("alone-with-ranks", ["mpirun", "-n", "2", "hostname"], slots=2)),
    mpijob("rowing-launcher", ["mpirun", "-n", "6", "hostname"], workers=2, slots=2, runLauncherAsWorker=True),
]


def succeeded(submitter: SshMachine, name: str) -> JobRecord:
    record = submitter.until_finished(f"default/{name}")
    assert record.status.is_true(names.SUCCEEDED), f"{record.status}\n{submitter.log_of(f'default/{name}')}"
    return record


def lines_by_rank(submitter: SshMachine, name: str, stream: str = "out") -> dict[int | None, list[str]]:
    found: dict[int | None, list[str]] = {}
    for line in submitter.jobs.logs(f"default/{name}"):
        if line.stream == stream:
            found.setdefault(line.rank, []).append(line.text)
    return found


@pytest.mark.parametrize("mpi", EVERY_MPI)
def test_eight_ranks_land_on_four_hosts_two_by_two(mpi: str, submitter: SshMachine) -> None:
    name = f"wide-{mpi}"
    record = succeeded(submitter, name)
    assert record.status.placement == {rank: f"{name}-worker-{rank // 2}" for rank in RANKS}
    machines = submitter.machine_of(record.job.key)
    assert [machines[f"{name}-worker-{index}"] for index in range(4)] == ["node1", "node2", "node3", "node4"]
    assert machines[f"{name}-launcher"] == "node1"
    written = lines_by_rank(submitter, name)
    assert {rank: written[rank][0].strip() for rank in RANKS} == {
        rank: f"rank {rank} of 8 on node{rank // 2 + 1}" for rank in RANKS
    }


@pytest.mark.parametrize("mpi", EVERY_MPI)
def test_lines_in_pieces_are_those_of_their_rank_and_stream(mpi: str, submitter: SshMachine) -> None:
    name = f"wide-{mpi}"
    succeeded(submitter, name)
    written = lines_by_rank(submitter, name)
    expected = ["sum 36", "[3] said", "100%"]
    expected += [f"line {number} of a program that has much to say" for number in range(1000)]
    assert {rank: [line.strip() for line in written[rank][1:]] for rank in RANKS} == dict.fromkeys(RANKS, expected)
    complaints = lines_by_rank(submitter, name, "err")
    assert {rank: complaints.get(rank) for rank in RANKS} == {rank: [f"complaint of {rank}"] for rank in RANKS}
    assert submitter.ok("logs", name, "--rank", "3", "--no-tags", "--stderr") == "complaint of 3\n"


def test_workers_that_share_a_machine_have_the_ranks_of_their_slots(submitter: SshMachine) -> None:
    """With every MPI some of three do so below."""
    name = "pairs-debian"
    record = succeeded(submitter, name)
    assert record.status.placement == {rank: f"{name}-worker-{rank}" for rank in RANKS}
    machines = submitter.machine_of(record.job.key)
    assert [machines[f"{name}-worker-{index}"] for index in RANKS] == [f"node{index // 2 + 1}" for index in RANKS]
    written = lines_by_rank(submitter, name)
    assert {rank: written[rank][0].split()[-1] for rank in RANKS} == {rank: f"node{rank // 2 + 1}" for rank in RANKS}


@pytest.mark.parametrize("mpi", EVERY_MPI)
def test_machines_may_have_different_numbers_of_workers(mpi: str, submitter: SshMachine) -> None:
    name = f"three-{mpi}"
    record = succeeded(submitter, name)
    assert record.status.placement == {rank: f"{name}-worker-{rank}" for rank in range(3)}
    machines = submitter.machine_of(record.job.key)
    written = lines_by_rank(submitter, name)
    assert [written[rank][0] for rank in range(3)] == [machines[f"{name}-worker-{rank}"] for rank in range(3)]
    assert len(set(machines.values())) == 2


@pytest.mark.parametrize("mpi", EVERY_MPI)
def test_words_of_a_command_arrive_as_they_are_written(mpi: str, submitter: SshMachine) -> None:
    succeeded(submitter, f"three-{mpi}")
    written = lines_by_rank(submitter, f"three-{mpi}")
    words = [f"<{word}>" for word in ODD_WORDS]
    assert [written[rank][1 : 1 + len(words)] for rank in range(3)] == [words] * 3


@pytest.mark.parametrize("mpi", EVERY_MPI)
def test_many_short_lines_at_once_all_arrive(mpi: str, submitter: SshMachine) -> None:
    succeeded(submitter, f"three-{mpi}")
    written = lines_by_rank(submitter, f"three-{mpi}")
    assert [written[rank][-1000:] for rank in range(3)] == [[str(number) for number in range(1, 1001)]] * 3
    assert {len(written[rank]) for rank in range(3)} == {1 + len(ODD_WORDS) + 1000}


def test_describe_shows_the_ranks_of_each_worker(submitter: SshMachine) -> None:
    succeeded(submitter, "pairs-debian")
    page = submitter.ok("describe", "pairs-debian")
    for rank in RANKS:
        assert re.search(rf"pairs-debian-worker-{rank}\b.*\b{rank}\b", page), page


def test_an_mpi_is_used_by_its_path_though_no_inventory_names_it(submitter: SshMachine) -> None:
    succeeded(submitter, "by-path")
    written = lines_by_rank(submitter, "by-path")
    assert [written[rank][0].split()[:4] for rank in (0, 1)] == [["rank", str(rank), "of", "2"] for rank in (0, 1)]


@pytest.mark.parametrize(("placement", "machines"), [("slot", 2), ("node", 4)])
def test_workers_are_packed_by_slot_and_spread_by_node(placement: str, machines: int, submitter: SshMachine) -> None:
    submitter.until_free()  # where workers go depends on it
    name = f"by-{placement}"
    job = mpijob(name, ["mpirun", "hostname"], workers=4, slots=1)
    submitter.submit(with_annotations(job, placement=placement))
    record = succeeded(submitter, name)
    workers = {member: on for member, on in submitter.machine_of(record.job.key).items() if "worker" in member}
    assert len(workers) == 4
    assert len(set(workers.values())) == machines
    written = lines_by_rank(submitter, name)
    assert {rank: written[rank] for rank in range(4)} == {rank: [workers[f"{name}-worker-{rank}"]] for rank in range(4)}


def test_a_launcher_alone_runs_on_one_host(submitter: SshMachine) -> None:
    succeeded(submitter, "alone")
    [where] = lines_by_rank(submitter, "alone")[None]
    assert where in [host.name for host in submitter.rack]
    assert lines_by_rank(submitter, "alone", "err")[None] == ["again"]


def test_a_launcher_alone_may_have_ranks(submitter: SshMachine) -> None:
    record = succeeded(submitter, "alone-with-ranks")
    assert record.status.placement == dict.fromkeys(range(2), "alone-with-ranks-launcher")


def test_a_launcher_that_is_a_worker_too_has_the_first_ranks(submitter: SshMachine) -> None:
    record = succeeded(submitter, "rowing-launcher")
    name = "rowing-launcher"
    members = [f"{name}-launcher", f"{name}-worker-0", f"{name}-worker-1"]
    assert record.status.placement == {rank: members[rank // 2] for rank in range(6)}
    written = lines_by_rank(submitter, name)
    machines = submitter.machine_of(record.job.key)
    assert {rank: written[rank] for rank in range(6)} == {rank: [machines[members[rank // 2]]] for rank in range(6)}


def test_nothing_stays_on_any_host(submitter: SshMachine) -> None:
    submitter.until_all_finished()
    submitter.nothing_left()
