"""An API server in memory, as the client sees it: versions, uids, owners, preconditions, lists and watches.

It has no controllers: what follows from a deletion or a Job is for a test to play. `asked` is the list of all writes.
The real server runs in the same suite; this one is for what has to be exact, or has to go wrong at a chosen moment.
"""

from __future__ import annotations

import asyncio
import copy
import json
import re
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import count
from typing import Any

from oarsman.engines.kube.client import (
    AlreadyExists,
    ApiError,
    Conflict,
    Listed,
    NotFound,
    PartialObject,
    Resource,
    WatchChange,
)
from oarsman.engines.kube.client import resources as kinds
from oarsman.engines.kube.client.codec import decode

Object = dict[str, Any]
Key = tuple[str, str, str]  # plural, namespace, name
Ask = tuple[str, str, str]  # verb, plural, name
CREATED_AT = datetime(2026, 1, 1, tzinfo=UTC)


class MemoryKube:
    def __init__(self) -> None:
        self.objects: dict[Key, Object] = {}
        self.asked: list[Ask] = []
        self.bodies: list[Object] = []
        self.preconditions: dict[Ask, str | None] = {}
        self.logs: dict[str, list[bytes] | ApiError] = {}
        self._trouble: list[tuple[Callable[[Ask], bool], Exception]] = []
        self._versions = count(1)
        self._version = 0
        self._history: list[tuple[int, str, str, Object]] = []
        self._news = asyncio.Event()

    # -- what a test does ---------------------------------------------------------------------------
    def add(self, resource: Resource, body: Mapping[str, Any], **meta: Any) -> Object:
        """An object that somebody else has made."""
        made = copy.deepcopy(dict(body))
        made["metadata"] = {**made.get("metadata", {}), **meta}
        return self._store(resource, made, "ADDED")

    def change(self, resource: Resource, name: str, namespace: str = "default", **parts: Any) -> Object:
        """Somebody else's edit: whole parts of the object, such as status=..., anew."""
        found = copy.deepcopy(self.objects[resource.plural, namespace, name])
        return self._store(resource, found | parts, "MODIFIED")

    def mark(self, resource: Resource, name: str, namespace: str = "default", **meta: Any) -> Object:
        found = self.objects[resource.plural, namespace, name]
        return self.change(resource, name, namespace, metadata={**found["metadata"], **meta})

    def vanish(self, resource: Resource, name: str, namespace: str = "default") -> None:
        gone = self.objects.pop((resource.plural, namespace, name))
        self._tell("DELETED", resource.plural, gone)

    def names(self, resource: Resource) -> list[str]:
        return sorted(name for plural, _, name in self.objects if plural == resource.plural)

    def one(self, resource: Resource, name: str, namespace: str = "default") -> Object:
        return self.objects[resource.plural, namespace, name]

    def writes(self, *verbs: str, of: Resource | None = None) -> list[Ask]:
        return [ask for ask in self.asked if (not verbs or ask[0] in verbs) and (of is None or ask[1] == of.plural)]

    @contextmanager
    def trouble(self, error: Exception, verb: str, resource: Resource, name: str = "") -> Iterator[None]:
        """Requests of this kind fail."""

        def hit(ask: Ask) -> bool:
            return ask[:2] == (verb, resource.plural) and name in ("", ask[2])

        entry = (hit, error)
        self._trouble.append(entry)
        try:
            yield
        finally:
            self._trouble.remove(entry)

    # -- the verbs ------------------------------------------------------------------------------------
    async def get(self, resource: Resource, name: str, namespace: str | None = None, *, view: Any = dict) -> Any:
        self._fail(("get", resource.plural, name))
        await asyncio.sleep(0)
        return _shown(self._found("get", resource, name, namespace), view)

    async def list(self, resource: Resource, namespace: str | None = None, *, view: Any = dict, **_: Any) -> Any:
        self._fail(("list", resource.plural, ""))
        return [_shown(found, view) for found in self._all(resource, namespace)]

    async def create(
        self, resource: Resource, body: Mapping[str, Any], namespace: str | None = None, *, view: Any = dict
    ) -> Any:
        namespace = namespace or body["metadata"].get("namespace", "")
        name = body["metadata"]["name"]
        self._note("create", resource, name, body)
        await asyncio.sleep(0)
        if (resource.plural, namespace, name) in self.objects:
            raise AlreadyExists(f"create {resource.plural}", f"{name} already exists", status=409)
        made = copy.deepcopy(dict(body))
        made["metadata"] = {**made["metadata"], "namespace": namespace}
        return _shown(self._store(resource, made, "ADDED"), view)

    async def replace(
        self,
        resource: Resource,
        name: str,
        body: Mapping[str, Any],
        namespace: str | None = None,
        *,
        subresource: str | None = None,
        view: Any = dict,
    ) -> Any:
        self._note("replace", resource, name, body)
        await asyncio.sleep(0)
        found = self._found("replace", resource, name, namespace)
        if body["metadata"].get("resourceVersion") not in (None, found["metadata"]["resourceVersion"]):
            raise Conflict(f"replace {name}", "the object has been modified", status=409)
        changed = copy.deepcopy(found)
        changed[subresource or "spec"] = copy.deepcopy(body[subresource or "spec"])
        return _shown(self._store(resource, changed, "MODIFIED"), view)

    async def patch(
        self,
        resource: Resource,
        name: str,
        body: Any,
        namespace: str | None = None,
        *,
        subresource: str | None = None,
        view: Any = dict,
        **_: Any,
    ) -> Any:
        self._note("patch", resource, name, body)
        await asyncio.sleep(0)
        found = self._found("patch", resource, name, namespace)
        asked = (body.get("metadata") or {}).get("resourceVersion")
        if asked not in (None, found["metadata"]["resourceVersion"]):
            raise Conflict(f"patch {name}", "the object has been modified", status=409)
        return _shown(self._store(resource, _merged(found, body), "MODIFIED"), view)

    async def delete(
        self, resource: Resource, name: str, namespace: str | None = None, *, uid: str | None = None, **_: Any
    ) -> bool:
        self._note("delete", resource, name, {})
        self.preconditions["delete", resource.plural, name] = uid
        await asyncio.sleep(0)
        found = self.objects.get((resource.plural, namespace or "", name))
        if found is None or (uid and found["metadata"]["uid"] != uid):
            return False
        self.vanish(resource, name, namespace or "")
        return True

    async def log(self, pod: str, namespace: str, **_: Any) -> AsyncGenerator[bytes, None]:
        found = self.logs.get(pod, [])
        if isinstance(found, ApiError):
            raise found
        for line in found:
            yield line

    async def pages(
        self, resource: Resource, namespace: str | None = None, *, labels: str = "", view: Any = dict, **_: Any
    ) -> AsyncGenerator[Listed[Any], None]:
        found = [_shown(o, view) for o in self._all(resource, namespace) if _selected(o, labels)]
        yield Listed(found, str(self._version), first=True)

    async def streams_lists(self) -> bool:
        return False

    async def watch(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        labels: str = "",
        since: str,
        view: Any = dict,
        opened: Callable[[], None] | None = None,
        **_: Any,
    ) -> AsyncGenerator[WatchChange[Any], None]:
        if opened:
            opened()
        told = int(since)
        while True:
            self._news.clear()
            for version, kind, plural, found in list(self._history):
                if version <= told or plural != resource.plural or not _selected(found, labels):
                    continue
                if namespace is None or found["metadata"].get("namespace") == namespace:
                    yield WatchChange(kind, _shown(found, view))  # type: ignore[arg-type]
            told = max([told, *(version for version, *_ in self._history)])
            await self._news.wait()

    # -- inside ---------------------------------------------------------------------------------------
    def _all(self, resource: Resource, namespace: str | None) -> list[Object]:
        found = ((ns, o) for (plural, ns, _), o in self.objects.items() if plural == resource.plural)
        return [o for ns, o in found if namespace in (None, ns)]

    def _found(self, verb: str, resource: Resource, name: str, namespace: str | None) -> Object:
        found = self.objects.get((resource.plural, namespace or "", name))
        if found is None:
            raise NotFound(f"{verb} {resource.plural}", f"{name} not found", status=404)
        return found

    def _note(self, verb: str, resource: Resource, name: str, body: Mapping[str, Any]) -> None:
        ask = (verb, resource.plural, name)
        self.asked.append(ask)
        self.bodies.append(copy.deepcopy(dict(body)))
        self._fail(ask)

    def _fail(self, ask: Ask) -> None:
        for hit, error in self._trouble:
            if hit(ask):
                raise error

    def _store(self, resource: Resource, body: Object, kind: str) -> Object:
        meta = body.setdefault("metadata", {})
        meta.setdefault("namespace", "default" if resource.namespaced else "")
        meta.setdefault("creationTimestamp", CREATED_AT.isoformat())
        self._version = next(self._versions)
        meta.setdefault("uid", f"{resource.plural}-{self._version}")
        meta["resourceVersion"] = str(self._version)
        self.objects[resource.plural, meta["namespace"], meta["name"]] = body
        self._tell(kind, resource.plural, body)
        return body

    def _tell(self, kind: str, plural: str, body: Object) -> None:
        if kind == "DELETED":
            self._version = next(self._versions)
        self._history.append((self._version, kind, plural, copy.deepcopy(body)))
        self._news.set()


