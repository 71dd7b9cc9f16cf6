"""The operator's turns, with an API server in memory: one status write per change, and nothing told before it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from engines.kube.kube_jobs import V1, V2BETA1, document
from engines.kube.memory_kube import MemoryKube, bring_up_to_date

from oarsman.control import kube_records, operator
from oarsman.control.health import Metrics, Turns
from oarsman.control.operator import Operator
from oarsman.control.operator_settings import OperatorSettings
from oarsman.control.reconciler import in_steps, so_far
from oarsman.engines.kube.client import AlreadyExists, Conflict, Forbidden, Invalid, NotFound, Resource, Unavailable
from oarsman.engines.kube.client import resources as kinds
from oarsman.errors import RetryableError
from oarsman.plan.actions import CreateLauncher, CreateWorker, DeleteWorker, Plan, Prepare, PublishHosts
from tests.builders import T0, a_status

Object = dict[str, Any]
KEY = "default/pi"
UP = {
    "phase": "Running",
    "conditions": [{"type": "Ready", "status": "True"}],
    "containerStatuses": [{"name": "mpi", "state": {"running": {"startedAt": "2026-01-01T00:00:01Z"}}}],
}


class World:
    def __init__(self, **settings: Any) -> None:
        self.kube = MemoryKube()
        self.metrics = Metrics(process=False)
        self.now: datetime = T0
        self.in_office = True
        self.operator = self.new_operator(**settings)

    def new_operator(self, **settings: Any) -> Operator:
        """Another leader has no memory of this one's."""
        return Operator(
            self.kube,  # type: ignore[arg-type]
            OperatorSettings(**settings),
            self.metrics,
            Turns(),
            may_act=lambda: self.in_office,
            now=lambda: self.now,
        )

    def submit(self, **given: Any) -> None:
        given = document(**given)
        self.kube.add(kinds.MPIJOBS, {**given, "apiVersion": V2BETA1})

    def edit(self, *, generation: int = 2, **spec: Any) -> None:
        found = self.kube.one(kinds.MPIJOBS, "pi")
        self.kube.change(
            kinds.MPIJOBS,
            "pi",
            spec={**found["spec"], **spec},
            metadata={**found["metadata"], "generation": generation},
        )

    async def turn(self) -> None:
        bring_up_to_date(self.kube, self.operator.caches)
        await self.operator.reconciler.turn(KEY)

    async def turns(self, count: int = 4) -> None:
        for _ in range(count):
            await self.turn()

    @property
    def status(self) -> Object:
        found: Object = self.kube.one(kinds.MPIJOBS, "pi").get("status") or {}
        return found

    def condition(self, type_: str) -> Object:
        return next((c for c in self.status.get("conditions", ()) if c["type"] == type_), {})

    @property
    def events(self) -> list[str]:
        return [o["reason"] for (plural, _, _), o in self.kube.objects.items() if plural == "events"]

    @property
    def status_writes(self) -> int:
        return len(self.kube.writes("replace", of=kinds.MPIJOBS))

    def metric(self, name: str, **labels: str) -> float | None:
        return self.metrics.registry.get_sample_value(name, labels)

    # -- the kubelet and the Job controller, played -----------------------------------------------------------
    def workers_up(self, count: int = 2) -> None:
        for index in range(count):
            self.kube.change(kinds.PODS, f"pi-worker-{index}", status=UP)

    def launcher_is(self, status: Object, name: str = "pi-launcher-x") -> None:
        if name not in self.kube.names(kinds.PODS):
            made = self.kube.one(kinds.JOBS, "pi-launcher")
            owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "pi-launcher", "controller": True}
            template = made["spec"]["template"]
            body = {**template, "metadata": {**template["metadata"], "name": name}}
            self.kube.add(kinds.PODS, body, ownerReferences=[{**owner, "uid": made["metadata"]["uid"]}])
        self.kube.change(kinds.PODS, name, status=status)

    async def run_to(self, code: int = 0) -> None:
        """Straight to the end of an attempt."""
        await self.turns(2)
        self.workers_up()
        self.launcher_is(UP)
        await self.turn()
        ended = {"terminated": {"exitCode": code, "finishedAt": "2026-01-01T00:00:09Z"}}
        phase = "Failed" if code else "Succeeded"
        self.launcher_is({"phase": phase, "containerStatuses": [{"name": "mpi", "state": ended}]})
        self.now += timedelta(seconds=10)
        await self.turn()


def story(**given: Any) -> Callable[[Callable[[World], Awaitable[None]]], Callable[[], None]]:
    def decorate(test: Callable[[World], Awaitable[None]]) -> Callable[[], None]:
        def run() -> None:
            async def play() -> None:
                world = World()
                world.submit(**given)
                await test(world)

            asyncio.run(play())

        run.__name__, run.__doc__ = test.__name__, test.__doc__
        return run

    return decorate


# -- the whole way --------------------------------------------------------------------------------------------
@story()
async def test_a_job_from_its_creation_to_its_success(world: World) -> None:
    await world.turn()
    assert world.condition("Created")["status"] == "True"
    assert world.status["replicaStatuses"] == {
        "Launcher": {},
        "Worker": {"selector": "training.kubeflow.org/job-name=pi,training.kubeflow.org/job-role=worker"},
    }
    assert world.kube.names(kinds.PODS) == ["pi-worker-0", "pi-worker-1"]
    await world.run_to(0)
    assert world.condition("Succeeded")["status"] == "True"
    assert world.condition("Running")["status"] == "False"
    assert world.status["completionTime"] == "2026-01-01T00:00:09Z"
    assert world.status["replicaStatuses"]["Launcher"] == {"succeeded": 1}
    assert world.events == ["MPIJobCreated", "MPIJobRunning", "MPIJobSucceeded"]
    assert world.metric("mpi_operator_jobs_created_total") == 1
    assert world.metric("mpi_operator_jobs_successful_total") == 1
    assert world.metric("mpi_operator_jobs_failed_total") == 0
    assert world.metric("mpi_operator_job_info", launcher="pi-launcher", namespace="default") == 1
    assert world.metric("oarsman_jobs", state="Succeeded") == 1
    assert world.metric("oarsman_job_start_seconds_count") == 1


