"""The sampler: what it notes of processes, devices and time, and that trouble with one job is not that of others."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from oarsman.control.usage import Sampler
from oarsman.engines.hosts.core import process
from oarsman.engines.hosts.core.job_spec import write_spec
from oarsman.engines.hosts.core.journal import HostMade, add_note
from oarsman.store import samples
from tests.engines.hosts.specs import a_spec

NVIDIA_SMI = "#!/bin/sh\necho '0, 10, 100'; echo '1, 30, 200'; echo '2, [N/A], [N/A]'\n"


class Clock:
    def __init__(self) -> None:
        self.time = 2_000_000_000.0

    def __call__(self) -> float:
        self.time += 5.0
        return self.time


@pytest.fixture
def host() -> Iterator[subprocess.Popen[bytes]]:
    """A first process of a host, with one below it that waits until its input is closed."""
    running = subprocess.Popen(["sh", "-c", "cat; true"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert running.stdin is not None
    assert running.stdout is not None
    running.stdin.write(b"x")
    running.stdin.flush()
    running.stdout.read(1)  # it is there
    yield running
    running.stdin.close()
    running.wait()
    running.stdout.close()


def a_job(folder: Path, host: subprocess.Popen[bytes]) -> None:
    folder.mkdir()
    identity = process.identify(host.pid)
    assert identity is not None
    made = HostMade("pi-worker-0", 0, False, pid=identity.pid, started=identity.started, address="", unset=[])
    add_note(str(folder), made)


def test_every_look_adds_a_moment(tmp_path: Path, host: subprocess.Popen[bytes]) -> None:
    a_job(tmp_path / "a", host)
    sampler = Sampler(tmp_path.joinpath, now=Clock())
    for _ in range(3):
        sampler.look(["a"])
    found = list(samples.read(tmp_path / "a"))
    assert [moment.time for moment in found] == [2_000_000_005.0, 2_000_000_010.0, 2_000_000_015.0]
    sample = found[-1].hosts["pi-worker-0"]
    assert sample.memory_bytes > 0
    assert (sample.received, sample.gpu_percent) == (None, None)  # it shares our network and has no device


def test_a_job_that_an_earlier_supervisor_sampled_begins_with_a_look_alone(
    tmp_path: Path, host: subprocess.Popen[bytes]
) -> None:
    a_job(tmp_path / "a", host)
    clock = Clock()
    Sampler(tmp_path.joinpath, now=clock).look(["a"])
    later = Sampler(tmp_path.joinpath, now=clock)
    later.look(["a"])  # how much was used since the sample before is not known
    assert len(list(samples.read(tmp_path / "a"))) == 1
    later.look(["a"])
    assert len(list(samples.read(tmp_path / "a"))) == 2


def test_devices_are_those_the_host_holds(
    tmp_path: Path, host: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "nvidia-smi").write_text(NVIDIA_SMI)
    (tmp_path / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    a_job(tmp_path / "a", host)
    write_spec(tmp_path / "a", a_spec(gpus={"pi-worker-0": ["0", "1", "2"]}))
    Sampler(tmp_path.joinpath, now=Clock()).look(["a"])
    (moment,) = samples.read(tmp_path / "a")
    assert moment.hosts["pi-worker-0"].gpu_percent == 20.0
    assert moment.hosts["pi-worker-0"].gpu_memory_bytes == 300 << 20


def test_a_job_that_cannot_be_sampled_does_not_keep_others_from_it(
    tmp_path: Path, host: subprocess.Popen[bytes]
) -> None:
    for name in ("broken", "fine"):
        a_job(tmp_path / name, host)
    (tmp_path / "broken" / samples.FILE).mkdir()
    sampler = Sampler(tmp_path.joinpath, now=Clock())
    sampler.look(["broken", "never-prepared", "fine"])
    assert len(list(samples.read(tmp_path / "fine"))) == 1
