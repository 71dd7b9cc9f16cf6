from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from cluster.world import PATIENCE, started

from ssh_hosts import PASSWORD, Rack
from ssh_hosts import rack as make
from ssh_hosts.fixtures import insist_on_racks
from ssh_hosts.rack import ROOT, why_no_racks

MPI = ROOT / ".mpi"
SUM = "'from mpi4py import MPI; c = MPI.COMM_WORLD; print(c.allreduce(c.rank), MPI.Get_processor_name())'"


def wait_until(fact: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not fact():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


@pytest.mark.parametrize("user", ["rower", "root"])
def test_every_host_admits_the_key(rack: Rack, user: str) -> None:
    answers = rack.each(lambda host: rack.ssh(host, "hostname; whoami", user=user))
    assert [answer.stdout.split() for answer in answers] == [[host.name, user] for host in rack]


@pytest.mark.parametrize(("password", "said"), [(PASSWORD, "node2\n"), ("wrong", "")])
def test_every_host_admits_the_password_and_no_other(rack: Rack, password: str, said: str) -> None:
    options = ["-o", "PubkeyAuthentication=no", "-o", "NumberOfPasswordPrompts=1"]
    done = subprocess.run(
        ["ssh", *options, "node2", "hostname"], env=rack.asking(password), capture_output=True, text=True, check=False
    )
    assert done.stdout == said
    assert (done.returncode == 0) is bool(said), done.stderr


def test_hosts_reach_each_other_only_after_they_were_given_trust(rack: Rack) -> None:
    across = "ssh -o BatchMode=yes node3 hostname"
    assert rack.ssh("node1", across).returncode == 255
    rack.trust()
    assert rack.ssh("node1", across).stdout == "node3\n"
    assert rack.ssh("node4", across).stdout == "node3\n"


def test_a_host_has_a_name_an_address_processes_and_files_of_its_own(rack: Rack) -> None:
    first, second, *_ = rack
    first.write("/home/rower/mine", "x", "rower")
    first.write("/tmp/mine", "x", "rower")
    assert "mine" not in rack.ssh(second, "ls /home/rower /tmp /dev/shm").stdout
    assert rack.ssh(first, "cat /etc/hostname").stdout == "node1\n"
    assert f"inet {second.address}/24" in rack.ssh(second, "/sbin/ip addr show eth0").stdout
    assert "172.17.0.1/16" in rack.ssh(first, "/sbin/ip addr show docker0").stdout
    assert "docker0" in rack.ssh(second, "ls /sys/class/net").stdout
    assert rack.ssh(first, "ps -e -o args=").stdout.count("[listener]") == 1


def test_the_machine_and_all_hosts_share_one_folder(rack: Rack) -> None:
    assert rack.ssh("node1", f"echo hello >{rack.shared}/word").returncode == 0
    assert rack.ssh("node2", f"cat {rack.shared}/word").stdout == (rack.shared / "word").read_text() == "hello\n"


def test_not_even_root_of_a_host_changes_the_machine(rack: Rack) -> None:
    for folder in ("/usr/bin", str(MPI), sys.base_prefix):
        done = rack.ssh("node1", f"touch {folder}/intruder", user="root")
        assert "Read-only file system" in done.stderr
    assert rack.ssh("node1", "touch /etc/mine", user="root").returncode == 0
    assert not Path("/etc/mine").exists()
    rack[0].sh("rm /etc/mine")


def test_a_host_that_lost_its_power_comes_back_with_its_files_and_keys_and_nothing_else(rack: Rack) -> None:
    host = rack[1]
    host.write("/home/rower/kept", "x", "rower")
    host.write("/tmp/lost", "x", "rower")
    with subprocess.Popen(["ssh", "node2", "sleep 1000"], env=rack.environment, stdin=subprocess.DEVNULL) as session:
        wait_until(lambda: "sleep 1000" in host.commands(), "the session begins")
        host.kill()
        host.start()
        assert host.commands() == []
        session.kill()
    assert rack.ssh(host, "ls /home/rower /tmp").stdout.split()[:2] == ["/home/rower:", "kept"]
    assert "lost" not in rack.ssh(host, "ls /tmp").stdout


def test_what_a_test_left_is_removed(rack: Rack) -> None:
    host = rack[0]
    rack.ssh(host, "setsid sleep 1000 </dev/null >/dev/null 2>&1 & echo left >left")
    rack.ssh(host, "rm .ssh/authorized_keys; echo left >/dev/shm/left")
    rack.known_hosts.write_text("")
    assert "sleep 1000" in host.commands()
    rack.clean()
    assert host.commands() == []
    assert rack.ssh(host, "ls; ls /dev/shm").stdout == ""


def test_racks_do_not_meet(rack: Rack) -> None:
    with make(1) as other:
        assert other[0].address != rack[0].address
        assert other.ssh("node1", "hostname").stdout == "node1\n"
        assert other[0].public_key != rack[0].public_key


def test_a_folder_is_visible_wherever_it_lies(tmp_path: Path) -> None:
    insist_on_racks()
    (ROOT / "build").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=ROOT / "build") as closed:
        folders = [tmp_path / "a" / "b", Path(closed, "only root", "c"), Path(closed, "only root", "d")]
        for folder in folders:
            folder.mkdir(parents=True)
            (folder / "file").write_text(folder.name)
        with make(1, visible=folders) as rack:
            for folder in folders:
                assert rack.ssh("node1", f"cat '{folder}/file'").stdout == folder.name
                assert "Read-only" in rack.ssh("node1", f"touch '{folder}/file'", user="root").stderr


