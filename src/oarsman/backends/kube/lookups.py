"""Small questions to the cluster: a job's pods, its namespace, what its user may do, whether an operator is there.

And what a server refused, as the user's mistake that it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from oarsman import errors, names
from oarsman.control.operator_settings import LEASE_NAME
from oarsman.engines.kube import client
from oarsman.engines.kube.client import Access, Kube, resources
from oarsman.job.job import Job
from oarsman.text.sentence import Text

Pod = Mapping[str, Any]


def selector(job: Job, role: str) -> str:
    called = f" in ({role},{names.ROLE_MASTER})" if role == names.ROLE_LAUNCHER else f"={role}"
    return f"{names.LABEL_JOB}={job.name},{names.LABEL_ROLE}{called}"


def attempt_of(pod: Pod) -> int:
    number = (pod["metadata"].get("annotations") or {}).get(names.ANNOTATION_ATTEMPT) or ""
    return int(number) if number.isdigit() else 1


def newest(pods: Iterable[Pod], attempt: int | None = None) -> Pod | None:
    """The launcher of that attempt, or of the newest one."""
    fitting = [pod for pod in pods if attempt in (None, attempt_of(pod))]
    return max(fitting, key=lambda pod: (attempt_of(pod), pod["metadata"]["creationTimestamp"]), default=None)


def started(pod: Pod, container: str) -> bool:
    """Whether the container has, or had, a log."""
    state = _state(pod, container)
    return "running" in state or "terminated" in state or "terminated" in _state(pod, container, "lastState")


def ended(pod: Pod, container: str) -> bool:
    """For good: nothing is written any more. A container that failed may be started again in its pod."""
    return is_over(pod) or ("terminated" in _state(pod, container) and pod["spec"].get("restartPolicy") == "Never")


def goes_on(pod: Pod, container: str) -> bool:
    return "deletionTimestamp" not in pod["metadata"] and not ended(pod, container)


def is_over(pod: Pod) -> bool:
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def began(pod: Pod, container: str) -> str:
    """When its log can have begun at the earliest, in UTC and to the second."""
    state = _state(pod, container)
    inner = state.get("running") or state.get("terminated") or {}
    return str(inner.get("startedAt") or pod["metadata"]["creationTimestamp"])


def _state(pod: Pod, container: str, which: str = "state") -> Mapping[str, Any]:
    for status in (pod.get("status") or {}).get("containerStatuses") or ():
        if status["name"] == container:
            return status.get(which) or {}
    return {}


async def lacks(kube: Kube, namespace: str) -> bool:
    """Whether the cluster is known not to have the namespace. Those who may not see namespaces are told nothing."""
    try:
        await kube.get(resources.NAMESPACES, namespace)
    except client.NotFound:
        return True
    except client.Forbidden:
        pass
    return False


_INSTALL = Text("`oarsman install --image IMAGE` installs one; `oarsman doctor --on kube` shows more")


@dataclass(frozen=True, slots=True, kw_only=True)
class Leader:
    holder: str
    namespace: str
    silent_seconds: float
    lasts_seconds: float
    watches: tuple[str, ...] = ()  # namespaces; none: all

    @property
    def alive(self) -> bool:
        return bool(self.holder) and self.silent_seconds <= self.lasts_seconds

    def serves(self, namespace: str) -> bool:
        return not self.watches or namespace in self.watches


async def leaders(kube: Kube) -> list[Leader]:
    """Every operator's lease, the liveliest first. Raises Forbidden if this user may not look."""
    found = await kube.list(resources.LEASES, fields=f"metadata.name={LEASE_NAME}")
    return sorted((_leader(item) for item in found), key=lambda leader: leader.silent_seconds)


def _leader(item: dict[str, Any]) -> Leader:
    spec = item.get("spec") or {}
    renewed = spec.get("renewTime")
    silent = (datetime.now(UTC) - datetime.fromisoformat(renewed)).total_seconds() if renewed else float("inf")
    watches = (item["metadata"].get("annotations") or {}).get(names.ANNOTATION_WATCHES) or ""
    return Leader(
        holder=spec.get("holderIdentity") or "",
        namespace=item["metadata"]["namespace"],
        silent_seconds=silent,
        lasts_seconds=float(spec.get("leaseDurationSeconds") or 15),
        watches=tuple(name for name in watches.split(",") if name),
    )


