"""Brings MPIJobs and their operator to a cluster, and takes them away again.

The objects are those of `deploy/oarsman.yaml`, which comes with the package. Doing it twice changes nothing.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from importlib import resources as packaged
from pathlib import Path
from typing import Any, Final

import yaml

from oarsman.engines.kube.client import Kube, NotFound, Resource, resources
from oarsman.errors import RetryableError, TerminalError, UnsupportedError
from oarsman.runtime.cluster import following

Document = dict[str, Any]
NAMESPACE: Final = "mpi-operator"  # the one the manifest is written for
_MANAGER: Final = "oarsman-install"
_APPLY_SINCE: Final = (1, 18)
_LABEL: Final = ("app.kubernetes.io/name", "oarsman")
_SECCOMP_SINCE: Final = (1, 19)
_KUBECTL_IMAGE: Final = "--kubectl-delivery-image="
_ESTABLISHED_SECONDS: Final = 60.0
_GONE_SECONDS: Final = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    namespace: str = NAMESPACE
    image: str | None = None
    kubectl_image: str | None = None  # brings kubectl to the launchers of v1 jobs
    watch: tuple[str, ...] = ()  # namespaces the operator looks after; none: all


@dataclass(frozen=True, slots=True)
class Step:
    """One object, and what became of it; or, without an object, how far a wait is."""

    what: str  # created, configured, unchanged, deleted, absent, kept, missing, waiting, ready
    object: str = ""
    detail: str = ""


def text() -> str:
    """As installed with the package, or as it lies in the source tree."""
    shipped = packaged.files("oarsman") / "deploy" / "oarsman.yaml"
    if shipped.is_file():
        return shipped.read_text("utf-8")
    source = Path(__file__).parents[4] / "deploy" / "oarsman.yaml"
    if source.is_file():
        return source.read_text("utf-8")
    raise TerminalError("this package lacks its manifests", hint="install oarsman anew")


def documents(settings: Settings, manifest: str | None = None) -> list[Document]:
    """Every object to apply, the definition of MPIJobs first and what needs the others last."""
    found = [one for one in yaml.load_all(manifest or text(), Loader=yaml.CSafeLoader) if one]
    placed = [_placed(copy.deepcopy(one), settings) for one in found]
    first = ("CustomResourceDefinition", "Namespace")
    return sorted(placed, key=lambda one: first.index(one["kind"]) if one["kind"] in first else len(first))


def _placed(document: Document, settings: Settings) -> Document:
    metadata = document["metadata"]
    if document["kind"] == "Namespace":
        metadata["name"] = settings.namespace
    elif "namespace" in metadata:
        metadata["namespace"] = settings.namespace
    for subject in document.get("subjects") or ():
        if "namespace" in subject:
            subject["namespace"] = settings.namespace
    if document["kind"] == "Deployment":
        container = document["spec"]["template"]["spec"]["containers"][0]
        container["image"] = settings.image or container["image"]
        args = [arg for arg in container.get("args") or () if not arg.startswith(("--lock-namespace=", "--namespace="))]
        args.insert(1, f"--lock-namespace={settings.namespace}")
        if settings.kubectl_image:
            args = [arg for arg in args if not arg.startswith(_KUBECTL_IMAGE)] + [
                _KUBECTL_IMAGE + settings.kubectl_image
            ]
        if settings.watch:
            args.append(f"--namespace={','.join(settings.watch)}")
        container["args"] = args
        _complete(container.get("ports") or ())
    if document["kind"] == "Service":
        _complete(document["spec"]["ports"])
    return document


def _complete(ports: Iterable[Document]) -> None:
    """Older servers do not fill in the protocol before they compare what is applied with what is there."""
    for port in ports:
        port.setdefault("protocol", "TCP")


# -- bringing ----------------------------------------------------------------------------------------
async def apply(kube: Kube, wanted: Sequence[Document]) -> AsyncGenerator[Step, None]:
    version = await kube.server_version()
    merges = version >= _APPLY_SINCE
    for document in wanted if version >= _SECCOMP_SINCE else [_without_seccomp(one) for one in wanted]:
        yield Step(await _apply(kube, document, merges), name_of(document))
        if document["kind"] == "CustomResourceDefinition":
            await _established(kube, document["metadata"]["name"])


def _without_seccomp(document: Document) -> Document:
    """Servers that do not know a field refuse what is applied with it."""
    if document["kind"] != "Deployment":
        return document
    document = copy.deepcopy(document)
    pod = document["spec"]["template"]["spec"]
    for holder in (pod, *pod["containers"]):
        (holder.get("securityContext") or {}).pop("seccompProfile", None)
    return document


async def _apply(kube: Kube, document: Document, merges: bool) -> str:
    resource, name, namespace = _address(document)
    before = await _found(kube, resource, name, namespace)
    if before is not None and "deletionTimestamp" in before["metadata"]:
        await _gone(kube, document)
        before = None
    if before is not None and document["kind"] == "Namespace" and not _labelled(before):
        return "unchanged"  # somebody else's: with our label on it, it would go with the operator
    if merges:
        after = await kube.patch(resource, name, document, namespace, kind="apply", field_manager=_MANAGER, force=True)
    elif before is None:
        after = await kube.create(resource, document)
    else:
        after = await kube.patch(resource, name, document, namespace, field_manager=_MANAGER)
    if before is None:
        return "created"
    return "unchanged" if _version(before) == _version(after) else "configured"


async def _gone(kube: Kube, document: Document) -> None:
    """What is being deleted has to go before it can come again."""
    resource, name, namespace = _address(document)
    try:
        async with asyncio.timeout(_GONE_SECONDS):
            async for _ in following.one(kube, resource, namespace, name):
                pass
    except TimeoutError as error:
        hint = f"kubectl get {name_of(document)} -o yaml shows what keeps it"
        raise RetryableError(f"{name_of(document)} is still being deleted", hint=hint) from error


async def _established(kube: Kube, name: str) -> None:
    try:
        async with asyncio.timeout(_ESTABLISHED_SECONDS):
            async with aclosing(following.one(kube, resources.CRDS, None, name)) as states:
                async for found in states:
                    conditions = {c["type"]: c for c in (found.get("status") or {}).get("conditions") or ()}
                    refused = conditions.get("NamesAccepted", {})
                    if refused.get("status") == "False":
                        raise UnsupportedError(f"the cluster does not take {name}: {refused.get('message')}")
                    if conditions.get("Established", {}).get("status") == "True":
                        return
    except TimeoutError as error:
        raise RetryableError(f"the cluster has not established {name} in time") from error


async def preview(kube: Kube, wanted: Sequence[Document]) -> AsyncGenerator[Step, None]:
    """What `apply` would find. Changes nothing."""
    for document in wanted:
        found = await _found(kube, *_address(document))
        yield Step("missing" if found is None else "present", name_of(document))


async def ready(kube: Kube, wanted: Sequence[Document], patience: float) -> AsyncGenerator[Step, None]:
    """Until every Deployment has its pods. Says how far it is whenever that changes."""
    for document in wanted:
        if document["kind"] != "Deployment":
            continue
        _, name, namespace = _address(document)
        said = ""
        deadline = asyncio.get_running_loop().time() + patience
        async with aclosing(following.one(kube, resources.DEPLOYMENTS, namespace, name)) as states:
            while True:
                try:
                    async with asyncio.timeout_at(deadline):
                        found = await anext(states)
                except (TimeoutError, StopAsyncIteration) as error:
                    why = await _trouble(kube, document)
                    raise RetryableError(
                        f"{name_of(document)} is not available" + (f": {why}" if why else ""),
                        hint=f"kubectl -n {namespace} describe pods",
                    ) from error
                available, replicas = _progress(found)
                if available >= replicas:
                    yield Step("ready", name_of(document), f"{available}/{replicas}")
                    break
                if (now := f"{available}/{replicas}") != said:
                    said = now
                    yield Step("waiting", name_of(document), now)


def _progress(deployment: Mapping[str, Any]) -> tuple[int, int]:
    """(pods of this very version that are available, pods wanted)."""
    status, replicas = deployment.get("status") or {}, deployment["spec"].get("replicas", 1)
    if status.get("observedGeneration", 0) < deployment["metadata"]["generation"]:
        return 0, replicas
    return min(status.get("availableReplicas", 0), status.get("updatedReplicas", 0)), replicas


async def _trouble(kube: Kube, deployment: Document) -> str:
    """What its pods wait for."""
    labels = ",".join(f"{name}={value}" for name, value in deployment["spec"]["selector"]["matchLabels"].items())
    for pod in await kube.list(resources.PODS, deployment["metadata"]["namespace"], labels=labels):
        status = pod.get("status") or {}
        for container in status.get("containerStatuses") or ():
            waiting = (container.get("state") or {}).get("waiting") or {}
            if waiting.get("reason") not in (None, "ContainerCreating", "PodInitializing"):
                return f"{waiting['reason']}: {waiting.get('message', '')}".rstrip(": ")
        for condition in status.get("conditions") or ():
            if condition["type"] == "PodScheduled" and condition["status"] == "False":
                return str(condition.get("message") or condition.get("reason") or "")
    return ""


# -- taking away -------------------------------------------------------------------------------------
async def remove(kube: Kube, wanted: Sequence[Document], *, with_definition: bool) -> AsyncGenerator[Step, None]:
    """In the opposite order. The definition, and with it every job, stays unless it is meant."""
    for document in reversed(wanted):
        resource, name, namespace = _address(document)
        definition = document["kind"] == "CustomResourceDefinition"
        shared = document["kind"] == "Namespace" and not await _ours_alone(kube, name)
        if shared or (definition and not with_definition):
            yield Step("kept", name_of(document))
        else:
            gone = await kube.delete(resource, name, namespace)
            yield Step("deleted" if gone else "absent", name_of(document))


async def _ours_alone(kube: Kube, name: str) -> bool:
    """Whether the namespace was made for the operator, no job lives in it and nothing else runs in it."""
    found = await _found(kube, resources.NAMESPACES, name, None)
    if found is None:
        return True  # deleting it says that it is not there
    if not _labelled(found):
        return False
    if any(not _labelled(pod) for pod in await kube.list(resources.PODS, name)):
        return False
    return not (await kube.has(resources.MPIJOBS) and await kube.list(resources.MPIJOBS, name))


def _labelled(found: Mapping[str, Any]) -> bool:
    label, value = _LABEL
    return bool((found["metadata"].get("labels") or {}).get(label) == value)


async def count_jobs(kube: Kube) -> int:
    return len(await kube.list(resources.MPIJOBS)) if await kube.has(resources.MPIJOBS) else 0


# -- objects -----------------------------------------------------------------------------------------
def name_of(document: Mapping[str, Any]) -> str:
    """As kubectl names it, with the namespace where there is one."""
    metadata = document["metadata"]
    place = f"{metadata['namespace']}/" if metadata.get("namespace") else ""
    return f"{document['kind'].lower()} {place}{metadata['name']}"


def _address(document: Mapping[str, Any]) -> tuple[Resource, str, str | None]:
    metadata = document["metadata"]
    try:
        resource = resources.for_document(document)
    except UnsupportedError:  # an object of the manifest that nothing else of ours deals with
        group, _, version = str(document["apiVersion"]).rpartition("/")
        kind = str(document["kind"])
        plural = kind.lower().removesuffix("y") + ("ies" if kind.endswith("y") else "s")
        resource = Resource(group, version, plural, kind, "namespace" in metadata)
    return resource, metadata["name"], metadata.get("namespace")


async def _found(kube: Kube, resource: Resource, name: str, namespace: str | None) -> Document | None:
    try:
        return await kube.get(resource, name, namespace)
    except NotFound:
        return None


def _version(found: Mapping[str, Any]) -> Any:
    return found["metadata"].get("resourceVersion")
