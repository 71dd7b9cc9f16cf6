"""Looks at a cluster: what is there to run MPI jobs with, what is missing, and what this user may do."""

from __future__ import annotations

import asyncio
from typing import Final

from oarsman import names
from oarsman.backends.base import DoctorFinding
from oarsman.backends.kube import lookups, usage
from oarsman.backends.kube.backend import KubeBackend
from oarsman.backends.local.doctor import MISSING, OK, WARN
from oarsman.engines.kube.client import ApiError, Forbidden, Kube, Unauthorized, resources
from oarsman.text.sentence import Text, all_of

_INSTALL: Final = "oarsman install --image IMAGE"
# (what for, whether nothing goes without it, [(group, resource, subresource, verbs)])
_RIGHTS: Final = (
    (Text("submit and see jobs"), True, [(names.GROUP, names.PLURAL, "", ("create", "get", "list", "watch"))]),
    (Text("change and delete jobs"), False, [(names.GROUP, names.PLURAL, "", ("patch", "delete"))]),
    (Text("read logs"), False, [("", "pods", "", ("get", "list", "watch")), ("", "pods", "log", ("get",))]),
    (Text("read events"), False, [("", "events", "", ("list",))]),
)


async def examine(backend: KubeBackend) -> list[DoctorFinding]:
    kube, namespace = await backend.kube(), backend.home
    server = await _server(kube)
    if server.blocking:
        return [server]
    looks = await asyncio.gather(
        _namespace(kube, namespace),
        _definition(kube),
        _operator(kube, namespace),
        _rights(kube, namespace),
        _nodes(kube),
        _gangs(kube),
        _metrics(kube),
    )
    return [server, *(finding for found in looks for finding in found)]


async def _server(kube: Kube) -> DoctorFinding:
    access = kube.access
    try:
        version = (await kube.raw("GET", "/version")).get("gitVersion", "")
    except (ApiError, OSError) as error:
        template = Text("the address comes from {source}; --context chooses another")
        if isinstance(error, Unauthorized):
            template = Text("the credentials come from {source}; --context chooses another")
        why = Text("{what}: {why}", what=access.server, why=error)
        return DoctorFinding(Text("server"), MISSING, why, Text(template, source=access.source), blocking=True)
    template = Text("{server}, Kubernetes {version} ({source})")
    message = Text(template, server=access.server, version=version, source=access.source)
    if await kube.server_version() < (1, 16):
        return DoctorFinding(Text("server"), WARN, message, Text("Kubernetes 1.16 or newer is needed"))
    return DoctorFinding(Text("server"), OK, message)


async def _namespace(kube: Kube, namespace: str) -> list[DoctorFinding]:
    """Of one that is there nothing is said: the rights in it are."""
    if not await lookups.lacks(kube, namespace):
        return []
    message = Text("the cluster has no {namespace}", namespace=namespace)
    return [DoctorFinding(Text("namespace"), MISSING, message, f"kubectl create namespace {namespace}", blocking=True)]


async def _definition(kube: Kube) -> list[DoctorFinding]:
    known = {"v1": resources.MPIJOBS_V1, "v2beta1": resources.MPIJOBS}
    served = [version for version, resource in known.items() if await kube.has(resource)]
    if "v2beta1" not in served:
        only = Text("only {versions} served", versions=", ".join(served))
        what = only if served else Text("the cluster does not know them")
        return [DoctorFinding("MPIJobs", MISSING, what, _INSTALL, blocking=True)]
    message = Text("served as {versions}", versions=all_of(served))
    if len(served) == len(known):
        return [DoctorFinding("MPIJobs", OK, message)]
    advice = Text("{command} brings the definition up to date", command=_INSTALL)
    return [DoctorFinding("MPIJobs", WARN, message, advice)]


