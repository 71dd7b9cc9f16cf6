"""`oarsman hosts trust` on real hosts: from nothing, again, half-way, and back."""

from __future__ import annotations

import hashlib
import json
import os
import pty
import select
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import pytest
from click.testing import CliRunner, Result
from ssh_hosts import PASSWORD, Host, Rack

from oarsman.cli.main import cli
from oarsman.cli.session import Session

PATIENCE = 240
CONFIG = """\
{named}Host *
    User rower
    UserKnownHostsFile {known}
    GlobalKnownHostsFile /dev/null
    LogLevel ERROR
"""
pytestmark = pytest.mark.timeout(600)


@dataclass
class Start:
    """A machine of a person who knows nothing about the hosts but their names, addresses and the password."""

    home: Path
    rack: Rack
    hosts: Sequence[Host]
    inventory_name: str = "hosts.txt"

    @property
    def folder(self) -> Path:
        return self.home / ".ssh"

    @property
    def inventory(self) -> Path:
        return self.home / self.inventory_name

    @property
    def environment(self) -> dict[str, str]:
        path = f"{self.home / 'bin'}:{os.environ['PATH']}"
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("SSH_", "LC_", "LANG", "OARSMAN"))}
        return kept | {"HOME": str(self.home), "PATH": path}

    def trust(self, *words: str, password: str | None = PASSWORD) -> Result:
        """The command in this process."""
        command = ["hosts", "trust", "--hosts", str(self.inventory), *words]
        command += ["--password-file", "-"] if password is not None else []
        given = f"{password}\n" if password is not None else ""
        with patch.dict(os.environ, self.environment, clear=True):
            return CliRunner().invoke(cli, command, input=given, obj=Session(), catch_exceptions=False)

    def ssh(self, host: Host, *words: str) -> subprocess.CompletedProcess[str]:
        command = ["ssh", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes", host.name, *words]
        return subprocess.run(
            command,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )


# Every host logs in to every other, so two where two are enough.
THREE = pytest.mark.parametrize("start", [3], indirect=True, ids=["3 hosts"])


@pytest.fixture
def start(rack: Rack, tmp_path: Path, request: pytest.FixtureRequest) -> Start:
    hosts = rack[: getattr(request, "param", 2)]
    for host in hosts:
        empty_folder(host)
    start = Start(tmp_path / "home", rack, hosts)
    start.folder.mkdir(parents=True, mode=0o700)
    named = "".join(f"Host {host.name}\n    HostName {host.address}\n" for host in hosts)
    config = start.folder / "config"
    config.write_text(CONFIG.format(named=named, known=start.folder / "known_hosts"))
    start.inventory.write_text("".join(f"{host.name} slots=2\n" for host in hosts))
    (start.home / "bin").mkdir()
    wrapper = start.home / "bin" / "ssh"
    wrapper.write_text(f'#!/bin/sh\nexec /usr/bin/ssh -F {config} "$@"\n')
    wrapper.chmod(0o755)
    return start


def empty_folder(host: Host) -> None:
    host.sh("rm -rf /home/rower/.ssh")


def files(folder: Path) -> dict[str, str]:
    """What is in an ssh folder: a sum and a mode for each, with the folder itself."""
    if not folder.exists():
        return {}
    found = {".": oct(folder.stat().st_mode)}
    for file in sorted(folder.iterdir()):
        found[file.name] = f"{hashlib.sha256(file.read_bytes()).hexdigest()} {oct(file.stat().st_mode)}"
    return found


def all_files(start: Start) -> dict[str, Mapping[str, str]]:
    return {host.name: files(host.path("/home/rower/.ssh")) for host in start.hosts} | {"here": files(start.folder)}


def reaches(source: Host, target: Host) -> str:
    """What a person on one host gets to see when they log in to another."""
    return source.sh(f"su rower -c 'ssh -o BatchMode=yes {target.name} hostname' 2>&1 || true").strip()


def between(hosts: Sequence[Host]) -> dict[tuple[str, str], str]:
    pairs = [(source, target) for source in hosts for target in hosts if source is not target]
    return {(source.name, target.name): reaches(source, target) for source, target in pairs}


@THREE
def test_hosts_that_know_only_a_password_come_to_trust_each_other(start: Start) -> None:
    done = start.trust("--yes")
    assert done.exit_code == 0, done.stdout + done.stderr
    assert between(start.hosts) == {(a.name, b.name): b.name for a in start.hosts for b in start.hosts if a is not b}
    assert [start.ssh(host, "hostname").stdout.strip() for host in start.hosts] == [host.name for host in start.hosts]
    for host in start.hosts:
        assert fingerprint(host) in done.stdout
        modes = {name: said.split()[-1][-3:] for name, said in files(host.path("/home/rower/.ssh")).items()}
        wanted = dict.fromkeys(("authorized_keys", "config", "id_oarsman", "known_hosts"), "600")
        assert modes.items() >= (wanted | {".": "700"}).items()
    secrets = {host.path("/home/rower/.ssh/id_oarsman").read_text() for host in start.hosts}
    assert len(secrets) == len(start.hosts)


def fingerprint(host: Host) -> str:
    return host.run("ssh-keygen", "-l", "-E", "sha256", "-f", "/etc/ssh/ssh_host_ed25519_key.pub").split()[1]


def test_what_is_done_is_what_was_announced(start: Start) -> None:
    before = all_files(start)
    announced = json.loads(start.trust("--dry-run", "-o", "json").stdout)
    assert all_files(start) == before
    done = json.loads(start.trust("--yes", "-o", "json").stdout)
    assert by_place(done["done"]) == by_place(announced["plan"]) == by_place(done["plan"])
    assert {(found["host"], found["file"]) for found in announced["plan"] if found["host"]} == {
        (host.name, f"~/.ssh/{file}")
        for host in start.hosts
        for file in ("authorized_keys", "known_hosts", "config", "id_oarsman")
    }
    assert [pair for pair in done["logins"] if not pair["works"]] == []


def by_place(changes: list[dict[str, str]]) -> list[tuple[str, ...]]:
    return sorted(tuple(str(value) for value in change.values()) for change in changes)


def test_a_key_between_hosts_opens_them_for_commands_alone_and_from_its_own_host(start: Start) -> None:
    assert start.trust("--yes").exit_code == 0
    node1, node2 = start.hosts
    public = node1.path("/home/rower/.ssh/id_oarsman.pub").read_text().split()[1]
    admitted = node2.path("/home/rower/.ssh/authorized_keys").read_text().splitlines()
    line = next(line for line in admitted if public in line)
    assert line.startswith(f'restrict,from="{node1.address}" ssh-ed25519 ')
    stolen = start.home / "stolen"
    stolen.write_text(node1.path("/home/rower/.ssh/id_oarsman").read_text())
    stolen.chmod(0o600)
    options = [f"UserKnownHostsFile={start.folder / 'known_hosts'}", "BatchMode=yes", f"IdentityFile={stolen}"]
    command = ["/usr/bin/ssh", "-F", "/dev/null", *(word for option in options for word in ("-o", option))]
    command += ["-o", "IdentitiesOnly=yes", "-o", "IdentityAgent=none", f"rower@{node2.address}", "true"]
    used = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert "Permission denied" in used.stderr
    forwarding = f"ssh -o BatchMode=yes -o ExitOnForwardFailure=yes -R 0:127.0.0.1:22 {node2.name} hostname"
    assert "forwarding failed" in node1.sh(f"su rower -c '{forwarding}' 2>&1 || true")
    no_terminal = f"ssh -tt -o BatchMode=yes {node2.name} tty"
    assert "/dev/pts" not in node1.sh(f"su rower -c '{no_terminal}' 2>&1 || true")


@pytest.mark.mpi
def test_a_plain_mpirun_between_the_hosts_still_works(start: Start) -> None:
    assert start.trust("--yes").exit_code == 0
    interfaces = "--mca oob_tcp_if_include eth0 --mca btl_tcp_if_include eth0"
    mpirun = f"TMPDIR=/tmp mpirun {interfaces} --host node1,node2 -n 2 hostname"
    assert sorted(start.hosts[0].sh(f"su rower -c '{mpirun}'").split()) == ["node1", "node2"]


@pytest.mark.parametrize(
    ("variable", "odd"),
    [
        ("SSH_CONNECTION='10.0.0.9 5 10.6.6.6,* 22'", "10.6.6.6,*"),
        ("SSH_CONNECTION='10.0.0.9 5 10.0.0.1 22,*'", "22,*"),
        ("PATH=/var/tmp/lies:$PATH", "rower *"),
    ],
)
def test_what_a_host_calls_itself_gets_into_no_file_if_it_would_mean_more_there(
    start: Start, variable: str, odd: str
) -> None:
    node1, node2 = start.hosts
    node2.write("/var/tmp/lies/id", "#!/bin/sh\necho 'rower *'\n", mode=0o755)
    node2.write("/var/tmp/liar", f'#!/bin/sh\n{variable}; export SSH_CONNECTION PATH\nexec /bin/sh "$@"\n', mode=0o755)
    before = files(node1.path("/home/rower/.ssh"))
    with node2.faults.login_shell("/var/tmp/liar"):
        done = start.trust("--yes")
    assert done.exit_code == 1
    assert odd in done.stdout
    assert "node2: it cannot be called what it calls itself" in done.stdout
    assert "*" not in "".join(
        node1.path(f"/home/rower/.ssh/{name}").read_text() for name in ("known_hosts", "config", "authorized_keys")
    )
    assert before == {}


def test_a_host_that_claims_the_address_of_another_does_not_get_its_name(start: Start) -> None:
    node1, node2 = start.hosts
    lie = f"SSH_CONNECTION='10.0.0.9 5 {node1.address} 22'; export SSH_CONNECTION"
    node2.write("/var/tmp/liar", f'#!/bin/sh\n{lie}\nexec /bin/sh "$@"\n', mode=0o755)
    start.inventory.write_text(f"- {{name: node1, address: {node1.address}}}\n- node2\n")
    with node2.faults.login_shell("/var/tmp/liar"):
        done = start.trust("--yes")
    assert done.exit_code == 1
    assert f"node2: it has the name {node1.address}, as node1 has" in done.stdout
    assert node2.public_key.split()[1] not in node1.path("/home/rower/.ssh/known_hosts").read_text()


def test_a_second_run_changes_no_byte(start: Start) -> None:
    assert start.trust("--yes").exit_code == 0
    before = all_files(start)
    again = start.trust("--yes", password=None)
    assert again.exit_code == 0, again.stdout + again.stderr
    assert "nothing to do" in again.stdout
    assert all_files(start) == before


def test_undo_leaves_nothing(start: Start) -> None:
    before = all_files(start)
    assert start.trust("--yes").exit_code == 0
    undone = start.trust("--yes", "--undo", password=None)
    assert undone.exit_code == 0, undone.stdout + undone.stderr
    assert all_files(start) == before
    assert all(before[host.name] == {} for host in start.hosts)
    assert "nothing to do" in start.trust("--yes", "--undo").stdout


@pytest.mark.parametrize("end", ["\n", ""], ids=["ended", "without an end"])
def test_what_was_there_survives_byte_for_byte(start: Start, end: str) -> None:
    old = {
        "authorized_keys": f'# mine\nfrom="10.0.0.1" {start.hosts[0].public_key} somebody',
        "known_hosts": f"elsewhere.example {start.hosts[1].public_key}",
        "config": "Compression no\nHost elsewhere\n  Port 2222",
    }
    for host in start.hosts:
        for name, text in old.items():
            host.write(f"/home/rower/.ssh/{name}", text + end, "rower", 0o640)
    (start.folder / "known_hosts").write_text(old["known_hosts"] + end)
    before = all_files(start)
    done = start.trust("--yes")
    assert done.exit_code == 0, done.stdout + done.stderr
    for host in start.hosts:
        for name, text in old.items():
            file = host.path(f"/home/rower/.ssh/{name}")
            assert file.read_text().startswith(text + "\n")
            assert oct(file.stat().st_mode)[-3:] == "640"
    assert start.trust("--yes", "--undo", password=None).exit_code == 0
    assert all_files(start) == before


@THREE
def test_a_wrong_password_is_named_and_nothing_is_changed(start: Start) -> None:
    start.hosts[1].write("/home/rower/.ssh/authorized_keys", key_here(start), "rower", 0o600)
    before = all_files(start)
    done = start.trust("--yes", password="wrong")
    assert done.exit_code == 2
    assert "node1, node3 cannot be logged in to with this password; nothing was changed" in done.stderr
    assert all_files(start) == before


def key_here(start: Start) -> str:
    """A key pair of the person's own, which ssh finds by itself because the configuration names it."""
    file = start.folder / "mine"
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "me", "-f", str(file)]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    config = start.folder / "config"
    config.write_text(f"{config.read_text()}    IdentityFile {file}\n")
    return file.with_suffix(".pub").read_text()


