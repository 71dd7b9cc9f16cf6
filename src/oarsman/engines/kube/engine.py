"""The Kubernetes engine: sees through informers, acts through the API server.

Nothing here remembers what it did. What exists is read from the caches, which include our own writes at
once; every creation may find that the object is there already, and then checks that it is ours.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeVar

import msgspec

from oarsman import names
from oarsman.engines.contract import Assignment
from oarsman.engines.kube import views
from oarsman.engines.kube.caches import Caches
from oarsman.engines.kube.client import HasMeta, Informer, Kube, NotFound, PartialObject, Resource, errors
from oarsman.engines.kube.client import resources as kinds
from oarsman.engines.kube.objects import access, config_map, gang, secret, service
from oarsman.engines.kube.objects.common import KubeOptions, Object, owner
from oarsman.engines.kube.objects.launcher import BARRIER, launcher
from oarsman.engines.kube.objects.preparation import NOTHING, PodPreparation, barrier_seconds, recorded, wants_shim
from oarsman.engines.kube.objects.worker import worker
from oarsman.engines.kube.observe import JobObjects, end_unheard, launcher_pod, left_over, observe, retired
from oarsman.errors import RetryableError
from oarsman.job.job import Job, LauncherKind, Transport
from oarsman.job.observed import Observed, Phase
from oarsman.plan import actions
from oarsman.plan.policies.admission import taken
from oarsman.text.sentence import Text

log = logging.getLogger("oarsman")
_RETIRED_KEPT: Final = 5  # launchers of earlier attempts whose logs stay readable
_GRACE: Final = 10
_BARRIER_TAKES: Final = timedelta(seconds=10)  # when workers are up; what it says before that is of no interest
_OVER: Final = ("Failed", "Complete")
_TIMES_TO_LOOK, _BETWEEN_LOOKS = 100, 0.05  # for a Job controller to count a pod that has ended
_KUBELET_PAUSE: Final = 2.0  # until a changed file has reached its pod
Found = TypeVar("Found")
Seen = TypeVar("Seen", bound=HasMeta)


class KubeEngine:
    name = "kube"

    def __init__(self, kube: Kube, caches: Caches, options: KubeOptions) -> None:
        self._kube = kube
        self._caches = caches
        self._options = options
        self._conflicts: dict[str, tuple[Resource, str, str]] = {}  # uid of a job -> an object that is in its way
        self._refusals: dict[str, tuple[int, str]] = {}  # uid of a job -> generation, what the server finds wrong
        self._released: set[str] = set()  # uids of jobs whose PodGroup was taken away
        self._taken_over: dict[str, views.BatchJob | None] = {}  # uid of a job -> its launcher without labels of ours

    # -- the engine's contract ----------------------------------------------------------------------
    async def start(self, notify: Callable[[str], None]) -> None:
        await self._caches.start(notify)

    async def adopt(self, assignment: Assignment) -> None:
        """Nothing to do: everything is where the API server keeps it."""

    async def observe(self, assignment: Assignment) -> Observed:
        job = assignment.job
        await self._look_for_unlabelled(assignment)
        launcher_job = self._launcher_job(job)
        pods = await self._pods(assignment, launcher_job)
        config = self._whole_config(job)
        generation, refused = self._refusals.get(job.uid, (-1, ""))
        seen = JobObjects(
            status=assignment.status,
            pods=pods,
            launcher_job=launcher_job,
            config=config,
            has_service=self._own(self._caches.services.get(job.namespace, job.name), job) is not None,
            waits_for="" if config is not None else self._caches.missing_environment(job),
            conflict=await self._conflict(job),
            refused=refused if generation == job.generation else None,
            stop_requested=assignment.stop_requested,
            gang_asks=bool(gang.scheduler(job, self._options)) and job.uid not in self._released,
            # The barrier inside has the first word: it knows which host it is, and why.
            patience=timedelta(seconds=barrier_seconds(job, self._options) + _GRACE),
        )
        seen_now = observe(job, seen)
        if not self._stuck_at_the_barrier(seen_now, job):
            return seen_now
        pod = launcher_pod(job, pods, launcher_job)
        said = await self._last_word(pod) if pod is not None else ""
        return observe(job, replace(seen, barrier_says=said)) if said else seen_now

    async def apply(self, assignment: Assignment, action: actions.Action) -> None:
        job = assignment.job
        match action:
            case actions.Prepare():
                await self._prepare(job)
            case actions.PublishHosts(hosts):
                await self._publish(job, hosts)
            case actions.CreateWorker(index):
                await self._create_pod(job, worker(job, index, self._options, self._preparation(job)))
            case actions.DeleteWorker(index):
                pod = self._own(self._caches.pods.get(job.namespace, job.worker_host(index)), job)
                if pod is not None:
                    await self._delete_pod(pod)
            case actions.CreateLauncher(attempt):
                await self._create_launcher(job, attempt)
            case actions.DeleteLauncher():
                await self._delete_launcher(assignment)
            case actions.ReleaseGang():
                await self._release_gang(job)
            case actions.Dismantle():
                for name in (config_map.name(job), config_map.name_of_hosts(job)):
                    if (config := self._config(job, name)) is not None:
                        await self._delete(kinds.CONFIG_MAPS, self._caches.config_maps, config)

    async def forget(self, uid: str, *, keeps_log: bool = False) -> None:
        """What a job had goes with its MPIJob, which owns it."""
        self._conflicts.pop(uid, None)
        self._refusals.pop(uid, None)
        self._released.discard(uid)
        self._taken_over.pop(uid, None)

    async def close(self) -> None:
        await self._caches.close()

    # -- seeing ---------------------------------------------------------------------------------------
    def _launcher_job(self, job: Job) -> views.BatchJob | None:
        found = self._own(self._caches.jobs.get(job.namespace, job.launcher_host), job)
        return found if found is not None else self._taken_over.get(job.uid)

    async def _pods(self, assignment: Assignment, launcher_job: views.BatchJob | None) -> Collection[views.Pod]:
        """As they are cached. The verdict waits for no watch, so a launcher's end that was not heard of is asked for:
        its pod has the exit code and the last lines."""
        job = assignment.job
        if not assignment.status.finished and end_unheard(job, self._caches.pods_of(job), launcher_job):
            launchers = f"{names.LABEL_JOB}={job.name},{names.LABEL_ROLE}!=worker"
            for pod in await self._kube.list(kinds.PODS, job.namespace, view=views.Pod, labels=launchers):
                self._caches.pods.put(pod, tell=False)
        return self._caches.pods_of(job)

    async def _look_for_unlabelled(self, assignment: Assignment) -> None:
        """The mpi-operator's launcher Jobs have no labels to follow them by. A job that began before we knew of it may
        have one: it is asked for once, and then, should it be there, on every turn. Its pod tells when to have one."""
        job, status = assignment.job, assignment.status
        begun_before = job.uid not in self._taken_over and status.condition(names.CREATED) is not None
        known = self._taken_over.setdefault(job.uid, None)
        if status.finished or job.launcher_kind is LauncherKind.POD or not (known or begun_before):
            return
        if self._caches.jobs.get(job.namespace, job.launcher_host) is None:
            known = None
            with contextlib.suppress(NotFound):
                found = await self._kube.get(kinds.JOBS, job.launcher_host, job.namespace, view=views.BatchJob)
                known = self._own(found, job)
            self._taken_over[job.uid] = known

    def _config(self, job: Job, name: str = "") -> views.ConfigMap | None:
        return self._own(self._caches.config_maps.get(job.namespace, name or config_map.name(job)), job)

    def _whole_config(self, job: Job) -> views.ConfigMap | None:
        """With what a job of many hosts has in a second one."""
        found = self._config(job)
        if found is None or not recorded(found.data).many_hosts:
            return found
        hosts = self._config(job, config_map.name_of_hosts(job))
        return msgspec.structs.replace(found, data=found.data | (hosts.data if hosts is not None else {}))

    def _preparation(self, job: Job) -> PodPreparation:
        config = self._config(job)
        return recorded(config.data) if config is not None else NOTHING

    @staticmethod
    def _own(found: Seen | None, job: Job) -> Seen | None:
        controller = found.metadata.controller if found is not None else None
        return found if controller is not None and controller.uid == job.uid else None

    def _stuck_at_the_barrier(self, seen: Observed, job: Job) -> bool:
        launcher = seen.launcher
        if launcher is None or launcher.phase is not Phase.PENDING or launcher.waits_for_room:
            return False
        up = [worker.started_at for worker in seen.workers if worker.ready and worker.started_at is not None]
        return len(up) >= job.workers and all(at < datetime.now(UTC) - _BARRIER_TAKES for at in up)

    async def _last_word(self, pod: views.Pod) -> str:
        """What the start barrier waits for, where we may read logs; it is no reason to fail if not."""
        meta = pod.metadata
        try:
            lines = [line async for line in self._kube.log(meta.name, meta.namespace, container=BARRIER, tail=1)]
        except errors.ApiError:
            return ""
        return lines[-1].decode(errors="replace").removeprefix("oarsman: waiting for ") if lines else ""

    async def _conflict(self, job: Job) -> str | None:
        """An object in the way, unless it has gone meanwhile."""
        known = self._conflicts.get(job.uid)
        if known is None:
            return None
        resource, name, what = known
        with contextlib.suppress(NotFound):
            found = await self._kube.get(resource, name, job.namespace, view=PartialObject)
            if self._own(found, job) is None and found.metadata.deletion_timestamp is None:
                return what
        self._conflicts.pop(job.uid, None)
        return None

    # -- creating ---------------------------------------------------------------------------------------
    async def _obtain(self, job: Job, resource: Resource, body: Mapping[str, Any], view: type[Found]) -> Found:
        """Create it, or find that it is there and ours."""
        try:
            return await self._kube.create(resource, body, job.namespace, view=view)
        except errors.AlreadyExists:
            found = await self._kube.get(resource, body["metadata"]["name"], job.namespace, view=view)
        except errors.Invalid as error:
            if not error.final:
                raise
            causes = (f"{cause.field}: {cause.message}" if cause.field else cause.message for cause in error.causes)
            why = "; ".join(causes) or error.message
            refused = Text("the API server refuses the {kind}: {why}", kind=resource.kind, why=why)
            self._refusals[job.uid] = (job.generation, refused)
            raise RetryableError(str(error)) from error
        self._check_own(job, resource, found)
        return found

    def _check_own(self, job: Job, resource: Resource, found: Any) -> None:
        """What is left of an earlier job of the same name goes by itself; anything else is for people to sort out."""
        meta = msgspec.convert(found, PartialObject).metadata if isinstance(found, dict) else found.metadata
        owner, kind, name = meta.controller, resource.kind, meta.name
        if owner is not None and owner.uid == job.uid:
            return
        earlier = owner is not None and (owner.kind, owner.name) == (names.KIND, job.name)
        if earlier or meta.deletion_timestamp is not None:
            raise RetryableError(Text("{kind} {name} of an earlier job is still going away", kind=kind, name=name))
        what = Text('"{name}" of Kind "{kind}"', name=name, kind=kind)
        self._conflicts[job.uid] = (resource, name, what)
        raise RetryableError(taken(what))

    async def _ensure(
        self, job: Job, resource: Resource, body: Mapping[str, Any], part: str | None = None
    ) -> dict[str, Any]:
        """Create it, or bring `part` of what is there to what it should be."""
        found = await self._obtain(job, resource, body, dict[str, Any])
        change = {part: body[part]} if part is not None and not _covers(found.get(part), body[part]) else {}
        labels = body["metadata"]["labels"]  # another operator's have none to follow them by
        if not _covers(found["metadata"].get("labels"), labels):
            change["metadata"] = {"labels": labels}
        if change:
            found = await self._kube.patch(resource, body["metadata"]["name"], change, job.namespace)
        return found

    async def _prepare(self, job: Job) -> None:
        wanted: list[Awaitable[Any]] = [self._serve(job)]
        if job.transport is Transport.SSH:
            wanted += [self._keys(job, shard) for shard in secret.shards(job)]
        else:
            wanted.append(self._rights(job))
        if gang.scheduler(job, self._options):
            wanted.append(self._pod_group(job))
        # Together; the first trouble is raised when all have ended, so that nothing goes on unseen.
        for outcome in await asyncio.gather(*wanted, return_exceptions=True):
            if isinstance(outcome, BaseException):
                raise outcome

    async def _serve(self, job: Job) -> None:
        found = await self._ensure(job, kinds.SERVICES, service.service(job), "spec")
        self._caches.services.put(msgspec.convert(found, PartialObject))

    async def _keys(self, job: Job, shard: int) -> None:
        """Keys are made once and kept; workers that come later get theirs added."""
        name = secret.shard_name(job, shard)
        found: dict[str, Any] | None = None
        if self._caches.config_maps.get(job.namespace, config_map.name(job)) is not None:  # else the job only begins
            with contextlib.suppress(NotFound):
                found = await self._kube.get(kinds.SECRETS, name, job.namespace)
        if found is None:
            data = await asyncio.to_thread(secret.missing, job, shard, {})
            found = await self._obtain(job, kinds.SECRETS, secret.secret(job, shard, data), dict[str, Any])
        self._check_own(job, kinds.SECRETS, found)
        added = await asyncio.to_thread(secret.missing, job, shard, found.get("data") or {})
        if added:
            version = {"metadata": {"resourceVersion": found["metadata"]["resourceVersion"]}}
            await self._kube.patch(kinds.SECRETS, name, {"data": added, **version}, job.namespace)

    async def _rights(self, job: Job) -> None:
        if access.account_name(job) == job.launcher_host:
            await self._ensure(job, kinds.SERVICE_ACCOUNTS, access.service_account(job))
        await self._ensure(job, kinds.ROLES, access.role(job), "rules")
        await self._ensure(job, kinds.ROLE_BINDINGS, access.role_binding(job), "subjects")

    async def _pod_group(self, job: Job) -> None:
        self._released.discard(job.uid)
        resource = gang.resource(gang.scheduler(job, self._options))
        wanted = gang.pod_group(job, self._options, await self._caches.priorities())
        try:
            found = await self._ensure(job, resource, wanted)
        except NotFound as error:
            if await self._kube.has(resource):
                raise
            message = Text("the cluster has no PodGroups of {version}, for gangs", version=resource.api_version)
            raise NotFound(error.trying, message, status=error.status) from error
        if gang.differs(wanted, found):
            await self._kube.patch(resource, job.name, gang.correction(wanted, found), job.namespace)

    async def _publish(self, job: Job, hosts: tuple[str, ...]) -> None:
        known = self._whole_config(job)
        before = config_map.published(known.data) if known is not None else ()
        preparation = self._preparation(job)
        if known is None:
            preparation = replace(self._caches.preparation(job), many_hosts=config_map.has_many_hosts(job))
            preparation = replace(preparation, shim=wants_shim(job), ends_ranks=wants_shim(job))
        changed = None
        for wanted in config_map.config_maps(job, hosts, self._options, preparation):
            changed = await self._bring(job, wanted) or changed
        if changed is not None and known is not None:
            await self._refresh_mounted_hosts(job, changed, fewer=bool(set(before) - set(hosts)))

    async def _bring(self, job: Job, wanted: Object) -> views.ConfigMap | None:
        """A ConfigMap to what is wanted; None if it was so already."""
        cache = self._caches.config_maps
        known = cache.get(job.namespace, wanted["metadata"]["name"])
        if known is None:
            known = await self._obtain(job, kinds.CONFIG_MAPS, wanted, views.ConfigMap)
            cache.put(known)
        self._check_own(job, kinds.CONFIG_MAPS, known)
        labels = wanted["metadata"]["labels"]  # another operator's has none to follow it by
        if known.data == wanted["data"] and labels.items() <= known.metadata.labels.items():
            return None
        change = {"data": wanted["data"], "metadata": {"labels": labels}}
        return await self._patch(kinds.CONFIG_MAPS, cache, known, change)

    async def _refresh_mounted_hosts(self, job: Job, config: views.ConfigMap, *, fewer: bool) -> None:
        """A kubelet looks at mounted files about once a minute, but at once when the pod itself changes."""
        pod = launcher_pod(job, self._caches.pods_of(job), self._launcher_job(job))
        if pod is None or pod.metadata.deletion_timestamp is not None or _ended(pod):
            return
        mark = {"metadata": {"annotations": {names.ANNOTATION_HOSTS: config.metadata.resource_version}}}
        try:
            await self._patch(kinds.PODS, self._caches.pods, pod, mark)
        except NotFound:
            return
        if fewer and pod.status.phase == "Running":
            await asyncio.sleep(_KUBELET_PAUSE)  # whoever reads the list must not find a host that is already going

    async def _create_launcher(self, job: Job, attempt: int) -> None:
        body = launcher(job, attempt, self._options, self._preparation(job))
        if job.launcher_kind is LauncherKind.POD:
            await self._create_pod(job, body)
            return
        found = await self._obtain(job, kinds.JOBS, body, views.BatchJob)
        self._caches.jobs.put(found)
        if found.metadata.annotations.get(names.ANNOTATION_ATTEMPT) != str(attempt):
            raise RetryableError(Text("{name} of an earlier attempt is still going away", name=job.launcher_host))

    async def _create_pod(self, job: Job, body: Mapping[str, Any]) -> None:
        """What we created is in the cache before anybody looks again."""
        found = await self._obtain(job, kinds.PODS, body, views.Pod)
        self._caches.pods.put(found)
        if found.metadata.deletion_timestamp is not None:
            raise RetryableError(Text("{name} is still going away", name=found.metadata.name))

    async def _patch(self, resource: Resource, cache: Informer[Seen], known: Seen, body: Mapping[str, Any]) -> Seen:
        """What came of it is in the cache before anybody looks again; so is that it is gone, which is raised."""
        meta = known.metadata
        try:
            changed = await self._kube.patch(resource, meta.name, body, meta.namespace, view=type(known))
        except NotFound:
            cache.drop(meta.namespace, meta.name, meta.uid)
            raise
        cache.put(changed)
        return changed

    # -- deleting ---------------------------------------------------------------------------------------
    async def _delete_launcher(self, assignment: Assignment) -> None:
        job = assignment.job
        pods = self._caches.pods_of(job)
        found = self._launcher_job(job)
        pod = launcher_pod(job, pods, found)
        over = assignment.status.finished or job.run_policy.suspend or assignment.stop_requested
        kept = False
        if found is not None:
            if pod is not None and not over and _all_ended(pod) and await self._counted(job):
                kept = await self._retire(job, pod, pods)
            await self._delete(kinds.JOBS, self._caches.jobs, found)
            self._caches.jobs.drop(job.namespace, found.metadata.name, found.metadata.uid)
            self._taken_over[job.uid] = None
        going = [None if kept else pod, left_over(job, pods, assignment.status) if found is None else None]
        going += retired(job, pods) if over else []
        for each in filter(None, going):
            await self._delete_pod(each)

    async def _counted(self, job: Job) -> bool:
        """Whether the Job knows that its pod has ended. One that loses it before that would make another."""
        for _ in range(_TIMES_TO_LOOK):
            found = self._launcher_job(job)
            if found is None or any(c.type in _OVER and c.status == "True" for c in found.status.conditions):
                return found is not None
            await asyncio.sleep(_BETWEEN_LOOKS)
        return False

    async def _retire(self, job: Job, pod: views.Pod, pods: Collection[views.Pod]) -> bool:
        """Hand a finished launcher to the MPIJob itself, so that its log outlives its Job."""
        if pod.metadata.deletion_timestamp is not None:
            return False
        body = {"metadata": {"ownerReferences": [owner(job)], "uid": pod.metadata.uid}}
        try:
            await self._patch(kinds.PODS, self._caches.pods, pod, body)
        except NotFound:
            return False
        for old in retired(job, pods)[:-_RETIRED_KEPT]:
            await self._delete_pod(old)
        return True

    async def _delete(self, resource: Resource, cache: Informer[Seen], known: Seen) -> None:
        meta = known.metadata
        if not await self._kube.delete(resource, meta.name, meta.namespace, uid=meta.uid):
            cache.drop(meta.namespace, meta.name, meta.uid)

    async def _delete_pod(self, pod: views.Pod) -> None:
        if pod.metadata.deletion_timestamp is None:
            await self._delete(kinds.PODS, self._caches.pods, pod)

    async def _release_gang(self, job: Job) -> None:
        resource = gang.resource(gang.scheduler(job, self._options))
        with contextlib.suppress(NotFound):
            found = await self._kube.get(resource, job.name, job.namespace, view=PartialObject)
            if self._own(found, job) is not None:
                await self._kube.delete(resource, job.name, job.namespace, uid=found.metadata.uid)
        self._released.add(job.uid)


def _ended(pod: views.Pod) -> bool:
    return pod.status.phase in ("Succeeded", "Failed")


def _all_ended(pod: views.Pod) -> bool:
    """Also where its node says so of the containers first, and of the pod when it has cleaned up."""
    states = [container.state for container in pod.status.container_statuses]
    return _ended(pod) or (bool(states) and all(state.terminated is not None for state in states))


def _covers(found: Any, wanted: Any) -> bool:
    """Whether everything wanted is there; what others or the server added does not matter."""
    if isinstance(wanted, Mapping):
        return isinstance(found, Mapping) and all(_covers(found.get(key), value) for key, value in wanted.items())
    return bool(found == wanted)