@story(runPolicy={"backoffLimit": 0})
async def test_a_job_that_fails_is_counted_once(world: World) -> None:
    await world.run_to(3)
    await world.turns()
    assert world.condition("Failed")["status"] == "True"
    assert world.metric("mpi_operator_jobs_failed_total") == 1
    assert world.events.count("MPIJobFailed") == 1


@story()
async def test_nothing_is_written_when_nothing_has_changed(world: World) -> None:
    await world.turns(3)
    before = (len(world.kube.asked), world.status_writes)
    await world.turns(5)
    assert (len(world.kube.asked), world.status_writes) == before
    assert world.metric("oarsman_status_writes_total") == world.status_writes


@story()
async def test_each_turn_writes_the_status_at_most_once(world: World) -> None:
    for _ in range(6):
        before = world.status_writes
        await world.turn()
        assert world.status_writes - before <= 1


# -- jobs that need nothing -----------------------------------------------------------------------------------
@pytest.mark.parametrize("key", ["default/gone", "no-slash", "a/b/c", ""])
def test_c1_c2_a_key_of_nothing_costs_nothing(key: str) -> None:
    async def play() -> None:
        world = World()
        await world.operator.reconciler.turn(key)
        assert world.kube.asked == []

    asyncio.run(play())


@story(runPolicy={"managedBy": "kueue.x-k8s.io/multikueue"})
async def test_c4_a_job_managed_by_others_is_not_touched(world: World) -> None:
    await world.turns()
    assert world.kube.asked == []
    assert world.status == {}


@story(runPolicy={"managedBy": "kueue.x-k8s.io/multikueue"}, launcher_role={"replicas": 2})
async def test_a_job_managed_by_others_is_not_judged_either(world: World) -> None:
    await world.turns()
    assert world.kube.asked == []
    assert world.status == {}


@story()
async def test_a_job_that_is_being_deleted_is_left_to_the_garbage_collector(world: World) -> None:
    world.kube.mark(kinds.MPIJOBS, "pi", deletionTimestamp="2026-01-01T00:00:00Z")
    await world.turn()
    assert world.kube.asked == []


@story()
async def test_who_has_taken_a_job_up_keeps_it(world: World) -> None:
    """managedBy cannot be changed afterwards: two would run it."""
    await world.turns(2)
    world.edit(runPolicy={"managedBy": "kueue.x-k8s.io/multikueue"})
    await world.turn()
    pending = world.condition("EditsPending")
    assert pending["status"] == "True"
    assert "spec.runPolicy.managedBy" in pending["message"]
    await world.run_to(0)
    assert world.condition("Succeeded")["status"] == "True"


# -- jobs that cannot be read ---------------------------------------------------------------------------------
@story(launcher_role={"replicas": 2})
async def test_c3_an_invalid_job_fails_with_every_field_named_and_nothing_is_made(world: World) -> None:
    await world.turns(3)
    failed = world.condition("Failed")
    assert (failed["status"], failed["reason"]) == ("True", "ValidationError")
    assert "mpiReplicaSpecs.Launcher.replicas" in failed["message"]
    assert world.events == ["ValidationError"]
    assert world.status_writes == 1
    assert world.kube.names(kinds.PODS) == world.kube.names(kinds.SERVICES) == []
    assert world.metric("mpi_operator_jobs_failed_total") == 1


@story()
async def test_an_edit_that_makes_no_sense_does_not_stop_a_job_that_runs(world: World) -> None:
    await world.turns(2)
    world.edit(slotsPerWorker=-1)
    await world.run_to(0)
    assert world.condition("Succeeded")["status"] == "True"


@story(runPolicy={"cleanPodPolicy": "Running"})
async def test_a_job_whose_last_edit_made_no_sense_is_still_cleaned_up(world: World) -> None:
    await world.turns(2)
    world.edit(slotsPerWorker=-1)
    await world.run_to(0)
    await world.turns(3)
    assert world.kube.names(kinds.PODS) == ["pi-launcher-x"]


@story()
async def test_a_new_leader_looks_after_a_job_whose_last_edit_made_no_sense(world: World) -> None:
    await world.turns(2)
    world.edit(slotsPerWorker=-1)
    world.operator = world.new_operator()
    await world.run_to(0)
    assert world.condition("Succeeded")["status"] == "True"


FOUR = {"workers": 4, "command": ["mpirun", "-np", "4", "./pi"]}


async def edited_in_vain(world: World) -> None:
    """A job that runs 4 ranks on 4 workers, and an edit that leaves it 2."""
    await world.turns(2)
    world.workers_up(4)
    world.launcher_is(UP)
    await world.turn()
    roles = world.kube.one(kinds.MPIJOBS, "pi")["spec"]["mpiReplicaSpecs"]
    world.edit(mpiReplicaSpecs={**roles, "Worker": {**roles["Worker"], "replicas": 2}})
    await world.turns(2)


@story(**FOUR)
async def test_an_edit_that_makes_no_sense_is_told_and_never_carried_out_also_not_by_the_next_leader(
    world: World,
) -> None:
    await edited_in_vain(world)
    for _ in range(2):
        pending = world.condition("EditsPending")
        assert (pending["status"], pending["reason"]) == ("True", "ValidationError")
        assert pending["message"].startswith("no longer valid, so the job continues as it was: ")
        assert world.events.count("ValidationError") == 1
        assert [name for name in world.kube.names(kinds.PODS) if "worker" in name] == [
            f"pi-worker-{index}" for index in range(4)
        ]
        assert world.status["observedGeneration"] == 1
        world.operator = world.new_operator()
        await world.turns(3)
    assert world.condition("Running")["status"] == "True"


