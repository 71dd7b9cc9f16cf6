"""The shims before mpirun and before ranks, and what launch.sh makes of what ranks wrote down."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from pathlib import Path

import pytest

from oarsman.engines.kube import ranks
from oarsman.job import launch
from oarsman.status.tags import Spoken

from .sandbox import Sandbox

LAUNCHER = "pi-launcher.pi.default.svc"
HOSTS = ("pi-worker-0.pi.default.svc", "pi-worker-1.pi.default.svc")
SSH_AGENT = "/etc/mpi/ssh.sh"
NAMES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "NODE_RANK", "MASTER_ADDR", "MASTER_PORT")
OPEN_MPI = {
    "OMPI_COMM_WORLD_RANK": "3",
    "OMPI_COMM_WORLD_SIZE": "8",
    "OMPI_COMM_WORLD_LOCAL_RANK": "1",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
}
HYDRA = {"PMI_RANK": "3", "PMI_SIZE": "8", "MPI_LOCALRANKID": "1", "MPI_LOCALNRANKS": "2"}


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    found = Sandbox(tmp_path)
    found.file("etc/mpi/hostfile", "".join(f"{host} slots=2\n" for host in HOSTS))
    found.file("etc/mpi/ssh_config", "Host *\n")
    found.program("bin/words", "import json, sys\nprint(json.dumps(sys.argv[1:]))".join(("#!/usr/bin/python3\n", "\n")))
    return found


# -- rank.sh --------------------------------------------------------------------------------------------------
def rank(
    sandbox: Sandbox, *program: str, nodes: str = "+0", master: str = "here", **given: str
) -> subprocess.CompletedProcess[str]:
    return sandbox.run("rank.sh", "w", master, "20001", nodes, *program, **(given or OPEN_MPI))


@pytest.mark.parametrize("family", [OPEN_MPI, HYDRA], ids=["Open MPI", "Hydra"])
def test_a_rank_has_the_variables_by_which_others_than_mpi_know_it(sandbox: Sandbox, family: dict[str, str]) -> None:
    asked = "; ".join(f'echo "${{{name}-unset}}"' for name in NAMES)
    done = rank(sandbox, "sh", "-c", asked, nodes="-", **family)
    assert (done.returncode, done.stdout.split()) == (0, ["3", "8", "1", "2", "unset", "here", "20001"])
    assert sandbox.read("run/oarsman/ranks/w") == "w begin 3 8\n"


def test_every_python_of_a_rank_reads_ours_first_unless_others_may_go_on_or_there_is_none(sandbox: Sandbox) -> None:
    def path(nodes: str = "+0", **given: str) -> str:
        return rank(sandbox, "sh", "-c", "echo ${PYTHONPATH-none}", nodes=nodes, **OPEN_MPI, **given).stdout.strip()

    assert path() == "none"
    sandbox.file("etc/mpi/sitecustomize.py", "")
    assert path() == "/etc/mpi"
    assert path(PYTHONPATH="/mine") == "/etc/mpi:/mine"
    assert path("~+0") == "none"


def test_what_the_user_says_of_the_master_counts(sandbox: Sandbox) -> None:
    done = rank(sandbox, "sh", "-c", "echo $MASTER_ADDR $MASTER_PORT", **OPEN_MPI, MASTER_ADDR="mine", MASTER_PORT="1")
    assert done.stdout == "mine 1\n"
    assert rank(sandbox, "sh", "-c", "echo ${MASTER_ADDR-none}", master="-").stdout == "none\n"


@pytest.mark.parametrize(
    ("here", "nodes", "node"),
    [
        ("pi-worker-3", "+0", "3"),
        ("pi-worker-3.pi.default.svc", "+1", "4"),
        ("pi-launcher", "+1", "0"),
        ("a-node", "+0", "none"),
        ("k8s-worker-x", "+0", "none"),
        ("pi-worker-3", "=pi-worker-7:2,pi-worker-7,pi-worker-3.pi:1", "1"),
        ("pi-worker-3", "=pi-worker-3", "0"),
        ("pi-worker-3", "=pi-worker-30,a", "none"),
        ("pi-worker-3", "-", "none"),
    ],
)
def test_hosts_are_counted_as_mpirun_was_told_of_them(sandbox: Sandbox, here: str, nodes: str, node: str) -> None:
    script = shlex.join(["rank.sh", "w", "-", "1", nodes, "sh", "-c", "echo ${NODE_RANK-none}"])
    asked = f"exec unshare --uts sh -c 'hostname {here} && exec /bin/sh /etc/mpi/\"$@\"' - {script}"
    sandbox.file("etc/mpi/asked.sh", asked + "\n")
    assert sandbox.run("asked.sh", **OPEN_MPI).stdout == f"{node}\n"


@pytest.mark.parametrize("words", [["a  b", "", "*", "$HOME", "'", '"', "\\", "-n", "a\nb"], []])
def test_the_words_of_a_program_arrive_as_they_are(sandbox: Sandbox, words: list[str]) -> None:
    assert json.loads(rank(sandbox, "words", *words).stdout) == words


@pytest.mark.parametrize("code", [1, 3, 42, 255])
def test_a_rank_that_fails_writes_down_its_code_and_ends_with_it(sandbox: Sandbox, code: int) -> None:
    done = rank(sandbox, "sh", "-c", f"echo out; echo err >&2; exit {code}")
    assert (done.returncode, done.stdout, done.stderr) == (code, "out\n", "err\n")
    begin, end = sandbox.read("run/oarsman/ranks/w").splitlines()
    assert begin == "w begin 3 8"
    *words, when = end.split()
    assert words == ["w", "end", "3", str(code)]
    assert abs(int(when) / 1000 - os.stat(sandbox.place / "run/oarsman/ranks/w").st_mtime) < 60


@pytest.mark.parametrize("signal", [6, 9, 11, 15])
def test_a_rank_that_a_signal_ended_ends_by_that_signal(sandbox: Sandbox, signal: int) -> None:
    words = ["sh", "/etc/mpi/rank.sh", "w", "-", "1", "-", "sh", "-c", f"kill -{signal} $$"]
    asked = shlex.join(["python3", "-c", f"import subprocess; print(subprocess.call({words}))"])
    sandbox.file("etc/mpi/asked.sh", asked + "\n")
    done = sandbox.run("asked.sh", **OPEN_MPI)
    assert (done.stdout, done.stderr) == (f"{-signal}\n", "")
    assert f"w end 3 {128 + signal} " in sandbox.read("run/oarsman/ranks/w")


def test_a_signal_to_the_group_reaches_the_program_and_its_own_end_counts(sandbox: Sandbox) -> None:
    program = "trap 'echo told; exit 5' TERM; kill -TERM 0; while :; do sleep 0.05; done"
    group = "exec setsid --wait sh /etc/mpi/rank.sh w - 1 - sh -c " + shlex.quote(program)
    sandbox.file("etc/mpi/asked.sh", group + "\n")
    done = sandbox.run("asked.sh", **OPEN_MPI)
    assert (done.returncode, done.stdout) == (5, "told\n")


@pytest.mark.parametrize(("family", "stays"), [(OPEN_MPI, True), (HYDRA, False)], ids=["Open MPI", "Hydra"])
def test_under_hydra_the_program_takes_the_place_of_the_shim(
    sandbox: Sandbox, family: dict[str, str], stays: bool
) -> None:
    """With a process in between mpiexec ended with 9 or 255 for a rank that ended with 3."""
    sandbox.file("etc/mpi/asked.sh", "sh /etc/mpi/rank.sh w - 1 - sh -c 'echo $$; exit 3' & echo $!; wait $!")
    done = sandbox.run("asked.sh", **family)
    assert done.returncode == 3
    assert len(set(done.stdout.split())) == 1 + stays
    assert ("w end 3 3 " in sandbox.read("run/oarsman/ranks/w")) is stays


@pytest.mark.parametrize(
    ("program", "code", "said"),
    [
        ("/no/such", 127, "/no/such: command not found"),
        ("no-such", 127, "no-such: command not found"),
        ("bin", 127, "bin: command not found"),  # a name is looked for on PATH, not here
        ("./bin", 126, "./bin: Permission denied"),
        ("./no-such", 127, "./no-such: command not found in /"),
        ("/etc/passwd", 126, "/etc/passwd: Permission denied"),
    ],
)
def test_a_program_that_cannot_run_is_named_without_a_word_about_the_shim(
    sandbox: Sandbox, program: str, code: int, said: str
) -> None:
    done = rank(sandbox, program)
    assert (done.returncode, done.stderr) == (code, f"{said}\n")


def test_a_host_where_nothing_can_be_written_down_runs_the_rank_all_the_same(sandbox: Sandbox) -> None:
    (sandbox.place / "run/oarsman").rmdir()
    sandbox.file("run/oarsman", "")
    done = rank(sandbox, "sh", "-c", "echo $RANK; exit 4")
    assert (done.returncode, done.stdout, done.stderr) == (4, "3\n", "")


def test_open_mpi_also_finds_a_program_where_it_is(sandbox: Sandbox) -> None:
    sandbox.program("etc/here", "echo found it")
    command = "cd /etc; sh /etc/mpi/rank.sh w - 1 - here"
    sandbox.file("etc/mpi/asked.sh", command + "\n")
    assert sandbox.run("asked.sh", **OPEN_MPI).stdout == "found it\n"
    done = sandbox.run("asked.sh", **HYDRA)
    assert (done.returncode, done.stderr) == (127, "here: command not found\n")


# -- mpirun.sh ------------------------------------------------------------------------------------------------
def shimmed(sandbox: Sandbox, *line: str, **given: str) -> list[str]:
    sandbox.program("bin/mpirun", 'exec words "$@"')
    given = {"OARSMAN_WORLDS": "17", "OARSMAN_LAUNCHER": LAUNCHER, **given}
    words: list[str] = json.loads(sandbox.run("mpirun.sh", "mpirun", *line, **given).stdout)
    return words


LINES = [
    "-n 2 prog",
    "prog a b",
    "--allow-run-as-root -np 2 -bind-to none -map-by slot -x LD_LIBRARY_PATH -mca pml ob1 python3 a.py --n=1",
    "--map-by=ppr:2:node -x A=b sh -c 'a b' x",
    "-np 1 -- prog -n",
    "-n 1 one a : -n 1 -wdir /tmp two b : three",
    "-genv A=b -n 1 prog",
    "-genv A b -n 1 prog",
    "-env A b -n 1 -ppn 2 prog -env",
    "-H pi-worker-0:2,pi-worker-1 prog ''",
]


@pytest.mark.parametrize("line", LINES)
def test_the_shim_goes_before_each_program_as_the_plan_reads_the_line(sandbox: Sandbox, line: str) -> None:
    words = shlex.split(line)
    found = shimmed(sandbox, *words)
    at = found.index("/etc/mpi/rank.sh")
    assert found == launch.with_wrapper(words, found[at : at + 5])


@pytest.mark.parametrize(
    "line",
    [
        "",
        "--version",
        "-n 2",
        "--no-such-option 3 prog",
        "-app file",
        "--path /opt prog",
        "--preload-binary prog",
        "--tv prog",
    ],
)
def test_a_line_that_is_not_understood_is_started_as_it_is(sandbox: Sandbox, line: str) -> None:
    assert shimmed(sandbox, *line.split()) == line.split()
    assert sandbox.read("run/oarsman/worlds") == ""


@pytest.mark.parametrize(
    ("line", "first", "nodes"),
    [
        ("prog", HOSTS[0], "+0"),
        ("-hostfile /etc/mpi/hostfile prog", HOSTS[0], "+0"),
        ("-H pi-worker-1:2,pi-worker-0 prog", "pi-worker-1", "=pi-worker-1:2,pi-worker-0"),
        ("--host localhost prog", LAUNCHER, "=localhost"),
        ("-hostfile /run/mine prog", "pi-worker-9", "-"),
        ("-rankfile /run/mine prog", "-", "-"),
        ("--enable-recovery prog", HOSTS[0], "~+0"),
        ("--with-ft ulfm -H pi-worker-1 prog", "pi-worker-1", "~=pi-worker-1"),
    ],
)
def test_where_rank_0_is_and_how_hosts_are_counted_follows_from_the_line(
    sandbox: Sandbox, line: str, first: str, nodes: str
) -> None:
    sandbox.file("run/mine", "# hosts\n\n pi-worker-9 slots=2\npi-worker-8\n")
    found = shimmed(sandbox, *line.split())
    at = found.index("/etc/mpi/rank.sh")
    assert (found[at + 2], found[at + 4]) == (first, nodes)
    assert 20000 <= int(found[at + 3]) < 30000


def test_a_launcher_that_takes_ranks_is_host_0_by_the_name_others_know(sandbox: Sandbox) -> None:
    sandbox.file("etc/mpi/hostfile", f"pi-launcher slots=1\n{HOSTS[0]} slots=1\n")
    found = shimmed(sandbox, "prog")
    assert (found[2], found[4]) == (LAUNCHER, "+1")


# -- launch.sh ------------------------------------------------------------------------------------------------
# An mpirun that has read the hostfile: one rank on each host, or all of them where it is itself.
MPIRUN = """\
[ "$1" != -H ] || shift 2
for host in $(sed 's/[ :.].*//' /etc/mpi/hostfile); do
    export OMPI_COMM_WORLD_RANK=$((${OMPI_COMM_WORLD_RANK:--1} + 1)) OMPI_COMM_WORLD_SIZE=2
    "$@" || code=$?
    [ -z "$ASTRAY" ] || continue
    echo $host >>/run/oarsman/contacted
    mkdir -p /run/oarsman/of/$host && mv /run/oarsman/ranks/* /run/oarsman/of/$host
done
exit ${code:-0}
"""
WORKER = "cd /run/oarsman/of/{host} && cat *; echo 0"


def launched(sandbox: Sandbox, *command: str, expected: str = "2", **given: str) -> subprocess.CompletedProcess[str]:
    sandbox.program("bin/mpirun", MPIRUN)
    for host in ("pi-worker-0", "pi-worker-1"):
        sandbox.host(host, WORKER.format(host=host))
    given = {"OARSMAN_SHIM": "planned", "OARSMAN_EXPECTED": expected, "OARSMAN_LAUNCHER": LAUNCHER, **given}
    return sandbox.run("launch.sh", *command, OARSMAN_AGENT=SSH_AGENT, **given)


def test_after_a_success_the_termination_message_tells_where_ranks_ran(sandbox: Sandbox) -> None:
    done = launched(sandbox, "mpirun", "true")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert sandbox.read("dev/termination-log") == "oarsman: ranks 0-1 on pi-worker-0..1\n"


@pytest.mark.parametrize(
    "command", [["mpirun", "true"], ["sh", "-c", "mpirun true"], ["sh", "-c", "PATH=$PATH:/x; mpirun true"]]
)
def test_ranks_that_ran_in_the_launcher_are_told_without_asking_anybody(sandbox: Sandbox, command: list[str]) -> None:
    done = launched(sandbox, *command, ASTRAY="yes")
    assert (done.returncode, done.stderr) == (0, "")  # the plan knows better what that means
    assert sandbox.read("dev/termination-log") == "oarsman: ranks 0-1 on pi-launcher\n"
    assert sandbox.calls == []


@pytest.mark.parametrize("astray", ["", "yes"])
def test_a_line_in_a_script_whose_plan_is_not_known_must_still_reach_its_hosts(sandbox: Sandbox, astray: str) -> None:
    done = launched(sandbox, "sh", "-c", "mpirun true", OARSMAN_SHIM="yes", ASTRAY=astray)
    words = [f"oarsman: no rank was started on pi-worker-{index}: mpirun never went there" for index in (0, 1)]
    words.append("oarsman: ranks 0-1 on pi-launcher")
    assert (done.returncode, done.stderr.splitlines()) == ((69, words) if astray else (0, []))


def test_on_the_network_of_nodes_nobody_is_asked(sandbox: Sandbox) -> None:
    assert launched(sandbox, "mpirun", "true", OARSMAN_SHIM="quiet").returncode == 0
    assert (sandbox.calls, sandbox.read("dev/termination-log")) == ([], "")


def test_an_absolute_path_is_as_good_as_a_name(sandbox: Sandbox) -> None:
    launched(sandbox, f"{sandbox.place}/bin/mpirun", "true", ASTRAY="yes")
    assert sandbox.read("dev/termination-log") == "oarsman: ranks 0-1 on pi-launcher\n"


def test_of_ranks_that_did_not_all_write_something_down_nothing_is_said(sandbox: Sandbox) -> None:
    """Then it counts whether mpirun went to its hosts, as it does without the shim."""
    sandbox.host("pi-worker-1", "exit 255")
    done = launched(sandbox, "sh", "-c", f"mpirun true; echo 'exit 255' >{sandbox.place}/hosts/pi-worker-1")
    assert (done.returncode, sandbox.read("dev/termination-log")) == (0, "")
    sandbox.file("run/oarsman/contacted", "pi-worker-0\n")
    done = sandbox.run("launch.sh", "true", OARSMAN_SHIM="yes", OARSMAN_EXPECTED="2", OARSMAN_LAUNCHER=LAUNCHER)
    assert done.returncode == 69


def test_of_ranks_on_hosts_that_the_line_names_nobody_says_whether_that_was_right(sandbox: Sandbox) -> None:
    done = launched(sandbox, "mpirun", "-H", "pi-worker-0,pi-worker-1", "true", ASTRAY="yes", expected="")
    assert (done.returncode, sandbox.read("dev/termination-log")) == (0, "")


def test_after_a_failure_the_rank_that_failed_first_is_told(sandbox: Sandbox) -> None:
    done = launched(sandbox, "mpirun", "sh", "-c", "exit $((RANK * 3))")
    assert done.returncode == 3
    first, second = done.stderr.splitlines()
    assert first == "oarsman: ranks 0-1 on pi-worker-0..1"
    assert second.startswith("oarsman: rank 1 on pi-worker-1 ended with code 3 at 20")
    reports, others = ranks.apart(untagged(*done.stderr.splitlines()))
    assert [(r.rank, r.host, r.exit.code if r.exit else None) for r in reports] == [
        (0, "pi-worker-0", None),
        (1, "pi-worker-1", 3),
    ]
    assert others == []
    assert sandbox.read("dev/termination-log") == ""


def test_of_several_mpiruns_the_one_whose_code_is_the_commands_is_told(sandbox: Sandbox) -> None:
    script = "mpirun sh -c 'exit $((RANK * 3))'; code=$?; mpirun sh -c 'exit $((RANK * 7))'; mpirun true; exit $code"
    done = launched(sandbox, "sh", "-c", script)
    assert done.returncode == 3
    assert "ended with code 3 at" in done.stderr
    assert "ended with code 7" not in done.stderr


def test_without_the_shim_mpirun_is_not_replaced(sandbox: Sandbox) -> None:
    sandbox.program("bin/mpirun", 'exec words "$@"')
    done = sandbox.run("launch.sh", "mpirun", "-n", "2", "prog", OARSMAN_LAUNCHER=LAUNCHER)
    assert json.loads(done.stdout) == ["-n", "2", "prog"]


# -- ranks.sh -------------------------------------------------------------------------------------------------
def told(sandbox: Sandbox, hosts: list[str], *must: str, of: int | None = None) -> str:
    size = of or len(hosts)
    sandbox.file("run/told", "".join(f"w begin {rank} {size} {host}\n" for rank, host in enumerate(hosts)))
    return sandbox.run("ranks.sh", "where", "w", "/run/told", *must).stdout


@pytest.mark.parametrize(
    "hosts",
    [
        ["pi-worker-0"],
        [f"pi-worker-{index}" for index in range(3) for _ in range(4)],
        [f"pi-worker-{index}" for _ in range(4) for index in range(3)],
        ["pi-launcher", "pi-launcher", "pi-worker-0", "pi-worker-0", "pi-worker-1"],
        ["pi-worker-9", "pi-worker-10", "pi-worker-11", "pi-worker-11", "pi-worker-3", "node.b", "node-007"],
    ],
)
def test_what_is_told_of_ranks_is_read_as_it_was_meant(sandbox: Sandbox, hosts: list[str]) -> None:
    reports, _ = ranks.apart(untagged(*told(sandbox, hosts, "all").splitlines()))
    assert [(report.rank, report.host, report.world_size) for report in reports] == [
        (rank, host, len(hosts)) for rank, host in enumerate(hosts)
    ]


def test_the_first_that_failed_are_told_in_their_order(sandbox: Sandbox) -> None:
    ends = ((3, 9, 1763587853007), (5, 1, 1763587853000), (2, 15, 999), (7, 1, 1763587899999), (8, 1, 1763587900000))
    sandbox.file("run/told", "".join(f"w end {rank} {code} {when} a\n" for rank, code, when in ends))
    assert sandbox.run("ranks.sh", "failed", "w", "/run/told").stdout.splitlines() == [
        "oarsman: rank 2 on a ended with code 15 at 1970-01-01T00:00:00.999",
        "oarsman: rank 5 on a ended with code 1 at 2025-11-19T21:30:53.000",
        "oarsman: rank 3 on a ended with code 9 at 2025-11-19T21:30:53.007",
        "oarsman: rank 7 on a ended with code 1 at 2025-11-19T21:31:39.999",
    ]


def test_twenty_thousand_hosts_are_told_in_a_few_words(sandbox: Sandbox) -> None:
    hosts = [f"pi-worker-{index}" for _ in range(2) for index in range(20_000)]
    line = "oarsman: ranks 0-19999 on pi-worker-0..19999, 20000-39999 on pi-worker-0..19999\n"
    assert told(sandbox, hosts, "all") == line
    assert len(ranks.apart(untagged(line.strip()))[0]) == 40_000


def test_what_is_not_whole_or_would_not_fit_is_not_told(sandbox: Sandbox) -> None:
    assert told(sandbox, ["a", "b"], "all", of=3) == ""
    assert told(sandbox, ["a", "b"], of=3) == "oarsman: ranks 0 on a, 1 on b\n"
    assert told(sandbox, [f"pi-worker-{rank * 7 % 1000}" for rank in range(1000)], "all") == ""
    assert told(sandbox, []) == ""


def untagged(*lines: str) -> list[Spoken]:
    return [Spoken(None, "stdout", line) for line in lines]


def test_what_a_rank_writes_in_our_name_is_its_own_where_lines_have_tags() -> None:
    said = [Spoken(2, "stdout", "oarsman: ranks 0-1 on elsewhere")]
    assert ranks.apart(said) == ((), said)


def test_what_a_program_writes_in_our_name_is_its_own() -> None:
    for line in (
        "oarsman: ranks of the navy",
        "oarsman: ranks 0-2 on a-0..1",
        "oarsman: ranks 0-99999999 on a",
        "oarsman: rank 1 on a ended with code x at 1",
    ):
        assert ranks.apart(untagged(line)) == ((), untagged(line))