def test_a_key_that_one_has_opens_the_hosts_and_none_is_made_here(start: Start) -> None:
    mine = key_here(start)
    before = files(start.folder)
    assert start.trust("--yes").exit_code == 0
    assert {name for name, said in files(start.folder).items() if before.get(name) != said} == {"known_hosts"}
    for host in start.hosts:
        assert mine.split()[1] in host.path("/home/rower/.ssh/authorized_keys").read_text()


def test_a_named_key_is_installed_and_used_from_here(start: Start, tmp_path: Path) -> None:
    file = tmp_path / "named"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(file)], check=True)
    done = start.trust("--yes", "--key", f"{file}.pub")
    assert done.exit_code == 0, done.stdout + done.stderr
    assert not (start.folder / "id_oarsman").exists()
    assert [start.ssh(host, "hostname").stdout.strip() for host in start.hosts] == [host.name for host in start.hosts]


@THREE
def test_a_changed_host_key_is_refused_and_the_others_go_on(start: Start) -> None:
    assert start.trust("--yes").exit_code == 0
    node3 = start.rack.host("node3")
    with node3.faults.other_host_key():
        before = files(node3.path("/home/rower/.ssh"))
        done = start.trust("--yes")
        assert done.exit_code == 1
        assert "node3: its host key is not the one in known_hosts" in done.stdout
        assert "if it was reinstalled" in done.stdout.lower()
        assert files(node3.path("/home/rower/.ssh")) == before
        assert node3.public_key not in (start.folder / "known_hosts").read_text()