@story(**FOUR)
async def test_a_leader_that_never_saw_the_valid_form_leaves_the_workers_of_the_attempt_alone(world: World) -> None:
    await world.turns(2)
    world.workers_up(4)
    world.launcher_is(UP)
    await world.turn()
    roles = world.kube.one(kinds.MPIJOBS, "pi")["spec"]["mpiReplicaSpecs"]
    world.operator = world.new_operator()
    world.edit(mpiReplicaSpecs={**roles, "Worker": {**roles["Worker"], "replicas": 2}})
    await world.turns(3)
    assert len([name for name in world.kube.names(kinds.PODS) if "worker" in name]) == 4


@story(**FOUR)
async def test_suspend_and_resume_are_obeyed_although_the_last_edit_made_no_sense(world: World) -> None:
    await edited_in_vain(world)
    world.edit(generation=3, runPolicy={"suspend": True})
    await world.turns(3)
    assert world.condition("Suspended")["status"] == "True"
    assert world.kube.names(kinds.PODS) == []
    world.operator = world.new_operator()
    world.edit(generation=4, runPolicy={"suspend": False})
    await world.turns(3)
    assert len(world.kube.names(kinds.PODS)) == 4


@story(**FOUR)
async def test_stop_is_obeyed_although_the_last_edit_made_no_sense(world: World) -> None:
    await edited_in_vain(world)
    world.kube.mark(kinds.MPIJOBS, "pi", annotations={"oarsman.dev/stop-requested": "true"})
    await world.turns(2)
    assert world.condition("Failed")["reason"] == "StoppedByUser"


@story(**FOUR)
async def test_a_deadline_and_a_time_to_live_are_obeyed_although_the_last_edit_made_no_sense(world: World) -> None:
    await edited_in_vain(world)
    world.edit(generation=3, runPolicy={"activeDeadlineSeconds": 60, "ttlSecondsAfterFinished": 30})
    world.now += timedelta(seconds=61)
    await world.turn()
    assert world.condition("Failed")["reason"] == "DeadlineExceeded"
    world.now += timedelta(seconds=31)
    await world.turns(2)
    assert world.kube.names(kinds.MPIJOBS) == []


@story(**FOUR)
async def test_an_edit_that_is_put_right_is_carried_out(world: World) -> None:
    await edited_in_vain(world)
    roles = world.kube.one(kinds.MPIJOBS, "pi")["spec"]["mpiReplicaSpecs"]
    world.edit(generation=3, mpiReplicaSpecs={**roles, "Worker": {**roles["Worker"], "replicas": 5}})
    await world.turns(2)
    assert "pi-worker-4" in world.kube.names(kinds.PODS)
    assert world.condition("EditsPending")["status"] == "False"
    assert "validSpec" not in world.status
    assert world.status["observedGeneration"] == 3


@story()
async def test_workers_that_are_edited_away_leave_a_job_that_is_still_looked_after(world: World) -> None:
    await world.turns(2)
    world.workers_up()
    world.launcher_is(UP)
    await world.turn()
    roles = world.kube.one(kinds.MPIJOBS, "pi")["spec"]["mpiReplicaSpecs"]
    world.edit(mpiReplicaSpecs={"Launcher": roles["Launcher"]})
    await world.turns(2)
    assert world.kube.names(kinds.PODS) == ["pi-launcher-x"]
    assert world.status["observedGeneration"] == 2
    world.edit(generation=3, runPolicy={"suspend": True})
    await world.turns(3)
    assert world.kube.names(kinds.PODS) == []
    assert world.condition("Suspended")["status"] == "True"


@story(launcher_role={"replicas": 2})
async def test_a_job_of_the_name_that_was_valid_once_does_not_excuse_another(world: World) -> None:
    other = World()
    other.submit()
    await other.turn()
    other.kube.vanish(kinds.MPIJOBS, "pi")
    invalid = document(launcher_role={"replicas": 2})
    invalid["metadata"]["uid"] = "another"
    other.kube.add(kinds.MPIJOBS, invalid)
    await other.turn()
    assert other.condition("Failed")["reason"] == "ValidationError"


# -- versions -------------------------------------------------------------------------------------------------
WROTE_V1 = [{"apiVersion": V1, "fieldsV1": {"f:spec": {}}}]


@pytest.mark.parametrize(("managed", "version"), [(WROTE_V1, V1), ([], V2BETA1)])
def test_the_version_a_job_was_written_in_is_noted_and_stays(managed: list[Any], version: str) -> None:
    async def play() -> None:
        world = World()
        world.submit()
        world.kube.mark(kinds.MPIJOBS, "pi", managedFields=managed)
        await world.turn()
        assert world.status["writtenAs"] == version
        world.kube.mark(kinds.MPIJOBS, "pi", managedFields=[])  # a later write through the other version
        world.operator = world.new_operator()
        await world.turns(2)
        assert world.status["writtenAs"] == version
        assert (world.kube.names(kinds.ROLES) == ["pi-launcher"]) is (version == V1)
        owners = world.kube.one(kinds.PODS, "pi-worker-0")["metadata"]["ownerReferences"]
        assert [owner["apiVersion"] for owner in owners] == [version]

    asyncio.run(play())