@pytest.mark.mpi
@pytest.mark.parametrize(
    "command",
    [
        pytest.param(
            f"/usr/bin/mpirun --hostfile hosts --mca btl_tcp_if_include eth0 --mca oob_tcp_if_include eth0 "
            f"{MPI}/debian/bin/python -c {SUM}",
            id="Open MPI 4",
        ),
        pytest.param(
            f"{MPI}/openmpi5/bin/mpirun --hostfile hosts --mca btl ^ofi --mca btl_tcp_if_include eth0 "
            f"--prtemca prte_if_include eth0 {MPI}/openmpi5/bin/python -c {SUM}",
            id="Open MPI 5",
        ),
        pytest.param(f"{MPI}/mpich/bin/mpiexec -f machines {MPI}/mpich/bin/python -c {SUM}", id="MPICH"),
        pytest.param(
            f"{MPI}/intel/bin/mpiexec -n 4 -ppn 1 -iface eth0 -genv FI_TCP_IFACE eth0 -f machines "
            f"{MPI}/intel/bin/python -c {SUM}",
            id="Intel MPI",
        ),
    ],
)
def test_an_mpi_job_spans_all_hosts(rack: Rack, command: str) -> None:
    rack.trust()
    rack[0].write("/home/rower/hosts", "".join(f"{host.name} slots=1\n" for host in rack), "rower")
    rack[0].write("/home/rower/machines", "".join(f"{host.name}:1\n" for host in rack), "rower")
    done = rack.ssh("node1", command)
    assert sorted(done.stdout.splitlines()) == [f"6 {host.name}" for host in rack], done.stderr


def test_hosts_end_with_a_process_that_is_killed() -> None:
    insist_on_racks()
    code = (
        "import sys, ssh_hosts\n"
        "with ssh_hosts.rack(2) as rack:\n"
        "    print(rack.folder, rack.shared, rack._switch.link, *(host._world.pid for host in rack), flush=True)\n"
        "    sys.stdin.read()\n"
    )
    owner = subprocess.Popen(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT / "tests")},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with owner:
        assert owner.stdout
        folder, shared, link, *pids = owner.stdout.readline().split()
        assert all(started(int(pid)) for pid in pids)
        owner.send_signal(signal.SIGKILL)
    wait_until(lambda: not any(started(int(pid)) for pid in pids), "hosts end")
    wait_until(lambda: not Path("/sys/class/net", link).exists(), "the cable is gone")
    wait_until(lambda: not Path(folder).exists() and not Path(shared).exists(), "folders are gone")


def test_who_is_not_root_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert "root" in why_no_racks()
    monkeypatch.delenv("OARSMAN_WITHOUT", raising=False)
    with pytest.raises(pytest.fail.Exception, match="OARSMAN_WITHOUT=ssh"):
        insist_on_racks()
    monkeypatch.setenv("OARSMAN_WITHOUT", "pods,ssh")
    with pytest.raises(pytest.skip.Exception):
        insist_on_racks()


def test_hosts_to_try_by_hand_stay_until_they_are_removed() -> None:
    insist_on_racks()
    command = [sys.executable, "-m", "tests.ssh_hosts"]
    name = f"test{os.getpid()}"
    up = subprocess.run([*command, "up", "1", name], cwd=ROOT, capture_output=True, text=True, check=False)
    try:
        assert up.returncode == 0, up.stderr
        shown = re.search(r"ssh -F \S+ node1$", up.stdout, re.MULTILINE)
        assert shown
        ssh = [*shown[0].split(), "hostname"]
        assert subprocess.run(ssh, capture_output=True, text=True, check=False).stdout == "node1\n"
    finally:
        subprocess.run([*command, "down", name], cwd=ROOT, check=True)
    assert subprocess.run(ssh, capture_output=True, check=False).returncode == 255
