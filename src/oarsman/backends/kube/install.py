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

from oarsman.backends.kube import follow
from oarsman.control.operator_settings import LEASE_NAME
from oarsman.engines.kube.client import Kube, NotFound, Resource, resources
from oarsman.errors import ConflictError, RetryableError, TerminalError, UnsupportedError
from oarsman.text.sentence import Text

Document = dict[str, Any]
NAMESPACE: Final = "mpi-operator"  # the one the manifest is written for
_MANAGER: Final = "oarsman-install"
_APPLY_SINCE: Final = (1, 18)
_LABEL: Final = ("app.kubernetes.io/name", "oarsman")
_SECCOMP_SINCE: Final = (1, 19)
_RULES_SINCE: Final = (1, 23)
_SELECTABLE_SINCE: Final = (1, 30)
_KUBECTL_IMAGE: Final = "--kubectl-delivery-image="
_ESTABLISHED_SECONDS: Final = 120.0
_GONE_SECONDS: Final = 300.0  # kubelets take half a minute for a pod that has ended, and longer when they are busy
_LOOK_SECONDS: Final = 5.0  # between two looks at what pods wait for
_MANAGED_BY: Final = "app.kubernetes.io/managed-by"
_RELEASE: Final = ("meta.helm.sh/release-name", "meta.helm.sh/release-namespace")
_NO_IMAGE: Final = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull")


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallSettings:
    namespace: str = NAMESPACE
    image: str | None = None
    kubectl_image: str | None = None  # brings kubectl to the launchers of v1 jobs
    watch: tuple[str, ...] = ()  # namespaces the operator looks after; none: all


@dataclass(frozen=True, slots=True)
class InstallStep:
    """One object, and what became of it; or, without an object, how far a wait is."""

    what: str  # created, configured, unchanged, deleted, absent, kept, missing, waiting, stuck, ready
    object: str = ""
    detail: str = ""

    @property
    def no_image(self) -> bool:
        """Whether it waits for an image that cannot be had."""
        return self.what == "stuck" and self.detail.startswith(_NO_IMAGE)


def text() -> str:
    """As installed with the package, or as it lies in the source tree."""
    shipped = packaged.files("oarsman") / "deploy" / "oarsman.yaml"
    for file in (shipped, Path(__file__).parents[4] / "deploy" / "oarsman.yaml"):
        if file.is_file():
            return file.read_text("utf-8")
    raise TerminalError(Text("this package lacks its manifests"), hint=Text("install oarsman anew"))


def documents(settings: InstallSettings, manifest: str | None = None) -> list[Document]:
    """Every object to apply, the definition of MPIJobs first and what needs the others last."""
    found = [one for one in yaml.load_all(manifest or text(), Loader=yaml.CSafeLoader) if one]
    placed = [_placed(copy.deepcopy(one), settings) for one in found]
    first = ("CustomResourceDefinition", "Namespace")
    return sorted(placed, key=lambda one: first.index(one["kind"]) if one["kind"] in first else len(first))


def _placed(document: Document, settings: InstallSettings) -> Document:
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
            args = [arg for arg in args if not arg.startswith(_KUBECTL_IMAGE)]
            args.append(_KUBECTL_IMAGE + settings.kubectl_image)
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
async def apply(kube: Kube, wanted: Sequence[Document], *, force: bool = False) -> AsyncGenerator[InstallStep, None]:
    """`force` takes over what belongs to a Helm release."""
    if not force:
        await _refuse_helms(kube, wanted, "helm upgrade")
    version = await kube.server_version()
    merges = version >= _APPLY_SINCE
    for document in (_as_known(one, version) for one in wanted):
        yield InstallStep(await _apply(kube, document, merges), name_of(document))
        if document["kind"] == "CustomResourceDefinition":
            await _established(kube, document["metadata"]["name"])


def _as_known(document: Document, version: tuple[int, int]) -> Document:
    """Servers that do not know a field refuse what is applied with it."""
    document = copy.deepcopy(document)
    if document["kind"] == "Deployment" and version < _SECCOMP_SINCE:
        pod = document["spec"]["template"]["spec"]
        for holder in (pod, *pod["containers"]):
            (holder.get("securityContext") or {}).pop("seccompProfile", None)
    if document["kind"] == "CustomResourceDefinition":
        for served in document["spec"]["versions"]:
            schema = served["schema"]["openAPIV3Schema"]
            if version < _SELECTABLE_SINCE:
                served.pop("selectableFields", None)
            for part in (schema, schema["properties"]["spec"]) if version < _RULES_SINCE else ():
                part.pop("x-kubernetes-validations", None)
    return document