def test_a_host_that_was_installed_anew_is_taken_up_again(start: Start) -> None:
    assert start.trust("--yes").exit_code == 0
    node1, node2 = start.hosts
    with node2.faults.other_host_key():
        empty_folder(node2)
        subprocess.run(
            ["ssh-keygen", "-R", node2.address, "-f", str(start.folder / "known_hosts")],
            check=True,
            capture_output=True,
        )
        done = start.trust("--yes")
        assert done.exit_code == 0, done.stdout + done.stderr
        assert reaches(node1, node2) == "node2"


def test_a_key_that_somebody_on_a_host_wrote_down_is_not_overruled(start: Start) -> None:
    node1, node2 = start.hosts
    written = f"node2 {node1.public_key}\n"
    node1.write("/home/rower/.ssh/known_hosts", written, "rower", 0o600)
    done = start.trust("--yes")
    assert done.exit_code == 1
    assert "node1: its known_hosts has another key for node2, which is left as it is" in done.stdout
    assert "node1 -> node2 fails" in done.stderr
    assert node1.path("/home/rower/.ssh/known_hosts").read_text().startswith(written)
    assert reaches(node2, node1) == "node1"


@THREE
def test_a_host_that_was_off_is_taken_up_by_the_next_run(start: Start) -> None:
    node1, node2, node3 = start.hosts
    with node3.faults.closed_port():
        first = start.trust("--yes")
        assert first.exit_code == 1
        assert "node3" in first.stdout
        assert reaches(node1, node2) == "node2"
    second = start.trust("--yes")
    assert second.exit_code == 0, second.stdout + second.stderr
    assert reaches(node1, node3) == "node3"
    assert reaches(node3, node1) == "node1"


