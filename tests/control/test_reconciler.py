"""The reconciler over the store, with an engine of which a test says what can be seen and done."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from oarsman import names
from oarsman.control import reconciler as module
from oarsman.control.admission import on_this_machine
from oarsman.control.queue import WorkQueue
from oarsman.control.reconciler import EngineSite, Reconciler
from oarsman.control.store_records import StoreRecords
from oarsman.engines.contract import Assignment
from oarsman.errors import PlaceLostError, RetryableError
from oarsman.job.job import Job
from oarsman.job.observed import Observed
from oarsman.job.state import Attempt, Status
from oarsman.plan import reconcile
from oarsman.plan.actions import Action, CreateWorker, DeleteJob
from oarsman.plan.capacity.amounts import Capacity
from oarsman.plan.capacity.placement import Machine
from oarsman.plan.turn import Turn
from oarsman.status.codec import from_wire, to_wire
from oarsman.store.jobs import JobStore, StoredJob
from tests.builders import a_launcher, a_status, launched, workers

NOW = datetime(2026, 11, 15, tzinfo=UTC)


class PlayedEngine:
    """Sees what it is told to, and notes what it is asked for."""

    name = "local"

    def __init__(self) -> None:
        self.trouble: RetryableError | None = None
        self.seen: dict[str, Any] = {"prepared": False}
        self.asked: list[Action] = []
        self.adopted: list[Assignment] = []
        self.forgotten: list[str] = []
        self.kept: list[str] = []  # of those, the runs whose logs stay
        self.at_once = self.most_at_once = 0

    async def start(self, notify: Callable[[str], None]) -> None: ...

    async def adopt(self, assignment: Assignment) -> None:
        self.adopted.append(assignment)

    async def observe(self, assignment: Assignment) -> Observed:
        given = {"status": assignment.status, "admission": assignment.admission}
        return Observed(**given, stop_requested=assignment.stop_requested, **self.seen)

    async def apply(self, assignment: Assignment, action: Action) -> None:
        self.asked.append(action)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(0)
        self.at_once -= 1
        if self.trouble is not None:
            raise self.trouble

    async def forget(self, uid: str, *, keeps_log: bool = False) -> None:
        self.forgotten.append(uid)
        if keeps_log:
            self.kept.append(uid)

    async def close(self) -> None: ...


class World:
    def __init__(self, store: JobStore, runner: asyncio.Runner) -> None:
        self.store = store
        self.runner = runner
        self.now = NOW
        self.engine = PlayedEngine()
        self.start()

    def start(self) -> None:
        """Another supervisor, with no memory of this one's."""
        queue = WorkQueue()
        machine = Machine(name="", capacity=Capacity(cpu=Decimal(400), memory=Decimal(1 << 40)))
        self.admission = on_this_machine(machine, queue.add)
        self.queue = queue
        records = StoreRecords(self.store, queue.add, now=lambda: self.now)
        self.reconciler = Reconciler(records, EngineSite(self.engine, self.admission), queue, now=lambda: self.now)

    def submit(
        self,
        uid: str = "u",
        workers: int = 1,
        cpus: int = 0,
        engine: str = "local",
        annotations: Mapping[str, str] | None = None,
        **spec: Any,
    ) -> None:
        name = "pi" if uid == "u" else uid
        metadata = {"name": name, "annotations": dict(annotations or {})}
        self.store.add(
            uid=uid,
            namespace="default",
            name=name,
            engine=engine,
            owner="me",
            folder="/",
            document={**document(workers, cpus, **spec), "metadata": metadata},
            environment={},
            now=self.now,
        )

    def edit(self, changed: Mapping[str, Any]) -> None:
        self.store.change_document("default/pi", changed, expected_generation=self.stored.generation)

    def became(self, status: Status, *, finished: bool = False) -> None:
        self.store.write_status("u", to_wire(status), finished=finished, now=NOW)

    def turn(self, uid: str = "u") -> None:
        self.runner.run(self.reconciler.turn(uid))

    def adopt(self) -> None:
        self.runner.run(self.reconciler.adopt("u"))

    @property
    def stored(self) -> StoredJob:
        found = self.store.by_uid("u")
        assert found is not None
        return found

    @property
    def status(self) -> Status:
        return from_wire(self.stored.status)