async def _apply(kube: Kube, document: Document, merges: bool) -> str:
    resource, name, namespace = _address(document)
    before = await _found(kube, resource, name, namespace)
    if before is not None and _leaves(before):
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
    if _release(before) is not None:
        await _take_from_helm(kube, document)
        return "configured"
    return "unchanged" if _said_of(before, document) == _said_of(after, document) else "configured"


async def _gone(kube: Kube, document: Document) -> None:
    """What is being deleted has to go before it can come again."""
    resource, name, namespace = _address(document)
    try:
        async with asyncio.timeout(_GONE_SECONDS):
            async for _ in follow.one(kube, resource, namespace, name):
                pass
    except TimeoutError as error:
        what = name_of(document)
        hint = Text("{command} shows what keeps it", command=f"kubectl get {what} -o yaml")
        raise RetryableError(Text("{what} is still being deleted", what=what), hint=hint) from error


async def _established(kube: Kube, name: str) -> None:
    try:
        async with asyncio.timeout(_ESTABLISHED_SECONDS):
            async with aclosing(follow.one(kube, resources.CRDS, None, name)) as states:
                async for found in states:
                    conditions = {c["type"]: c for c in (found.get("status") or {}).get("conditions") or ()}
                    refused = conditions.get("NamesAccepted", {})
                    if refused.get("status") == "False":
                        why = refused.get("message")
                        raise UnsupportedError(Text("the cluster does not take {name}: {why}", name=name, why=why))
                    if conditions.get("Established", {}).get("status") == "True":
                        return
    except TimeoutError as error:
        raise RetryableError(Text("the cluster has not established {name} in time", name=name)) from error


# -- what belongs to Helm ----------------------------------------------------------------------------
async def _refuse_helms(kube: Kube, wanted: Sequence[Document], instead: str) -> None:
    """Two who bring the same objects undo each other's work. The definition is nobody's: Helm never changes it. The
    namespace stays when a release goes, with its name on it."""
    for document in wanted:
        if document["kind"] in ("CustomResourceDefinition", "Namespace"):
            continue
        found = await _found(kube, *_address(document))
        release = _release(found) if found is not None else None
        if release is not None:
            name, place = release
            what, where = name_of(document), f" --namespace {place}" if place else ""
            wrong = Text("{what} belongs to the Helm release {name}", what=what, name=name)
            if place:
                template = Text("{what} belongs to the Helm release {name} in {space}")
                wrong = Text(template, what=what, name=name, space=place)
            hint = Text("{command}; --force does it here anyway", command=f"{instead} {name}{where}")
            raise ConflictError(wrong, hint=hint)


def _release(found: Mapping[str, Any]) -> tuple[str, str] | None:
    """(name, namespace) of the Helm release the object belongs to."""
    metadata = found["metadata"]
    if (metadata.get("labels") or {}).get(_MANAGED_BY) != "Helm":
        return None
    name, place = ((metadata.get("annotations") or {}).get(key) or "" for key in _RELEASE)
    return name or "of an unknown name", place


async def _take_from_helm(kube: Kube, document: Document) -> None:
    """Without Helm's marks, so that the next time nobody has to be asked."""
    resource, name, namespace = _address(document)
    labels = document["metadata"].get("labels") or {}
    marks = {"labels": {_MANAGED_BY: labels.get(_MANAGED_BY)}, "annotations": dict.fromkeys(_RELEASE)}
    await kube.patch(resource, name, {"metadata": marks}, namespace, field_manager=_MANAGER)


# -- looking -----------------------------------------------------------------------------------------
async def preview(kube: Kube, wanted: Sequence[Document], *, force: bool = False) -> AsyncGenerator[InstallStep, None]:
    """What `apply` would find. Changes nothing."""
    if not force:
        await _refuse_helms(kube, wanted, "helm upgrade")
    leaving: set[str] = set()  # namespaces that are being deleted, with all that is in them
    for document in wanted:
        resource, name, namespace = _address(document)
        found = await _found(kube, resource, name, namespace)
        stays = found is not None and not _leaves(found) and (namespace or "") not in leaving
        if document["kind"] == "Namespace" and not stays:
            leaving.add(name)
        yield InstallStep("present" if stays else "missing", name_of(document))


