"""What is watched: MPIJobs, the pods, Jobs and ConfigMaps that belong to one, and environments with their builds.

Nobody else's objects are kept.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeVar

from oarsman import names
from oarsman.engines.kube import environments, views
from oarsman.engines.kube.client import ApiError, HasMeta, Informer, Kube, PartialObject, Resource
from oarsman.engines.kube.client import resources as kinds
from oarsman.engines.kube.objects.common import OPERATOR_NAMES
from oarsman.engines.kube.objects.preparation import PodPreparation, commands_of
from oarsman.errors import RetryableError
from oarsman.job.job import Job
from oarsman.portal import running

V = TypeVar("V", bound=HasMeta)
# A selector: what belongs to an MPIJob, whatever its name. Kubeflow's other jobs have the first label as well.
OURS = f"{names.LABEL_JOB},{names.LABEL_OPERATOR} in ({','.join(sorted(OPERATOR_NAMES.values()))})"


class Caches:
    """`notify` is called with the key of a job ("namespace/name") whenever something about it changed."""

    def __init__(self, kube: Kube, namespaces: Sequence[str] = ()) -> None:
        self._kube = kube
        self._notify: Callable[[str], None] = lambda _: None

        def follow(resource: Resource, view: type[V], changed: Callable[[Any], None], **given: Any) -> Informer[V]:
            def heard(old: V | None, new: V | None) -> None:
                if old is None or new is None or views.differ(old, new):
                    changed(new or old)

            return Informer(kube, resource, view, namespaces=namespaces, changed=heard, stream=True, **given)

        attached = environments.LABEL
        self.mpijobs = follow(kinds.MPIJOBS, views.MPIJobView, lambda job: self._notify(job.key))
        self.pods = follow(kinds.PODS, views.Pod, self._child_changed, index=_key, labels=OURS)
        self.jobs = follow(kinds.JOBS, views.BatchJob, self._child_changed, labels=OURS)
        self.services = follow(kinds.SERVICES, PartialObject, self._child_changed, labels=OURS)
        self.config_maps = follow(kinds.CONFIG_MAPS, views.ConfigMap, self._child_changed, labels=OURS)
        self.environments = follow(kinds.CONFIG_MAPS, views.ConfigMap, self._environment_changed, labels=attached)
        self.builds = follow(kinds.JOBS, views.BatchJob, self._environment_changed, labels=attached)
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def _informers(self) -> tuple[Informer[Any], ...]:
        of_jobs = (self.mpijobs, self.pods, self.jobs, self.services, self.config_maps)
        return (*of_jobs, self.environments, self.builds)

    async def start(self, notify: Callable[[str], None]) -> None:
        """Follow, and return when everything that is there has been read once."""
        self._notify = notify
        # Jobs first: whatever a status says was made is then in the lists of what there is.
        self._tasks = [asyncio.create_task(self.mpijobs.run())]
        await self._synced(self.mpijobs)
        self._tasks += [asyncio.create_task(informer.run()) for informer in self._informers[1:]]
        for informer in self._informers:
            await self._synced(informer)

    async def _synced(self, informer: Informer[Any]) -> None:
        """Or what broke one of them, for which one would wait for ever."""
        async with running(informer.synced.wait()) as there:
            await asyncio.wait({*there, *self._tasks}, return_when=asyncio.FIRST_COMPLETED)
        for task in self._tasks:
            if task.done():
                task.result()

    async def follow(self) -> None:
        """Until one of them breaks, which it must not: without news every job would stand still unnoticed."""
        await asyncio.gather(*self._tasks)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []

    @property
    def synced(self) -> bool:
        return all(informer.synced.is_set() for informer in self._informers)

    @property
    def trouble(self) -> str | None:
        return next((informer.trouble for informer in self._informers if informer.trouble), None)

    def pods_of(self, job: Job) -> Collection[views.Pod]:
        return self.pods.of(job.key)

    def missing_environment(self, job: Job) -> str:
        """Why the job cannot run in the environment it names; empty if it can, or names none."""
        name = job.annotation(names.ANNOTATION_ENVIRONMENT)
        if not name:
            return ""
        found = self.environments.get(job.namespace, environments.object_name(name))
        digest = found.data.get(environments.DIGEST, "") if found is not None else ""
        build = self.builds.get(job.namespace, environments.build_name(name, digest))
        return environments.missing(name, found, build)

    def preparation(self, job: Job) -> PodPreparation:
        """As it is wanted now. Raises RetryableError while it cannot be."""
        if why := self.missing_environment(job):
            raise RetryableError(why)
        name = environments.object_name(job.annotation(names.ANNOTATION_ENVIRONMENT))
        found = self.environments.get(job.namespace, name)
        digest = found.data[environments.DIGEST] if found is not None else ""
        return PodPreparation(environment=digest, commands=commands_of(job))

    async def priorities(self) -> dict[str, int]:
        """Values of the priority classes, where we may know them."""
        try:
            found = await self._kube.list(kinds.PRIORITY_CLASSES)
        except ApiError:
            return {}
        return {item["metadata"]["name"]: int(item.get("value") or 0) for item in found}

    def _environment_changed(self, changed: HasMeta) -> None:
        about = changed.metadata.namespace, changed.metadata.labels.get(environments.LABEL)
        for job in self.mpijobs.all():
            if (job.metadata.namespace, job.metadata.annotations.get(names.ANNOTATION_ENVIRONMENT)) == about:
                self._notify(job.key)

    def _child_changed(self, child: HasMeta) -> None:
        key = _key(child)
        if key is not None:
            self._notify(key)


def _key(child: HasMeta) -> str | None:
    job = child.metadata.labels.get(names.LABEL_JOB)
    return f"{child.metadata.namespace}/{job}" if job else None
