"""Whose sshd answers on a worker, on which port, and what the launcher's ssh is told about it."""

from __future__ import annotations

from typing import Any

import pytest

from oarsman.engines.kube import ssh
from oarsman.engines.kube.ssh import SshServer, client_config, port_of, server_of

from .kube_jobs import a_kube_job


def of(*words: str, args: list[str] | None = None, **given: Any) -> Any:
    container: dict[str, Any] = {"name": "mpi", "image": "pi"}
    container |= ({"command": list(words)} if words else {}) | ({"args": args} if args else {})
    return a_kube_job(worker={"containers": [container], **given.pop("pod", {})}, **given)


@pytest.mark.parametrize(
    ("job", "server"),
    [
        pytest.param(of(), SshServer(ours=True, pinned=True), id="the image says nothing"),
        pytest.param(
            of("/usr/sbin/sshd", "-De"), SshServer(ours=True, pinned=True, options=("-De",)), id="a plain sshd"
        ),
        pytest.param(
            of("/usr/sbin/sshd", args=["-De"]), SshServer(ours=True, pinned=True, options=("-De",)), id="words in args"
        ),
        pytest.param(
            of("sshd", "-D", "-p", "2022"),
            SshServer(ours=True, pinned=True, options=("-D", "-p", "2022"), port=2022),
            id="a port of its own",
        ),
        pytest.param(
            of("sshd", "-De", "-f", "/home/u/.sshd_config"),
            SshServer(ours=False, pinned=True, options=("-De", "-f", "/home/u/.sshd_config")),
            id="a configuration of its own",
        ),
        pytest.param(
            of("sshd", "-o", "Port 99", "-D"),
            SshServer(ours=True, pinned=True, options=("-o", "Port 99", "-D")),
            id="values are not options",
        ),
        pytest.param(of("/bin/sh", "-c", "sshd -D"), SshServer(ours=False, pinned=False), id="something else"),
        pytest.param(of(args=["-De"]), SshServer(ours=False, pinned=False), id="arguments for the image's entrypoint"),
    ],
)
def test_the_command_of_a_worker_tells_whose_sshd_it_is(job: Any, server: SshServer) -> None:
    assert server_of(job.worker) == server


@pytest.mark.parametrize(
    ("job", "ports"),
    [
        pytest.param(of(), [2222, 2222], id="ours"),
        pytest.param(of("sshd", "-D", "-p", "2022"), [2022, 2022], id="as it says"),
        pytest.param(of("sshd", "-f", "/etc/x"), [None, None], id="the file says it"),
        pytest.param(of("/entrypoint.sh"), [None, None], id="the image knows"),
        pytest.param(a_kube_job(workers=None), [None, None], id="no workers"),
    ],
)
def test_the_port_of_a_worker(job: Any, ports: list[int | None]) -> None:
    assert [port_of(job, i) for i in range(2)] == ports


def test_on_a_hosts_network_jobs_and_workers_have_different_ports() -> None:
    pod = {"hostNetwork": True}
    one, other = a_kube_job(worker=pod, uid="one"), a_kube_job(worker=pod, uid="other")
    ports = [port_of(job, i) for job in (one, other) for i in range(2)]
    assert len(set(ports)) == 4
    assert all(port is not None and 20000 <= port < 30000 for port in ports)
    assert port_of(one, 1) == port_of(a_kube_job(worker=pod, uid="one"), 1)


def test_the_port_wraps_around_at_the_end_of_the_range() -> None:
    job = a_kube_job(worker={"hostNetwork": True})
    first = port_of(job, 0)
    assert first is not None
    assert port_of(job, 10_000) == first
    assert port_of(job, 30_000 - first) == 20_000


COMMON = """\
  IdentitiesOnly yes
  UserKnownHostsFile {known}
  GlobalKnownHostsFile /dev/null
  CheckHostIP no
  StrictHostKeyChecking {strict}
  BatchMode yes
  ConnectTimeout 30
  ConnectionAttempts 10
  ServerAliveInterval 30
  ServerAliveCountMax 4
  LogLevel ERROR
"""


def everywhere(known: str = "/etc/oarsman/ssh/known_hosts", strict: str = "yes") -> str:
    return "Host *\n  IdentityFile /run/oarsman/ssh/id\n" + COMMON.format(known=known, strict=strict)


def test_the_configuration_for_our_own_sshd() -> None:
    assert client_config(of()) == ("Host pi-worker-*\n  Port 2222\n" + everywhere())


def test_on_a_hosts_network_the_configuration_names_each_port() -> None:
    job = a_kube_job(worker={"hostNetwork": True})
    assert client_config(job) == (
        f"Host pi-worker-0 pi-worker-0.*\n  Port {port_of(job, 0)}\n"
        f"Host pi-worker-1 pi-worker-1.*\n  Port {port_of(job, 1)}\n" + everywhere()
    )


def test_for_an_sshd_with_a_file_of_its_own_the_image_has_the_last_word() -> None:
    assert client_config(of("sshd", "-f", "/x")) == (everywhere() + "Match all\n  Include /etc/ssh/ssh_config\n")


def test_host_keys_we_did_not_give_out_are_not_checked() -> None:
    assert everywhere("/run/oarsman/ssh/known_hosts", "no") in client_config(of("/entrypoint.sh"))


def test_a_job_of_thousands_knows_hosts_from_several_files() -> None:
    job = a_kube_job(workers=1001)
    known = "/etc/oarsman/ssh/known_hosts /etc/oarsman/ssh/known_hosts-1"
    assert f"  UserKnownHostsFile {known}\n" in client_config(job)
    assert ssh.known_hosts_files(job) == ["known_hosts", "known_hosts-1"]


def test_a_launcher_alone_has_no_hosts_to_tell_of() -> None:
    assert client_config(a_kube_job(workers=None)) == everywhere()