def test_a_run_without_a_host_keeps_what_the_others_know_about_it(start: Start) -> None:
    assert start.trust("--yes").exit_code == 0
    before = all_files(start)
    with start.rack.host("node2").faults.closed_port():
        assert start.trust("--yes", password=None).exit_code == 1
    assert all_files(start) == before


def test_undo_comes_back_later_for_a_host_that_was_off(start: Start) -> None:
    before = all_files(start)
    assert start.trust("--yes").exit_code == 0
    with start.rack.host("node2").faults.closed_port():
        first = start.trust("--yes", "--undo", password=None)
        assert first.exit_code == 1
        assert "not done: node2" in first.stdout
        assert files(start.rack.host("node1").path("/home/rower/.ssh")) == {}
    assert start.trust("--yes", "--undo").exit_code == 0
    assert all_files(start) == before


def test_a_pair_that_cannot_connect_is_named_with_the_reason(start: Start) -> None:
    node1, node2 = start.hosts
    with node2.faults.refuse_connections_from(node1):
        done = start.trust("--yes", "-o", "json")
    assert done.exit_code == 1
    failed = [pair for pair in json.loads(done.stdout)["logins"] if not pair["works"]]
    assert [(pair["from"], pair["to"]) for pair in failed] == [("node1", "node2")]
    assert "nothing listens on port 22" in failed[0]["why"]


