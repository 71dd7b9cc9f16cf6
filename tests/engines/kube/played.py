"""A real API server and the operator, with the kubelet played: pods become what a test says they become."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from cluster.cluster import Cluster

from oarsman.control.health import Metrics, Turns
from oarsman.control.operator import Operator
from oarsman.control.operator_settings import OperatorSettings
from oarsman.engines.kube.client import AlreadyExists, Kube, NotFound, load_access
from oarsman.engines.kube.client import resources as kinds

from .kube_jobs import document

Object = dict[str, Any]
PATIENCE = 180.0
ROLE = "training.kubeflow.org/job-role"


async def until(wanted: Callable[[], Awaitable[bool]], what: str) -> None:
    try:
        async with asyncio.timeout(PATIENCE):
            while True:
                if await wanted():
                    return
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise AssertionError(f"waited in vain: {what}") from None


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Kubelet:
    """Plays what happens to pods. A server without a Job controller gets its launcher pods from here, too."""

    def __init__(self, kube: Kube, namespace: str) -> None:
        self.kube = kube
        self.namespace = namespace

    async def pods(self, role: str) -> list[Object]:
        found: list[Object] = await self.kube.list(
            kinds.PODS, self.namespace, labels=f"{ROLE} in ({role}{',master' if role == 'launcher' else ''})"
        )
        return sorted(found, key=lambda pod: str(pod["metadata"]["name"]))

    async def launcher(self) -> Object | None:
        """The pod of the present launcher."""
        jobs = await self.kube.list(kinds.JOBS, self.namespace)
        uids = {job["metadata"]["uid"] for job in jobs}
        for pod in await self.pods("launcher"):
            owners = {owner["uid"] for owner in pod["metadata"].get("ownerReferences", ())}
            if owners & uids or (not jobs and pod["metadata"]["name"].endswith("-launcher")):
                return pod
        return await self._controller(jobs[0]) if jobs else None

    async def _controller(self, job: Object) -> Object | None:
        """What the Job controller does; where there is one, it was quicker or will find ours."""
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": job["metadata"]["name"], "controller": True}
        meta = {
            **job["spec"]["template"]["metadata"],
            "name": f"{job['metadata']['name']}-{job['metadata']['uid'][:5]}",
            "ownerReferences": [{**owner, "uid": job["metadata"]["uid"], "blockOwnerDeletion": True}],
        }
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": job["spec"]["template"]["spec"]}
        if await self._has_controller():
            return None
        with contextlib.suppress(AlreadyExists):
            return await self.kube.create(kinds.PODS, body, self.namespace)
        return None

    async def _has_controller(self) -> bool:
        """Its mark is the service account it makes in every namespace."""
        accounts = await self.kube.list(kinds.SERVICE_ACCOUNTS, self.namespace)
        return any(account["metadata"]["name"] == "default" for account in accounts)

    async def set(self, name: str, status: Object) -> None:
        with contextlib.suppress(NotFound):
            await self.kube.patch(kinds.PODS, name, {"status": status}, self.namespace, subresource="status")

    async def run(self, name: str, *, ready: bool = True) -> None:
        conditions = [
            {"type": "PodScheduled", "status": "True", "lastTransitionTime": _now()},
            {"type": "Ready", "status": str(ready), "lastTransitionTime": _now()},
        ]
        await self.set(name, {"phase": "Running", "conditions": conditions, "containerStatuses": [_mpi(running={})]})

    async def end(self, name: str, code: int, message: str = "") -> None:
        ended = {"exitCode": code, "finishedAt": _now(), "startedAt": _now(), "message": message}
        phase = "Failed" if code else "Succeeded"
        await self.set(name, {"phase": phase, "containerStatuses": [_mpi(terminated=ended)]})

    async def workers_run(self, count: int = 2, *, ready: bool = True) -> None:
        async def there() -> bool:
            return len(await self.pods("worker")) == count

        await until(there, f"{count} workers")
        for pod in await self.pods("worker"):
            await self.run(pod["metadata"]["name"], ready=ready)

    async def launcher_named(self, but: str = "") -> str:
        found: list[str] = []

        async def there() -> bool:
            pod = await self.launcher()
            if pod is not None and pod["metadata"]["name"] != but:
                found.append(pod["metadata"]["name"])
            return bool(found)

        await until(there, "a launcher")
        return found[0]


def _mpi(**state: Object) -> Object:
    if "running" in state:
        state = {"running": {"startedAt": _now()}}
    return {
        "name": "mpi",
        "image": "pi",
        "imageID": "",
        "ready": "running" in state,
        "restartCount": 0,
        "state": state,
    }


class Stage:
    """A namespace in which the operator works."""

    def __init__(self, kube: Kube, namespace: str, settings: OperatorSettings) -> None:
        self.kube = kube
        self.namespace = namespace
        self.kubelet = Kubelet(kube, namespace)
        self.metrics = Metrics(process=False)
        self._ahead = timedelta(0)
        self.operator = Operator(kube, settings, self.metrics, Turns(), now=lambda: datetime.now(UTC) + self._ahead)

    def advance(self, seconds: float) -> None:
        """Time goes by for the operator."""
        self._ahead += timedelta(seconds=seconds)
        self.operator.queue.add(f"{self.namespace}/pi")

    async def submit(self, **given: Any) -> None:
        body = document(namespace=self.namespace, **given)
        for field in ("uid", "generation", "creationTimestamp"):
            del body["metadata"][field]
        resource = kinds.MPIJOBS_V1 if body["apiVersion"].endswith("/v1") else kinds.MPIJOBS
        await self.kube.create(resource, body, self.namespace)

    async def edit(self, patch: Object) -> None:
        await self.kube.patch(kinds.MPIJOBS, "pi", {"spec": patch}, self.namespace)

    async def job(self) -> Object:
        return await self.kube.get(kinds.MPIJOBS, "pi", self.namespace)

    async def status(self) -> Object:
        found: Object = (await self.job()).get("status") or {}
        return found

    async def is_true(self, type_: str, status: str = "True") -> bool:
        conditions = (await self.status()).get("conditions", ())
        return any(c["type"] == type_ and c["status"] == status for c in conditions)

    async def until_true(self, type_: str, status: str = "True") -> None:
        await until(lambda: self.is_true(type_, status), f"{type_} is {status}")

    async def active(self) -> int:
        """As Kueue adds it up."""
        return sum(role.get("active", 0) for role in (await self.status())["replicaStatuses"].values())

    async def until_active(self, count: int) -> None:
        async def there() -> bool:
            return await self.active() == count

        await until(there, f"{count} pods are active")

    async def events(self) -> list[str]:
        found = await self.kube.list(kinds.EVENTS, self.namespace)
        mine = [e for e in found if e["involvedObject"].get("kind") == "MPIJob"]
        return [e["reason"] for e in sorted(mine, key=lambda e: str(e["metadata"]["name"]))]

    async def names(self, resource: Any) -> list[str]:
        return sorted(o["metadata"]["name"] for o in await self.kube.list(resource, self.namespace))

    async def until_pods_are(self, *names: str) -> None:
        async def there() -> bool:
            return await self.names(kinds.PODS) == sorted(names)

        await until(there, f"the pods are {names}")


@asynccontextmanager
async def stage(served: Cluster, namespace: str, **settings: Any) -> AsyncIterator[Stage]:
    given = OperatorSettings(namespaces=(namespace,), threadiness=2, shutdown_seconds=2, **settings)
    async with Kube(load_access(kubeconfig=served.kubeconfig)) as kube:
        found = Stage(kube, namespace, given)
        work = asyncio.create_task(found.operator.run())
        try:
            yield found
            assert not work.done(), "the operator has ended"
        finally:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)