# -- jobs that another operator has begun -----------------------------------------------------------------------
def of_upstream(world: World, *, running: bool = True, version: str = V2BETA1) -> None:
    """What the mpi-operator, or of v1 the training-operator, has made of a job: only its pods have labels of it."""
    v1 = version == V1
    world.submit(runPolicy={"suspend": not running})
    told = {"Created": "True", "Running": str(running), "Suspended": str(not running)}
    times = dict.fromkeys(("lastUpdateTime", "lastTransitionTime"), "2026-01-01T00:00:00Z")
    conditions = [
        {"type": type_, "status": status, "reason": "x", "message": "", **times} for type_, status in told.items()
    ]
    world.kube.change(
        kinds.MPIJOBS,
        "pi",
        status={"conditions": conditions, "startTime": times["lastUpdateTime"], "replicaStatuses": {}},
    )
    world.kube.mark(kinds.MPIJOBS, "pi", managedFields=WROTE_V1 if v1 else [])
    uid = world.kube.one(kinds.MPIJOBS, "pi")["metadata"]["uid"]
    owner = [{"apiVersion": version, "kind": "MPIJob", "name": "pi", "uid": uid, "controller": True}]
    operator = "mpijob-controller" if v1 else "mpi-operator"
    labels = {"training.kubeflow.org/operator-name": operator, "training.kubeflow.org/job-name": "pi"}

    def made(resource: Any, name: str, owners: list[Object] = owner, **more: Any) -> Object:
        of_pod = {**labels, "training.kubeflow.org/job-role": more.pop("role", "")}
        metadata = {"name": name, "namespace": "default", "labels": of_pod if resource is kinds.PODS else {"app": "pi"}}
        body = {"metadata": metadata, **more}
        return world.kube.add(resource, body, ownerReferences=owners)

    made(kinds.CONFIG_MAPS, "pi-config", data={"hostfile": "pi-worker-0.pi.default.svc slots=1\n"})
    if not v1:
        made(kinds.SERVICES, "pi", spec={"clusterIP": "None"})
        made(kinds.SECRETS, "pi-ssh", data={"ssh-privatekey": "eA==", "ssh-publickey": "eA=="})
        job = made(kinds.JOBS, "pi-launcher", spec={"suspend": not running})
        owner = [{"kind": "Job", "name": "pi-launcher", "uid": job["metadata"]["uid"], "controller": True}]
    if running:
        name, role = ("pi-launcher", "master") if v1 else ("pi-launcher-x", "launcher")
        made(kinds.PODS, name, owner, role=role, status=UP)
        of_job = [{**owner[0], "kind": "MPIJob", "uid": uid}]
        for index in range(2):
            made(kinds.PODS, f"pi-worker-{index}", of_job, role="worker", status=UP)


@pytest.mark.parametrize("version", [V1, V2BETA1])
def test_a_job_that_runs_under_another_operator_goes_on_and_ends_under_ours(version: str) -> None:
    async def play() -> None:
        world = World()
        of_upstream(world, version=version)
        pods = world.kube.names(kinds.PODS)
        await world.turns()
        world.operator = world.new_operator()  # who remembers nothing
        await world.turns()
        assert world.kube.names(kinds.PODS) == pods
        assert world.kube.writes("delete") == world.kube.writes("create", of=kinds.PODS) == []
        assert world.condition("Running")["status"] == "True"
        world.launcher_is({"phase": "Succeeded"}, pods[0])
        await world.turns()
        assert world.condition("Succeeded")["status"] == "True"

    asyncio.run(play())


def test_a_job_that_another_operator_suspended_is_resumed_by_ours() -> None:
    async def play() -> None:
        world = World()
        of_upstream(world, running=False)
        await world.turns()
        world.edit(runPolicy={"suspend": False})
        world.operator = world.new_operator()
        await world.turns()
        world.workers_up()
        world.launcher_is(UP)
        await world.turns()
        assert world.condition("Running")["status"] == "True"
        assert "oarsman.dev/attempt" in world.kube.one(kinds.JOBS, "pi-launcher")["metadata"]["annotations"]
        assert "training.kubeflow.org/job-name" in world.kube.one(kinds.CONFIG_MAPS, "pi-config")["metadata"]["labels"]
        assert len(world.kube.names(kinds.PODS)) == 3

    asyncio.run(play())


def test_of_a_new_job_no_launcher_of_another_operator_is_looked_for() -> None:
    async def play() -> None:
        world = World()
        world.submit()
        with world.kube.trouble(Unavailable("get", "not to be asked"), "get", kinds.JOBS):
            await world.turns()
        assert "pi-launcher" in world.kube.names(kinds.JOBS)

    asyncio.run(play())


@story()
async def test_what_others_write_into_a_status_stays_as_they_wrote_it(world: World) -> None:
    await world.turns(2)
    theirs = {"type": "Audited", "status": "Unknown", "reason": "Later", "message": "", "seenBy": "somebody"}
    status = world.status
    others = {"conditions": [theirs, *status["conditions"]], "lastReconcileTime": "2026-01-01T00:00:00Z"}
    world.kube.change(kinds.MPIJOBS, "pi", status={**status, **others, "quota": {"used": 3}})
    writes = world.status_writes
    await world.run_to(0)
    assert world.condition("Succeeded")["status"] == "True"
    assert world.status_writes > writes
    assert world.condition("Audited") == theirs
    assert (world.status["lastReconcileTime"], world.status["quota"]) == ("2026-01-01T00:00:00Z", {"used": 3})


@story()
async def test_a_service_that_somebody_deletes_is_made_again(world: World) -> None:
    await world.turns(2)
    world.workers_up()
    world.launcher_is(UP)
    await world.turns(2)
    made = world.kube.names(kinds.PODS)
    world.kube.vanish(kinds.SERVICES, "pi")
    await world.turns()
    assert world.kube.names(kinds.SERVICES) == ["pi"]
    assert world.kube.names(kinds.PODS) == made
    assert world.condition("Running")["status"] == "True"
    assert len(world.kube.writes("create", of=kinds.SERVICES)) == 2


@story()
async def test_pods_of_other_jobs_of_kubeflow_are_not_kept_in_memory(world: World) -> None:
    labels = {"training.kubeflow.org/job-name": "torch", "training.kubeflow.org/operator-name": "pytorchjob-controller"}
    world.kube.add(kinds.PODS, {"metadata": {"name": "torch-0", "namespace": "default", "labels": labels}})
    await world.turns(2)
    assert sorted(pod.metadata.name for pod in world.operator.caches.pods.all()) == ["pi-worker-0", "pi-worker-1"]