async def why_silent(kube: Kube, namespace: str) -> str:
    """For a job that nobody has looked at."""
    try:
        found = await leaders(kube)
    except client.Forbidden:
        return Text("no operator has looked at the job yet; {hint}", hint=_INSTALL)
    alive = [leader for leader in found if leader.alive]
    if serving := [leader for leader in alive if leader.serves(namespace)]:
        return Text("the operator ({holder}) has not looked at the job yet", holder=serving[0].holder)
    if alive:
        template = Text("{holder} manages jobs in {watched} only, not in {space}; {hint}")
        watched = ", ".join(alive[0].watches)
        return Text(template, holder=alive[0].holder, watched=watched, space=namespace, hint=_INSTALL)
    if found and found[0].holder:
        template = Text("no operator is running: {holder} has not responded for {silent}; {hint}")
        return Text(template, holder=found[0].holder, silent=f"{found[0].silent_seconds:.0f}s", hint=_INSTALL)
    return Text("no operator seems to be running on this cluster; {hint}", hint=_INSTALL)


# -- what somebody may do with jobs, asked in their own name ------------------------------------------
async def allowed(
    kube: Kube,
    verb: str,
    group: str,
    resource: str,
    subresource: str = "",
    namespace: str | None = None,
    *,
    headers: Mapping[str, str] | None = None,
) -> bool:
    """Whether the asker may do that; without a namespace: in all of them."""
    asked = {"namespace": namespace, "group": group, "resource": resource, "subresource": subresource, "verb": verb}
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {name: value for name, value in asked.items() if value}},
    }
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    answer = await kube.raw("POST", path, body=body, headers=headers)
    return bool(answer.get("status", {}).get("allowed"))


async def may(kube: Kube, verb: str, namespace: str | None, *, headers: Mapping[str, str] | None = None) -> bool:
    """The same, of MPIJobs."""
    return await allowed(kube, verb, names.GROUP, names.PLURAL, "", namespace, headers=headers)


@contextmanager
def in_plain_words(access: Access) -> Iterator[None]:
    try:
        yield
    except client.AlreadyExists as error:
        hint = Text("delete it first, or give this one another name")
        message = Text("there is a job of this name already: {why}", why=error.message)
        raise errors.ConflictError(message, hint=hint) from error
    except client.NotFound as error:
        raise _not_found(error) from error
    except client.Invalid as error:
        message = Text("the cluster refused it: {why}", why=error.message)
        raise errors.UserError(message, field=error.field, hint=error.hint) from error
    except client.Forbidden as error:
        hint = Text("`oarsman doctor --on kube` shows what this user may do")
        raise errors.ForbiddenError(Text("this user may not do that: {why}", why=error.message), hint=hint) from error
    except client.Unauthorized as error:
        message = Text("the cluster does not know this user: {why}", why=error.message)
        hint = Text("the credentials are those of {source}", source=access.source)
        raise errors.UnauthenticatedError(message, hint=hint) from error
    except client.Unavailable as error:
        where = Text("the server is {server}, from {source}", server=access.server, source=access.source)
        error.hint = error.hint or where
        raise


def no_namespace(place: str) -> errors.OarsmanError:
    hint = Text("make it: {command}", command=f"kubectl create namespace {place}")
    return errors.NotFoundError(Text("there is no namespace {space} on this cluster", space=place), hint=hint)


def _not_found(error: client.NotFound) -> errors.OarsmanError:
    if error.message.startswith("namespaces "):
        return no_namespace(error.message.split('"')[1] if '"' in error.message else "NAME")
    if f"{names.PLURAL}.{names.GROUP}" in error.message:
        return errors.NotFoundError(Text("there is no such job: {why}", why=error.message))
    return errors.UnsupportedError(Text("the cluster has no MPIJobs"), hint=Text("run `oarsman install --image IMAGE`"))
