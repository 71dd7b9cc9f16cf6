"""`oarsman hosts trust` on real hosts: from nothing, again, half-way, and back."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from ssh_hosts import PASSWORD, Host, Rack

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

    @property
    def folder(self) -> Path:
        return self.home / ".ssh"

    @property
    def inventory(self) -> Path:
        return self.home / "hosts.txt"

    @property
    def environment(self) -> dict[str, str]:
        path = f"{self.home / 'bin'}:{os.environ['PATH']}"
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("SSH_", "LC_", "LANG", "OARSMAN"))}
        return kept | {"HOME": str(self.home), "PATH": path}

    def trust(self, *words: str, password: str | None = PASSWORD) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "oarsman.cli", "hosts", "trust", "--hosts", str(self.inventory), *words]
        command += ["--password-file", "-"] if password is not None else []
        given = f"{password}\n" if password is not None else ""
        return subprocess.run(
            command, env=self.environment, input=given, capture_output=True, text=True, check=False, timeout=PATIENCE
        )

    def ssh(self, host: Host, *words: str) -> subprocess.CompletedProcess[str]:
        command = ["ssh", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes", host.name, *words]
        return subprocess.run(
            command, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
            timeout=PATIENCE,
        )  # fmt: skip


@pytest.fixture
def start(rack: Rack, tmp_path: Path) -> Start:
    for host in rack:
        empty_folder(host)
    start = Start(tmp_path / "home", rack)
    start.folder.mkdir(parents=True, mode=0o700)
    named = "".join(f"Host {host.name}\n    HostName {host.address}\n" for host in rack)
    config = start.folder / "config"
    config.write_text(CONFIG.format(named=named, known=start.folder / "known_hosts"))
    start.inventory.write_text("".join(f"{host.name} slots=2\n" for host in rack))
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
    return {host.name: files(host.path("/home/rower/.ssh")) for host in start.rack} | {"here": files(start.folder)}


def reaches(source: Host, target: Host) -> str:
    """What a person on one host gets to see when they log in to another."""
    return source.sh(f"su rower -c 'ssh -o BatchMode=yes {target.name} hostname' 2>&1 || true").strip()


def between(rack: Rack) -> dict[tuple[str, str], str]:
    pairs = [(source, target) for source in rack for target in rack if source is not target]
    return {(source.name, target.name): reaches(source, target) for source, target in pairs}


def test_hosts_that_know_only_a_password_come_to_trust_each_other(start: Start) -> None:
    done = start.trust("--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    assert between(start.rack) == {(a.name, b.name): b.name for a in start.rack for b in start.rack if a is not b}
    assert [start.ssh(host, "hostname").stdout.strip() for host in start.rack] == [host.name for host in start.rack]
    for host in start.rack:
        assert fingerprint(host) in done.stdout
        modes = {name: said.split()[-1][-3:] for name, said in files(host.path("/home/rower/.ssh")).items()}
        wanted = dict.fromkeys(("authorized_keys", "config", "id_oarsman", "known_hosts"), "600")
        assert modes.items() >= (wanted | {".": "700"}).items()
    secrets = {host.path("/home/rower/.ssh/id_oarsman").read_text() for host in start.rack}
    assert len(secrets) == len(start.rack)


def fingerprint(host: Host) -> str:
    return host.run("ssh-keygen", "-l", "-E", "sha256", "-f", "/etc/ssh/ssh_host_ed25519_key.pub").split()[1]