# -- before there is anything to do -----------------------------------------------------------------------------
class Asked:
    """A server that answers one thing after the other."""

    def __init__(self, *answers: bool | Exception) -> None:
        self.answers = list(answers)

    async def has(self, _: Any) -> bool:
        match self.answers.pop(0):
            case Exception() as error:
                raise error
            case answer:
                return answer


def test_a_server_that_cannot_be_asked_is_not_one_that_lacks_the_definition(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(operator, "_BETWEEN_LOOKS", 0)
    trying = "GET /apis/kubeflow.org/v2beta1"
    refused = Forbidden(trying, "not for you", status=403, reason="Forbidden")
    down = Unavailable(trying, "connection refused")
    kube: Any = Asked(down, down, refused, False, True)
    asyncio.run(operator._require_definition(kube, "https://10.0.0.1:6443"))
    asked = "cannot ask https://10.0.0.1:6443 whether it knows MPIJobs; trying again: GET /apis/kubeflow.org/v2beta1"
    assert caplog.messages == [
        f"{asked}: connection refused",
        f"{asked}: not for you (403 Forbidden)",
        "the cluster does not know MPIJobs yet; waiting for the definition mpijobs.kubeflow.org",
    ]


# -- trouble --------------------------------------------------------------------------------------------------
DOWN = Unavailable("create", "the server is down", status=503)


@story()
async def test_when_an_action_fails_what_is_true_so_far_is_written_and_the_turn_comes_again(world: World) -> None:
    with world.kube.trouble(DOWN, "create", kinds.PODS), pytest.raises(Unavailable):
        await world.turn()
    assert world.condition("Created")["status"] == "True"
    assert world.status["startTime"] == "2026-01-01T00:00:00Z"
    stuck = world.condition("Queued")
    assert (stuck["status"], stuck["reason"], stuck["message"]) == ("True", "Trouble", "the server is down")
    assert world.events == ["MPIJobCreated", "Trouble"]
    assert "attempts" not in world.status  # no launcher is on record that was never made
    with world.kube.trouble(DOWN, "create", kinds.PODS), pytest.raises(Unavailable):
        await world.turn()
    assert world.events == ["MPIJobCreated", "Trouble"]  # the same trouble is counted up, not told anew
    assert world.metric("mpi_operator_jobs_created_total") == 1
    await world.turns(2)
    assert world.condition("Queued")["status"] == "False"


@story()
async def test_after_the_first_failed_step_nothing_further_is_done(world: World) -> None:
    with world.kube.trouble(DOWN, "create", kinds.SERVICES), pytest.raises(Unavailable):
        await world.turn()
    assert world.kube.names(kinds.PODS) == world.kube.names(kinds.CONFIG_MAPS) == []


@story()
async def test_a_job_whose_pods_are_refused_fails_with_the_servers_words(world: World) -> None:
    wrong = Invalid("create pods", "spec.x: unknown", status=422)
    with world.kube.trouble(wrong, "create", kinds.PODS):
        with pytest.raises(RetryableError):
            await world.turn()
        await world.turn()
    failed = world.condition("Failed")
    assert (failed["reason"], failed["message"]) == (
        "ValidationError",
        "the API server refuses the Pod: spec.x: unknown",
    )


@story()
async def test_a_webhook_that_denies_a_pod_is_asked_again_and_its_words_are_told(world: World) -> None:
    """Without a code of its own its answer is a 400. A queue that is closed may be opened."""
    words = 'admission webhook "validatepod.volcano.sh" denied the request: queue q is closed'
    with world.kube.trouble(Invalid("create pods", words, status=400), "create", kinds.PODS):
        for _ in range(3):
            with pytest.raises(RetryableError):
                await world.turn()
    queued = world.condition("Queued")
    assert (queued["status"], queued["reason"], queued["message"]) == ("True", "Trouble", words)
    await world.turns(2)
    assert world.kube.names(kinds.PODS) == ["pi-worker-0", "pi-worker-1"]


@story()
async def test_a_name_that_stays_taken_is_terminal_and_said(world: World) -> None:
    world.kube.add(kinds.SERVICES, {"metadata": {"name": "pi"}})
    with pytest.raises(RetryableError):
        await world.turn()
    world.now += timedelta(seconds=31)
    await world.turn()
    failed = world.condition("Failed")
    assert failed["reason"] == "ErrResourceExists"
    assert failed["message"] == 'Resource "pi" of Kind "Service" already exists and is not managed by MPIJob'


@story(runPolicy={"suspend": True})
async def test_a_name_that_is_taken_is_waited_for_from_when_that_was_found_however_long_the_job_had_queued(
    world: World,
) -> None:
    await world.turns(2)
    world.now += timedelta(hours=1)
    world.edit(runPolicy={"suspend": False})
    world.kube.add(kinds.SERVICES, {"metadata": {"name": "pi"}})
    with pytest.raises(RetryableError):
        await world.turn()
    world.now += timedelta(seconds=29)
    world.operator = world.new_operator()
    with pytest.raises(RetryableError):
        await world.turn()
    await world.turn()
    assert world.condition("Failed") == {}
    world.now += timedelta(seconds=1)
    await world.turn()
    assert world.condition("Failed")["reason"] == "ErrResourceExists"


@story()
async def test_a_copy_of_a_launcher_to_look_into_is_left_alone(world: World) -> None:
    """kubectl debug --copy-to --keep-labels: labels and annotations of ours, and nobody owns it."""
    await world.turns(2)
    world.workers_up()
    world.launcher_is(UP)
    await world.turn()
    launcher = world.kube.one(kinds.PODS, "pi-launcher-x")["metadata"]
    worker = world.kube.one(kinds.PODS, "pi-worker-0")["metadata"]
    for name, meta in (("look-at-launcher", launcher), ("pi-worker-7", worker)):
        copied = {"name": name, "labels": meta["labels"], "annotations": meta["annotations"]}
        world.kube.add(kinds.PODS, {"metadata": {**copied, "namespace": "default"}, "status": UP})
    world.kube.vanish(kinds.PODS, "pi-launcher-x")
    world.kube.vanish(kinds.JOBS, "pi-launcher")
    for _ in range(4):
        world.now += timedelta(seconds=20)
        await world.turn()
    assert {"look-at-launcher", "pi-worker-7"} <= set(world.kube.names(kinds.PODS))
    assert world.kube.writes("create", of=kinds.JOBS) == [("create", "jobs", "pi-launcher")] * 2


@story()
async def test_a_launcher_whose_job_was_deleted_without_it_ends_before_the_next_one_comes(world: World) -> None:
    """kubectl delete job --cascade=orphan"""
    await world.turns(2)
    world.workers_up()
    world.launcher_is(UP)
    await world.turn()
    world.kube.vanish(kinds.JOBS, "pi-launcher")
    world.kube.mark(kinds.PODS, "pi-launcher-x", ownerReferences=[])
    world.now += timedelta(seconds=10)
    await world.turns(2)
    assert ("delete", "pods", "pi-launcher-x") in world.kube.writes("delete")
    assert world.kube.writes("create", of=kinds.JOBS) == [("create", "jobs", "pi-launcher")]


@story()
async def test_who_wrote_in_between_is_not_overwritten_and_nothing_is_told(world: World) -> None:
    bring_up_to_date(world.kube, world.operator.caches)
    world.edit(slotsPerWorker=1)  # of which the caches do not know yet
    with pytest.raises(Conflict):
        await world.operator.reconciler.turn(KEY)
    assert world.status == {}
    assert world.events == []
    assert world.metric("mpi_operator_jobs_created_total") == 0
    await world.turn()
    assert world.events == ["MPIJobCreated"]
    assert world.metric("mpi_operator_jobs_created_total") == 1


@pytest.mark.parametrize("error", [Unavailable("replace", "down", status=503), Forbidden("replace", "no", status=403)])
def test_events_and_numbers_wait_for_the_status_to_be_accepted(error: Exception) -> None:
    async def play() -> None:
        world = World()
        world.submit()
        with world.kube.trouble(error, "replace", kinds.MPIJOBS), pytest.raises(RetryableError):
            await world.turn()
        assert world.events == []
        assert world.metric("mpi_operator_jobs_created_total") == 0
        assert world.metric("oarsman_status_writes_total") == 0

    asyncio.run(play())


@story()
async def test_a_job_that_went_while_its_status_was_written_is_no_trouble(world: World) -> None:
    gone = NotFound("replace", "gone", status=404)
    with world.kube.trouble(gone, "replace", kinds.MPIJOBS):
        await world.turn()
    assert world.events == []
    assert world.operator.caches.mpijobs.all() == ()


@story()
async def test_without_the_lease_nothing_more_is_written(world: World) -> None:
    world.in_office = False
    with pytest.raises(RetryableError, match="lease"):
        await world.turn()
    assert world.kube.asked == []


@story(runPolicy={"cleanPodPolicy": "All"})
async def test_a_pod_group_that_could_not_be_deleted_is_deleted_later(world: World) -> None:
    world.operator = world.new_operator(gang_scheduling="coscheduler")
    await world.run_to()
    with world.kube.trouble(Unavailable("delete", "down", status=503), "delete", kinds.PLUGINS_POD_GROUPS):
        for _ in range(3):
            with contextlib.suppress(RetryableError):
                await world.turn()
    assert world.kube.names(kinds.PODS) == []
    assert world.kube.names(kinds.PLUGINS_POD_GROUPS) == ["pi"]
    world.operator = world.new_operator(gang_scheduling="coscheduler")
    await world.turn()
    assert world.kube.names(kinds.PLUGINS_POD_GROUPS) == []
    before = len(world.kube.asked)
    await world.turns(3)
    assert len(world.kube.asked) == before


@story(workers=4, slotsPerWorker=1)
async def test_counts_alone_are_written_now_and_then_and_conditions_at_once(world: World) -> None:
    await world.turns(2)
    before = world.status_writes
    for count in range(1, 5):
        world.workers_up(count)
        await world.turn()
    assert world.status_writes == before
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kube_records, "_BETWEEN_COUNTS", 0.0)
        await world.turn()
    assert world.status_writes == before + 1
    assert world.status["replicaStatuses"]["Worker"]["ready"] == 4
    world.kube.change(kinds.PODS, "pi-worker-0", status={"phase": "Pending"})
    await world.turn()
    assert world.status_writes == before + 1
    for index in range(1, 4):  # that nobody is left is told at once
        world.kube.change(kinds.PODS, f"pi-worker-{index}", status={"phase": "Pending"})
    await world.turn()
    assert not world.status["replicaStatuses"]["Worker"].get("active")
    world.workers_up(4)
    world.launcher_is(UP)
    await world.turn()
    assert world.condition("Running")["status"] == "True"
    assert world.status_writes == before + 3


