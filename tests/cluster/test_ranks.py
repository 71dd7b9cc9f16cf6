"""What ranks know of each other on Kubernetes, and what the status knows of them: every MPI, over ssh and by exec."""

from __future__ import annotations

from typing import Any

import pytest

from cluster.jobs import V1, V2BETA1, condition, mpijob
from cluster.together import Place, together

pytestmark = pytest.mark.timeout(900)  # a body waits for others before it, and says more than a time limit

MPIS = {"openmpi4": "OpenMPI", "openmpi5": "OpenMPI", "mpich": "MPICH"}
KINDS = [("openmpi4", V2BETA1), ("openmpi5", V2BETA1), ("mpich", V2BETA1), ("openmpi4", V1), ("openmpi5", V1)]
every_kind = pytest.mark.parametrize(("mpi", "version"), KINDS, ids=[f"{m}-{v.split('/')[1]}" for m, v in KINDS])
OPEN_MPI = [kind for kind in KINDS if kind[0] != "mpich"]
every_open_mpi = pytest.mark.parametrize(
    ("mpi", "version"), OPEN_MPI, ids=[f"{m}-{v.split('/')[1]}" for m, v in OPEN_MPI]
)
ONCE = {"backoffLimit": 0}
NAMES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "NODE_RANK", "MASTER_ADDR")
TELL = f"""
from mpi4py import MPI
import os, sys
world = MPI.COMM_WORLD
assert (world.rank, world.size) == (int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]))
assert 20000 <= int(os.environ["MASTER_PORT"]) < 30000
print("knows", *(os.environ.get(name, "-") for name in {NAMES}), sys.argv[1:], flush=True)
"""
# One rank ends without a word once all run.
SILENT = """
from mpi4py import MPI
import os, time
MPI.COMM_WORLD.Barrier()
if MPI.COMM_WORLD.rank == 2:
    os._exit(3)
time.sleep(600)
"""


def of(mpi: str, version: str, **more: Any) -> dict[str, Any]:
    spec = {"mpiImplementation": MPIS[mpi]} if version == V2BETA1 else {}
    return {"version": version, **spec, **more}


def line(*program: str) -> list[str]:
    return ["mpirun", "-n", "4", *program]


def known(log: str) -> list[str]:
    return sorted(said.split("knows ", 1)[1] for said in log.splitlines() if "knows " in said)


@every_kind
@together
def test_ranks_know_their_place_and_the_status_tells_where_each_ran(place: Place, mpi: str, version: str) -> None:
    words = ["a  b", "c'd", "$HOME", "*"]
    program = ["python3", "-c", TELL, *words]
    job = place.submit(mpijob("knows", place.image(mpi), line(*program), slots=2, **of(mpi, version)))
    status = job.wait_for("Succeeded")
    master = f"knows-worker-0.knows.{place.namespace}.svc"
    assert known(job.log()) == [f"{rank} 4 {rank % 2} 2 {rank // 2} {master} {words}" for rank in range(4)]
    assert status["placement"] == {"knows-worker-0": "0-1", "knows-worker-1": "2-3"}
    assert "oarsman:" not in job.log(), "the log of a job that went well is the job's own"


@every_open_mpi
@together
def test_a_silent_rank_that_fails_is_named_with_its_host_and_code(place: Place, mpi: str, version: str) -> None:
    job = place.submit(
        mpijob(
            "silent",
            place.image(mpi),
            line("python3", "-c", SILENT),
            slots=2,
            policy=ONCE,
            **of(mpi, version),
        )
    )
    status = job.wait_for("Failed")
    cause = status["cause"]
    assert (cause["rank"], cause["host"], cause["exitCode"]) == (2, job.worker(1), 3)
    assert cause["summary"] == f"rank 2 on {job.worker(1)} exited with code 3"
    assert status["placement"] == {"silent-worker-0": "0-1", "silent-worker-1": "2-3"}
    assert f"oarsman: rank 2 on {job.worker(1)} ended with code 3 at " in job.log()


@every_kind
@together
def test_a_python_that_ends_with_an_error_does_not_wait_for_the_others(place: Place, mpi: str, version: str) -> None:
    program = "from mpi4py import MPI; import sys; c = MPI.COMM_WORLD\nif c.rank == 1: sys.exit(17)\nc.barrier()\n"
    job = place.submit(
        mpijob("exits", place.image(mpi), line("python3", "-c", program), slots=2, policy=ONCE, **of(mpi, version))
    )
    cause = job.wait_for("Failed")["cause"]
    assert cause["exitCode"] == 17, cause
    assert cause["rank"] == 1, cause
    if mpi != "mpich":
        assert cause["host"] == job.worker(0)


@pytest.mark.parametrize("mpi", ["openmpi4", "openmpi5"])
@together
def test_an_mpirun_in_a_script_is_seen_too(place: Place, mpi: str) -> None:
    program = f"python3 -c '{SILENT}'"
    script = f'ranks=4\nmpirun -n "$ranks" {program}\ncode=$?\necho "it was $code"\nexit $code'
    job = place.submit(
        mpijob("script", place.image(mpi), ["bash", "-c", script], slots=2, policy=ONCE, **of(mpi, V2BETA1))
    )
    status = job.wait_for("Failed")
    assert "it was 3" in job.log(), "the code of mpirun is its own"
    assert (status["cause"]["rank"], status["cause"]["host"], status["cause"]["exitCode"]) == (2, job.worker(1), 3)
    assert status["placement"] == {"script-worker-0": "0-1", "script-worker-1": "2-3"}


@pytest.mark.parametrize("mpi", MPIS)
@together
def test_ranks_that_ran_elsewhere_are_a_failure_that_names_the_first(place: Place, mpi: str) -> None:
    """An image whose mpirun overlooks the hosts of the job."""
    ways = {
        "openmpi4": "--mca orte_default_hostfile /tmp/hosts",
        "openmpi5": "--prtemca prte_default_hostfile /tmp/hosts",
        "mpich": "-genv NOTHING 1",
    }
    hosts = "localhost:8" if mpi == "mpich" else "localhost slots=8"
    script = f"echo {hosts} >/tmp/hosts; export HYDRA_HOST_FILE=/tmp/hosts; exec mpirun {ways[mpi]} -n 2 true"
    job = place.submit(mpijob("astray", place.image(mpi), ["sh", "-c", script], policy=ONCE, **of(mpi, V2BETA1)))
    failed = condition(job.wait_for("Failed"), "Failed")
    assert failed["reason"] == "WrongPlacement", failed
    assert "rank 0 ran on astray-launcher" in failed["message"]


@together
def test_without_the_shim_all_is_as_mpirun_does_it(place: Place) -> None:
    job = place.submit(
        mpijob(
            "bare",
            place.image(),
            ["mpirun", "-n", "2", "sh", "-c", "echo rank=${RANK-none}; ls /etc/mpi"],
            annotations={"oarsman.dev/shim": "false"},
        )
    )
    status = job.wait_for("Succeeded")
    assert job.log().count("rank=none") == 2
    assert "rank.sh" not in job.log()
    assert "placement" not in status
