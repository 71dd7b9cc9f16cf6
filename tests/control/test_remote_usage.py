"""What hosts that are other machines use, as they tell it: noted over time, and as it is now."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from oarsman.control import usage
from oarsman.control.usage import Sampler
from oarsman.engines.hosts.core import process
from oarsman.engines.hosts.core.job_spec import write_spec
from oarsman.engines.hosts.core.journal import HostMade, JournalReader, add_note
from oarsman.engines.hosts.core.journal_state import Seen
from oarsman.store import samples
from tests.engines.hosts.specs import a_spec, an_ssh_host

LAUNCHER, FIRST, SECOND, THIRD = "pi-launcher", "pi-worker-0", "pi-worker-1", "pi-worker-2"
# The launcher and two workers share a machine, the third worker has one to itself.
MEMBERS = {LAUNCHER: FIRST, FIRST: FIRST, SECOND: FIRST, THIRD: THIRD}


class Job:
    """A job on two machines; this process speaks for the hosts of one, its parent for that of the other."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "a"
        self.run = folder / "run"
        self.folder.mkdir()
        (self.run / "u").mkdir(parents=True)
        hosts = {name: an_ssh_host(members=[(lead, 2)]) for name, lead in MEMBERS.items()}
        gpus = {THIRD: ["node2:1"]}
        write_spec(self.folder, a_spec(transport="ssh", run_folder=str(self.run), hosts=hosts, gpus=gpus))
        for index, (name, lead) in enumerate(MEMBERS.items()):
            identity = process.identify(os.getpid() if lead == FIRST else os.getppid())
            assert identity is not None
            add_note(str(self.folder), HostMade(name, index, name == LAUNCHER, *identity, "", [], machine="node1"))
        seen = Seen()
        for fact in JournalReader(str(self.folder)).news():
            seen.learn(fact)
        self.made = min(host.made_at for host in seen.hosts.values()).timestamp()

    def tell(self, name: str, after: float, figures: str) -> None:
        (self.run / "u" / name).write_text(f"{self.made + after:.3f} {figures}\n")


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path)


class Clock:
    """Five seconds from look to look."""

    def __init__(self, job: Job) -> None:
        self.time = job.made

    def __call__(self) -> float:
        self.time += 5.0
        return self.time


def test_rates_are_those_between_two_tellings(tmp_path: Path, job: Job) -> None:
    sampler = Sampler(tmp_path.joinpath, now=Clock(job))
    for after, figures in ((10, "5.00 1000 2 1000 100"), (20, "25.00 3000 4 6000 400")):
        job.tell(FIRST, after, figures)
        sampler.look(["a"])
    first, second = samples.read(job.folder)
    assert first.hosts[FIRST].cpu_percent == pytest.approx(50, abs=1)
    assert (first.hosts[FIRST].received, first.hosts[FIRST].sent) == (None, None)  # what came before is not the job's
    assert second.hosts == {FIRST: samples.Sample(200.0, 3000, 500.0, 30.0)}


def test_hosts_that_share_a_machine_are_counted_once(tmp_path: Path, job: Job) -> None:
    for name in MEMBERS:
        job.tell(name, 10, "5.00 1000 2 0 0")
    Sampler(tmp_path.joinpath, now=Clock(job)).look(["a"])
    (moment,) = samples.read(job.folder)
    assert list(moment.hosts) == [FIRST, THIRD]
    assert [use.host for use in usage.of_job(job.folder)] == [FIRST, THIRD]


def test_nothing_is_noted_of_a_host_that_said_nothing_new(tmp_path: Path, job: Job) -> None:
    job.tell(FIRST, 10, "5.00 1000 2 0 0")
    job.tell(THIRD, 10, "half a")
    sampler = Sampler(tmp_path.joinpath, now=Clock(job))
    sampler.look(["a"])
    sampler.look(["a"])
    assert [list(moment.hosts) for moment in samples.read(job.folder)] == [[FIRST]]


def test_processes_that_ended_do_not_make_a_negative_rate(tmp_path: Path, job: Job) -> None:
    sampler = Sampler(tmp_path.joinpath, now=Clock(job))
    for after, figures in ((10, "50.00 1000 9 0 0"), (20, "1.00 500 1 0 0")):
        job.tell(FIRST, after, figures)
        sampler.look(["a"])
    assert [moment.hosts[FIRST].cpu_percent for moment in samples.read(job.folder)][1:] == [0.0]


def test_what_is_used_now_is_what_was_told_last(tmp_path: Path, job: Job) -> None:
    assert usage.of_job(job.folder) == []  # nobody has said anything
    job.tell(THIRD, 10, "5.00 4096 3 0 0")
    (use,) = usage.of_job(job.folder)
    assert (use.host, use.role, use.processes, use.memory_bytes, use.gpus) == (THIRD, "worker", 3, 4096, (1,))
    assert use.cpu_percent == pytest.approx(50, abs=1)  # since its start, as long as nothing else is known
    now = datetime.now(UTC).timestamp()
    samples.Series(job.folder, 5.0).add(samples.Moment(now, {THIRD: samples.Sample(87.5, 4096)}))
    assert usage.of_job(job.folder)[0].cpu_percent == 87.5