@story()
async def test_a_status_that_the_operator_wrote_itself_is_no_reason_to_look_again(world: World) -> None:
    told: list[str] = []
    news = asyncio.Event()

    def notify(key: str) -> None:
        told.append(key)
        news.set()

    async def heard(resource: Resource, name: str, **meta: str) -> None:
        """Everything up to this change, which is told."""
        world.kube.mark(resource, name, annotations=meta)
        cache = world.operator.caches.mpijobs if resource is kinds.MPIJOBS else world.operator.caches.pods
        async with asyncio.timeout(120):
            while not (found := cache.get("default", name)) or found.metadata.annotations != meta:
                news.clear()
                await news.wait()

    await world.operator.engine.start(notify)
    await world.operator.reconciler.turn(KEY)
    world.workers_up()
    world.launcher_is(UP)
    await heard(kinds.PODS, "pi-launcher-x", seen="yes")
    told.clear()
    await world.operator.reconciler.turn(KEY)
    assert world.condition("Running")["status"] == "True"
    await heard(kinds.MPIJOBS, "pi", seen="yes")
    assert told == [KEY]
    await world.operator.engine.close()


# -- what is left behind --------------------------------------------------------------------------------------
@story()
async def test_a_job_that_is_gone_leaves_no_numbers(world: World) -> None:
    await world.run_to(0)
    world.kube.vanish(kinds.MPIJOBS, "pi")
    await world.turn()
    assert world.metric("mpi_operator_job_info", launcher="pi-launcher", namespace="default") is None
    assert world.metric("oarsman_jobs", state="Succeeded") == 0


