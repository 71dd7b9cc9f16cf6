"""The engine and an API server in memory: what is asked of it, in which order, and what becomes of each answer."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from oarsman.engines.contract import Assignment
from oarsman.engines.kube import views
from oarsman.engines.kube.caches import Caches
from oarsman.engines.kube.client import Conflict, Forbidden, Invalid, Resource, StatusCause, Unavailable
from oarsman.engines.kube.client import resources as kinds
from oarsman.engines.kube.engine import KubeEngine
from oarsman.engines.kube.objects.common import KubeOptions
from oarsman.errors import RetryableError
from oarsman.job.job import Job
from oarsman.job.observed import Exit, Observed, Phase
from oarsman.job.state import Status
from oarsman.plan.actions import (
    Action,
    CreateLauncher,
    CreateWorker,
    DeleteLauncher,
    DeleteWorker,
    Dismantle,
    Prepare,
    PublishHosts,
    ReleaseGang,
)
from tests.builders import a_status

from .kube_jobs import UID, V1, a_kube_job
from .memory_kube import MemoryKube, bring_up_to_date

MINE = [{"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "name": "pi", "uid": UID, "controller": True}]
OTHERS = [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "other", "uid": "other", "controller": True}]
LABELS = {
    "training.kubeflow.org/job-name": "pi",
    "training.kubeflow.org/job-role": "worker",
    "training.kubeflow.org/operator-name": "mpi-operator",
}
GONE_SOON = "2026-01-01T00:01:00Z"


class World:
    """An engine, its job and its server. Caches are as old as the last `look`."""

    def __init__(self, job: Job | None = None, options: KubeOptions | None = None) -> None:
        self.kube = MemoryKube()
        self.caches = Caches(self.kube)  # type: ignore[arg-type]
        self.engine = KubeEngine(self.kube, self.caches, options or KubeOptions())  # type: ignore[arg-type]
        self.assignment = Assignment(job=job or a_kube_job(), status=Status(), environment={}, folder=Path("/"))

    async def do(self, *actions: Action) -> None:
        for action in actions:
            await self.engine.apply(self.assignment, action)

    async def look(self) -> Observed:
        bring_up_to_date(self.kube, self.caches)
        return await self.engine.observe(self.assignment)

    def job_is(self, **changes: Any) -> None:
        self.assignment = replace(self.assignment, job=replace(self.assignment.job, **changes))

    def status_is(self, status: Status) -> None:
        self.assignment = replace(self.assignment, status=status)

    async def start(self) -> None:
        await self.do(Prepare(), PublishHosts(()), CreateWorker(0), CreateWorker(1), CreateLauncher(1))

    def play_launcher(self, phase: str, name: str = "pi-launcher-x", *, counted: bool = True, **status: Any) -> None:
        """What the Job controller and the kubelet do."""
        made = self.kube.one(kinds.JOBS, "pi-launcher")
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "pi-launcher", "controller": True}
        template = made["spec"]["template"]
        body = {**template, "metadata": {**template["metadata"], "name": name}, "status": {"phase": phase, **status}}
        self.kube.add(kinds.PODS, body, ownerReferences=[{**owner, "uid": made["metadata"]["uid"]}])
        if phase == "Failed" and counted:
            self.kube.change(kinds.JOBS, "pi-launcher", status={"conditions": [{"type": "Failed", "status": "True"}]})


def story(**given: Any) -> Callable[[Callable[[World], Awaitable[None]]], Callable[[], None]]:
    """Runs a coroutine test in a world of its own."""

    def decorate(test: Callable[[World], Awaitable[None]]) -> Callable[[], None]:
        def run() -> None:
            async def play() -> None:
                await test(World(**given))

            asyncio.run(play())

        run.__name__, run.__doc__ = test.__name__, test.__doc__
        return run

    return decorate


# -- creating -------------------------------------------------------------------------------------------------
@story()
async def test_c5_everything_of_a_job_is_made_in_an_order_in_which_nothing_misses_anything(world: World) -> None:
    await world.start()
    made = [(plural, name) for _, plural, name in world.kube.writes("create")]
    assert set(made[:2]) == {("services", "pi"), ("secrets", "pi-ssh")}
    assert made[2:] == [
        ("configmaps", "pi-config"),
        ("pods", "pi-worker-0"),
        ("pods", "pi-worker-1"),
        ("jobs", "pi-launcher"),
    ]
    assert world.kube.writes() == world.kube.writes("create")


@story(job=a_kube_job(version=V1))
async def test_a_v1_job_has_rights_instead_of_keys(world: World) -> None:
    await world.start()
    made = [(plural, name) for _, plural, name in world.kube.writes("create")]
    assert set(made[:4]) == {
        ("services", "pi"),
        ("serviceaccounts", "pi-launcher"),
        ("roles", "pi-launcher"),
        ("rolebindings", "pi-launcher"),
    }
    assert made[4:] == [
        ("configmaps", "pi-config"),
        ("pods", "pi-worker-0"),
        ("pods", "pi-worker-1"),
        ("pods", "pi-launcher"),
    ]


@story(job=a_kube_job(version=V1, launcher={"serviceAccountName": "mine"}))
async def test_a_service_account_of_the_users_is_not_made(world: World) -> None:
    await world.do(Prepare())
    assert world.kube.names(kinds.SERVICE_ACCOUNTS) == []
    assert world.kube.one(kinds.ROLE_BINDINGS, "pi-launcher")["subjects"][0]["name"] == "mine"


@story()
async def test_preparing_twice_writes_nothing_twice(world: World) -> None:
    await world.do(Prepare())
    before = world.kube.one(kinds.SECRETS, "pi-ssh")["data"]
    await world.do(Prepare())
    assert world.kube.writes("patch", "replace", "delete") == []
    assert world.kube.one(kinds.SECRETS, "pi-ssh")["data"] == before


@story()
async def test_what_the_server_adds_to_a_service_is_left_alone_and_what_it_lacks_is_put_right(world: World) -> None:
    await world.do(Prepare())
    found = world.kube.one(kinds.SERVICES, "pi")
    world.kube.change(kinds.SERVICES, "pi", spec={**found["spec"], "clusterIPs": ["None"], "type": "ClusterIP"})
    await world.do(Prepare())
    assert world.kube.writes("patch") == []
    world.kube.change(kinds.SERVICES, "pi", spec={**found["spec"], "publishNotReadyAddresses": False})
    await world.do(Prepare())
    assert world.kube.one(kinds.SERVICES, "pi")["spec"]["publishNotReadyAddresses"] is True


@story()
async def test_workers_that_come_later_get_their_keys_added(world: World) -> None:
    await world.do(Prepare())
    before = world.kube.one(kinds.SECRETS, "pi-ssh")["data"]
    world.assignment = replace(world.assignment, job=a_kube_job(workers=3))
    await world.do(Prepare())
    after = world.kube.one(kinds.SECRETS, "pi-ssh")["data"]
    assert set(after) - set(before) == {"host-key-2"}
    assert {k: v for k, v in after.items() if k in before and k != "known_hosts"} == {
        k: v for k, v in before.items() if k != "known_hosts"
    }


@story()
async def test_keys_are_not_added_over_somebody_elses_write(world: World) -> None:
    await world.do(Prepare())
    world.assignment = replace(world.assignment, job=a_kube_job(workers=3))
    with (
        world.kube.trouble(Conflict("patch", "modified", status=409), "patch", kinds.SECRETS),
        pytest.raises(Conflict),
    ):
        await world.do(Prepare())
    assert "resourceVersion" in world.kube.bodies[-1]["metadata"]


@story(job=a_kube_job(version=V1))
async def test_the_rights_of_a_launcher_follow_the_number_of_workers(world: World) -> None:
    await world.do(Prepare())
    world.assignment = replace(world.assignment, job=a_kube_job(version=V1, workers=3))
    await world.do(Prepare())
    rules = world.kube.one(kinds.ROLES, "pi-launcher")["rules"]
    assert rules[1]["resourceNames"] == ["pi-worker-0", "pi-worker-1", "pi-worker-2"]


# -- names that are taken -----------------------------------------------------------------------------------------
TAKEN = [
    pytest.param(kinds.CONFIG_MAPS, "pi-config", PublishHosts(()), a_kube_job(), id="C10"),
    pytest.param(kinds.SERVICES, "pi", Prepare(), a_kube_job(), id="C11"),
    pytest.param(kinds.SERVICES, "pi", Prepare(), a_kube_job(mpiImplementation="Intel"), id="C12"),
    pytest.param(kinds.SECRETS, "pi-ssh", Prepare(), a_kube_job(), id="C13"),
    pytest.param(kinds.PODS, "pi-worker-0", CreateWorker(0), a_kube_job(), id="C14"),
    pytest.param(kinds.JOBS, "pi-launcher", CreateLauncher(1), a_kube_job(), id="C6"),
    pytest.param(kinds.PODS, "pi-launcher", CreateLauncher(1), a_kube_job(version=V1), id="v1: launcher"),
    pytest.param(kinds.SERVICE_ACCOUNTS, "pi-launcher", Prepare(), a_kube_job(version=V1), id="v1: account"),
    pytest.param(kinds.ROLES, "pi-launcher", Prepare(), a_kube_job(version=V1), id="v1: role"),
    pytest.param(kinds.ROLE_BINDINGS, "pi-launcher", Prepare(), a_kube_job(version=V1), id="v1: binding"),
]


@pytest.mark.parametrize(("resource", "name", "action", "job"), TAKEN)
def test_an_object_of_the_name_that_is_not_ours_is_left_alone_and_named(
    resource: Resource, name: str, action: Action, job: Job
) -> None:
    async def play() -> None:
        world = World(job)
        theirs = world.kube.add(resource, {"metadata": {"name": name, "ownerReferences": OTHERS}})
        with pytest.raises(RetryableError, match="already exists and is not managed by MPIJob"):
            await world.do(action)
        assert world.kube.one(resource, name) == theirs
        assert (await world.look()).conflict == f'"{name}" of Kind "{resource.kind}"'

    asyncio.run(play())


@pytest.mark.parametrize(("resource", "name", "action", "job"), TAKEN)
def test_what_an_earlier_job_of_the_name_left_is_waited_for_and_no_conflict(
    resource: Resource, name: str, action: Action, job: Job
) -> None:
    async def play() -> None:
        world = World(job)
        leftover = {"metadata": {"name": name, "ownerReferences": OTHERS, "deletionTimestamp": GONE_SOON}}
        world.kube.add(resource, leftover)
        with pytest.raises(RetryableError, match="still going away"):
            await world.do(action)
        assert (await world.look()).conflict is None

    asyncio.run(play())


@story()
async def test_a_conflict_is_over_when_the_object_is_gone_or_goes(world: World) -> None:
    world.kube.add(kinds.SERVICES, {"metadata": {"name": "pi"}})
    for sort_out in (
        lambda: world.kube.vanish(kinds.SERVICES, "pi"),
        lambda: world.kube.mark(kinds.SERVICES, "pi", deletionTimestamp=GONE_SOON),
        lambda: world.kube.mark(kinds.SERVICES, "pi", ownerReferences=MINE),
    ):
        if "pi" in world.kube.names(kinds.SERVICES):
            world.kube.vanish(kinds.SERVICES, "pi")
        world.kube.add(kinds.SERVICES, {"metadata": {"name": "pi"}})
        with pytest.raises(RetryableError):
            await world.do(Prepare())
        assert (await world.look()).conflict is not None
        sort_out()
        assert (await world.look()).conflict is None


@story()
async def test_what_is_there_and_ours_is_taken_in_as_if_we_had_just_made_it(world: World) -> None:
    """Made by a leader before us, or by a request whose answer was lost: the caches do not know it yet."""
    await world.start()
    fresh = World()
    fresh.kube.objects = world.kube.objects
    await fresh.start()
    assert set(fresh.kube.writes("patch", "delete")) == set()
    seen = await fresh.engine.observe(fresh.assignment)
    assert [w.index for w in seen.workers] == [0, 1]
    assert seen.launcher is not None


@story()
async def test_our_own_worker_that_is_still_going_away_is_waited_for(world: World) -> None:
    await world.start()
    world.kube.mark(kinds.PODS, "pi-worker-0", deletionTimestamp=GONE_SOON)
    with pytest.raises(RetryableError, match="pi-worker-0 is still going away"):
        await world.do(CreateWorker(0))


@story()
async def test_the_launcher_of_an_earlier_attempt_is_not_taken_for_the_next_one(world: World) -> None:
    await world.start()
    with pytest.raises(RetryableError, match="of an earlier attempt is still going away"):
        await world.do(CreateLauncher(2))


# -- refusals -----------------------------------------------------------------------------------------------------
REFUSAL = Invalid(
    "create pods",
    "is invalid",
    status=422,
    causes=[StatusCause(field="spec.containers[0].image", message="Required value")],
)


@story()
async def test_a_pod_the_server_finds_wrong_is_a_refusal_with_its_words(world: World) -> None:
    with world.kube.trouble(REFUSAL, "create", kinds.PODS), pytest.raises(RetryableError):
        await world.do(CreateWorker(0))
    seen = await world.look()
    assert seen.refused == "the API server refuses the Pod: spec.containers[0].image: Required value"


@story()
async def test_a_pod_the_server_cannot_read_is_a_refusal(world: World) -> None:
    error = Invalid("create pods", UNREADABLE, status=400, reason="BadRequest")
    with world.kube.trouble(error, "create", kinds.PODS), pytest.raises(RetryableError):
        await world.do(CreateWorker(0))
    assert (await world.look()).refused == f"the API server refuses the Pod: {UNREADABLE}"


@story()
async def test_an_edit_may_put_right_what_was_refused(world: World) -> None:
    with world.kube.trouble(REFUSAL, "create", kinds.PODS), pytest.raises(RetryableError):
        await world.do(CreateWorker(0))
    world.job_is(generation=2)
    assert (await world.look()).refused is None


CLOSED = 'admission webhook "validatepod.volcano.sh" denied the request: failed to create pod, queue q is closed'
POLICY = "pods \"pi-worker-0\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no"
UNREADABLE = 'Pod in version "v1" cannot be handled as a Pod: json: cannot unmarshal string into Go value of type int'


@pytest.mark.parametrize(
    "error",
    [
        Forbidden("create", "quota", status=403),
        Unavailable("create", "down", status=503),
        Invalid("create", CLOSED, status=400),
        Invalid("create", CLOSED, status=422, reason="Invalid"),
        Invalid("create", POLICY, status=422, reason="Invalid"),
        Invalid("create", "the proxy does not like that", status=400),
    ],
)
def test_what_may_pass_is_tried_again_and_no_refusal(error: Exception) -> None:
    async def play() -> None:
        world = World()
        with world.kube.trouble(error, "create", kinds.PODS), pytest.raises(RetryableError):
            await world.do(CreateWorker(0))
        assert (await world.look()).refused is None

    asyncio.run(play())


@story()
async def test_a_job_that_is_forgotten_leaves_no_memories(world: World) -> None:
    world.kube.add(kinds.SERVICES, {"metadata": {"name": "pi"}})
    with world.kube.trouble(REFUSAL, "create", kinds.PODS), pytest.raises(RetryableError):
        await world.do(CreateWorker(0))
    with pytest.raises(RetryableError):
        await world.do(Prepare())
    await world.engine.forget(UID)
    seen = await world.look()
    assert (seen.refused, seen.conflict) == (None, None)


# -- hosts --------------------------------------------------------------------------------------------------------
@story()
async def test_the_list_of_hosts_is_written_once_per_change_and_the_launcher_hears_of_it_at_once(world: World) -> None:
    await world.start()
    world.play_launcher("Running")
    assert (await world.look()).published_hosts == ()
    for hosts in (("pi-worker-0",), ("pi-worker-0",), ("pi-worker-0", "pi-worker-1")):
        await world.do(PublishHosts(hosts))
        assert (await world.engine.observe(world.assignment)).published_hosts == hosts  # before any informer knows
    assert world.kube.writes("patch", of=kinds.CONFIG_MAPS) == [("patch", "configmaps", "pi-config")] * 2
    assert world.kube.writes("patch", of=kinds.PODS) == [("patch", "pods", "pi-launcher-x")] * 2
    version = world.kube.one(kinds.CONFIG_MAPS, "pi-config")["metadata"]["resourceVersion"]
    assert world.kube.one(kinds.PODS, "pi-launcher-x")["metadata"]["annotations"]["oarsman.dev/hosts"] == version


@story()
async def test_a_launcher_that_is_gone_or_going_is_not_told_about_hosts(world: World) -> None:
    await world.start()
    world.play_launcher("Running", deletionTimestamp=None)
    world.kube.mark(kinds.PODS, "pi-launcher-x", deletionTimestamp=GONE_SOON)
    await world.look()
    await world.do(PublishHosts(("pi-worker-0",)))
    assert world.kube.writes("patch", of=kinds.PODS) == []
    world.kube.mark(kinds.PODS, "pi-launcher-x", deletionTimestamp=None)
    await world.look()
    world.kube.vanish(kinds.PODS, "pi-launcher-x")
    await world.do(PublishHosts(()))  # it vanished in this very moment
    assert world.kube.one(kinds.CONFIG_MAPS, "pi-config")["data"]["discover_hosts.sh"] == "#!/bin/sh\n"


@story(job=a_kube_job(workers=2000, command=["mpirun", "a"]))
async def test_a_job_of_many_hosts_is_prepared_published_and_dismantled_like_any_other(world: World) -> None:
    await world.do(Prepare(), PublishHosts(()), CreateLauncher(1))
    assert world.kube.names(kinds.CONFIG_MAPS) == ["pi-config", "pi-hosts"]
    world.play_launcher("Running")
    assert (await world.look()).published_hosts == ()
    await world.do(PublishHosts(("pi-worker-0",)))
    assert (await world.look()).published_hosts == ("pi-worker-0",)
    assert world.kube.writes("patch") == [("patch", "configmaps", "pi-hosts"), ("patch", "pods", "pi-launcher-x")]
    await world.do(Dismantle())
    assert world.kube.names(kinds.CONFIG_MAPS) == []


@story(job=a_kube_job(workers=1400, command=["mpirun", "a"]))
async def test_a_job_that_grows_keeps_the_files_that_its_launcher_looks_at(world: World) -> None:
    await world.do(Prepare(), PublishHosts(()))
    await world.look()
    world.job_is(worker=replace(world.assignment.job.worker, replicas=1600))  # type: ignore[type-var]
    await world.do(PublishHosts(("pi-worker-0",)))
    assert world.kube.names(kinds.CONFIG_MAPS) == ["pi-config"]
    assert (await world.look()).published_hosts == ("pi-worker-0",)


# -- deleting -----------------------------------------------------------------------------------------------------
@story()
async def test_only_the_very_pod_that_was_seen_is_deleted(world: World) -> None:
    await world.start()
    await world.look()
    uid = world.kube.one(kinds.PODS, "pi-worker-1")["metadata"]["uid"]
    world.kube.vanish(kinds.PODS, "pi-worker-1")
    world.kube.add(kinds.PODS, {"metadata": {"name": "pi-worker-1", "labels": LABELS}})
    await world.do(DeleteWorker(1))
    assert world.kube.preconditions["delete", "pods", "pi-worker-1"] == uid
    assert "pi-worker-1" in world.kube.names(kinds.PODS)


@pytest.mark.parametrize("action", [DeleteWorker(1), DeleteLauncher(1), Dismantle(), PublishHosts(("pi-worker-0",))])
def test_what_the_server_does_not_know_any_more_is_not_seen_either(action: Action) -> None:
    async def play() -> None:
        world = World()
        await world.start()
        world.play_launcher("Running")
        await world.look()
        gone = {
            DeleteWorker: (kinds.PODS, "pi-worker-1"),
            DeleteLauncher: (kinds.PODS, "pi-launcher-x"),
            Dismantle: (kinds.CONFIG_MAPS, "pi-config"),
            PublishHosts: (kinds.CONFIG_MAPS, "pi-config"),
        }
        resource, name = gone[type(action)]
        world.kube.vanish(resource, name)
        with contextlib.suppress(RetryableError):
            await world.do(action)
        cache = world.caches.pods if resource is kinds.PODS else world.caches.config_maps
        assert name not in {found.metadata.name for found in cache.all()}

    asyncio.run(play())


@story()
async def test_a_pod_of_somebody_else_is_never_deleted(world: World) -> None:
    world.kube.add(kinds.PODS, {"metadata": {"name": "pi-worker-0", "labels": LABELS, "ownerReferences": OTHERS}})
    await world.look()
    await world.do(DeleteWorker(0))
    assert world.kube.writes("delete") == []


@story()
async def test_a_pod_that_is_going_is_not_deleted_again(world: World) -> None:
    await world.start()
    world.kube.mark(kinds.PODS, "pi-worker-0", deletionTimestamp=GONE_SOON)
    await world.look()
    await world.do(DeleteWorker(0))
    assert world.kube.writes("delete") == []


ENDED = {"containerStatuses": [{"name": "mpi", "state": {"terminated": {"exitCode": 1}}}]}


@story()
async def test_a_launcher_that_ended_is_kept_for_its_log_while_the_job_goes_on(world: World) -> None:
    await world.start()
    world.play_launcher("Failed", **ENDED)
    await world.look()
    await world.do(DeleteLauncher(1))
    kept = world.kube.one(kinds.PODS, "pi-launcher-x")
    assert [owner["uid"] for owner in kept["metadata"]["ownerReferences"]] == [UID]
    assert world.kube.names(kinds.JOBS) == []
    assert world.kube.preconditions["delete", "jobs", "pi-launcher"] is not None
    assert (await world.engine.observe(world.assignment)).launcher is None
    order = [ask[:2] for ask in world.kube.writes("patch", "delete")]
    assert order == [("patch", "pods"), ("delete", "jobs")]  # else the garbage collector would be faster


BACKOFF = {"conditions": [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}]}


@pytest.mark.parametrize("heard_of_it_before", [True, False])
def test_the_end_of_a_launcher_that_its_job_knows_first_is_asked_for(heard_of_it_before: bool) -> None:
    """Two watches, and that of pods is behind: seen after the API server was killed."""

    @story()
    async def tell(world: World) -> None:
        await world.start()
        if heard_of_it_before:
            world.play_launcher("Running", containerStatuses=[{"name": "mpi", "state": {"running": {}}}])
            await world.look()
            world.kube.change(kinds.PODS, "pi-launcher-x", status={"phase": "Failed", **ENDED})
        else:
            world.play_launcher("Failed", counted=False, **ENDED)
        world.kube.change(kinds.JOBS, "pi-launcher", status=BACKOFF)
        world.caches.jobs.put(await world.kube.get(kinds.JOBS, "pi-launcher", "default", view=views.BatchJob))
        launcher = (await world.engine.observe(world.assignment)).launcher
        assert launcher is not None
        assert (launcher.phase, launcher.exit) == (Phase.FAILED, Exit(code=1))

    tell()


@story()
async def test_where_ranks_ran_is_asked_for_if_the_job_of_a_launcher_knows_first_that_it_ended(world: World) -> None:
    await world.start()
    world.play_launcher("Running", containerStatuses=[{"name": "mpi", "state": {"running": {}}}])
    await world.look()
    told = {"exitCode": 0, "message": "oarsman: ranks 0-1 on pi-worker-0..1\n"}
    ended = {"phase": "Succeeded", "containerStatuses": [{"name": "mpi", "state": {"terminated": told}}]}
    world.kube.change(kinds.PODS, "pi-launcher-x", status=ended)
    complete = {"conditions": [{"type": "Complete", "status": "True"}]}
    world.kube.change(kinds.JOBS, "pi-launcher", status=complete)
    world.caches.jobs.put(await world.kube.get(kinds.JOBS, "pi-launcher", "default", view=views.BatchJob))
    ranks = (await world.engine.observe(world.assignment)).ranks
    assert [(rank.rank, rank.host) for rank in ranks] == [(0, "pi-worker-0"), (1, "pi-worker-1")]


@story()
async def test_the_end_of_a_launcher_is_not_asked_for_again(world: World) -> None:
    await world.start()
    world.play_launcher("Failed", **ENDED)
    world.kube.change(kinds.JOBS, "pi-launcher", status=BACKOFF)
    await world.look()
    with world.kube.trouble(AssertionError("pods were listed"), "list", kinds.PODS):
        assert (await world.engine.observe(world.assignment)).launcher is not None


@story()
async def test_the_log_of_a_launcher_is_kept_although_its_pod_is_not_yet_said_to_have_failed(world: World) -> None:
    """A kubelet of today tells of the ended container first, and of the failed pod when it has cleaned up."""
    await world.start()
    world.play_launcher("Running", **ENDED)
    await world.look()

    async def the_kubelet_and_the_job_controller() -> None:
        await asyncio.sleep(0.2)
        world.kube.change(kinds.JOBS, "pi-launcher", status={"conditions": [{"type": "Failed", "status": "True"}]})
        bring_up_to_date(world.kube, world.caches)

    await asyncio.gather(world.do(DeleteLauncher(1)), the_kubelet_and_the_job_controller())
    assert world.kube.names(kinds.JOBS) == []
    assert "pi-launcher-x" in world.kube.names(kinds.PODS)


@story()
async def test_a_launcher_with_a_sidecar_that_goes_on_is_not_waited_for(world: World) -> None:
    await world.start()
    sidecar = {"name": "proxy", "state": {"running": {}}}
    world.play_launcher("Running", containerStatuses=[*ENDED["containerStatuses"], sidecar])
    await world.look()
    await world.do(DeleteLauncher(1))
    assert "pi-launcher-x" not in world.kube.names(kinds.PODS)


@story()
async def test_a_launcher_that_its_job_has_not_counted_is_not_taken_from_it(world: World) -> None:
    await world.start()
    world.play_launcher("Failed", counted=False)
    await world.look()
    await world.do(DeleteLauncher(1))
    assert world.kube.names(kinds.JOBS) == []
    assert "pi-launcher-x" not in world.kube.names(kinds.PODS)


@story()
async def test_the_logs_of_the_last_five_attempts_are_kept(world: World) -> None:
    await world.do(Prepare(), PublishHosts(()))
    for attempt in range(1, 9):
        await world.do(CreateLauncher(attempt))
        world.play_launcher("Failed", name=f"pi-launcher-{attempt}", **ENDED)
        world.kube.mark(kinds.PODS, f"pi-launcher-{attempt}", creationTimestamp=f"2026-01-01T00:0{attempt}:00Z")
        await world.look()
        await world.do(DeleteLauncher(attempt))
    kept = world.kube.names(kinds.PODS)
    assert kept[-5:] == [f"pi-launcher-{attempt}" for attempt in (4, 5, 6, 7, 8)]
    assert len(kept) <= 6


@story()
async def test_a_launcher_that_lives_is_deleted_with_its_job(world: World) -> None:
    await world.start()
    world.play_launcher("Running")
    await world.look()
    await world.do(DeleteLauncher(1))
    assert world.kube.names(kinds.JOBS) == []
    assert "pi-launcher-x" not in world.kube.names(kinds.PODS)


@pytest.mark.parametrize("how", ["finished", "suspended", "stopped"])
def test_at_the_end_launchers_of_all_attempts_go(how: str) -> None:
    async def play() -> None:
        world = World()
        await world.start()
        world.play_launcher("Failed", name="pi-launcher-a", **ENDED)
        await world.look()
        await world.do(DeleteLauncher(1), CreateLauncher(2))
        world.play_launcher("Succeeded", name="pi-launcher-b")
        if how == "finished":
            world.status_is(a_status(true=("Created", "Succeeded")))
        elif how == "suspended":
            world.job_is(run_policy=replace(world.assignment.job.run_policy, suspend=True))
        else:
            world.assignment = replace(world.assignment, stop_requested=True)
        await world.look()
        await world.do(DeleteLauncher(2))
        assert [name for name in world.kube.names(kinds.PODS) if "launcher" in name] == []
        assert world.kube.names(kinds.JOBS) == []

    asyncio.run(play())


@story(job=a_kube_job(version=V1))
async def test_the_launcher_of_v1_is_deleted_by_its_uid(world: World) -> None:
    await world.start()
    await world.look()
    uid = world.kube.one(kinds.PODS, "pi-launcher")["metadata"]["uid"]
    await world.do(DeleteLauncher(1))
    assert world.kube.preconditions["delete", "pods", "pi-launcher"] == uid
    assert (await world.look()).launcher is None


@story()
async def test_deleting_what_is_not_there_is_nothing(world: World) -> None:
    await world.do(DeleteWorker(0), DeleteLauncher(1), Dismantle())
    assert world.kube.writes("delete") == []


@story()
async def test_every_delete_names_the_object_that_was_looked_at(world: World) -> None:
    await world.start()
    await world.look()
    uids = {name: found["metadata"]["uid"] for (_, _, name), found in world.kube.objects.items()}
    await world.do(DeleteLauncher(1), DeleteWorker(0), DeleteWorker(1), Dismantle())
    deleted = world.kube.writes("delete")
    assert {name for _, _, name in deleted} == {"pi-launcher", "pi-worker-0", "pi-worker-1", "pi-config"}
    assert [world.kube.preconditions[ask] for ask in deleted] == [uids[name] for _, _, name in deleted]


@story()
async def test_dismantling_leaves_what_is_somebody_elses(world: World) -> None:
    world.kube.add(kinds.CONFIG_MAPS, {"metadata": {"name": "pi-config"}}, ownerReferences=OTHERS)
    await world.look()
    await world.do(Dismantle())
    assert world.kube.names(kinds.CONFIG_MAPS) == ["pi-config"]


@story(job=a_kube_job(workers=1200))
async def test_of_secrets_only_the_jobs_own_are_asked_for_by_name(world: World) -> None:
    """With the rights to secrets the operator has, it could read any; it reads `NAME-ssh` alone, and lists none."""
    asked: list[str] = []
    get, listed = world.kube.get, world.kube.list

    async def noted(resource: Resource, name: str, *more: Any, **options: Any) -> Any:
        if resource is kinds.SECRETS:
            asked.append(name)
        return await get(resource, name, *more, **options)

    async def refused(resource: Resource, *more: Any, **options: Any) -> Any:
        assert resource is not kinds.SECRETS
        return await listed(resource, *more, **options)

    world.kube.get, world.kube.list = noted, refused  # type: ignore[assignment,method-assign]
    await world.do(Prepare(), PublishHosts(()))
    await world.look()
    await world.do(Prepare())
    assert set(asked) == {"pi-ssh", "pi-ssh-1"}
    assert {name for _, plural, name in world.kube.asked if plural == "secrets"} == {"pi-ssh", "pi-ssh-1"}


# -- gangs --------------------------------------------------------------------------------------------------------
PLUGINS = KubeOptions(gang_scheduler="coscheduler")


@story(options=PLUGINS)
async def test_the_pod_group_is_there_before_any_pod(world: World) -> None:
    await world.start()
    made = [plural for _, plural, _ in world.kube.writes("create")]
    assert made.index("podgroups") < made.index("pods")


@story(options=PLUGINS)
async def test_an_edit_of_the_policy_reaches_the_pod_group_and_nothing_else_does(world: World) -> None:
    await world.do(Prepare())
    group = world.kube.one(kinds.PLUGINS_POD_GROUPS, "pi")
    world.kube.change(kinds.PLUGINS_POD_GROUPS, "pi", spec={**group["spec"], "filledIn": "by a webhook"})
    await world.do(Prepare())
    assert world.kube.writes("patch") == []
    world.assignment = replace(
        world.assignment, job=a_kube_job(runPolicy={"schedulingPolicy": {"scheduleTimeoutSeconds": 7}})
    )
    await world.do(Prepare())
    assert world.kube.one(kinds.PLUGINS_POD_GROUPS, "pi")["spec"] == {
        "minMember": 3,
        "minResources": {},
        "scheduleTimeoutSeconds": 7,
        "filledIn": "by a webhook",
    }


@story(options=PLUGINS, job=a_kube_job(runPolicy={"schedulingPolicy": {"minResources": {"cpu": "1000"}}}))
async def test_an_impossible_amount_that_was_taken_out_of_the_policy_is_taken_out_of_the_group(world: World) -> None:
    await world.do(Prepare())
    assert world.kube.one(kinds.PLUGINS_POD_GROUPS, "pi")["spec"]["minResources"] == {"cpu": "1000"}
    world.assignment = replace(world.assignment, job=a_kube_job())
    await world.do(Prepare())
    assert world.kube.one(kinds.PLUGINS_POD_GROUPS, "pi")["spec"]["minResources"] == {}
    await world.do(Prepare())
    assert len(world.kube.writes("patch")) == 1


@story(options=PLUGINS)
async def test_a_group_asks_for_places_until_it_is_released(world: World) -> None:
    await world.start()
    assert (await world.look()).gang_asks
    with (
        world.kube.trouble(Unavailable("delete", "down", status=503), "delete", kinds.PLUGINS_POD_GROUPS),
        pytest.raises(RetryableError),
    ):
        await world.do(ReleaseGang())
    assert (await world.look()).gang_asks
    await world.do(ReleaseGang())
    assert world.kube.names(kinds.PLUGINS_POD_GROUPS) == []
    assert not (await world.look()).gang_asks
    await world.do(Prepare())
    assert (await world.look()).gang_asks


@story(options=PLUGINS)
async def test_without_the_right_to_read_priority_classes_all_are_equal(world: World) -> None:
    forbidden = Forbidden("list", "no", status=403)
    with world.kube.trouble(forbidden, "list", kinds.PRIORITY_CLASSES):
        assert await world.caches.priorities() == {}
        await world.do(Prepare())
    world.kube.add(kinds.PRIORITY_CLASSES, {"metadata": {"name": "high", "namespace": ""}, "value": 7})
    assert await world.caches.priorities() == {"high": 7}


# -- seeing -------------------------------------------------------------------------------------------------------
PLACED_LONG_AGO = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}, PLACED_LONG_AGO]}
WAITS = {
    "conditions": [{"type": "PodScheduled", "status": "True"}],
    "initContainerStatuses": [{"name": "oarsman-barrier", "state": {"running": {}}}],
}


@story()
async def test_what_a_stuck_launcher_waits_for_is_read_from_its_log(world: World) -> None:
    await world.start()
    world.play_launcher("Pending", **WAITS)
    world.kube.logs["pi-launcher-x"] = [b"oarsman: waiting for pi-worker-1: Connection refused"]
    seen = await world.look()
    assert seen.launcher is not None
    assert seen.launcher.not_ready_because == ""  # its workers are not even ready
    for index in range(2):
        world.kube.change(kinds.PODS, f"pi-worker-{index}", status=READY)
    seen = await world.look()
    assert seen.launcher is not None
    assert seen.launcher.not_ready_because == "pi-worker-1: Connection refused"


@pytest.mark.parametrize("log", [[], Forbidden("log", "no", status=403)])
def test_a_log_that_may_not_be_read_is_no_trouble(log: Any) -> None:
    async def play() -> None:
        world = World()
        await world.start()
        world.play_launcher("Pending", **WAITS)
        world.kube.logs["pi-launcher-x"] = log
        for index in range(2):
            world.kube.change(kinds.PODS, f"pi-worker-{index}", status=READY)
        seen = await world.look()
        assert seen.launcher is not None
        assert (seen.launcher.phase, seen.launcher.not_ready_because) == (Phase.PENDING, "")

    asyncio.run(play())


@story(options=KubeOptions(barrier_seconds=20))
async def test_the_barrier_inside_has_the_first_word(world: World) -> None:
    seen = await world.look()
    assert seen.patience.total_seconds() > 20


@story()
async def test_a_config_map_or_job_of_somebody_else_is_not_seen(world: World) -> None:
    labels = {"training.kubeflow.org/job-name": "pi"}
    world.kube.add(kinds.CONFIG_MAPS, {"metadata": {"name": "pi-config", "labels": labels}, "data": {}})
    world.kube.add(kinds.JOBS, {"metadata": {"name": "pi-launcher", "labels": labels, "ownerReferences": OTHERS}})
    seen = await world.look()
    assert (seen.prepared, seen.launcher) == (False, None)


@story()
async def test_informers_tell_the_key_of_the_job_for_each_of_its_objects(world: World) -> None:
    told: list[str] = []
    news = asyncio.Event()

    def notify(key: str) -> None:
        told.append(key)
        news.set()

    await world.engine.start(notify)
    assert world.caches.synced
    await world.do(Prepare(), PublishHosts(()), CreateWorker(0))
    world.kube.add(kinds.MPIJOBS, {"metadata": {"name": "other", "namespace": "ns"}, "spec": {}})
    world.kube.add(kinds.PODS, {"metadata": {"name": "stranger"}})
    async with asyncio.timeout(120):
        while "ns/other" not in told or "default/pi" not in told:
            news.clear()
            await news.wait()
    assert set(told) == {"default/pi", "ns/other"}
    assert world.caches.trouble is None
    await world.engine.close()


@story()
async def test_a_change_of_nothing_that_is_looked_at_is_not_told(world: World) -> None:
    told: list[str] = []
    news = asyncio.Event()

    def notify(key: str) -> None:
        told.append(key)
        news.set()

    await world.engine.start(notify)
    await world.do(CreateWorker(0))
    told.clear()
    world.kube.change(kinds.PODS, "pi-worker-0", status={"conditions": [{"type": "Initialized", "status": "True"}]})
    world.kube.mark(kinds.PODS, "pi-worker-0", managedFields=[{"manager": "kubelet"}])
    world.kube.change(kinds.PODS, "pi-worker-0", status={"phase": "Running"})
    async with asyncio.timeout(120):
        while not (pod := world.caches.pods.get("default", "pi-worker-0")) or pod.status.phase != "Running":
            news.clear()
            await news.wait()
    assert told == ["default/pi"]
    await world.engine.close()


@story()
async def test_pods_of_other_operators_are_not_kept(world: World) -> None:
    news = asyncio.Event()
    await world.engine.start(lambda _: news.set())
    theirs = {"training.kubeflow.org/operator-name": "pytorchjob-controller"}
    world.kube.add(kinds.PODS, {"metadata": {"name": "torch-worker-0", "labels": {**LABELS, **theirs}}})
    await world.do(CreateWorker(0))
    world.kube.vanish(kinds.PODS, "pi-worker-0")  # heard of when all that was before it was
    async with asyncio.timeout(120):
        while world.caches.pods.get("default", "pi-worker-0"):
            news.clear()
            await news.wait()
    assert world.caches.pods.all() == ()
    await world.engine.close()


def test_an_informer_that_breaks_before_it_has_read_everything_is_not_waited_for() -> None:
    async def breaks() -> None:
        raise RuntimeError("broken")

    async def start() -> None:
        caches = Caches(None)  # type: ignore[arg-type]
        caches.mpijobs.run = breaks  # type: ignore[method-assign]
        async with asyncio.timeout(20):
            await caches.start(lambda _: None)

    with pytest.raises(RuntimeError, match="broken"):
        asyncio.run(start())