async def ready(kube: Kube, wanted: Sequence[Document], patience: float) -> AsyncGenerator[InstallStep, None]:
    """Until every Deployment has its pods. Says how far it is, and what keeps it, whenever that changes."""
    for document in wanted:
        if document["kind"] != "Deployment":
            continue
        _, name, namespace = _address(document)
        deadline = asyncio.get_running_loop().time() + patience
        said: set[str] = set()
        async with aclosing(_states(kube, namespace, name, deadline)) as states:
            async for found in states:
                if found is None:  # nothing new for a while
                    why = await _trouble(kube, document)
                    if why and why not in said:
                        said.add(why)
                        yield InstallStep("stuck", name_of(document), why)
                    continue
                available, replicas = _progress(found)
                if available >= replicas:
                    yield InstallStep("ready", name_of(document), f"{available}/{replicas}")
                    break
                if (now := f"{available}/{replicas}") not in said:
                    said.add(now)
                    yield InstallStep("waiting", name_of(document), now)
            else:
                why = await _trouble(kube, document)
                hint = f"kubectl -n {namespace} describe pods"
                if why.startswith(_NO_IMAGE):
                    command = "oarsman install --image IMAGE"
                    hint = Text("give an image that the cluster can pull: {command}", command=command)
                message = Text("{what} is not available", what=name_of(document))
                raise RetryableError(Text("{what}: {why}", what=message, why=why) if why else message, hint=hint)


async def _states(kube: Kube, namespace: str | None, name: str, deadline: float) -> AsyncGenerator[Document | None]:
    """The Deployment after each change, None when there was none for a while; ends when it is gone, or the time is."""
    loop = asyncio.get_running_loop()
    async with aclosing(follow.one(kube, resources.DEPLOYMENTS, namespace, name)) as states:
        coming = asyncio.ensure_future(anext(states))
        try:
            while (left := deadline - loop.time()) > 0:
                done, _ = await asyncio.wait({coming}, timeout=min(left, _LOOK_SECONDS))
                if not done:
                    yield None
                    continue
                try:
                    yield coming.result()
                except StopAsyncIteration:
                    return
                coming = asyncio.ensure_future(anext(states))
        finally:
            coming.cancel()
            await asyncio.gather(coming, return_exceptions=True)


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
async def remove(
    kube: Kube, wanted: Sequence[Document], *, with_definition: bool, force: bool = False
) -> AsyncGenerator[InstallStep, None]:
    """In the opposite order. The definition, and with it every job, stays unless it is meant."""
    if not force:
        await _refuse_helms(kube, wanted, "helm uninstall")
    for document in reversed(wanted):
        resource, name, namespace = _address(document)
        found = await _found(kube, resource, name, namespace)
        definition = document["kind"] == "CustomResourceDefinition"
        shared = document["kind"] == "Namespace" and found is not None and not await _ours_alone(kube, found)
        if shared or (definition and not with_definition):
            became = "kept"
        elif found is not None and await kube.delete(resource, name, namespace, uid=found["metadata"]["uid"]):
            became = "deleted"
        else:
            became = "absent"
        yield InstallStep(became, name_of(document))
        if document["kind"] == "Role" and await _without_lease(kube, namespace):
            yield InstallStep("deleted", f"lease {namespace}/{LEASE_NAME}")


async def _without_lease(kube: Kube, namespace: str | None) -> bool:
    """Who led has lost the right to give it back, and the next operator need not wait for it to expire."""
    found = await _found(kube, resources.LEASES, LEASE_NAME, namespace)
    holder = str(((found or {}).get("spec") or {}).get("holderIdentity") or "")
    if found is None or (holder and not holder.startswith("oarsman-")):  # another operator uses the name, too
        return False
    return await kube.delete(resources.LEASES, LEASE_NAME, namespace, uid=found["metadata"]["uid"])


async def _ours_alone(kube: Kube, found: Mapping[str, Any]) -> bool:
    """Whether the namespace was made for the operator, no job lives in it and nothing else runs in it."""
    name = found["metadata"]["name"]
    if not _labelled(found) or not all(_labelled(pod) for pod in await kube.list(resources.PODS, name)):
        return False
    return not (await kube.has(resources.MPIJOBS) and await kube.list(resources.MPIJOBS, name))


def _labelled(found: Mapping[str, Any]) -> bool:
    return _LABEL in (found["metadata"].get("labels") or {}).items()


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


def _leaves(found: Mapping[str, Any]) -> bool:
    return "deletionTimestamp" in found["metadata"]


def _said_of(found: Mapping[str, Any], document: Mapping[str, Any]) -> Document:
    """The parts that the document speaks of: the others are written by controllers, at any moment."""
    parts = {part: found.get(part) for part in document if part not in ("metadata", "status")}
    for marks in ("labels", "annotations"):
        there = found["metadata"].get(marks) or {}
        parts[marks] = {name: there.get(name) for name in document["metadata"].get(marks) or ()}
    return parts
