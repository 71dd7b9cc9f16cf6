"""Every example, run as its header says, does what it promises."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from for_every import for_every
from ssh_hosts import Rack

from oarsman import __version__

from .conftest import MPIS, ROOT, Oarsman

EXAMPLES = sorted(
    path.name for path in (ROOT / "examples").iterdir() if path.is_dir() and path.name not in ("seeds", "python")
)
PROGRAMS = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "examples" / "python").glob("*.py"))
EVERY_MPI = ["openmpi5", "openmpi4", "mpich"]

pytestmark = pytest.mark.mpi


def hosts_by_rank(output: str, pattern: str) -> dict[int, str]:
    return {int(rank): host for rank, host in re.findall(pattern, output)}


def two_by_two(job: str) -> dict[int, str]:
    return {rank: f"{job}-worker-{rank // 2}" for rank in range(4)}


def test_examples_validate(oarsman: Oarsman) -> None:
    oarsman("validate", *(f"examples/{example}/{example}.yaml" for example in EXAMPLES))


@for_every(EXAMPLES)
def test_an_example_says_how_to_run_it(example: str) -> None:
    file = Path("examples") / example / f"{example}.yaml"
    header = "".join(line for line in (ROOT / file).read_text().splitlines(True) if line.startswith("#"))
    assert re.search(rf"^#   oarsman (--on kube )?(run|submit) {file}$", header, re.M)


@for_every(EXAMPLES)
def test_an_example_names_an_image_that_has_a_recipe_here(example: str) -> None:
    text = (ROOT / "examples" / example / f"{example}.yaml").read_text()
    (image,) = set(re.findall(r"^ +image: (\S+)$", text, re.M))
    recipes = {"openmpi": ROOT / "deploy" / "images" / "openmpi", "examples": ROOT / "examples"}
    name, tag = image.removeprefix("oarsman/").split(":")
    assert tag == __version__
    assert (recipes[name] / "Dockerfile").exists()


def test_the_image_of_the_examples_is_built_on_that_of_open_mpi() -> None:
    recipe = (ROOT / "examples" / "Dockerfile").read_text()
    assert f"ARG VERSION={__version__}\n" in recipe
    assert "FROM ${PREFIX}/openmpi:${VERSION}\n" in recipe


def test_the_example_for_clusters_runs_on_one_machine_too(oarsman: Oarsman) -> None:
    output = oarsman.run("hello-cluster")
    assert hosts_by_rank(output, r"Hello from rank (\d) of 4 on (\S+)") == two_by_two("hello-cluster")


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_python_program_runs_its_jobs(oarsman: Oarsman, program: str) -> None:
    done = subprocess.run(
        [str(ROOT / ".venv" / "bin" / "python"), "-W", "error", program],
        cwd=ROOT,
        env=oarsman.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, done.stdout
    assert (ROOT / program).read_text().partition("# prints: ")[2].splitlines()[0] in done.stdout


@pytest.mark.parametrize("mpi", EVERY_MPI)
def test_hello_greets_from_two_named_workers(oarsman_with: Callable[[str], Oarsman], mpi: str) -> None:
    oarsman = oarsman_with(mpi)
    output = oarsman.run("hello")
    assert hosts_by_rank(output, r"Hello from rank (\d) of 4 on (\S+)") == two_by_two("hello")
    assert re.search(r"^hello\s.*Succeeded", oarsman("list"), re.M)


@pytest.mark.parametrize("mpi", EVERY_MPI)
def test_greetings_c_is_compiled_and_greets_in_order(oarsman_with: Callable[[str], Oarsman], mpi: str) -> None:
    output = oarsman_with(mpi).run("greetings-c")
    found = re.findall(r"Greetings from process (\d) of 4 on (\S+)!", output)
    assert found == [(str(rank), host) for rank, host in two_by_two("greetings-c").items()]


@pytest.mark.parametrize("mpi", EVERY_MPI)
def test_allreduce_sums_right(oarsman_with: Callable[[str], Oarsman], mpi: str) -> None:
    assert "The sum is right on every rank" in oarsman_with(mpi).run("allreduce")


@pytest.mark.parametrize("mpi", EVERY_MPI)
def test_mpi_io_writes_one_file_from_all_ranks(oarsman_with: Callable[[str], Oarsman], mpi: str) -> None:
    output = oarsman_with(mpi).run("mpi-io")
    assert hosts_by_rank(output, r"Rank (\d) on (\S+) wrote numbers") == two_by_two("mpi-io")
    assert "200000 numbers, all in place" in output


@pytest.mark.parametrize("mpi", ["openmpi5", "openmpi4"])
def test_the_benchmark_job_runs_with_its_old_launch_line(oarsman_with: Callable[[str], Oarsman], mpi: str) -> None:
    output = oarsman_with(mpi).run("benchmarks")
    lines = re.findall(r"(\d+)\s+images/sec: [\d.]+ \+/- [\d.]+ \(jitter = [\d.]+\)\s+[\d.]+", output)
    assert sorted(lines, key=int) == sorted(
        [step for step in ("1", *map(str, range(10, 101, 10))) for _ in range(2)], key=int
    )
    assert re.search(r"total images/sec: \d+\.\d\d", output)


@pytest.mark.parametrize("mpi", EVERY_MPI)
def test_a_failing_rank_gives_its_code_and_is_named_with_its_host(
    oarsman_with: Callable[[str], Oarsman], mpi: str
) -> None:
    oarsman = oarsman_with(mpi)
    output = oarsman.run("fails-on-one-rank", code=3)
    assert "data/part-1.csv: no such file" in output
    described = oarsman("describe", "fails-on-one-rank")
    assert re.search(r"rank 1.*fails-on-one-rank-worker-0", described, re.I)
    assert "data/part-1.csv: no such file" in described
    assert re.search(r"fails-on-one-rank.*Failed", oarsman("list"))


def test_torch_env_ranks_meet_at_the_master(oarsman: Oarsman) -> None:
    output = oarsman.run("torch-env")
    assert "All 4 met at" in output
    expected = {(str(rank), str(rank % 2), f"torch-env-worker-{rank // 2}") for rank in range(4)}
    assert set(re.findall(r"rank (\d) \(local (\d)\) on ([\w-]+)", output)) == expected


def test_the_example_of_a_rack_has_two_ranks_on_each_host(rack: Rack, tmp_path: Path) -> None:
    oarsman = Oarsman(tmp_path / "state", MPIS / "openmpi5")
    oarsman.environment |= {"HOME": rack.environment["HOME"], "PATH": rack.environment["PATH"], "OARSMAN_ON": "ssh"}
    try:
        for inventory in ("hostfile", "hosts.yml"):
            oarsman.environment["OARSMAN_HOSTS"] = str(ROOT / "examples" / "ssh-hosts" / inventory)
            output = oarsman.run("ssh-hosts", "--replace", timeout=120)
            placed = hosts_by_rank(output, r"rank (\d) of 8 on (\S+)")
            assert placed == {rank: f"node{1 + rank // 2}" for rank in range(8)}, inventory
    finally:
        oarsman("supervisor", "stop")


def test_elastic_discovery_sees_workers_come_and_go(oarsman: Oarsman) -> None:
    oarsman("submit", "examples/elastic-discovery/elastic-discovery.yaml")
    with oarsman.follow("elastic-discovery") as lines:

        def wait_for(text: str) -> None:
            said = []
            for line in lines:
                if text in line:
                    return
                said.append(line)
            raise AssertionError(f"'{text}' never came; the log says:\n{''.join(said)}")

        wait_for("2 hosts: elastic-discovery-worker-0:1 elastic-discovery-worker-1:1")
        oarsman("scale", "elastic-discovery", "--workers", "3")
        wait_for("(+elastic-discovery-worker-2:1)")
        oarsman("scale", "elastic-discovery", "--workers", "1")
        wait_for("1 hosts: elastic-discovery-worker-0:1 (-elastic-discovery-worker-1:1 -elastic-discovery-worker-2:1)")
    oarsman("wait", "elastic-discovery", "--for", "succeeded", "--timeout", "30s")