def test_hosts_that_share_a_home_share_a_key(start: Start) -> None:
    home = start.rack.shared / "rower"
    home.mkdir(mode=0o755)
    os.chown(home, 5001, 5001)
    for host in start.hosts:
        host.sh(f"cp /etc/passwd /etc/passwd.old; sed -i s#:/home/rower:#:{home}:# /etc/passwd")
    try:
        done = start.trust("--yes")
        assert done.exit_code == 0, done.stdout + done.stderr
        again = start.trust("--yes", password=None)
        assert "nothing to do" in again.stdout
        assert start.trust("--yes", "--undo", password=None).exit_code == 0
        assert files(home / ".ssh") == {}
    finally:
        for host in start.hosts:
            host.sh("cp /etc/passwd.old /etc/passwd; rm /etc/passwd.old")


@THREE
def test_hosts_behind_another_are_reached_through_it(start: Start) -> None:
    """Its password is another one than that of the host in front, which must not get to see it."""
    node1, *behind = start.hosts
    node1.write("/home/rower/.ssh/authorized_keys", key_here(start), "rower", 0o600)
    (start.folder / "known_hosts").write_text(f"{node1.address} {node1.public_key}\n")
    for host in behind:
        host.faults.drop_connections_from(start.rack.address)
    lines = [f"- {{name: {host.name}, jump: node1}}\n" for host in behind]
    start.inventory.write_text("".join(["- node1\n", *lines]))
    before = node1.log()
    done = start.trust("--yes")
    assert done.exit_code == 0, done.stdout + done.stderr
    assert all(fingerprint(host) in done.stdout for host in behind)
    assert "password" not in node1.log().removeprefix(before)
    assert reaches(node1, behind[0]) == behind[0].name


def test_without_a_password_a_dry_run_says_that_one_would_be_asked_for(start: Start) -> None:
    before = all_files(start)
    done = start.trust("--dry-run", password=None)
    assert done.exit_code == 0, done.stdout + done.stderr
    assert "would ask for a password" in done.stdout
    assert all_files(start) == before


def test_a_home_that_others_may_write_to_is_warned_about(start: Start) -> None:
    start.hosts[0].sh("chmod 777 /home/rower")
    done = start.trust("--yes")
    start.hosts[0].sh("chmod 755 /home/rower")
    assert done.exit_code == 1
    assert "node1: others may write to ~, so its sshd may ignore the keys" in done.stdout
    assert "node2 -> node1 fails: node1: it does not let us log in" in done.stderr


@THREE
def test_trusts_of_two_inventories_do_not_undo_each_other(start: Start) -> None:
    assert start.trust("--yes").exit_code == 0
    before = {host.name: files(host.path("/home/rower/.ssh")) for host in start.hosts}
    first, start.inventory_name = start.inventory_name, "others.txt"
    start.inventory.write_text("".join(f"{host.name}\n" for host in start.hosts[:2]))
    assert start.trust("--yes").exit_code == 0
    assert start.trust("--yes", "--undo").exit_code == 0
    assert {host.name: files(host.path("/home/rower/.ssh")) for host in start.hosts} == before
    start.inventory_name = first
    assert start.trust("--yes").exit_code == 0


def test_a_shell_that_chats_when_it_starts_does_no_harm(start: Start) -> None:
    node1 = start.hosts[0]
    node1.write("/var/tmp/chatty", '#!/bin/sh\necho Welcome\necho to node1 >&2\nexec /bin/sh "$@"\n', mode=0o755)
    with node1.faults.login_shell("/var/tmp/chatty"):
        done = start.trust("--yes")
    assert done.exit_code == 0, done.stdout + done.stderr


def test_a_link_to_a_configuration_stays_a_link(start: Start) -> None:
    node1 = start.hosts[0]
    node1.write("/home/rower/dotfiles/ssh", "Compression no\n", "rower", 0o600)
    node1.sh("su rower -c 'cd && mkdir -m 700 .ssh && ln -s ../dotfiles/ssh .ssh/config'")
    assert start.trust("--yes").exit_code == 0
    assert node1.path("/home/rower/.ssh/config").is_symlink()
    assert "Host node2" in node1.path("/home/rower/dotfiles/ssh").read_text()
    assert start.trust("--yes", "--undo").exit_code == 0
    assert node1.path("/home/rower/.ssh/config").is_symlink()
    assert node1.path("/home/rower/dotfiles/ssh").read_text() == "Compression no\n"


