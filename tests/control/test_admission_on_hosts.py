"""Who gets room on a rack, as hosts answer, jobs come and jobs go. The hosts' answers are given here."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from oarsman import names
from oarsman.control.admission import AdmissionControl
from oarsman.engines.hosts.ssh import probe
from oarsman.engines.hosts.ssh.client import Answer, Ssh
from oarsman.engines.hosts.ssh.host_facts import KnownInventories
from oarsman.engines.hosts.ssh.inventory import SshHost
from oarsman.engines.hosts.ssh.trouble import Trouble
from oarsman.job.job import Job
from oarsman.manifest import job_from_document
from oarsman.plan.capacity import hosts

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Story:
    """A admission over three hosts with two slots each."""

    def __init__(self, folder: Path, monkeypatch: object) -> None:
        self.file = folder / "hosts"
        self.file.write_text("n1 slots=2\nn2 slots=2\nn3 slots=2\n")
        self.silent: set[str] = set()
        self.asked = 0
        self.concerned: list[str] = []
        self.placed: Mapping[str, str] = {}
        known = KnownInventories(left_out=lambda _: {}, keep=lambda *_: None)
        self.admission_control = AdmissionControl(hosts, known.of, self.concerned.append, lambda _: self.placed)
        monkeypatch.setattr(Ssh, "run", self._answer)  # type: ignore[attr-defined]
        monkeypatch.setattr("oarsman.control.admission._AGAIN_SECONDS", 0.0)  # type: ignore[attr-defined]

    async def _answer(self, host: SshHost, _script: str, **_: object) -> Answer:
        self.asked += 1
        if host.name in self.silent:
            return Answer(255, "", "", Trouble("timeout", f"{host.name}: no answer"))
        return Answer(
            0, f"oarsman-probe\t{probe.PROTOCOL}\nuser\trower\t5001\nmemory\t1024\t512\nclock\t1\nend\tcomplete\n", ""
        )

    def job(self, name: str, workers: int, slots: int = 2) -> Job:
        document = {
            "apiVersion": "kubeflow.org/v2beta1",
            "kind": "MPIJob",
            "metadata": {"name": name, "annotations": {"oarsman.dev/inventory": str(self.file)}},
            "spec": {
                "slotsPerWorker": slots,
                "mpiReplicaSpecs": {
                    "Launcher": {"template": {"spec": {"containers": [{"name": "l", "command": ["mpirun", "true"]}]}}},
                    "Worker": {"replicas": workers, "template": {"spec": {"containers": [{"name": "w"}]}}},
                },
            },
        }
        return replace(job_from_document(document), uid=name, created_at=NOW)

    async def admitted(self, job: Job) -> dict[str, str]:
        """Ask until the hosts have answered."""
        for _ in range(10_000):
            answer = self.admission_control.ask(job, NOW)
            if answer.admitted:
                return {place.member: place.machine for place in answer.placement}
            await asyncio.sleep(0.01)
        raise AssertionError(answer.reason)


def told(story: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(story(), 120))


def test_hosts_are_asked_before_anybody_gets_room(tmp_path: Path, monkeypatch: object) -> None:
    story = Story(tmp_path, monkeypatch)

    async def tell() -> None:
        job = story.job("a", 2)
        first = story.admission_control.ask(job, NOW)
        assert (first.admitted, first.reason) == (False, "its hosts are being asked")
        assert await story.admitted(job) == {"a-launcher": "n1", "a-worker-0": "n1", "a-worker-1": "n2"}
        assert story.asked == 3
        assert story.concerned == ["a"] * len(story.concerned)
        assert story.concerned

    told(tell)


def test_whoever_does_not_fit_waits_until_another_gives_its_room_back(tmp_path: Path, monkeypatch: object) -> None:
    story = Story(tmp_path, monkeypatch)

    async def tell() -> None:
        first, second = story.job("a", 2), story.job("b", 2)
        await story.admitted(first)
        assert "held by default/a" in story.admission_control.ask(second, NOW).reason
        story.concerned.clear()
        story.admission_control.release("a")
        assert story.concerned == ["b"]
        assert story.admission_control.ask(second, NOW).admitted
        assert story.admission_control.holders == ("b",)

    told(tell)


def test_nothing_is_decided_anew_while_nothing_changed(tmp_path: Path, monkeypatch: object) -> None:
    story = Story(tmp_path, monkeypatch)

    async def tell() -> None:
        await story.admitted(story.job("a", 3))
        waiting = story.job("b", 1)
        reason = story.admission_control.ask(waiting, NOW).reason
        monkeypatch.setattr("oarsman.plan.capacity.queue.admit", None)  # type: ignore[attr-defined]
        assert story.admission_control.ask(waiting, NOW).reason == reason

    told(tell)


def test_a_host_that_does_not_answer_is_left_out_and_asked_again_while_somebody_waits_for_it(
    tmp_path: Path, monkeypatch: object
) -> None:
    story = Story(tmp_path, monkeypatch)
    story.silent = {"n3"}

    async def tell() -> None:
        job = story.job("a", 3)
        for _ in range(10_000):
            if "n3" in (reason := story.admission_control.ask(job, NOW).reason):
                break
            await asyncio.sleep(0.01)
        assert "no answer" in reason
        story.silent.clear()
        assert set((await story.admitted(job)).values()) == {"n1", "n2", "n3"}

    told(tell)


def test_a_job_that_ran_before_keeps_its_places_and_may_get_more(tmp_path: Path, monkeypatch: object) -> None:
    story = Story(tmp_path, monkeypatch)

    async def tell() -> None:
        story.placed = {"a-launcher": "n2", "a-worker-0": "n2"}
        story.admission_control.hold(story.job("a", 1))
        assert await story.admitted(story.job("b", 2)) == {"b-launcher": "n1", "b-worker-0": "n1", "b-worker-1": "n3"}
        more = story.admission_control.ask(story.job("a", 2), NOW)
        assert more.admitted
        assert {place.machine for place in more.placement} == {"n2"}
        assert more.reason
        story.admission_control.release("b")
        assert len(story.admission_control.ask(story.job("a", 2), NOW).placement) == 3

    told(tell)


def test_an_inventory_that_is_gone_is_a_reason_to_wait(tmp_path: Path, monkeypatch: object) -> None:
    story = Story(tmp_path, monkeypatch)

    async def tell() -> None:
        story.file.unlink()
        answer = story.admission_control.ask(story.job("a", 1), NOW)
        assert not answer.admitted
        assert "hosts" in answer.reason

    told(tell)


def test_a_job_waits_for_hosts_that_let_nobody_in_and_starts_when_one_does(tmp_path: Path, monkeypatch: object) -> None:
    story = Story(tmp_path, monkeypatch)
    story.file.write_text("n1\nn2\n")  # how large they are, only they could say
    story.silent = {"n1", "n2"}

    async def tell() -> None:
        job = story.job("a", 1, slots=1)
        assert story.admission_control.ask(job, NOW).about == names.REASON_NO_HOSTS
        for _ in range(10_000):
            if "n1" in (answer := story.admission_control.ask(job, NOW)).reason:
                break
            await asyncio.sleep(0.01)
        assert (answer.about, answer.impossible) == (names.REASON_NO_HOSTS, False)
        assert answer.reason == "no host can be used now; n1: no answer; n2: no answer"
        story.silent = {"n1"}
        assert set((await story.admitted(job)).values()) == {"n2"}

    told(tell)