@story(runPolicy={"ttlSecondsAfterFinished": 60})
async def test_the_job_itself_goes_when_its_time_is_over(world: World) -> None:
    await world.run_to(0)
    await world.turn()
    assert world.kube.names(kinds.MPIJOBS) == ["pi"]
    world.now += timedelta(seconds=60)
    await world.turn()
    assert world.kube.names(kinds.MPIJOBS) == []
    assert world.kube.preconditions["delete", "mpijobs", "pi"] == "uid-1"
    assert world.events[-1] == "TTLExpired"


@story(runPolicy={"ttlSecondsAfterFinished": 60})
async def test_another_job_of_the_name_is_not_deleted_in_its_place(world: World) -> None:
    await world.run_to(0)
    world.now += timedelta(seconds=60)
    bring_up_to_date(world.kube, world.operator.caches)
    world.kube.mark(kinds.MPIJOBS, "pi", uid="another one of the name")  # of which the caches do not know yet
    await world.operator.reconciler.turn(KEY)
    assert world.kube.preconditions["delete", "mpijobs", "pi"] == "uid-1"
    assert world.kube.names(kinds.MPIJOBS) == ["pi"]


@story(runPolicy={"ttlSecondsAfterFinished": 60})
async def test_a_new_leader_after_a_long_night_deletes_the_job_and_does_not_run_it_again(world: World) -> None:
    await world.run_to(0)
    world.kube.vanish(kinds.JOBS, "pi-launcher")
    world.kube.vanish(kinds.PODS, "pi-launcher-x")
    world.now += timedelta(days=1)
    world.operator = world.new_operator()
    await world.turn()
    assert world.kube.writes("create", of=kinds.JOBS) == [("create", "jobs", "pi-launcher")]
    assert world.kube.names(kinds.MPIJOBS) == []


@story()
async def test_a_new_leader_goes_on_where_the_last_one_was(world: World) -> None:
    await world.turns(2)
    world.workers_up()
    world.launcher_is(UP)
    made = world.kube.writes("create", of=kinds.PODS)
    world.operator = world.new_operator()
    await world.turns()
    assert world.kube.writes("create", of=kinds.PODS) == made
    assert world.condition("Running")["status"] == "True"


@story(runPolicy={"suspend": True})
async def test_c16_a_job_born_suspended_gets_nothing_until_it_is_resumed(world: World) -> None:
    await world.turns()
    assert world.condition("Suspended")["status"] == "True"
    assert world.condition("Running")["status"] == "False"
    assert "startTime" not in world.status
    assert list(world.status["replicaStatuses"]) == ["Worker"]  # it has no launcher yet
    assert world.kube.writes("create") == [ask for ask in world.kube.writes("create") if ask[1] == "events"]
    world.edit(runPolicy={"suspend": False})
    world.now += timedelta(seconds=5)
    await world.turns(2)
    assert world.status["startTime"] == "2026-01-01T00:00:05Z"
    assert world.kube.names(kinds.JOBS) == ["pi-launcher"]
    assert world.status["replicaStatuses"]["Launcher"] == {}


@story()
async def test_c17_to_c21_suspending_gives_all_back_and_resuming_takes_the_templates_as_they_are_then(
    world: World,
) -> None:
    await world.turns(2)
    world.workers_up()
    world.launcher_is(UP)
    await world.turn()
    world.edit(runPolicy={"suspend": True})
    await world.turns(2)
    assert world.kube.names(kinds.PODS) == world.kube.names(kinds.JOBS) == []
    assert (world.condition("Suspended")["status"], world.condition("Running")["status"]) == ("True", "False")
    directives = {"nodeSelector": {"pool": "a"}, "tolerations": [{"key": "t"}], "schedulingGates": [{"name": "g"}]}
    roles = world.kube.one(kinds.MPIJOBS, "pi")["spec"]["mpiReplicaSpecs"]
    template = roles["Launcher"]["template"]
    changed = {"metadata": {"annotations": {"kueue": "yes"}}, "spec": {**template["spec"], **directives}}
    world.edit(
        generation=3,
        runPolicy={"suspend": False},
        mpiReplicaSpecs={**roles, "Launcher": {**roles["Launcher"], "template": changed}},
    )
    world.now += timedelta(seconds=50)
    await world.turns(2)
    made = world.kube.one(kinds.JOBS, "pi-launcher")["spec"]["template"]
    assert {name: made["spec"][name] for name in directives} == directives
    assert made["metadata"]["annotations"]["kueue"] == "yes"
    resumed = world.condition("Suspended")
    assert (resumed["status"], resumed["reason"]) == ("False", "MPIJobResumed")
    assert world.status["startTime"] == "2026-01-01T00:00:50Z"


# -- the loop itself ------------------------------------------------------------------------------------------
async def until(world: World, wanted: Callable[[], bool]) -> None:
    async with asyncio.timeout(120):
        while not wanted():  # noqa: ASYNC110  # there is no one event for "the operator has done something"
            await asyncio.sleep(0.01)


