"""Ranks run where the plan says, with every MPI, and a job that ran elsewhere is not called a success."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from oarsman import names

from .machine import EVERY_MPI, ONE_OF_EACH, Machine, mpi_folder, mpijob, python

WHERE = "from mpi4py import MPI; print(MPI.COMM_WORLD.rank, MPI.COMM_WORLD.size, MPI.Get_processor_name(), flush=True)"

pytestmark = pytest.mark.mpi


@pytest.mark.parametrize("mpi", EVERY_MPI)
def test_six_ranks_land_on_three_hosts_two_by_two(mpi: str, machine_with: Callable[..., Machine]) -> None:
    machine = machine_with(mpi)
    key = machine.submit(mpijob("spread", ["mpirun", "-n", "6", *python(WHERE)], workers=3, slots=2))
    record = machine.until_finished(key)
    assert record.status.is_true(names.SUCCEEDED), machine.log_of(key)
    assert sorted(machine.rank_lines(key)) == [f"{rank} 6 spread-worker-{rank // 2}" for rank in range(6)]
    assert record.status.placement == {rank: f"spread-worker-{rank // 2}" for rank in range(6)}


@pytest.mark.parametrize("mpi", EVERY_MPI)
def test_one_rank_per_node_is_counted_over_the_nodes(mpi: str, machine_with: Callable[..., Machine]) -> None:
    machine = machine_with(mpi)
    option = ["-ppn", "1", "-n", "3"] if mpi in ("mpich", "intel") else ["--map-by", "node", "-n", "3"]
    key = machine.submit(mpijob("nodes", ["mpirun", *option, *python(WHERE)], workers=3, slots=2))
    record = machine.until_finished(key)
    assert record.status.is_true(names.SUCCEEDED), machine.log_of(key)
    assert record.status.placement == {rank: f"nodes-worker-{rank}" for rank in range(3)}


@pytest.mark.parametrize("mpi", ["openmpi5", "debian"])
def test_the_seeds_launch_line_runs_unchanged(mpi: str, machine_with: Callable[..., Machine]) -> None:
    machine = machine_with(mpi)
    seed = [
        "mpirun",
        "--allow-run-as-root",
        "-np",
        "2",
        "-bind-to",
        "none",
        "-map-by",
        "slot",
        "-x",
        "NCCL_DEBUG=INFO",
        "-x",
        "LD_LIBRARY_PATH",
        "-x",
        "PATH",
        "-mca",
        "pml",
        "ob1",
        "-mca",
        "btl",
        "^openib",
    ]
    program = "from mpi4py import MPI; import os; print(MPI.Get_processor_name(), os.environ['NCCL_DEBUG'], flush=True)"
    key = machine.submit(mpijob("seed", [*seed, *python(program)], worker={}))
    record = machine.until_finished(key)
    assert record.status.is_true(names.SUCCEEDED), machine.log_of(key)
    ours = [line for line in machine.lines(key) if "INFO" in line]
    assert sorted(ours) == ["seed-worker-0 INFO", "seed-worker-1 INFO"]
    assert any(event.reason == names.REASON_REWRITTEN for event in machine.jobs.events(key))


@pytest.mark.parametrize("mpi", ["openmpi5", "debian"])
def test_the_seeds_tagged_launch_line_runs_unchanged(mpi: str, machine_with: Callable[..., Machine]) -> None:
    """Seed 004: orterun by a path that only its image has, tags and times, a hostfile, interfaces excluded."""
    machine = machine_with(mpi)
    seed = [
        "/usr/local/openmpi-3.1.0/bin/orterun",
        "--allow-run-as-root",
        "-tag-output",
        "-timestamp-output",
        "--hostfile",
        "/etc/mpi/hostfile",
        "-mca",
        "btl_tcp_if_exclude",
        "docker0,lo,matrixdummy0,matrix0",
        "-x",
        "PATH",
        "-x",
        "WORKSPACE",
    ]
    environment = [{"name": "WORKSPACE", "value": "/here"}]
    program = "from mpi4py import MPI; import os; print(MPI.COMM_WORLD.rank, os.environ['WORKSPACE'], flush=True)"
    key = machine.submit(mpijob("tagged", [*seed, *python(program)], launcher={"env": environment, "image": "any"}))
    record = machine.until_finished(key)
    assert record.status.is_true(names.SUCCEEDED), machine.log_of(key)
    tagged = [line for line in machine.lines(key) if "<stdout>" in line]
    assert len(tagged) == 2
    assert machine.paths.job(machine.uid(key)).joinpath("logs/attempt-1/rank-1.out").read_text().startswith("1 /here")


def test_ranks_that_ran_elsewhere_fail_the_job(machine: Machine) -> None:
    """The mistake of others: a launcher that never sees the hostfile runs everything on itself, and succeeds."""
    blind = (
        "unset PRTE_MCA_prte_default_hostfile OMPI_MCA_orte_default_hostfile; exec mpirun --oversubscribe -n 2 hostname"
    )
    key = machine.submit(mpijob("blind", ["sh", "-c", blind]))
    record = machine.until_finished(key)
    failed = record.status.condition(names.FAILED)
    assert failed is not None
    assert failed.reason == names.REASON_PLACEMENT
    assert "blind-launcher" in failed.message


@pytest.mark.parametrize("mpi", ONE_OF_EACH)
def test_each_mpirun_of_a_script_is_compared_with_its_own_words(mpi: str, machine_with: Callable[..., Machine]) -> None:
    """Smaller, as large as there are slots, spelled differently, on some of the hosts; shown is the last."""
    machine = machine_with(mpi)
    lines = [
        "mpirun -n 4 hostname",
        "mpiexec -np 1 hostname",
        "mpirun hostname",
        "mpirun -n 2 -host worlds-worker-1,worlds-worker-0 hostname",
        "mpirun -np 3 hostname",
    ]
    key = machine.submit(mpijob("worlds", ["sh", "-c", "; ".join(lines)], workers=2, slots=2))
    record = machine.until_finished(key)
    assert record.status.is_true(names.SUCCEEDED), (record.status.cause, machine.log_of(key))
    assert record.status.placement == {rank: f"worlds-worker-{rank // 2}" for rank in range(3)}


def test_a_library_of_another_mpi_fails_the_job(machine_with: Callable[..., Machine]) -> None:
    """Hydra starts programs of Open MPI without complaint: as many worlds of one rank, and a success."""
    machine = machine_with("mpich")
    program = str(mpi_folder("openmpi5") / "bin/python3")
    silent = "import warnings; warnings.simplefilter('ignore')\n"
    key = machine.submit(mpijob("mixed", ["mpirun", "-n", "2", program, "-c", silent + WHERE]))
    record = machine.until_finished(key)
    assert machine.rank_lines(key)
    assert record.status.is_true(names.FAILED), machine.log_of(key)
    assert record.status.cause is not None
    assert "its MPI library is that of Open MPI 5, but the launcher is MPICH's" in record.status.cause.summary


def test_the_launcher_alone_can_be_the_host(machine: Machine) -> None:
    document = mpijob("alone", ["mpirun", "-n", "2", *python(WHERE)], slots=2)
    del document["spec"]["mpiReplicaSpecs"]["Worker"]
    key = machine.submit(document)
    record = machine.until_finished(key)
    assert record.status.is_true(names.SUCCEEDED), machine.log_of(key)
    assert sorted(machine.rank_lines(key)) == ["0 2 alone-launcher", "1 2 alone-launcher"]


def test_the_launcher_takes_ranks_when_it_is_a_worker_too(machine: Machine) -> None:
    key = machine.submit(mpijob("both", ["mpirun", "-n", "3", *python(WHERE)], runLauncherAsWorker=True))
    record = machine.until_finished(key)
    assert record.status.is_true(names.SUCCEEDED), machine.log_of(key)
    assert record.status.placement == {0: "both-launcher", 1: "both-worker-0", 2: "both-worker-1"}