def document(workers: int = 1, cpus: int = 0, **spec: Any) -> dict[str, Any]:
    container: dict[str, Any] = {"name": "c", "command": ["mpirun", "-n", "1", "hostname"]}
    container |= {"resources": {"requests": {"cpu": cpus}}} if cpus else {}
    replica = {"template": {"spec": {"containers": [container]}}}
    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": "pi"},
        "spec": {"mpiReplicaSpecs": {"Launcher": replica, "Worker": {"replicas": workers, **replica}}, **spec},
    }


INVALID = document(slotsPerWorker=-1)
THEIRS = {"managedBy": "kueue.x-k8s.io/multikueue"}
RUNNING = replace(launched(workers=1), observed_generation=1)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    store = JobStore(tmp_path / "oarsman.db")
    with asyncio.Runner() as runner:
        yield World(store, runner)
    store.close()


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The name of every job that is built from its document."""
    found: list[str] = []
    build = module.job_from_document

    def noted(document: Mapping[str, Any]) -> Any:
        found.append(document["metadata"]["name"])
        return build(document)

    monkeypatch.setattr(module, "job_from_document", noted)
    return found


# -- trouble --------------------------------------------------------------------------------------------------
def test_a_job_that_cannot_be_started_says_why_and_does_not_wait_for_ever(world: World) -> None:
    world.submit()
    world.engine.trouble = RetryableError("no space left on device")
    for minute in (0, 1, 6):
        assert not (world.stored.status and world.status.finished)
        world.now = NOW + timedelta(minutes=minute)
        with pytest.raises(RetryableError):
            world.turn()
        if minute == 1:
            created, event = world.store.events("u")
            assert (created.reason, created.count) == (names.REASON_CREATED, 1)
            assert (event.reason, event.message, event.count) == (names.REASON_TROUBLE, "no space left on device", 2)
    failed = world.status.condition(names.FAILED)
    assert failed is not None
    assert failed.reason == names.REASON_BARRIER


def test_a_deadline_does_not_wait_for_the_next_try_after_trouble(world: World) -> None:
    """Tries come up to a minute apart."""
    world.submit(runPolicy={"activeDeadlineSeconds": 90})
    world.engine.trouble = RetryableError("the job agent does not answer")
    looks: list[float] = []
    world.reconciler.queue.add_after = lambda _key, seconds: looks.append(seconds)  # type: ignore[method-assign]
    for second in (0, 80):
        world.now = NOW + timedelta(seconds=second)
        with pytest.raises(RetryableError):
            world.turn()
    assert looks[-1] == 10


# -- which form of a job counts -------------------------------------------------------------------------------
def test_a_job_is_built_once_for_each_version_of_its_document(world: World, built: list[str]) -> None:
    world.submit()
    world.adopt()
    for _ in range(3):
        world.turn()
    assert built == ["pi"]
    world.edit(document(2))
    for _ in range(3):
        world.turn()
    assert built == ["pi", "pi"]


def test_an_edit_that_makes_no_sense_is_read_once_and_stops_nothing(world: World, built: list[str]) -> None:
    world.submit()
    world.turn()
    world.edit(INVALID)
    for _ in range(3):
        world.turn()
    assert built == ["pi", "pi"]
    assert not world.status.finished


def test_a_job_that_a_newer_release_finds_invalid_is_looked_after_to_its_end(world: World) -> None:
    world.submit()
    world.became(RUNNING)
    world.edit(INVALID)
    world.engine.seen = {"workers": workers(1), "launcher": a_launcher(), "prepared": True, "published_hosts": ()}
    world.start()
    world.adopt()
    assert world.admission.holders == ("u",)
    (adopted,) = world.engine.adopted
    assert (adopted.job.uid, adopted.job.owner) == ("u", "me")
    world.turn()
    assert not world.status.finished


def test_a_job_that_never_made_sense_is_rejected_and_settled(world: World) -> None:
    world.submit(slotsPerWorker=-1)
    world.turn()
    failed = world.status.condition(names.FAILED)
    assert failed is not None
    assert failed.reason == names.REASON_INVALID
    assert world.stored.finished
    world.store.request_delete("default/pi")
    world.turn()
    assert world.store.by_uid("u") is None


def test_a_job_of_an_engine_that_is_not_known_is_refused_and_not_run_here(world: World) -> None:
    world.submit(engine="slurm")
    world.adopt()
    world.turn()
    failed = world.status.condition(names.FAILED)
    assert failed is not None
    assert (failed.reason, failed.message) == (
        names.REASON_INVALID,
        "Found validation errors: engine: there is no engine 'slurm'",
    )
    assert (world.engine.asked, world.engine.adopted, world.admission.holders) == ([], [], ())
    assert world.stored.finished
    world.store.request_delete("default/pi")
    world.turn()
    assert world.store.by_uid("u") is None


def test_what_an_engine_that_is_not_known_has_begun_is_left_alone(world: World) -> None:
    world.submit(engine="slurm")
    world.became(RUNNING)
    world.store.request_delete("default/pi")
    before = world.stored
    world.adopt()
    world.turn()
    assert world.stored == before
    assert (world.engine.asked, world.engine.adopted) == ([], [])


@pytest.mark.parametrize("engine", ["local", "embedded", ""])
def test_this_machine_has_had_other_names(world: World, engine: str) -> None:
    world.submit(engine=engine)
    world.turn()
    assert world.engine.asked


def test_a_place_that_was_lost_is_not_told_before_the_job_is_placed_anew(world: World) -> None:
    """Or it would be told twice."""
    world.submit()
    world.engine.trouble = PlaceLostError("node1: nothing listens on port 22")
    with pytest.raises(PlaceLostError):
        world.turn()
    assert world.status.start_time == NOW
    assert world.status.condition(names.CREATED) is not None
    assert world.status.condition(names.QUEUED) is None
    world.engine.trouble = None
    world.engine.seen |= {"place_lost": "node1: nothing listens on port 22"}
    world.turn()
    queued = world.status.condition(names.QUEUED)
    assert queued is not None
    assert queued.message == "placed anew: node1: nothing listens on port 22"
    told = [event.message for event in world.store.events("u") if "node1" in event.message]
    assert told == [queued.message]


def test_jobs_that_ended_are_not_remembered_without_end(
    world: World, built: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_ENDED_KEPT", 1)
    for uid in ("u", "v"):
        world.submit(uid)
        world.store.write_status(uid, to_wire(a_status(true=(names.SUCCEEDED,))), finished=False, now=NOW)
        for _ in range(2):
            world.turn(uid)
    assert built == ["pi", "v"]
    assert [world.reconciler.knows(uid) for uid in ("u", "v")] == [False, True]


# -- jobs of others -------------------------------------------------------------------------------------------
def test_a_job_of_another_controller_is_recorded_and_nothing_else(world: World) -> None:
    world.submit(runPolicy=THEIRS)
    world.turn()
    assert world.stored.finished
    assert (world.engine.asked, world.admission.holders) == ([], ())
    world.store.request_delete("default/pi")
    world.turn()
    assert (world.store.by_uid("u"), world.engine.forgotten) == (None, ["u"])


def test_who_has_taken_a_job_up_keeps_it(world: World) -> None:
    world.submit()
    world.turn()
    world.edit(document(runPolicy=THEIRS))
    world.turn()
    pending = world.status.condition(names.OUTDATED)
    assert pending is not None
    assert "spec.runPolicy.managedBy" in pending.message


# -- doing ----------------------------------------------------------------------------------------------------
def test_workers_are_made_side_by_side_but_not_all_of_a_thousand(world: World) -> None:
    world.submit(workers=200)
    world.turn()
    made = [action for action in world.engine.asked if isinstance(action, CreateWorker)]
    assert made == [CreateWorker(index) for index in range(200)]
    assert world.engine.most_at_once == 64


# -- the end --------------------------------------------------------------------------------------------------
def test_a_job_whose_time_is_over_is_removed_and_the_engine_asked_for_nothing_else(world: World) -> None:
    world.submit(runPolicy={"ttlSecondsAfterFinished": 60})
    world.became(replace(a_status(true=(names.SUCCEEDED,)), completion_time=NOW))
    world.turn()
    assert world.stored.finished
    world.now += timedelta(seconds=60)
    world.turn()
    assert world.store.by_uid("u") is None
    assert not any(isinstance(action, DeleteJob) for action in world.engine.asked)
    assert world.engine.forgotten == ["u"]


def test_what_is_left_of_a_job_without_a_record_is_removed(world: World) -> None:
    world.turn("left")
    assert world.engine.forgotten == ["left"]


def test_of_a_job_that_was_run_again_the_log_stays_until_the_job_goes(world: World) -> None:
    world.submit()
    world.became(a_status(true=(names.SUCCEEDED,)), finished=True)
    stored = world.stored
    same = {name: getattr(stored, name) for name in ("namespace", "name", "engine", "owner", "folder", "document")}
    world.store.replace("u", keeping=1, uid="next", environment={}, now=NOW, **same)
    world.turn()
    assert (world.engine.forgotten, world.engine.kept) == (["u"], ["u"])
    world.store.write_status("next", to_wire(a_status(true=(names.SUCCEEDED,))), finished=True, now=NOW)
    world.store.request_delete("default/pi")
    world.turn("next")
    assert len(world.queue) == 1  # the earlier run, whose turn has come
    world.turn()
    assert (world.engine.forgotten, world.engine.kept) == (["u", "next", "u"], ["u"])


def test_a_job_that_gives_way_while_its_time_ends_keeps_its_log(world: World) -> None:
    """A turn that is about to remove it read the record a moment before."""
    world.submit()
    world.became(a_status(true=(names.SUCCEEDED,)), finished=True)
    record = world.reconciler.records.read("u")
    assert record is not None
    stored = world.stored
    same = {name: getattr(stored, name) for name in ("namespace", "name", "engine", "owner", "folder", "document")}
    world.store.replace("u", keeping=1, uid="next", environment={}, now=NOW, **same)
    world.runner.run(world.reconciler._remove(record))
    assert world.engine.kept == ["u"]
    assert [job.uid for job in world.store.runs("default/pi")] == ["next", "u"]


def test_a_job_that_is_to_go_gives_its_room_back(world: World) -> None:
    world.submit()
    world.turn()
    assert world.admission.holders == ("u",)
    world.store.request_delete("default/pi")
    for _ in range(3):
        if world.store.by_uid("u") is not None:
            world.turn()
    assert world.store.by_uid("u") is None
    assert world.admission.holders == ()


# -- between two attempts -------------------------------------------------------------------------------------
CRASHED = a_status(
    true=(names.CREATED, names.RESTARTING),
    attempts=(Attempt(number=1, started=NOW, outcome="Failed"),),
    retry_at=NOW + timedelta(seconds=40),
)


def crashed(world: World) -> None:
    """A job that asks for the whole machine has failed, and another that does the same waits for it."""
    world.submit(cpus=200)
    world.submit("late", cpus=200)
    world.turn()
    world.became(CRASHED)
    world.engine.seen = {"published_hosts": (), "keeps_idle_members": False}


def test_who_waits_for_its_next_attempt_gives_its_room_back_and_queues_by_its_age(world: World) -> None:
    crashed(world)
    world.turn()
    assert world.admission.holders == ()
    world.turn("late")
    assert world.admission.holders == ("late",)
    world.now = NOW + timedelta(seconds=40)
    world.turn()
    queued = world.status.condition(names.QUEUED)
    assert queued is not None
    assert "held by default/late: 400" in queued.message
    world.submit("later", cpus=200)
    world.turn("later")
    world.admission.release("late")
    world.turn("later")
    assert world.admission.holders == ("u",)  # by its age, not by when it asked again


def test_room_is_kept_until_the_last_of_a_failed_attempt_is_gone(world: World) -> None:
    crashed(world)
    world.engine.seen["workers"] = workers(1, terminating=True)
    world.turn()
    assert world.admission.holders == ("u",)


def test_a_new_supervisor_does_not_give_room_to_who_waits_for_its_next_attempt(world: World) -> None:
    crashed(world)
    world.start()
    world.adopt()
    assert world.admission.holders == ()
    world.engine.seen["workers"] = workers(1)
    world.start()
    world.adopt()
    assert world.admission.holders == ("u",)


# -- a policy is its own file and its rows in `plan/reconcile` ---------------------------------------------------
NIGHT = "oarsman.dev/night"
MORNING = NOW + timedelta(hours=6)


def not_at_night(job: Job, status: Status, now: datetime) -> datetime | None:
    return MORNING if job.annotation(NIGHT) == "rests" and status.start_time is None and now < MORNING else None


def tell_night(turn: Turn) -> Turn:
    until = not_at_night(turn.job, turn.status, turn.now)
    return turn if until is None else turn.say(names.QUEUED, True, "Night", "it is night").wake_at(until).end()


def test_a_policy_that_delays_a_start_holds_no_room_meanwhile(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reconcile, "_STORY", (*reconcile._STORY[:2], tell_night, *reconcile._STORY[2:]))
    monkeypatch.setattr(reconcile, "_DELAYS", (*reconcile._DELAYS, not_at_night))
    allowed = {NIGHT: lambda value: None if value == "rests" else "at night it rests, or says nothing"}
    monkeypatch.setattr(reconcile, "ANNOTATIONS", allowed)
    world.submit(cpus=200, annotations={NIGHT: "rests"})
    world.submit("late", cpus=200)
    world.turn()
    world.turn("late")
    assert world.admission.holders == ("late",)
    assert world.status.condition(names.QUEUED).reason == "Night"  # type: ignore[union-attr]
    world.now = MORNING
    world.admission.release("late")
    world.turn()
    assert world.admission.holders == ("u",)
    world.submit("loud", annotations={NIGHT: "works"})
    world.turn("loud")
    loud = from_wire(world.store.by_uid("loud").status)  # type: ignore[union-attr]
    assert "at night it rests, or says nothing" in loud.condition(names.FAILED).message  # type: ignore[union-attr]


def test_a_delay_that_ends_within_a_turn_gives_no_room_that_nobody_asked_for(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.engine.seen = {"prepared": False, "keeps_idle_members": False}
    world.submit("big", cpus=150)  # launcher and worker, of 400 there are
    world.turn("big")
    world.submit(cpus=100)
    world.became(a_status(attempts=(Attempt(number=1, outcome="Failed"),), retry_at=NOW))
    times = iter([NOW - timedelta(seconds=1)])
    monkeypatch.setattr(world.reconciler, "now", lambda: next(times, NOW))
    world.engine.asked.clear()
    world.turn()
    assert world.engine.asked == []
    assert world.admission.holders == ("big",)


# -- a long queue ---------------------------------------------------------------------------------------------
def versions_of_a_drain(world: World, jobs: int) -> int:
    """How many versions of statuses are written until as many jobs, each of which takes the whole machine, are gone."""
    uids = [f"drain-{jobs}-{number:03}" for number in range(jobs)]
    for uid in uids:
        world.submit(uid, cpus=200)
    before = world.store.changes(None).revision
    queue = world.reconciler.queue
    for uid in uids:
        queue.add(uid)
    for uid in uids:
        while len(queue):
            key = world.runner.run(queue.take())
            if (found := world.store.by_uid(key)) is not None and found.uid not in world.admission.holders:
                world.turn(key)
            queue.done(key)
        assert world.admission.holders == (uid,)
        world.store.remove(uid)
        world.admission.release(uid)
    return world.store.changes(None).revision - before - jobs  # removing is one each


def test_who_is_far_from_the_head_of_the_queue_is_not_written_anew_whenever_somebody_leaves(world: World) -> None:
    few, more, many = (versions_of_a_drain(world, jobs) for jobs in (20, 40, 80))
    assert many - more <= 2.2 * (more - few), (few, more, many)
