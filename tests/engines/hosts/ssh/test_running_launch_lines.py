"""Launch lines as people write them run unchanged on SSH hosts: options of other machines, pipes, files, scripts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

import pytest
from ssh_hosts import Rack

from oarsman import names
from oarsman.backends.base import JobRecord
from oarsman.engines.hosts.core.job_spec import read_spec

from ..machine import mpi_folder, mpijob
from .ssh_machine import SshMachine

pytestmark = [pytest.mark.mpi, pytest.mark.timeout(300)]

PROGRAM = """\
import os
from mpi4py import MPI
world = MPI.COMM_WORLD
print(os.uname().nodename, world.allreduce(1), os.environ.get("NCCL_DEBUG", ""), flush=True)
"""
TWICE = """\
set -e
mpirun -np 4 --hostfile /etc/mpi/hostfile hostname
echo between
mpirun -np 2 -map-by node hostname
"""
EXCLUDED = "--mca btl_tcp_if_exclude docker0,lo"
FIRST_THEN_SECOND = (0, 0, 1, 1)
SEED = (
    "--allow-run-as-root -np 4 -bind-to none -map-by slot -x NCCL_DEBUG=INFO -x LD_LIBRARY_PATH -x PATH "
    "-mca pml ob1 -mca btl ^openib"
)
SEED_TAGGED = (
    "--allow-run-as-root -tag-output -timestamp-output --hostfile /etc/mpi/hostfile "
    "-mca btl_tcp_if_exclude docker0,lo,matrixdummy0,matrix0 -x PATH"
)


@dataclass(frozen=True)
class Form:
    """A job of two workers with two slots each: how it is launched, and on which worker each rank shall run."""

    name: str
    line: str  # {python} is the one that goes with the MPI, {job} the job's name
    ranks: tuple[int, ...] = FIRST_THEN_SECOND
    mpis: tuple[str, ...] = ("debian", "openmpi5")

    def words(self, mpi: str) -> list[str]:
        line = self.line.format(python=mpi_folder(mpi) / "bin/python3", job=self.job(mpi))
        return ["sh", "-c", line.removeprefix("sh: ")] if line.startswith("sh: ") else line.split()

    def job(self, mpi: str) -> str:
        return f"{self.name}-{mpi}"


HYDRA = ("mpich", "intel")
FORMS = [
    Form("hostfile", "mpirun -np 4 --hostfile /etc/mpi/hostfile {python} program.py"),
    Form("seed", f"mpirun {SEED} {{python}} program.py"),
    Form("seed-tagged", f"/usr/local/openmpi-3.1.0/bin/orterun {SEED_TAGGED} {{python}} program.py"),
    Form("excluded", "mpirun -np 4 --mca btl_tcp_if_exclude docker0,lo {python} program.py"),
    Form("by-node", "mpirun -np 4 --map-by node hostname", (0, 1, 0, 1)),
    Form("per-node", "mpirun -npernode 1 hostname", (0, 1), ("debian",)),
    Form("ppr", "mpirun --map-by ppr:1:node hostname", (0, 1)),
    Form("named", "mpirun -np 2 --host {job}-worker-1:2 hostname", (1, 1)),
    Form("both-named", "mpirun --host {job}-worker-1,{job}-worker-0 hostname", (0, 1), ("debian",)),
    Form("both-named", "mpirun --host {job}-worker-1,{job}-worker-0 hostname", (1, 0), ("openmpi5",)),
    Form("tagged", "mpirun --tag-output -np 4 hostname"),
    Form("hostfile", "mpirun -n 4 -f /etc/mpi/hostfile {python} program.py", mpis=HYDRA),
    Form("per-node", "mpiexec -ppn 1 -n 2 hostname", (0, 1), HYDRA),
    Form("named", "mpiexec.hydra -ppn 1 -n 2 -hosts {job}-worker-1,{job}-worker-0 hostname", (1, 0), HYDRA),
    Form("quiet", "sh: mpirun -np 4 hostname 2>&1", mpis=("debian", "openmpi5", *HYDRA)),
]
CASES = [(form, mpi) for form in FORMS for mpi in form.mpis]
IN_SHELL = {
    "piped": "mpirun -np 4 hostname 2>/dev/null | tee out.txt",
    "redirected": "mpirun -np 4 hostname > redirected.txt && wc -l < redirected.txt",
    "script": "sh twice.sh",
    "smaller": "mpirun -np 4 hostname; mpirun -np 1 hostname",
    "larger": "mpirun -np 1 hostname; mpirun -np 4 hostname",
    "excluded": f"sh -c 'mpirun -np 4 $OPTIONS {mpi_folder('debian')}/bin/python3 program.py'",
    "own-tags": "mpirun --tag-output -np 4 hostname | sort > tags.txt",
}


@pytest.fixture(scope="module")
def submitter(shared_rack: Rack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshMachine]:
    """With all jobs of this module submitted: each test waits for its own."""
    with closing(SshMachine(tmp_path_factory.mktemp("lines") / "state", shared_rack)) as machine:
        (machine.folder / "program.py").write_text(PROGRAM)
        (machine.folder / "twice.sh").write_text(TWICE)
        for form, mpi in CASES:
            given = {"oarsman.dev/inventory": str(machine.inventory_with(mpi))}
            image = {"image": "any"} if form.line.startswith("/") else {}  # which alone has that path
            machine.submit(mpijob(form.job(mpi), form.words(mpi), slots=2, annotations=given, launcher=image))
        for name, line in IN_SHELL.items():
            env = [{"name": "OPTIONS", "value": EXCLUDED}]
            machine.submit(mpijob(name, ["sh", "-c", line], slots=2, launcher={"env": env}))
        yield machine


def succeeded(submitter: SshMachine, name: str) -> JobRecord:
    record = submitter.until_finished(f"default/{name}")
    assert record.status.is_true(names.SUCCEEDED), f"{record.status}\n{submitter.log_of(f'default/{name}')}"
    return record


def lines(submitter: SshMachine, name: str) -> list[tuple[int | None, str]]:
    return [(line.rank, line.text) for line in submitter.jobs.logs(f"default/{name}") if line.stream == "out"]


@pytest.mark.parametrize(("form", "mpi"), CASES, ids=[form.job(mpi) for form, mpi in CASES])
def test_ranks_run_where_the_launch_line_wants_them(form: Form, mpi: str, submitter: SshMachine) -> None:
    name = form.job(mpi)
    record = succeeded(submitter, name)
    assert record.status.placement == {rank: f"{name}-worker-{index}" for rank, index in enumerate(form.ranks)}
    machines = submitter.machine_of(record.job.key)
    written = {rank: text.split()[0] for rank, text in lines(submitter, name) if rank is not None}
    assert written == {rank: machines[f"{name}-worker-{index}"] for rank, index in enumerate(form.ranks)}


def test_variables_that_the_launch_line_names_reach_all_ranks(submitter: SshMachine) -> None:
    succeeded(submitter, "seed-debian")
    assert [text.split()[1:] for _, text in lines(submitter, "seed-debian")] == [["4", "INFO"]] * 4


def file_of_launcher(submitter: SshMachine, name: str, file: str) -> list[str]:
    host = read_spec(str(submitter.paths.job(submitter.uid(f"default/{name}")))).hosts[f"{name}-launcher"]
    return submitter.rack.host(host.machine).path(f"{host.folder}/{file}").read_text().splitlines()


def two_by_two(submitter: SshMachine, name: str) -> list[str]:
    machines = submitter.machine_of(f"default/{name}")
    return [machines[f"{name}-worker-{index}"] for index in FIRST_THEN_SECOND]


def test_what_goes_through_a_pipe_is_in_the_file_and_in_the_log(submitter: SshMachine) -> None:
    succeeded(submitter, "piped")
    expected = sorted(two_by_two(submitter, "piped"))
    assert sorted(file_of_launcher(submitter, "piped", "out.txt")) == expected
    assert sorted(text for _, text in lines(submitter, "piped")) == expected


def test_what_goes_to_a_file_is_as_the_ranks_wrote_it(submitter: SshMachine) -> None:
    succeeded(submitter, "redirected")
    assert sorted(file_of_launcher(submitter, "redirected", "redirected.txt")) == sorted(
        two_by_two(submitter, "redirected")
    )
    assert [(rank, text.strip()) for rank, text in lines(submitter, "redirected")] == [(None, "4")]


def test_tags_that_the_user_asks_for_are_in_the_users_file(submitter: SshMachine) -> None:
    succeeded(submitter, "own-tags")
    expected = [f"[1,{rank}]<stdout>:{machine}" for rank, machine in enumerate(two_by_two(submitter, "own-tags"))]
    assert file_of_launcher(submitter, "own-tags", "tags.txt") == expected


def test_a_script_may_launch_more_than_once(submitter: SshMachine) -> None:
    succeeded(submitter, "script")
    written = lines(submitter, "script")
    machines = two_by_two(submitter, "script")
    ranks = [*enumerate(machines), (0, machines[0]), (1, machines[2])]
    assert sorted(line for line in written if line[0] is not None) == sorted(ranks)
    assert [text for rank, text in written if rank is None] == ["between"]


@pytest.mark.parametrize(("name", "workers"), [("smaller", (0,)), ("larger", FIRST_THEN_SECOND)])
def test_each_launch_of_a_script_has_its_own_plan(name: str, workers: tuple[int, ...], submitter: SshMachine) -> None:
    placement = succeeded(submitter, name).status.placement
    assert placement == {rank: f"{name}-worker-{index}" for rank, index in enumerate(workers)}


def test_a_shell_may_exclude_interfaces_where_nobody_sees_it_beforehand(submitter: SshMachine) -> None:
    succeeded(submitter, "excluded")
    assert [text.split() for _, text in sorted(lines(submitter, "excluded"))] == [
        [machine, "4"] for machine in two_by_two(submitter, "excluded")
    ]