async def running(world: World, play: Callable[[], Awaitable[None]]) -> None:
    task = asyncio.create_task(world.operator.run())
    try:
        await play()
        assert not task.done()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def test_the_loop_takes_jobs_up_and_a_conflict_is_just_another_turn(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="oarsman")

    async def main() -> None:
        world = World(threadiness=2, shutdown_seconds=1)

        async def play() -> None:
            conflict = Conflict("replace mpijobs", "the object has been modified", status=409)
            with world.kube.trouble(conflict, "replace", kinds.MPIJOBS):
                world.submit()
                await until(world, lambda: (world.metric("oarsman_reconcile_seconds_count", result="retry") or 0) > 1)
            await until(world, lambda: world.condition("Created") != {})
            await until(world, lambda: world.kube.names(kinds.JOBS) == ["pi-launcher"])
            await until(world, lambda: world.events == ["MPIJobCreated"])

        await running(world, play)

    asyncio.run(main())
    assert not [record for record in caplog.records if record.levelno > logging.INFO]


def test_a_turn_that_breaks_is_logged_counted_and_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        world = World(shutdown_seconds=1)

        async def play() -> None:
            with world.kube.trouble(ZeroDivisionError("oops"), "create", kinds.SERVICES):
                world.submit()
                await until(world, lambda: (world.metric("oarsman_reconcile_seconds_count", result="error") or 0) > 1)
            await until(world, lambda: "pi-worker-0" in world.kube.names(kinds.PODS))

        await running(world, play)

    asyncio.run(main())
    assert "a turn failed" in caplog.text


def test_many_jobs_are_looked_after_side_by_side() -> None:
    async def main() -> None:
        world = World(threadiness=8, shutdown_seconds=1)

        async def play() -> None:
            for number in range(30):
                given = document(name=f"pi-{number}")
                given["metadata"]["uid"] = f"uid-{number}"
                world.kube.add(kinds.MPIJOBS, given)
            await until(world, lambda: len(world.kube.names(kinds.JOBS)) == 30)
            await until(world, lambda: world.metric("mpi_operator_jobs_created_total") == 30)

        await running(world, play)

    asyncio.run(main())


def test_jobs_of_other_namespaces_are_not_looked_after() -> None:
    async def main() -> None:
        world = World(namespaces=("mine",), shutdown_seconds=1)

        async def play() -> None:
            world.kube.add(kinds.MPIJOBS, document(namespace="theirs"))
            world.kube.add(kinds.MPIJOBS, document(namespace="mine"))
            await until(world, lambda: world.kube.names(kinds.JOBS) == ["pi-launcher"])
            assert {namespace for _, namespace, _ in world.kube.objects if namespace} == {"mine", "theirs"}
            assert [plural for plural, namespace, _ in world.kube.objects if namespace == "theirs"] == ["mpijobs"]

        await running(world, play)

    asyncio.run(main())


def test_events_that_cannot_be_written_do_not_stop_the_work() -> None:
    async def main() -> None:
        world = World()
        world.submit()
        taken = AlreadyExists("create events", "taken", status=409)
        with world.kube.trouble(taken, "create", kinds.EVENTS):
            await world.turns(2)
        assert world.condition("Created")["status"] == "True"

    asyncio.run(main())


# -- what a turn consists of ----------------------------------------------------------------------------------
def test_workers_are_made_side_by_side_and_everything_else_one_after_the_other() -> None:
    actions = (
        Prepare(),
        PublishHosts(()),
        CreateWorker(0),
        CreateWorker(1),
        DeleteWorker(2),
        DeleteWorker(3),
        CreateLauncher(1),
    )
    assert list(in_steps(actions)) == [
        (Prepare(),),
        (PublishHosts(()),),
        (CreateWorker(0),),
        (CreateWorker(1),),
        (DeleteWorker(2), DeleteWorker(3)),
        (CreateLauncher(1),),
    ]


def test_workers_are_made_in_steps_that_grow_up_to_the_number_of_requests_at_once() -> None:
    steps = in_steps(tuple(CreateWorker(index) for index in range(200)))
    assert [len(step) for step in steps] == [1, 2, 4, 8, 16, 32, 64, 64, 9]


@story()
async def test_a_standby_has_read_everything_before_it_leads_and_acts_only_then(world: World) -> None:
    listed = 0
    pages = world.kube.pages

    def counted(*given: Any, **more: Any) -> Any:
        nonlocal listed
        listed += 1
        return pages(*given, **more)

    world.kube.pages = counted  # type: ignore[method-assign]
    following = world.operator.follow()
    await until(world, lambda: world.operator.caches.synced)
    before = listed
    await until(world, lambda: len(world.operator.queue) == 1)  # for whom nobody looks
    assert world.kube.asked == []
    leading = asyncio.create_task(world.operator.run())
    await until(world, lambda: bool(world.condition("Created")))
    assert listed == before
    leading.cancel()
    await asyncio.wait([leading])
    assert following.done()


@story(workers=500, slotsPerWorker=1)
async def test_where_a_quota_lets_no_pod_in_each_turn_asks_for_one_alone(world: World) -> None:
    with world.kube.trouble(Forbidden("create", "exceeded quota", status=403), "create", kinds.PODS):
        for _ in range(3):
            with contextlib.suppress(RetryableError):
                await world.turn()
    assert len(world.kube.writes("create", of=kinds.PODS)) == 3


def test_trouble_with_a_job_that_runs_is_told_and_changes_nothing_else() -> None:
    before = a_status(true=("Created", "Running"))
    plan = so_far(before, Plan(status=a_status(true=("Failed",))), RetryableError("down"), T0)
    assert plan.status == before
    assert [(e.reason, e.message, e.severity.value) for e in plan.events] == [("Trouble", "down", "Warning")]
