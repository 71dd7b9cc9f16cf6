"""A command that starts no MPI is remarked on, if nothing in it may start it after all."""

from __future__ import annotations

from dataclasses import replace

from for_every import for_every

from oarsman.job import launch
from oarsman.job.job import Job
from oarsman.job.remarks import remarks
from tests.builders import a_job


def job_of(*argv: str, workers: int = 2) -> Job:
    job = a_job(workers=workers)
    launcher = replace(job.launcher, containers=(replace(job.launcher.container, command=argv),))
    return replace(job, launcher=launcher, launch=launch.parse(argv))


RUNS_ONCE: tuple[tuple[str, ...], ...] = (
    ("python", "train.py"),
    ("./a.out",),
    ("env", "A=1", "timeout", "9", "./a.out", "--mpi"),
    ("sh", "-c", "cd /work && python train.py"),
    ("python3", "-m", "mpi4py", "train.py"),
)
MAY_START_RANKS: tuple[tuple[str, ...], ...] = (
    ("mpirun", "-np", "2", "./a.out"),
    ("mpirun_rsh", "-np", "2", "./a.out"),
    ("sh", "-c", "if true; then mpiexec ./a.out; fi"),
    ("sh", "-c", "for i in 1 2; do $RUN ./a.out; done"),
    ("bash", "job"),
    ("./job.sh", "--fast"),
    ("torchrun", "--nnodes", "2", "train.py"),
    ("python", "-m", "torch.distributed.run", "train.py"),
    ("srun", "./a.out"),
    ("$(LAUNCH)", "./a.out"),
    ("env",),
    (),
)


@for_every(RUNS_ONCE)
def test_a_program_that_would_run_once_is_remarked_on(argv: tuple[str, ...]) -> None:
    (said,) = remarks(job_of(*argv))
    assert said.startswith("the command does not start MPI, so it runs once, on the launcher")


@for_every(MAY_START_RANKS)
def test_whatever_may_start_ranks_is_not(argv: tuple[str, ...]) -> None:
    assert remarks(job_of(*argv)) == ()


def test_without_workers_there_is_nothing_to_remark_on() -> None:
    assert remarks(job_of("./a.out", workers=0)) == ()
