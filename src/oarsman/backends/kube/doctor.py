"""Looks at a cluster: what is there to run MPI jobs with, what is missing, and what this user may do."""

from __future__ import annotations

import asyncio
from typing import Final

from oarsman import names
from oarsman.backends.kube import lookups, usage
from oarsman.backends.kube.backend import KubeBackend
from oarsman.backends.local.doctor import MISSING, OK, WARN, DoctorFinding
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
        return DoctorFinding(
            subject="server",
            level=MISSING,
            blocking=True,
            message=Text("{what}: {why}", what=access.server, why=error),
            advice=Text(template, source=access.source),
        )
    old = await kube.server_version() < (1, 16)
    return DoctorFinding(
        subject="server",
        level=WARN if old else OK,
        message=Text(
            "{server}, Kubernetes {version} ({source})", server=access.server, version=version, source=access.source
        ),
        advice=Text("Kubernetes 1.16 or newer is needed") if old else None,
    )


async def _namespace(kube: Kube, namespace: str) -> list[DoctorFinding]:
    """Of one that is there nothing is said: the rights in it are."""
    if not await lookups.lacks(kube, namespace):
        return []
    return [
        DoctorFinding(
            subject="namespace",
            level=MISSING,
            blocking=True,
            message=Text("the cluster has no {namespace}", namespace=namespace),
            advice=f"kubectl create namespace {namespace}",
        )
    ]


async def _definition(kube: Kube) -> list[DoctorFinding]:
    known = {"v1": resources.MPIJOBS_V1, "v2beta1": resources.MPIJOBS}
    served = [version for version, resource in known.items() if await kube.has(resource)]
    if "v2beta1" not in served:
        what = (
            Text("only {versions} served", versions=", ".join(served))
            if served
            else Text("the cluster does not know them")
        )
        return [DoctorFinding(subject="MPIJobs", level=MISSING, blocking=True, message=what, advice=_INSTALL)]
    level = OK if len(served) == len(known) else WARN
    return [
        DoctorFinding(
            subject="MPIJobs",
            level=level,
            message=Text("served as {versions}", versions=all_of(served)),
            advice=None if level == OK else Text("{command} brings the definition up to date", command=_INSTALL),
        )
    ]


async def _operator(kube: Kube, namespace: str) -> list[DoctorFinding]:
    try:
        found = await lookups.leaders(kube)
    except Forbidden:
        return [
            DoctorFinding(subject="operator", level=WARN, message=Text("this user may not see whether one is running"))
        ]
    alive = [leader for leader in found if leader.alive]
    for leader in [leader for leader in alive if leader.serves(namespace)][:1]:
        message = Text(
            "{holder} in {namespace}, last heard of {silent} ago",
            holder=leader.holder,
            namespace=leader.namespace,
            silent=f"{leader.silent_seconds:.0f}s",
        )
        return [DoctorFinding(subject="operator", level=OK, message=message)]
    for leader in alive[:1]:
        message = Text(
            "{holder} looks after jobs in {watched} alone, not in {space}",
            holder=leader.holder,
            watched=", ".join(leader.watches),
            space=namespace,
        )
        advice = Text(
            "run jobs there, or let it watch {namespace} too: `{command}`",
            namespace=namespace,
            command=f"{_INSTALL} --watch-namespaces",
        )
        return [DoctorFinding(subject="operator", level=MISSING, blocking=True, message=message, advice=advice)]
    silent = [leader for leader in found if leader.holder]
    message = (
        Text(
            "{holder} has been silent for {silent}",
            holder=silent[0].holder,
            silent=f"{silent[0].silent_seconds:.0f}s",
        )
        if silent
        else Text("none is running")
    )
    return [DoctorFinding(subject="operator", level=MISSING, blocking=True, message=message, advice=_INSTALL)]


async def _rights(kube: Kube, namespace: str) -> list[DoctorFinding]:
    found: list[DoctorFinding] = []
    for what, needed, wanted in _RIGHTS:
        asked = [(group, name, sub, verb) for group, name, sub, verbs in wanted for verb in verbs]
        answers = await asyncio.gather(*(_may(kube, namespace, *one) for one in asked))
        lacking = [
            f"{verb} {name}{'/' + sub if sub else ''}"
            for (_, name, sub, verb), yes in zip(asked, answers, strict=True)
            if not yes
        ]
        answer = Text("no, this user may not {do}", do=", ".join(lacking)) if lacking else Text("yes")
        message = Text("{what} in {space}: {answer}", what=what, space=namespace, answer=answer)
        level = OK if not lacking else MISSING if needed else WARN
        advice = Text("ask for the role `edit` in the namespace; it includes MPIJobs once oarsman is installed")
        found.append(
            DoctorFinding(
                subject="rights",
                level=level,
                message=message,
                blocking=needed,
                advice=advice if lacking and not any(one.advice for one in found) else None,
            )
        )
    return found


async def _may(kube: Kube, namespace: str, group: str, resource: str, subresource: str, verb: str) -> bool:
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    asked = {"namespace": namespace, "group": group, "resource": resource, "subresource": subresource, "verb": verb}
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {name: value for name, value in asked.items() if value}},
    }
    return bool((await kube.raw("POST", path, body=body)).get("status", {}).get("allowed"))


async def _nodes(kube: Kube) -> list[DoctorFinding]:
    try:
        nodes = await kube.list(resources.NODES)
    except Forbidden:
        return [DoctorFinding(subject="nodes", level=OK, message=Text("this user may not see them; jobs do not mind"))]
    ready = sum(
        any(c["type"] == "Ready" and c["status"] == "True" for c in (node.get("status") or {}).get("conditions") or ())
        for node in nodes
    )
    level = OK if ready == len(nodes) and ready else WARN
    advice = None if level == OK else "kubectl describe nodes"
    return [
        DoctorFinding(
            subject="nodes",
            level=level,
            message=Text("{ready} of {nodes} are ready", ready=ready, nodes=len(nodes)),
            advice=advice,
        )
    ]


async def _gangs(kube: Kube) -> list[DoctorFinding]:
    known = {"Volcano": resources.VOLCANO_POD_GROUPS, "scheduler-plugins": resources.PLUGINS_POD_GROUPS}
    found = [name for name, resource in known.items() if await kube.has(resource)]
    message = Text("{names} found", names=all_of(found)) if found else Text("none found; jobs do without")
    return [DoctorFinding(subject="gang scheduler", level=OK, message=message)]


async def _metrics(kube: Kube) -> list[DoctorFinding]:
    if await kube.has(usage.METRICS):
        return [DoctorFinding(subject="metrics", level=OK, message=Text("`oarsman top` can say what pods use"))]
    return [
        DoctorFinding(
            subject="metrics",
            level=WARN,
            message=Text("metrics.k8s.io is missing; only `oarsman top` needs it"),
            advice=Text("install the metrics server"),
        )
    ]