async def _operator(kube: Kube, namespace: str) -> list[DoctorFinding]:
    try:
        found = await lookups.leaders(kube)
    except Forbidden:
        return [DoctorFinding("operator", WARN, Text("this user may not see whether one is running"))]
    alive = [leader for leader in found if leader.alive]
    if serving := next((leader for leader in alive if leader.serves(namespace)), None):
        template = Text("{holder} in {namespace}, last heard of {silent} ago")
        silent = f"{serving.silent_seconds:.0f}s"
        message = Text(template, holder=serving.holder, namespace=serving.namespace, silent=silent)
        return [DoctorFinding("operator", OK, message)]
    advice: str = _INSTALL
    gone = next((leader for leader in found if leader.holder), None)
    if alive:
        template = Text("{holder} manages jobs in {watched} only, not in {space}")
        message = Text(template, holder=alive[0].holder, watched=", ".join(alive[0].watches), space=namespace)
        template = Text("run jobs there, or let it watch {namespace} too: `{command}`")
        advice = Text(template, namespace=namespace, command=f"{_INSTALL} --watch-namespaces")
    elif gone:
        silent = f"{gone.silent_seconds:.0f}s"
        message = Text("{holder} has not responded for {silent}", holder=gone.holder, silent=silent)
    else:
        message = Text("none is running")
    return [DoctorFinding("operator", MISSING, message, advice, blocking=True)]


async def _rights(kube: Kube, namespace: str) -> list[DoctorFinding]:
    found: list[DoctorFinding] = []
    for what, needed, wanted in _RIGHTS:
        asked = [(group, name, sub, verb) for group, name, sub, verbs in wanted for verb in verbs]
        answers = await asyncio.gather(
            *(lookups.allowed(kube, verb, group, name, sub, namespace) for group, name, sub, verb in asked)
        )
        lacking = [
            f"{verb} {name}{'/' + sub if sub else ''}"
            for (_, name, sub, verb), yes in zip(asked, answers, strict=True)
            if not yes
        ]
        answer = Text("no, this user may not {do}", do=", ".join(lacking)) if lacking else Text("yes")
        message = Text("{what} in {space}: {answer}", what=what, space=namespace, answer=answer)
        level = OK if not lacking else MISSING if needed else WARN
        advice = Text("ask for the role `edit` in the namespace; it includes MPIJobs once oarsman is installed")
        advised = not lacking or any(one.advice for one in found)
        found.append(DoctorFinding(Text("rights"), level, message, None if advised else advice, blocking=needed))
    return found


async def _nodes(kube: Kube) -> list[DoctorFinding]:
    try:
        nodes = await kube.list(resources.NODES)
    except Forbidden:
        return [DoctorFinding(Text("nodes"), OK, Text("this user may not see them; jobs run without that"))]
    ready = sum(
        any(c["type"] == "Ready" and c["status"] == "True" for c in (node.get("status") or {}).get("conditions") or ())
        for node in nodes
    )
    message = Text("{ready} of {nodes} are ready", ready=ready, nodes=len(nodes))
    if ready and ready == len(nodes):
        return [DoctorFinding(Text("nodes"), OK, message)]
    return [DoctorFinding(Text("nodes"), WARN, message, "kubectl describe nodes")]


async def _gangs(kube: Kube) -> list[DoctorFinding]:
    known = {"Volcano": resources.VOLCANO_POD_GROUPS, "scheduler-plugins": resources.PLUGINS_POD_GROUPS}
    known["Kubernetes' own"] = resources.NATIVE_POD_GROUPS
    found = [name for name, resource in known.items() if await kube.has(resource)]
    message = Text("{names} found", names=all_of(found)) if found else Text("none found; jobs do without")
    return [DoctorFinding(Text("gang scheduler"), OK, message)]


async def _metrics(kube: Kube) -> list[DoctorFinding]:
    if await kube.has(usage.METRICS):
        return [DoctorFinding(Text("metrics"), OK, Text("`oarsman top` can say what pods use"))]
    message = Text("metrics.k8s.io is missing; only `oarsman top` needs it")
    return [DoctorFinding(Text("metrics"), WARN, message, Text("install the metrics server"))]
