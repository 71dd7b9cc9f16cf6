"""What a host says about itself: the script run for real by several shells, and its answer read."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from ssh_hosts import Host, Rack

from oarsman.engines.hosts.ssh import probe
from oarsman.engines.hosts.ssh.client import Ssh
from oarsman.engines.hosts.ssh.host_spec import SshHostSpecs
from oarsman.engines.hosts.ssh.inventory import Inventory, SshHost
from oarsman.engines.hosts.ssh.probe import HostFacts
from oarsman.errors import RetryableError
from oarsman.job.mpi import Family

PATIENCE = 60  # seconds that tools have where none of them hangs: this machine may be busy
SHELLS = [shell for shell in ("sh", "dash", "bash", "busybox") if shutil.which(shell)]
TOOLS = (
    *(
        "sh",
        "cat",
        "date",
        "dirname",
        "df",
        "env",
        "getconf",
        "grep",
        "id",
        "mkdir",
        "nproc",
        "readlink",
        "rm",
        "rmdir",
    ),
    *("sed", "sleep", "timeout", "uname"),
)


def answer(
    host: SshHost | None = None, *, shell: str = "sh", patience: int = PATIENCE, environment: Mapping[str, str] = {}
) -> str:
    words = [shell, "sh"] if shell == "busybox" else [shell]
    script = probe.script(host or SshHost(name="here"), patience=patience)
    given = {"SHELL": "/bin/sh", **os.environ, **environment}
    done = subprocess.run(words, input=script, capture_output=True, text=True, timeout=200, env=given, check=False)
    assert done.stderr == ""
    return done.stdout


def facts(host: SshHost | None = None, **options: object) -> HostFacts:
    return probe.parse(answer(host, **options))  # type: ignore[arg-type]


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n" + textwrap.dedent(text))
    path.chmod(0o755)
    return path


def only(folder: Path, tools: Iterable[str]) -> str:
    """A PATH with these tools alone."""
    folder.mkdir()
    for tool in tools:
        found = shutil.which(tool)
        assert found, tool
        (folder / tool).symlink_to(found)
    return str(folder)


def test_shellcheck_has_nothing_to_say() -> None:
    script = Path(probe.__file__).with_name("probe.sh")
    found = subprocess.run(
        [Path(sys.executable).with_name("shellcheck"), script], capture_output=True, text=True, check=False
    )
    assert found.stdout == ""
    assert found.returncode == 0


@pytest.mark.parametrize("shell", SHELLS)
def test_every_shell_tells_the_same_about_this_machine(shell: str, tmp_path: Path) -> None:
    said = facts(SshHost(name="here", folder=str(tmp_path)), shell=shell)
    assert said.complete
    assert said.hostname == os.uname().nodename
    assert said.uid == os.getuid()
    assert said.processors == len(os.sched_getaffinity(0))
    assert said.memory == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert 0 < said.memory_available <= said.memory
    assert said.system == "Linux"
    assert said.path == os.environ["PATH"]
    assert said.login_path
    assert (said.folder, said.folder_problem) == (str(tmp_path), "")
    assert said.folder_free
    assert said.temporary_free
    assert ("127.0.0.1", 8) in [(own.address, own.prefix) for own in said.addresses if own.loopback]


def test_addresses_put_together_from_proc_are_those_that_ip_tells() -> None:
    """Of one answer: other tests make and remove interfaces meanwhile."""
    text = answer()
    without = "".join(line for line in text.splitlines(keepends=True) if not line.startswith("address\t"))
    assert without != text
    assert shown(probe.parse(without)) == shown(probe.parse(text))


def shown(said: HostFacts) -> set[tuple[str, str, int, bool]]:
    return {(own.interface, own.address, own.prefix, own.default_route) for own in said.addresses}


def test_a_host_without_the_command_ip_tells_its_addresses(tmp_path: Path) -> None:
    text = answer(environment={"PATH": only(tmp_path / "bin", TOOLS)})
    assert "\naddress\t" not in text
    assert ("lo", "127.0.0.1", 8, False) in shown(probe.parse(text))


@pytest.mark.parametrize("folder", ["deep/er/folder", "with space/and 'quote", "$(touch ran);`touch ran`", "~x"])
def test_the_folder_is_tried_and_nothing_is_left_of_it(folder: str, tmp_path: Path) -> None:
    said = facts(SshHost(name="here", folder=f"{tmp_path}/{folder}"))
    assert (said.folder, said.folder_problem) == (f"{tmp_path}/{folder}", "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("given", "meant"),
    [("", "{}/.oarsman"), ("work", "{}/work"), ("~/work", "{}/work"), ("~", "{}"), ("/tmp", "/tmp")],
)
def test_a_folder_is_meant_from_the_home_of_the_user(given: str, meant: str, tmp_path: Path) -> None:
    said = facts(SshHost(name="here", folder=given), environment={"HOME": str(tmp_path)})
    assert said.folder == meant.format(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_was_there_stays_with_what_is_in_it(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("x")
    facts(SshHost(name="here", folder=str(tmp_path)))
    assert [file.name for file in tmp_path.iterdir()] == ["kept"]


def test_a_folder_that_cannot_be_made_says_why(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    said = facts(SshHost(name="here", folder=f"{tmp_path}/file/folder"))
    assert "Not a directory" in said.folder_problem


FAKES = {
    "openmpi4": ("mpirun (Open MPI) 4.1.6\n\nReport bugs", "orted", Family.OPENMPI4, "4.1.6"),
    "openmpi5": ("mpirun (Open MPI) 5.0.3", "prted", Family.OPENMPI5, "5.0.3"),
    "mpich": ("HYDRA build details:\n    Version:   4.2.1\n", "hydra_pmi_proxy", Family.MPICH, "4.2.1"),
    "intel": (
        "Intel(R) MPI Library for Linux* OS, Version 2021.11 Build 1",
        "hydra_pmi_proxy",
        Family.INTEL,
        "2021.11",
    ),
    "strange": ("something else", "", None, ""),
}


def fake_mpi(folder: Path, kind: str) -> Path:
    says, daemon, _, _ = FAKES[kind]
    if daemon:
        program(folder / daemon, "")
    return program(folder / "mpirun", f"cat <<'END'\n{says}\nEND\n")


@pytest.mark.parametrize("kind", FAKES)
def test_each_mpi_is_found_with_its_version_and_its_daemon(kind: str, tmp_path: Path) -> None:
    launcher = fake_mpi(tmp_path / "bin", kind)
    said = facts(environment={"PATH": f"{tmp_path}/bin:{os.environ['PATH']}"}).mpis[0]
    _, daemon, family, version = FAKES[kind]
    assert (said.launcher, said.family, said.version) == (str(launcher), family, version)
    assert said.daemons == ((daemon,) if daemon else ())
    assert said.in_path
    assert (said.found is None) == (family is None)


@pytest.mark.parametrize("given", ["{}", "{}/", "{}/bin", "{}/bin/mpirun"])
def test_an_mpi_that_the_inventory_names_comes_first(given: str, tmp_path: Path) -> None:
    launcher = fake_mpi(tmp_path / "my mpi" / "bin", "openmpi5")
    said = facts(SshHost(name="here", mpi=given.format(tmp_path / "my mpi"))).mpis[0]
    assert (said.launcher, said.named, said.in_path) == (str(launcher), True, False)


def test_an_mpi_outside_of_path_that_needs_the_rest_of_itself_is_identified(tmp_path: Path) -> None:
    program(tmp_path / "bin" / "mpiexec.hydra", f"echo '{FAKES['intel'][0]}'")
    program(tmp_path / "bin" / "mpirun", "exec mpiexec.hydra")
    assert facts(SshHost(name="here", mpi=str(tmp_path))).mpis[0].family is Family.INTEL


def test_an_mpi_that_only_a_login_finds_is_told_apart(tmp_path: Path) -> None:
    launcher = fake_mpi(tmp_path / "bin", "mpich")
    (tmp_path / ".profile").write_text(f"echo Welcome; PATH={tmp_path}/bin:$PATH\n")
    said = facts(environment={"HOME": str(tmp_path), "SHELL": "/bin/sh"})
    assert said.login_path is not None
    assert said.login_path.startswith(f"{tmp_path}/bin:")
    (mine,) = [mpi for mpi in said.mpis if mpi.launcher == str(launcher)]
    assert (mine.in_login_path, mine.in_path) == (True, False)


def test_an_mpi_in_bin_is_told_where_bin_really_is() -> None:
    """Open MPI takes the folder above that of its launcher for its own, and that of /bin is none."""
    said = facts(environment={"PATH": f"/bin:{os.environ['PATH']}"})
    assert not [
        mpi.launcher for mpi in said.mpis if os.path.dirname(mpi.launcher) == "/bin" != os.path.realpath("/bin")
    ]


def test_two_names_of_one_mpi_are_one(tmp_path: Path) -> None:
    launcher = fake_mpi(tmp_path / "real", "openmpi4")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "mpirun").symlink_to(launcher)
    path = only(tmp_path / "tools", TOOLS)
    said = facts(environment={"PATH": f"{tmp_path}/bin:{tmp_path}/real:{path}"})
    assert [mpi.launcher for mpi in said.mpis if mpi.real == str(launcher)] == [f"{tmp_path}/bin/mpirun"]


@pytest.mark.parametrize(
    ("smi", "cards"),
    [
        ("printf 'NVIDIA H200\\nNVIDIA H200\\n'", ("NVIDIA H200", "NVIDIA H200")),
        ("echo 'No devices were found'", ()),
        ("echo 'NVIDIA-SMI has failed because it could not communicate with the driver'; exit 9", ()),
    ],
)
def test_graphics_cards_are_counted(smi: str, cards: tuple[str, ...], tmp_path: Path) -> None:
    program(tmp_path / "nvidia-smi", smi)
    assert facts(environment={"PATH": f"{tmp_path}:{os.environ['PATH']}"}).gpus == cards


def end_all(started: Path) -> None:
    for number in started.read_text().split():
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(number), signal.SIGKILL)


# `sleep` in the background keeps the pipe open after its parent was killed.
@pytest.mark.parametrize("hanging", ["nvidia-smi", "mpirun", "df", "ip", "nproc", "login"])
@pytest.mark.parametrize("shell", [shell for shell in SHELLS if shell != "sh"])
def test_what_hangs_is_not_waited_for(hanging: str, shell: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    started = tmp_path / "started"
    request.addfinalizer(lambda: end_all(started))
    slow = program(tmp_path / "bin" / hanging, f"sleep 3600 &\necho $! $$ >>{started}\nwait\n")
    given = {"PATH": f"{tmp_path}/bin:{os.environ['PATH']}", **({"SHELL": str(slow)} if hanging == "login" else {})}
    said = facts(shell=shell, patience=3, environment=given)  # would run into the time limit if it waited
    assert said.hostname == os.uname().nodename
    assert started.exists()
    if hanging == "mpirun":
        assert (said.mpis[0].launcher, said.mpis[0].family) == (str(slow), None)
    if hanging == "login":
        assert said.login_path is None


def test_a_login_shell_that_takes_too_long_removes_its_lock(tmp_path: Path) -> None:
    """As that of pyenv, which every later login would wait for."""
    lock, taken = tmp_path / "lock", tmp_path / "taken"
    login = f"trap 'rm {lock}; kill $nap; exit' TERM\ntouch {lock} {taken}\nsleep 3600 &\nnap=$!\nwait\n"
    facts(patience=3, environment={"SHELL": str(program(tmp_path / "bin" / "login", login))})
    assert taken.exists()
    deadline = time.monotonic() + 60
    while lock.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not lock.exists()


NOISE = "Welcome!\nYou have\tmail\nno newline at the end of this"


def test_noise_before_the_answer_is_left_out() -> None:
    text = answer()
    assert probe.parse(NOISE + text) == probe.parse(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "said nothing"),
        ("This account is currently not available.\n", "This account is currently not available."),
        ("oarsman-probe\t99\nend\tcomplete\n", "version 99"),
        ("oarsman-probe\t1\nhostname\tx\n", "stopped in the middle"),
        ("oarsman-probe\t1\nhostname\tx\nend\tcomplete\n", "is invalid"),
    ],
)
def test_garbage_is_named(text: str, said: str) -> None:
    with pytest.raises(RetryableError) as raised:
        probe.parse(text)
    assert said in raised.value.message


LINES = """\
oarsman-probe\t1
clock\t1700000000
hostname\tn1
user\tme\t1000
home\t/home/me
system\tLinux\taarch64
processors\t8
memory\t1000\t500
load\t0.25
path\t/usr/bin
reached\t::ffff:10.0.0.1
route\tIface\tDestination\tMask
route\teth0\t00000000\t00000000
route\teth0\t0000000A\t00FFFFFF
{}
folder\t/home/me/.oarsman\t\t7
temporary\t
login\t
rdma\tmlx5_0
end\tcomplete
"""


@pytest.mark.parametrize(
    ("lines", "shown"),
    [
        ("interface\teth0\tBROADCAST,UP\t25000\naddress\teth0\t10.0.0.1/24", ("eth0", 24, True, False, True, 25000)),
        ("interface\teth0\t0x1003\t-1\nlocal\t10.0.0.1", ("eth0", 24, True, False, True, None)),
        ("interface\ttun0\tPOINTOPOINT,UP\t10\naddress\ttun0\t10.8.0.2/32", ("tun0", 32, True, True, False, 10)),
        ("interface\ttun0\t0x10\t\naddress\ttun0\t10.8.0.2/32", ("tun0", 32, False, True, False, None)),
        ("address\teth9\t10.0.0.1/24\naddress\tnew\tthing", ("eth9", 24, True, False, False, None)),
        ("local6\teth0\tfd000000000000000000000000000002\t40", ("eth0", 64, True, False, False, None)),
    ],
)
def test_addresses_carry_what_is_known_of_their_interface(lines: str, shown: tuple[object, ...]) -> None:
    (own,) = probe.parse(LINES.format(lines)).addresses
    assert (own.interface, own.prefix, own.up, own.point_to_point, own.default_route, own.speed) == shown


@pytest.mark.parametrize(
    "line",
    [
        "address\teth0\t2001:db8::1%x slots=99 $(id)/64",
        "local\t::1%$(id)",
        "address\teth0\t10.0.0.1,10.0.0.2/24",
    ],
)
def test_an_address_that_would_mean_more_in_a_hostfile_is_none(line: str) -> None:
    assert probe.parse(LINES.format(line)).addresses == ()


def test_an_interface_that_would_be_several_to_an_mpi_is_not_known_by_its_name() -> None:
    (own,) = probe.parse(LINES.format("address\teth0,lo\t10.0.0.1/24")).addresses
    assert own.interface == ""


@pytest.mark.parametrize(
    ("instead_of", "said"),
    [
        ("load\t0.25", "load\tnan"),
        ("load\t0.25", "load\tinf"),
        ("clock\t1700000000", "clock\t1e999"),
        ("processors\t8", "processors\t-8"),
        ("processors\t8", "processors\t99999999999"),
        ("memory\t1000", "memory\t-1"),
        ("reached\t::ffff:10.0.0.1", "reached\t10.6.6.6,*"),
    ],
)
def test_what_no_host_can_be_is_not_believed(instead_of: str, said: str) -> None:
    with pytest.raises(RetryableError, match="is invalid"):
        probe.parse(LINES.format("").replace(instead_of, said))


def test_nothing_that_a_host_says_about_itself_moves_a_cursor() -> None:
    said = probe.parse(LINES.format("gpu\t\x1b[2JA100\x9b").replace("hostname\tn1", "hostname\tn1\x1b]0;root"))
    assert (said.gpus, said.hostname) == (("\\x1b[2JA100\\x9b",), "n1\\x1b]0;root")


def test_no_machine_takes_the_name_of_another_by_calling_itself_so() -> None:
    own = probe.parse(LINES.format(""))
    job = SimpleNamespace(
        machines={"node1": ["job-worker-0"], "node2": ["job-worker-1"]},
        facts={"node1": own, "node2": replace(own, hostname="node1")},
        networks=SimpleNamespace(ends={name: SimpleNamespace(address=f"{name}.ip") for name in ("node1", "node2")}),
    )
    assert SshHostSpecs._aliases(job)["node1"] == "job-worker-0"  # type: ignore[arg-type]


def test_what_was_not_said_is_unknown_and_not_nothing() -> None:
    said = probe.parse(LINES.format(""))
    assert (said.login_path, said.temporary_free, said.folder_free) == (None, None, 7 * 1024)
    assert (said.reached, said.rdma, said.clock) == ("10.0.0.1", ("mlx5_0",), 1700000000.0)


def test_facts_survive_json(tmp_path: Path) -> None:
    fake_mpi(tmp_path / "bin", "openmpi5")
    said = facts(environment={"PATH": f"{tmp_path}/bin:{os.environ['PATH']}"})
    assert HostFacts.from_json(json.loads(json.dumps(said.to_json()))) == said


# -- over real ssh --------------------------------------------------------------------------------------------
def ask(rack: Rack, host: Host, **fields: str) -> HostFacts:
    ssh = Ssh(Inventory(file=rack.folder / "hosts.yaml", hosts=(), ssh_config=str(rack.ssh_config)))
    there = SshHost(name=host.name, **fields)  # type: ignore[arg-type]
    reply = asyncio.run(ssh.run(there, probe.script(there, patience=PATIENCE), timeout=120))
    assert reply.code == 0, reply
    return probe.parse(reply.out)


@pytest.mark.parametrize("shell", ["/bin/sh", "/bin/bash"])
def test_a_host_over_ssh_tells_its_own_side(shell: str, rack: Rack) -> None:
    with rack[1].faults.login_shell(shell):
        said = ask(rack, rack[1])
    assert (said.hostname, said.user, said.uid, said.complete) == ("node2", "rower", 5001, True)
    assert said.reached == rack[1].address
    assert {own.interface for own in said.addresses if own.usable} >= {"eth0", "docker0"}
    assert said.mpis[0].in_path
    assert said.folder == "/home/rower/.oarsman"


def test_planted_faults_are_seen(rack: Rack) -> None:
    with rack[0].faults.unwritable():
        assert "Permission denied" in ask(rack, rack[0]).folder_problem
    with rack[0].faults.full_disk():
        assert "No space left" in ask(rack, rack[0]).folder_problem
    with rack[0].faults.path_only_in_profile("openmpi5"):
        (mpi,) = ask(rack, rack[0]).mpis
        assert (mpi.family, mpi.in_path, mpi.in_login_path) == (Family.OPENMPI5, False, True)
