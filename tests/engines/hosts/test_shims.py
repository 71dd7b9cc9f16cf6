"""What the shims make of their words, without starting anything."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import cast

import pytest

import oarsman
from oarsman.engines.hosts.core import installed_mpi, process, shims
from oarsman.engines.hosts.core.messages import CALLS, RANK_CALLS, RankEnded, RankStarted
from oarsman.engines.hosts.core.shims import mpirun, rank, ssh
from oarsman.job.mpi import Family
from oarsman.job.references import References
from oarsman.text.sentence import Text


@pytest.mark.parametrize(
    ("words", "host", "command"),
    [
        (["worker-0", "echo", "hi"], "worker-0", "echo hi"),
        (["-x", "worker-0", "prted"], "worker-0", "prted"),
        (["-o", "BatchMode=yes", "-p", "2222", "me@worker-0", "true"], "worker-0", "true"),
        (["worker-0", "-p", "22", "-o", "A=b", "run me"], "worker-0", "run me"),  # as horovodrun writes it
        (["-q", "--", "worker-0", "true"], "worker-0", "true"),
        ([], "", ""),
    ],
)
def test_ssh_finds_host_and_command(words: list[str], host: str, command: str) -> None:
    assert ssh.split(words) == (host, command)


@pytest.fixture
def inside_a_job(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("OMPI_COMM_WORLD_RANK", "PMI_RANK"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {
        "OARSMAN_RUN": str(tmp_path),
        "OARSMAN_ATTEMPT": "2",
        "OARSMAN_HOSTS": "a-worker-0 a-worker-1",
        "OARSMAN_SLOTS": "1",
        "OARSMAN_MASTER_PORT": "29500",
        "OARSMAN_FAMILY": "Open MPI 5",
        "OARSMAN_RANK": "RANK",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(mpirun, "_hand_over_input", lambda: "n")


def label(through: str = "oen", master: str = "a-worker-0", survives: str = "0") -> str:
    return f"2:{os.getpid()}:{through}:{master}:29500:{survives}:/mpi/mpirun"


@pytest.mark.usefixtures("inside_a_job")
def test_the_rank_stand_in_goes_before_the_program() -> None:
    assert mpirun.compose("mpirun", ["-np", "2", "-bind-to", "none", "python", "-n", "train.py"], "/mpi/mpirun") == [
        "-np",
        "2",
        "--bind-to",
        "none",
        "RANK",
        label(),
        "python",
        "-n",
        "train.py",
    ]


@pytest.mark.usefixtures("inside_a_job")
def test_the_slow_component_is_left_out_of_exclusions_only() -> None:
    assert mpirun.without_slow_start(["-mca", "btl", "^openib", "x"]) == ["-mca", "btl", "^openib,ofi", "x"]
    assert mpirun.without_slow_start(["--mca", "btl", "tcp,self", "x"]) == ["--mca", "btl", "tcp,self", "x"]
    assert mpirun.without_slow_start(["--mca", "btl", "^ofi", "x"]) == ["--mca", "btl", "^ofi", "x"]


@pytest.mark.usefixtures("inside_a_job")
def test_the_master_is_where_rank_0_is_planned() -> None:
    assert label(master="a-worker-1") in mpirun.compose(
        "mpirun", ["-host", "a-worker-1", "-n", "1", "hostname"], "/mpi/mpirun"
    )


@pytest.mark.usefixtures("inside_a_job")
def test_a_version_question_is_passed_on_as_it_is() -> None:
    assert mpirun.compose("mpirun", ["--version"], "/mpi/mpirun") == ["--version"]


@pytest.mark.usefixtures("inside_a_job")
def test_ranks_may_fail_where_the_user_wants_to_survive_that() -> None:
    assert label(survives="1") in mpirun.compose("mpirun", ["--with-ft", "ulfm", "-n", "2", "app"], "/mpi/mpirun")
    assert label(survives="0") in mpirun.compose("mpirun", ["-n", "2", "app", "--mode", "continuous"], "/mpi/mpirun")


@pytest.mark.usefixtures("inside_a_job")
@pytest.mark.parametrize("words", [["--stdin", "all"], ["-s", "1"], ["-stdin=1"]])
def test_a_user_who_says_which_rank_has_the_input_decides_about_it(words: list[str]) -> None:
    assert label(through="oei") in mpirun.compose("mpirun", [*words, "-n", "2", "app"], "/mpi/mpirun")


def test_output_goes_through_mpirun_unless_it_ends_in_the_launchers_log(monkeypatch: pytest.MonkeyPatch) -> None:
    out, err = (str(os.fstat(fd).st_ino) for fd in (1, 2))
    monkeypatch.setenv("OARSMAN_LAUNCHER_PIPES", f"{out}:{err}")
    assert mpirun.streams_to_pass(["-n", "2"]) == ""
    assert mpirun.streams_to_pass(["--tag-output"]) == "oe"
    assert mpirun.streams_to_pass(["--output=tag"]) == "oe"
    monkeypatch.setenv("OARSMAN_LAUNCHER_PIPES", f"0:{err}")
    assert mpirun.streams_to_pass([]) == "o"


def test_a_ranks_path_is_its_hosts_unless_the_user_exported_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OARSMAN_RUN", "/run/x")
    assert rank.path_of_rank("/usr/bin:/venv/bin:/usr/bin", "/venv/bin:/usr/bin", "/usr/bin") == "/venv/bin:/usr/bin"
    assert rank.path_of_rank("/run/x/bin:/venv/bin:/usr/bin", "/venv/bin:/usr/bin", "/usr/bin") == "/venv/bin:/usr/bin"
    assert rank.path_of_rank("/mine:/usr/bin", "/venv/bin:/usr/bin", "/usr/bin") == "/mine:/usr/bin"


VERSIONS = {
    "mpirun (Open MPI) 5.0.11\n\nReport bugs to ...": (Family.OPENMPI5, "5.0.11"),
    "mpirun (Open MPI) 4.1.4\n\nReport bugs to ...": (Family.OPENMPI4, "4.1.4"),
    "mpirun.real (OpenRTE) 3.1.0": None,
    "HYDRA build details:\n    Version:                                 5.0.2\n    CC: cc": (Family.MPICH, "5.0.2"),
    "Intel(R) MPI Library for Linux* OS, Version 2021.18 Build 20260101 (id: x)": (Family.INTEL, "2021.18"),
    "a script of somebody's": None,
    f"mpirun (Open MPI) {'9' * 5000}": (Family.OPENMPI5, "9" * 9),
}


@pytest.mark.parametrize("text", VERSIONS)
def test_an_mpi_is_known_by_its_own_words(text: str) -> None:
    assert installed_mpi.read_version(text) == VERSIONS[text]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$(A)", "1"),
        ("$$(A)", "$(A)"),
        ("$(A)$(B)", "12"),
        ("$(UNKNOWN)", "$(UNKNOWN)"),
        ("$A", "$A"),
        ("$$$(A)", "$1"),
        ("100%$", "100%$"),
    ],
)
def test_references_are_expanded_as_kubernetes_does(text: str, expected: str) -> None:
    assert References().replaced(text, {"A": "1", "B": "2"}) == expected


def test_a_process_is_known_by_its_start_not_its_number_alone() -> None:
    me = process.identify(os.getpid())
    assert me is not None
    assert process.alive(me)
    impostor = process.ProcessId(me.pid, "0@another boot")
    assert not process.alive(impostor)
    assert not process.send_signal(impostor, 0)
    assert process.send_signal(me, 0)


def test_a_dead_process_is_not_alive() -> None:
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert process.identify(pid) is None  # a zombie counts as gone
    os.waitpid(pid, 0)


def test_a_rank_says_what_messages_would_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OARSMAN_LOGS", "/logs")
    who = rank.Who(3, 4, 1, 2, "a-worker-1")
    started = rank.rank_started(who, 2, "17", True)
    assert CALLS.decode(started.encode()) == RankStarted(3, 4, 1, "a-worker-1", 2, "17", True)
    for end in (
        RankEnded(0, None, []),
        RankEnded(137, 9, ['"quoted" \\ \x1b[1m', "\N{SNOWMAN}\ufffd"], "", 17.25),
        RankEnded(74, None, ["x"], Text("its log could not be written: {why}", why="full"), 1.5),
    ):
        said = CALLS.decode(rank.rank_ended(*end).encode())
        assert said == end
        assert type(cast(RankEnded, said).reason) is type(end.reason)
    monkeypatch.delenv("OARSMAN_LOGS")  # of a job that is confined no sentence is taken that would be filled in
    assert RANK_CALLS.decode(rank.rank_ended(*end).encode()) == end


def test_a_rank_loads_next_to_nothing() -> None:
    """There may be a thousand on one machine: each of these takes longer than all else that the shim does."""
    source = str(Path(oarsman.__file__).parents[1])
    program = f"import sys; sys.path.insert(0, {source!r}); import oarsman.engines.hosts.core.shims.rank; "
    words = [sys.executable, "-I", "-S", "-c", program + "print(*sys.modules)"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    slow = {"typing", "json", "re", "enum", "socket", "signal", "selectors", "contextlib", "collections", "functools"}
    assert slow & set(done.stdout.split()) == set()


def test_shims_start_without_site_packages() -> None:
    assert shims.starter()[1:3] == ["-I", "-S"]


@pytest.mark.parametrize(
    "module", ["core.shims.rank", "core.shims.mpirun", "core.shims.ssh", "daemon", "local.host", "ssh.host"]
)
def test_what_a_bare_interpreter_starts_needs_no_package(module: str) -> None:
    source = str(Path(oarsman.__file__).parents[1])
    program = f"import sys; sys.path.insert(0, {source!r}); import oarsman.engines.hosts.{module}"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