@THREE
def test_another_port_is_known_to_all(start: Start) -> None:
    node1, node2, _ = start.hosts
    start.inventory.write_text("- node1\n- {name: node2, port: 2222}\n- node3\n")
    with node2.faults.other_port(2222):
        done = start.trust("--yes")
        assert done.exit_code == 0, done.stdout + done.stderr
        assert reaches(node1, node2) == "node2"
    assert f"[{node2.address}]:2222" in node1.path("/home/rower/.ssh/known_hosts").read_text()


def test_a_full_disk_changes_nothing_and_is_named(start: Start) -> None:
    node2 = start.rack.host("node2")
    node2.write("/home/rower/.ssh/config", "Compression no\n", "rower", 0o600)
    with node2.faults.full_disk("/home/rower"):
        done = start.trust("--yes")
        assert done.exit_code == 1
        assert "node2" in done.stderr
        assert node2.path("/home/rower/.ssh/config").read_text() == "Compression no\n"
    assert start.trust("--yes").exit_code == 0


class Terminal:
    """Somebody who types: the command with a terminal of its own."""

    def __init__(self, start: Start, *words: str) -> None:
        self._ours, theirs = pty.openpty()
        command = [sys.executable, "-m", "oarsman.cli", "hosts", "trust", "--hosts", str(start.inventory), *words]
        self.process = subprocess.Popen(
            ["setsid", "--ctty", "--wait", *command],
            env=start.environment,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        self.shown = ""

    def sees(self, text: str) -> None:
        readable = select.poll()  # not select(), which takes no descriptor above 1023
        readable.register(self._ours, select.POLLIN)
        while text not in self.shown:
            assert readable.poll(PATIENCE * 1000), f"{text!r} never came: {self.shown}"
            self.shown += os.read(self._ours, 4096).decode()
        self.shown = self.shown.partition(text)[2]

    def types(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def end(self) -> tuple[int, str]:
        with suppress(OSError):  # how Linux says that nobody is at the other end
            while read := os.read(self._ours, 4096):
                self.shown += read.decode()
        os.close(self._ours)
        return self.process.wait(PATIENCE), self.shown


@THREE
def test_a_person_confirms_the_keys_types_one_password_and_confirms_the_changes(start: Start) -> None:
    person = Terminal(start, "--same-password")
    person.sees("Are these the keys of these hosts?")
    person.types("y\n")
    person.sees("Password of 3 hosts")
    person.types("mistyped\n")
    person.sees("wrong password for node1, node2, node3")
    person.sees("Password of 3 hosts")
    person.types(f"{PASSWORD}\n")
    person.sees("Change this?")
    before = all_files(start)
    person.types("y\n")
    code, shown = person.end()
    assert (code, "every login works: 9 of 9" in shown, PASSWORD in shown) == (0, True, False), shown
    assert all_files(start) != before


def test_whoever_says_no_has_changed_nothing(start: Start) -> None:
    before = all_files(start)
    person = Terminal(start)
    person.sees("Are these the keys of these hosts?")
    person.types("n\n")
    code, shown = person.end()
    assert (code, "nothing was changed" in shown) == (1, True)
    assert all_files(start) == before


@THREE
def test_an_interrupted_run_says_what_it_did_and_the_next_one_finishes_it(start: Start) -> None:
    node1, _, node3 = start.hosts
    person = Terminal(start, "--same-password")
    person.sees("Are these the keys of these hosts?")
    person.types("y\n")
    person.sees("Password of 3 hosts")
    person.types(f"{PASSWORD}\n")
    person.sees("Change this?")
    with node3.faults.silence():
        person.types("y\n")
        while not node1.path("/home/rower/.ssh/id_oarsman.pub").exists():
            assert person.process.poll() is None
            select.select([], [], [], 0.05)
        person.types("\x03")
        code, shown = person.end()
    assert code == 130
    assert "interrupted. Changed until then:" in shown
    assert "run it again to continue" in shown
    assert start.trust("--yes").exit_code == 0
