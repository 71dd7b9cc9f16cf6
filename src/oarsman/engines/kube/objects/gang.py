"""Gang scheduling: the PodGroup that makes a scheduler place all pods of a job, or none.

The launcher counts as a member only if it is created together with the workers: a scheduler that waits for
a launcher which waits for the workers would wait for ever.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from oarsman import names
from oarsman.engines.kube.client import resources
from oarsman.engines.kube.client.resources import Resource
from oarsman.engines.kube.objects.common import KubeOptions, Object, owned
from oarsman.engines.kube.objects.pod import PodDraft
from oarsman.job.job import Job, LauncherCreation, Role, SchedulingPolicy
from oarsman.manifest.quantity import parse

VOLCANO: Final = "volcano"
NATIVE: Final = "kubernetes"  # its own scheduler, where the cluster has GangScheduling switched on
NOBODY: Final = "none"


def scheduler(job: Job, options: KubeOptions) -> str:
    """Who schedules the gang: what the job says, else what the operator was told. Empty: nobody."""
    said = job.annotation(names.ANNOTATION_GANG) or options.gang_scheduler
    return "" if said == NOBODY else said


def resource(scheduled_by: str) -> Resource:
    known = {VOLCANO: resources.VOLCANO_POD_GROUPS, NATIVE: resources.NATIVE_POD_GROUPS}
    return known.get(scheduled_by, resources.PLUGINS_POD_GROUPS)


def decorate(draft: PodDraft, job: Job, options: KubeOptions) -> None:
    chosen = scheduler(job, options)
    if not chosen:
        return
    if chosen == NATIVE:
        draft.spec["schedulingGroup"] = {"podGroupName": job.name}
        return
    draft.spec["schedulerName"] = chosen
    if chosen == VOLCANO:
        draft.annotations["scheduling.k8s.io/group-name"] = job.name
    else:
        draft.labels["scheduling.x-k8s.io/pod-group"] = job.name


def together(job: Job) -> int:
    """How many pods exist before any of them waits for another."""
    return job.workers + int(job.launcher_creation is LauncherCreation.AT_STARTUP or not job.workers)


def pod_group(job: Job, options: KubeOptions, priorities: Mapping[str, int] | None = None) -> Object:
    chosen = scheduler(job, options)
    policy = job.run_policy.scheduling or SchedulingPolicy()
    asked, amounts = policy.min_available, policy.min_resources
    members = min(asked, together(job)) if asked is not None else together(job)
    if chosen == NATIVE:
        return owned(job, resource(chosen), job.name, spec={"schedulingPolicy": {"gang": {"minCount": members}}})
    if amounts is None:
        amounts = min_resources(job, members, priorities or {})
    spec: Object = {"minMember": members}
    if amounts is not None:
        spec["minResources"] = {name: _written(amount) for name, amount in amounts.items()}
    if chosen == VOLCANO:
        queue = policy.queue or job.annotation("scheduling.volcano.sh/queue-name")
        spec |= {"queue": queue, "priorityClassName": priority_class(job)}
    else:
        spec["scheduleTimeoutSeconds"] = policy.schedule_timeout_seconds or 0
    return owned(job, resource(chosen), job.name, spec={name: value for name, value in spec.items() if value != ""})


def differs(wanted: Mapping[str, Any], found: Mapping[str, Any]) -> bool:
    """Only our own fields count: schedulers fill in others, and would otherwise be corrected for ever. The groups of
    Kubernetes itself cannot be changed."""
    if wanted.get("apiVersion") == resources.NATIVE_POD_GROUPS.api_version:
        return False
    theirs = found.get("spec") or {}
    return any(_compared(name, theirs.get(name)) != _compared(name, value) for name, value in wanted["spec"].items())


def correction(wanted: Mapping[str, Any], found: Mapping[str, Any]) -> Object:
    """The merge patch that makes it as wanted: amounts nobody asks for any more are taken out."""
    spec = dict(wanted["spec"])
    if "minResources" in spec:
        there = (found.get("spec") or {}).get("minResources") or {}
        spec["minResources"] = {**dict.fromkeys(there), **spec["minResources"]}
    return {"spec": spec}


def priority_class(job: Job) -> str:
    policy = job.run_policy.scheduling or SchedulingPolicy()
    return policy.priority_class or _class_of(job.launcher) or _class_of(job.worker)


def min_resources(job: Job, members: int, priorities: Mapping[str, int]) -> dict[str, Decimal] | None:
    """What `members` pods need, those of the higher priority first; the launcher where priorities are equal."""
    if members <= 0:
        return None
    roles = [(job.worker, job.worker.replicas)] if job.worker is not None else []
    if not roles or together(job) > job.workers:
        # Sorting is stable: the launcher stays first among equals.
        roles = sorted([(job.launcher, 1), *roles], key=lambda part: -priorities.get(_class_of(part[0]), 0))
    total: dict[str, Decimal] = {}
    left = members
    for role, count in roles:
        taken = min(count, left)
        left -= taken
        for name, amount in _needs(role).items():
            total[name] = total.get(name, Decimal(0)) + amount * taken
    return total


def _class_of(role: Role | None) -> str:
    return str((role.template.get("spec") or {}).get("priorityClassName") or "") if role is not None else ""


def _needs(role: Role) -> dict[str, Decimal]:
    needs: dict[str, Decimal] = {}
    for container in role.containers:
        for name in {**container.resources.limits, **container.resources.requests}:
            needs[name] = needs.get(name, Decimal(0)) + container.resources.effective(name)
    return needs


def _compared(field: str, value: Any) -> Any:
    """Amounts by what they mean: whoever writes a group back may spell 1073741824 as 1Gi, or leave out nothing."""
    return {name: parse(amount) for name, amount in (value or {}).items()} if field == "minResources" else value


def _written(amount: Decimal) -> str:
    """A quantity without an exponent: whole numbers plainly, the rest in thousandths."""
    return str(int(amount)) if amount == amount.to_integral_value() else f"{int(amount * 1000)}m"