def _selected(found: Object, labels: str) -> bool:
    """`labels`: conditions such as `name` and `name in (one,other)`."""
    there = found["metadata"].get("labels") or {}
    wanted = re.findall(r"([^\s,()]+)(?: in \((.*?)\))?(?:,|$)", labels)
    return all(name in there and (not values or there[name] in values.split(",")) for name, values in wanted)


def _shown(found: Object, view: Any) -> Any:
    return copy.deepcopy(found) if view is dict else decode("show", json.dumps(found).encode(), view)


def _merged(found: Any, patch: Any) -> Any:
    """A JSON merge patch."""
    if not isinstance(patch, Mapping):
        return copy.deepcopy(patch)
    result = copy.deepcopy(found) if isinstance(found, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = _merged(result.get(name), value)
    return result


def bring_up_to_date(kube: MemoryKube, caches: Any) -> None:
    """What the informers would have heard by now."""
    from oarsman.engines.kube import environments, views
    from oarsman.engines.kube.caches import OURS

    kept = (
        (kinds.MPIJOBS, caches.mpijobs, views.MPIJobView, ""),
        (kinds.PODS, caches.pods, views.Pod, OURS),
        (kinds.JOBS, caches.jobs, views.BatchJob, OURS),
        (kinds.SERVICES, caches.services, PartialObject, OURS),
        (kinds.CONFIG_MAPS, caches.config_maps, views.ConfigMap, OURS),
        (kinds.CONFIG_MAPS, caches.environments, views.ConfigMap, environments.LABEL),
        (kinds.JOBS, caches.builds, views.BatchJob, environments.LABEL),
    )
    for resource, informer, view, labels in kept:
        there = {
            (ns, name): found
            for (plural, ns, name), found in kube.objects.items()
            if plural == resource.plural and _selected(found, labels)
        }
        for item in informer.all():
            if (item.metadata.namespace, item.metadata.name) not in there:
                informer.drop(item.metadata.namespace, item.metadata.name, item.metadata.uid)
        for found in there.values():
            informer.put(_shown(found, view))
