"""The scripts that run in a job's pods, with shims for ssh, sshd and kubectl."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from .sandbox import SCRIPTS, Sandbox

TOP = Path(__file__).parents[3]
ALL = sorted(SCRIPTS.glob("*.sh"))
LAUNCHER = "pi-launcher.pi.default.svc"
HOSTS = ("pi-worker-0.pi.default.svc", "pi-worker-1.pi.default.svc")
SSH_AGENT, EXEC_AGENT = "/etc/mpi/ssh.sh", "/etc/mpi/kubexec.sh"
ANSWERS = 'echo 0; : "$last"'


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    found = Sandbox(tmp_path)
    found.file("etc/mpi/hostfile", "".join(f"{host} slots=2\n" for host in HOSTS))
    found.file("etc/mpi/ssh_config", "Host *\n")
    found.file("etc/oarsman/ssh/id", "the key\n")
    return found


# -- all of them ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("script", ALL, ids=lambda path: path.name)
def test_any_posix_shell_can_read_a_script(script: Path) -> None:
    assert subprocess.run(["sh", "-n", str(script)], capture_output=True, check=False).stderr == b""


@pytest.mark.parametrize("script", [*ALL, TOP / "scripts" / "setup"], ids=lambda path: path.name)
def test_shellcheck_has_nothing_to_say(script: Path) -> None:
    program = Path(sys.executable).with_name("shellcheck")
    done = subprocess.run([str(program), "-S", "warning", str(script)], text=True, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_every_script_is_delivered_and_short() -> None:
    assert {path.name for path in ALL} == {
        "barrier.sh",
        "kubexec.sh",
        "launch.sh",
        "mpirun.sh",
        "passwd.sh",
        "prepare.sh",
        "rank.sh",
        "ranks.sh",
        "ssh.sh",
        "worker.sh",
    }
    assert sum(path.stat().st_size for path in ALL) < 64 * 1024  # a ConfigMap holds a mebibyte, with all the hosts


# -- barrier.sh -----------------------------------------------------------------------------------------------
def barrier(sandbox: Sandbox, *, agent: str = SSH_AGENT, seconds: int = 300) -> subprocess.CompletedProcess[str]:
    return sandbox.run(
        "barrier.sh", OARSMAN_LAUNCHER=LAUNCHER, OARSMAN_AGENT=agent, OARSMAN_BARRIER_SECONDS=str(seconds)
    )


def test_the_barrier_opens_when_every_worker_answers_and_notes_how_often_memory_was_exhausted(
    sandbox: Sandbox,
) -> None:
    sandbox.host("pi-worker-0", "echo 0")
    sandbox.host("pi-worker-1", "echo 3")
    done = barrier(sandbox)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert [sandbox.read(f"run/oarsman/barrier/{host}.oom") for host in HOSTS] == ["0\n", "3\n"]
    assert len(sandbox.calls) == 2
    assert all("-F /etc/mpi/ssh_config" in call for call in sandbox.calls)
    assert sandbox.read("run/oarsman/contacted") == ""  # probes are no ranks


def test_the_barrier_makes_a_private_copy_of_the_key(sandbox: Sandbox) -> None:
    for host in ("pi-worker-0", "pi-worker-1"):
        sandbox.host(host, ANSWERS)
    barrier(sandbox)
    key = sandbox.place / "run/oarsman/ssh/id"
    assert key.read_text() == "the key\n"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert sandbox.read("run/oarsman/home/.ssh/config") == "Include /etc/mpi/ssh_config\n"


def test_a_worker_without_an_address_is_waited_for_without_end(sandbox: Sandbox) -> None:
    """It may wait for a place; even a patience of no seconds at all does not count for it."""
    sandbox.host("pi-worker-0", ANSWERS)
    sandbox.host(
        "pi-worker-1",
        f'echo x >>{sandbox.place}/tries; [ "$(wc -l <{sandbox.place}/tries)" -gt 3 ] && {{ echo 0; exit 0; }};'
        ' echo "ssh: Could not resolve hostname pi-worker-1: Name or service not known" >&2; exit 255',
    )
    done = barrier(sandbox, seconds=0)
    assert done.returncode == 0
    said = "oarsman: waiting for pi-worker-1: ssh: Could not resolve hostname pi-worker-1: Name or service not known"
    assert done.stdout.splitlines() == [said]  # once, however often it was tried


def test_a_worker_that_refuses_is_named_when_patience_is_over(sandbox: Sandbox) -> None:
    sandbox.host("pi-worker-0", ANSWERS)
    sandbox.host(
        "pi-worker-1",
        "echo 'Warning: Permanently added pi-worker-1 to the list of known hosts.' >&2;"
        "printf 'ssh: connect to host pi-worker-1 port 2222: Connection refused\\r\\n' >&2; exit 255",
    )
    done = barrier(sandbox, seconds=0)
    words = "pi-worker-1: ssh: connect to host pi-worker-1 port 2222: Connection refused (waited 0 s)\n"
    assert done.returncode == 1
    assert done.stderr == words
    assert sandbox.read("dev/termination-log") == words


def test_while_one_is_absent_another_may_refuse(sandbox: Sandbox) -> None:
    """The clock of one that refuses stands still, but it is the one that is told."""
    tries = f"{sandbox.place}/tries"
    sandbox.host("pi-worker-0", "echo 'Permission denied (publickey).' >&2; exit 255")
    sandbox.host(
        "pi-worker-1",
        f'echo x >>{tries}; [ "$(wc -l <{tries})" -gt 2 ] && {{ echo 0; exit 0; }};'
        ' echo "ssh: Could not resolve hostname pi-worker-1" >&2; exit 255',
    )
    done = barrier(sandbox, seconds=0)
    assert done.returncode == 1
    assert len(sandbox.read("tries").splitlines()) == 3
    assert done.stdout == "oarsman: waiting for pi-worker-0: Permission denied (publickey).\n"


def test_a_worker_that_cannot_find_the_launcher_is_not_ready(sandbox: Sandbox) -> None:
    sandbox.host("pi-worker-0", ANSWERS)
    sandbox.host("pi-worker-1", 'getent() { return 2; }; eval "$last"')
    done = barrier(sandbox, seconds=0)
    assert done.returncode == 1
    assert done.stderr == f"pi-worker-1: it cannot resolve {LAUNCHER} (waited 0 s)\n"


@pytest.mark.parametrize("name", [LAUNCHER, "pi-launcher"])
def test_a_launcher_that_takes_ranks_asks_for_its_name_and_does_not_log_in_to_itself(
    sandbox: Sandbox, name: str
) -> None:
    sandbox.program("bin/getent", f"echo $2 >>{sandbox.place}/asked; [ $(wc -l <{sandbox.place}/asked) -gt 2 ]")
    sandbox.file("etc/mpi/hostfile", f"{name}:2\n{HOSTS[0]}:2\n")
    sandbox.host("pi-worker-0", "echo 0")
    done = barrier(sandbox)
    assert done.returncode == 0
    assert done.stdout == f"oarsman: waiting for pi-launcher: it cannot find itself as {name}\n"
    assert sandbox.read("asked").split() == [name] * 3
    assert len(sandbox.calls) == 1


def test_a_launcher_that_never_finds_itself_does_not_start(sandbox: Sandbox) -> None:
    sandbox.program("bin/getent", "exit 2")
    sandbox.file("etc/mpi/hostfile", f"pi-launcher:2\n{HOSTS[0]}:2\n")
    sandbox.host("pi-worker-0", "echo 0")
    done = barrier(sandbox, seconds=0)
    assert (done.returncode, done.stderr) == (1, "pi-launcher: it cannot find itself as pi-launcher (waited 0 s)\n")


def test_hosts_of_which_there_are_more_than_are_asked_at_once(sandbox: Sandbox) -> None:
    hosts = [f"pi-worker-{i}.pi.default.svc" for i in range(70)]
    sandbox.file("etc/mpi/hostfile", "".join(f"{host} slots=1\n" for host in hosts))
    for index in range(70):
        sandbox.host(f"pi-worker-{index}", ANSWERS)
    assert barrier(sandbox).returncode == 0
    assert len(sandbox.calls) == 70


def test_through_the_api_server_the_barrier_asks_with_kubectl(sandbox: Sandbox) -> None:
    for host in ("pi-worker-0", "pi-worker-1"):
        sandbox.host(host, ANSWERS)
    assert barrier(sandbox, agent=EXEC_AGENT).returncode == 0
    assert sorted(call.split(" -- ")[0] for call in sandbox.calls) == ["exec pi-worker-0", "exec pi-worker-1"]
    assert sandbox.read("run/oarsman/contacted") == ""


def test_a_pod_that_is_not_there_yet_is_absent_also_for_kubectl(sandbox: Sandbox) -> None:
    sandbox.host("pi-worker-0", "echo 'error: unable to upgrade connection: container not found' >&2; exit 1")
    sandbox.host("pi-worker-1", "echo 'Forbidden' >&2; echo 'command terminated with exit code 1' >&2; exit 1")
    tries = f"{sandbox.place}/tries"
    sandbox.host(
        "pi-worker-0",
        f'echo x >>{tries}; [ "$(wc -l <{tries})" -gt 2 ] && {{ echo 0; exit 0; }};'
        ' echo "Error from server (NotFound): pods not found" >&2; exit 1',
    )
    done = barrier(sandbox, agent=EXEC_AGENT, seconds=0)
    assert done.stderr == "pi-worker-1: Forbidden (waited 0 s)\n"


# -- ssh.sh and kubexec.sh --------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("words", "host"),
    [
        pytest.param(["pi-worker-0.pi.default.svc", "orted", "-x"], "pi-worker-0.pi.default.svc", id="plain"),
        pytest.param(["-x", "pi-worker-0", "true"], "pi-worker-0", id="a flag"),
        pytest.param(["-o", "ConnectTimeout=2", "-p", "22", "pi-worker-0", "a"], "pi-worker-0", id="with values"),
        pytest.param(["-q", "me@pi-worker-0", "a"], "pi-worker-0", id="a user"),
    ],
)
def test_whom_mpirun_went_to_is_written_down(sandbox: Sandbox, words: list[str], host: str) -> None:
    sandbox.host("pi-worker-0", "exit 5")
    sandbox.host("me@pi-worker-0", "exit 5")
    done = sandbox.run("ssh.sh", *words, OARSMAN_LAUNCHER=LAUNCHER)
    assert done.returncode == 5
    assert sandbox.read("run/oarsman/contacted") == f"{host}\n"
    assert sandbox.calls == [f"-F /etc/mpi/ssh_config {' '.join(words)}"]


@pytest.mark.parametrize("agent", ["ssh.sh", "kubexec.sh"])
def test_on_the_launcher_itself_the_command_just_runs(sandbox: Sandbox, agent: str) -> None:
    done = sandbox.run(agent, "-x", LAUNCHER, "echo", "'a  b'", ";", "exit 3", OARSMAN_LAUNCHER=LAUNCHER)
    assert (done.returncode, done.stdout) == (3, "a  b\n")
    assert sandbox.calls == []


@pytest.mark.parametrize(
    ("container", "call"),
    [
        ("", "exec pi-worker-0 -- /bin/sh -c a 'b c' d"),
        ("mpi", "exec pi-worker-0 --container mpi -- /bin/sh -c a 'b c' d"),
    ],
)
def test_kubexec_runs_the_words_in_the_pod(sandbox: Sandbox, container: str, call: str) -> None:
    sandbox.host("pi-worker-0", "exit 7")
    given = {"OARSMAN_CONTAINER": container} if container else {}
    done = sandbox.run("kubexec.sh", "-o", "A=b", "-x", HOSTS[0], "a", "'b c'", "d", OARSMAN_LAUNCHER=LAUNCHER, **given)
    assert done.returncode == 7
    assert sandbox.calls == [call]
    assert sandbox.read("run/oarsman/contacted") == "pi-worker-0\n"


# -- launch.sh ----------------------------------------------------------------------------------------------------
def launch(sandbox: Sandbox, command: str, expected: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    return sandbox.run(
        "launch.sh",
        "sh",
        "-c",
        command,
        OARSMAN_EXPECTED=expected,
        OARSMAN_LAUNCHER=LAUNCHER,
        OARSMAN_AGENT=SSH_AGENT,
        **environment,
    )


@pytest.mark.parametrize("code", [0, 1, 42, 255])
def test_the_code_of_the_command_is_the_code_of_the_launcher(sandbox: Sandbox, code: int) -> None:
    done = launch(sandbox, f"echo out; echo err >&2; exit {code}")
    assert (done.returncode, done.stdout) == (code, "out\n")
    assert done.stderr.splitlines()[0] == "err"


def test_a_launcher_alone_waits_for_its_own_name(sandbox: Sandbox) -> None:
    sandbox.program("bin/getent", f"echo $2 >>{sandbox.place}/asked; [ $(wc -l <{sandbox.place}/asked) -gt 2 ]")
    sandbox.file("etc/mpi/hostfile", "pi-launcher slots=2\n")
    done = launch(sandbox, "echo begun", OARSMAN_OWN_NAME_SECONDS="300")
    assert (done.returncode, done.stdout) == (0, "begun\n")
    assert done.stderr == "oarsman: waiting for the name pi-launcher\n"
    assert sandbox.read("asked").split() == ["pi-launcher"] * 3


@pytest.mark.parametrize("environment", [{}, {"OARSMAN_OWN_NAME_SECONDS": "1"}])
def test_a_name_that_never_comes_or_is_not_needed_holds_nothing_up(
    sandbox: Sandbox, environment: dict[str, str]
) -> None:
    sandbox.program("bin/getent", "exit 2")
    assert launch(sandbox, "echo begun", **environment).stdout == "begun\n"


def test_success_on_the_wrong_hosts_is_no_success(sandbox: Sandbox) -> None:
    done = launch(sandbox, f"echo {HOSTS[0]} >>/run/oarsman/contacted", expected="pi-worker-0 pi-worker-1")
    assert done.returncode == 69
    assert done.stderr == "oarsman: no rank was started on pi-worker-1: mpirun never went there\n"


def test_success_on_the_right_hosts_is(sandbox: Sandbox) -> None:
    went = f"printf '%s\\n' {HOSTS[1]} pi-worker-0 >>/run/oarsman/contacted"
    assert launch(sandbox, went, expected="pi-worker-0 pi-worker-1").returncode == 0


@pytest.mark.parametrize(("went", "code"), [(HOSTS[0], 0), (HOSTS[1], 69)])
def test_of_the_hostfile_as_many_as_are_expected_are_checked(sandbox: Sandbox, went: str, code: int) -> None:
    done = launch(sandbox, f"echo {went} >>/run/oarsman/contacted", expected="1")
    assert done.returncode == code
    assert ("pi-worker-0" in done.stderr, "pi-worker-1" in done.stderr) == (bool(code), False)


def test_thousands_of_hosts_are_checked_in_a_moment(sandbox: Sandbox) -> None:
    hosts = [f"pi-worker-{index}" for index in range(20_000)]
    sandbox.file("etc/mpi/hostfile", "".join(f"{host} slots=1\n" for host in hosts))
    sandbox.file("run/oarsman/contacted", "".join(f"{host}\n" for host in reversed(hosts[:-1])))
    done = launch(sandbox, "true", expected="20000")
    assert (done.returncode, done.stderr.splitlines()[0]) == (
        69,
        "oarsman: no rank was started on pi-worker-19999: mpirun never went there",
    )


def test_a_name_that_only_begins_like_another_is_another(sandbox: Sandbox) -> None:
    done = launch(sandbox, "echo pi-worker-10 >>/run/oarsman/contacted", expected="pi-worker-1")
    assert done.returncode == 69


def test_after_a_failure_hosts_are_asked_whether_memory_was_exhausted(sandbox: Sandbox) -> None:
    sandbox.host("pi-worker-0", "echo 2")
    sandbox.host("pi-worker-1", "echo 2")
    sandbox.file(f"run/oarsman/barrier/{HOSTS[0]}.oom", "2\n")
    sandbox.file(f"run/oarsman/barrier/{HOSTS[1]}.oom", "1\n")
    done = launch(sandbox, "exit 137")
    assert done.returncode == 137
    assert done.stderr == "oarsman: memory limit reached on pi-worker-1\n"


def test_hosts_that_do_not_answer_after_a_failure_say_nothing(sandbox: Sandbox) -> None:
    done = launch(sandbox, "exit 1")
    assert (done.returncode, done.stderr) == (1, "")
    assert len(sandbox.calls) == 2


def test_a_launcher_that_is_told_to_end_tells_its_command_and_waits_for_it(sandbox: Sandbox) -> None:
    command = "trap 'echo ending; exit 9' TERM; kill -TERM $PPID; while :; do sleep 0.05; done"
    done = launch(sandbox, command)
    assert (done.returncode, done.stdout) == (9, "ending\n")


def test_a_hydra_that_outlives_its_sessions_is_ended(sandbox: Sandbox) -> None:
    sandbox.program("bin/sleep", "exec /bin/sleep 0.05")
    sandbox.program("bin/ssh", "exit 1")
    # A session that ended and that nobody has asked about yet, and a starter that waits for ever.
    starter = f"import os, time; os.spawnv(os.P_NOWAIT, '{sandbox.place}/bin/ssh', ['ssh']); time.sleep(1000)"
    done = sandbox.run(
        "launch.sh", os.path.realpath(sys.executable), "-c", starter, OARSMAN_HYDRA="yes", OARSMAN_LAUNCHER=LAUNCHER
    )
    assert done.returncode == 137
    assert "the sessions on all hosts have ended, mpiexec has not" in done.stderr


# -- worker.sh ----------------------------------------------------------------------------------------------------
SSHD = 'case " $* " in *" -t "*) exit {old} ;; esac; echo "$*" >>{place}/sshd'


def serve(sandbox: Sandbox, *options: str, old: int = 0, **environment: str) -> subprocess.CompletedProcess[str]:
    sandbox.file("etc/oarsman/ssh/host_key", "the host key\n")
    (sandbox.place / "etc/oarsman/ssh/host_key").chmod(0o644)
    sandbox.program("bin/sshd", SSHD.format(old=old, place=sandbox.place))
    return sandbox.run("worker.sh", *options, OARSMAN_SSH_PORT="2222", **environment)


def settings(sandbox: Sandbox) -> dict[str, str]:
    lines = sandbox.read("run/oarsman/sshd_config").splitlines()
    return {name: value for name, _, value in (line.partition(" ") for line in lines)}


def test_a_worker_serves_with_the_jobs_own_settings_alone(sandbox: Sandbox) -> None:
    done = serve(sandbox, "-De")
    assert (done.returncode, done.stderr) == (0, "")
    assert sandbox.read("sshd") == "-De -D -e -f /run/oarsman/sshd_config\n"
    found = settings(sandbox)
    assert found["Port"] == "2222"
    assert found["HostKey"] == "/run/oarsman/host_key"
    assert found["AuthorizedKeysFile"] == "/etc/oarsman/ssh/authorized_keys"
    assert (found["PasswordAuthentication"], found["PermitRootLogin"]) == ("no", "prohibit-password")
    assert found["UsePAM"] == "no"
    key = sandbox.place / "run/oarsman/host_key"
    assert key.read_text() == "the host key\n"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600


def test_a_locked_root_may_log_in_by_key(sandbox: Sandbox) -> None:
    sandbox.file("etc/shadow", "root:!:19000:0:99999:7:::\n")
    serve(sandbox)
    assert settings(sandbox)["UsePAM"] == "yes"


def test_what_the_container_was_given_reaches_the_ranks(sandbox: Sandbox) -> None:
    serve(
        sandbox,
        LD_LIBRARY_PATH="/opt/lib:/lib",
        NCCL_DEBUG="INFO",
        SPACES="a  b 100%",
        EMPTY="",
        QUOTED='a"b',
        LINES="a\nb",
        BACKSLASH="a\\b",
        HOME="/root",
        KUBERNETES_PORT="tcp://1",
        DB_SERVICE_HOST="10.0.0.1",
        DB_PORT_80_TCP_ADDR="10.0.0.1",
    )
    [line] = [line for line in sandbox.read("run/oarsman/sshd_config").splitlines() if line.startswith("SetEnv")]
    for given in ('"LD_LIBRARY_PATH=/opt/lib:/lib"', '"NCCL_DEBUG=INFO"', '"SPACES=a  b 100%"', '"EMPTY="'):
        assert given in line
    for left_out in ("QUOTED", "LINES", "BACKSLASH", "HOME=", "KUBERNETES", "DB_", "OARSMAN_SSH_PORT"):
        assert left_out not in line


def test_an_sshd_too_old_for_variables_goes_without(sandbox: Sandbox) -> None:
    serve(sandbox, old=1, NCCL_DEBUG="INFO")
    assert "SetEnv" not in settings(sandbox)
    assert settings(sandbox)["Port"] == "2222"
    assert sandbox.read("sshd") != ""


def test_an_image_without_sshd_says_what_to_install(sandbox: Sandbox) -> None:
    sandbox.file("etc/oarsman/ssh/host_key", "k")
    done = sandbox.run("worker.sh", OARSMAN_SSH_PORT="2222")
    words = "oarsman: there is no sshd in this image: install openssh-server\n"
    assert (done.returncode, done.stderr) == (127, words)
    assert sandbox.read("dev/termination-log") == words


# -- passwd.sh ----------------------------------------------------------------------------------------------------
ROOT = "root:x:0:0:root:/root:/bin/sh\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_user_without_a_name_gets_one(sandbox: Sandbox) -> None:
    assert sandbox.run("passwd.sh", user=12345).returncode == 0
    assert sandbox.read("run/oarsman/passwd") == ROOT + "user12345:x:12345:0::/run/oarsman/home:/bin/sh\n"
    assert (sandbox.place / "run/oarsman/home").is_dir()


def test_a_user_with_a_name_keeps_it(sandbox: Sandbox) -> None:
    assert sandbox.run("passwd.sh").returncode == 0
    assert sandbox.read("run/oarsman/passwd") == ROOT


def test_an_image_without_users_gets_one(sandbox: Sandbox) -> None:
    (sandbox.place / "etc/passwd").unlink()
    assert sandbox.run("passwd.sh").returncode == 0
    assert sandbox.read("run/oarsman/passwd") == "user0:x:0:0::/run/oarsman/home:/bin/sh\n"
