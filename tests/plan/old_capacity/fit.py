"""Whether a job has room on the nodes and in the quotas of its namespace: now, later, or never; and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

import msgspec

from oarsman import names
from oarsman.backends.base import Amounts, Fit
from oarsman.engines.kube.client import Forbidden, Kube, Resource
from oarsman.job.job import Job
from oarsman.job.role import Role
from tests.plan.old_capacity.nodes import Machine, Needs, Place, PodSpec, amounts, needs_of_pod, read, total

QUOTAS: Final = Resource("", "v1", "resourcequotas", "ResourceQuota")
UNSEEN_NODES: Final = "this user may not see the nodes; whether there is room is not known"
UNSEEN_PODS: Final = "this user may not see what runs on the nodes; whether there is room now is not known"
_ZERO: Final = Decimal(0)
_GIB: Final = Decimal(1024**3)
_PASSING: Final = "node.kubernetes.io/"  # taints that come and go with the state of a node
AdmissionControl = dict[str, dict[str, Decimal]]  # of each machine


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """Pods that are alike."""

    word: str
    count: int
    needs: Needs
    limits: Needs
    selector: Mapping[str, str]
    tolerations: Sequence[Mapping[str, Any]]

    def suits(self, machine: Machine, *, for_ever: bool) -> bool:
        """Whether it may be there at all, room or not."""
        if any(machine.labels.get(name) != value for name, value in self.selector.items()):
            return False
        return all(
            taint.effect not in ("NoSchedule", "NoExecute")
            or (for_ever and taint.key.startswith(_PASSING))
            or any(_tolerates(toleration, taint.key, taint.value, taint.effect) for toleration in self.tolerations)
            for taint in machine.taints
        )


def kinds_of(job: Job) -> list[Kind]:
    found = [_kind("launcher", job.launcher, 1)]
    if job.worker is not None and job.worker.replicas:
        found.append(_kind("worker", job.worker, job.worker.replicas))
    return found


def _kind(word: str, role: Role, count: int) -> Kind:
    spec = role.template.get("spec") or {}
    view = msgspec.convert(spec, PodSpec)
    limits = total(read(one.resources.limits) for one in view.containers)
    return Kind(
        word=word,
        count=count,
        needs=needs_of_pod(view),
        limits=limits,
        selector=spec.get("nodeSelector") or {},
        tolerations=spec.get("tolerations") or (),
    )


async def quotas(kube: Kube, namespace: str) -> list[dict[str, Any]]:
    try:
        return await kube.list(QUOTAS, namespace)
    except Forbidden:
        return []


def fit(kinds: Sequence[Kind], place: Place, quotas: Sequence[Mapping[str, Any]]) -> Fit:
    machines = place.machines
    ready = [machine for machine in machines or () if machine.state == "ready"]
    wanted = total(_times(kind.needs, kind.count) for kind in kinds)
    never, later = _by_quota(kinds, quotas)
    if machines is not None:
        never = never or _never(kinds, machines)
        later = later or (_later(kinds, ready) if place.pods_seen else "")
    unknown = UNSEEN_NODES if machines is None else "" if place.pods_seen else UNSEEN_PODS
    return Fit(
        now=not (never or later),
        ever=not never,
        reason=never or later or unknown,
        wanted=amounts(wanted),
        free=_sum(machine.free for machine in ready),
        total=_sum(machine.has for machine in machines or ()),
    )


# -- nodes -----------------------------------------------------------------------------------------------
def _never(kinds: Sequence[Kind], machines: Sequence[Machine]) -> str:
    """Why it would not fit even if nothing else ran and every node were well."""
    if not machines:
        return "the cluster has no nodes"
    for kind in kinds:
        fitting = [machine for machine in machines if kind.suits(machine, for_ever=True)]
        if not fitting:
            return f"no node takes the {kind.word}: none has the labels and taints that its template allows for"
        if not any(_holds(machine.has, kind.needs) for machine in fitting):
            return _too_large(kind, fitting)
    wanted = total(_times(kind.needs, kind.count) for kind in kinds)
    whole = total(machine.has for machine in machines)
    for name, amount in wanted.items():
        if amount > whole.get(name, _ZERO):
            return f"needs {named(name, amount)}, all nodes together have {plain(name, whole.get(name, _ZERO))}"
    room = {machine.name: dict(machine.has) for machine in machines}
    if (left := _pack(kinds, machines, room, for_ever=True)) is not None:
        kind, placed = left
        return f"even with nothing else on them, the nodes have room for {placed} of {_counted(kind)}"
    return ""


def _too_large(kind: Kind, machines: Sequence[Machine]) -> str:
    for name, amount in kind.needs.items():
        most = max(machine.has.get(name, _ZERO) for machine in machines)
        if amount > most:
            has = f"no node has more than {plain(name, most)}" if most else "no node has any"
            return f"the {kind.word} asks for {named(name, amount)}, {has}"
    return f"no node has {_all_named(kind.needs)} together, which the {kind.word} asks for"


def _later(kinds: Sequence[Kind], ready: Sequence[Machine]) -> str:
    """Why it does not fit into the room that is left."""
    if not ready:
        return "no node is ready"
    wanted = total(_times(kind.needs, kind.count) for kind in kinds)
    free = total(machine.free for machine in ready)
    whole = total(machine.has for machine in ready)
    short = [
        f"needs {named(name, amount)}, {plain(name, free.get(name, _ZERO))} of {plain(name, whole.get(name, _ZERO))} "
        f"are free{_held_by(name, ready)}"
        for name, amount in wanted.items()
        if amount > free.get(name, _ZERO)
    ]
    if short:
        return "; ".join(short)
    room = {machine.name: dict(machine.free) for machine in ready}
    left = _pack(kinds, ready, room, for_ever=False)
    return "" if left is None else _scattered(*left, ready, free)


def _scattered(kind: Kind, placed: int, ready: Sequence[Machine], free: Needs) -> str:
    """There is enough, but not in one place."""
    fitting = [machine for machine in ready if kind.suits(machine, for_ever=False)]
    if not fitting:
        return f"no node that is ready takes the {kind.word}"
    for name, amount in kind.needs.items():
        if not any(machine.free.get(name, _ZERO) >= amount for machine in fitting):
            there = f"{named(name, free.get(name, _ZERO))} are free, but no node has"
            return f"{there} the {plain(name, amount)} that the {kind.word} asks for"
    if not placed:
        return f"no node has {_all_named(kind.needs)} free at the same time, which the {kind.word} asks for"
    return f"there is room for {placed} of {_counted(kind)}: what is free is scattered over the nodes"


def _pack(
    kinds: Sequence[Kind], machines: Sequence[Machine], room: AdmissionControl, *, for_ever: bool
) -> tuple[Kind, int] | None:
    """First fit, the largest first; what could not be placed, and how many of it could."""
    whole = total(machine.has for machine in machines)

    def share(kind: Kind) -> Decimal:
        return max((need / whole[name] for name, need in kind.needs.items() if whole.get(name)), default=_ZERO)

    for kind in sorted(kinds, key=share, reverse=True):
        left = kind.count
        for machine in machines:
            if left and kind.suits(machine, for_ever=for_ever):
                here = room[machine.name]
                taken = min(left, *(int(here.get(name, _ZERO) // need) for name, need in kind.needs.items() if need))
                for name, need in kind.needs.items():
                    if need:
                        here[name] = here.get(name, _ZERO) - need * taken
                left -= taken
        if left:
            return kind, kind.count - left
    return None


def _holds(has: Needs, needs: Needs) -> bool:
    return all(has.get(name, _ZERO) >= need for name, need in needs.items())


def _tolerates(toleration: Mapping[str, Any], key: str, value: str, effect: str) -> bool:
    if toleration.get("effect") not in (None, "", effect):
        return False
    if not toleration.get("key"):
        return toleration.get("operator") == "Exists"
    return toleration["key"] == key and (
        toleration.get("operator") == "Exists" or (toleration.get("value") or "") == value
    )


def _held_by(name: str, machines: Sequence[Machine]) -> str:
    held: dict[str, Decimal] = {}
    for machine in machines:
        for key, needs in machine.jobs.items():
            held[key] = held.get(key, _ZERO) + needs.get(name, _ZERO)
    most = sorted(((amount, key) for key, amount in held.items() if amount), key=lambda one: (-one[0], one[1]))
    if not most:
        return ""
    more = f" and {len(most) - 3} more jobs" if len(most) > 3 else ""
    return f" (held by {', '.join(f'{key}: {plain(name, amount)}' for amount, key in most[:3])}{more})"


# -- quotas ----------------------------------------------------------------------------------------------
def _by_quota(kinds: Sequence[Kind], quotas: Sequence[Mapping[str, Any]]) -> tuple[str, str]:
    """Why the namespace never allows it, and why it does not now."""
    needed = _as_quotas_count(kinds)
    later = ""
    for quota in quotas:
        spec, status = quota.get("spec") or {}, quota.get("status") or {}
        if spec.get("scopes") or spec.get("scopeSelector"):
            continue  # for some pods only; which ones is decided when they are made
        used = read(status.get("used"))
        for name, hard in read(status.get("hard") or spec.get("hard")).items():
            need, left = needed.get(name, _ZERO), hard - used.get(name, _ZERO)
            what = name.removeprefix("requests.")
            metadata = quota["metadata"]
            allows = f"the quota {metadata['name']} of namespace {metadata['namespace']} allows {plain(what, hard)}"
            if need > hard:
                return f"needs {named(what, need)}, {allows}", ""
            if need > left and not later:
                later = f"needs {named(what, need)}, {allows} and {plain(what, max(left, _ZERO))} of it are left"
    return "", later


def _as_quotas_count(kinds: Sequence[Kind]) -> dict[str, Decimal]:
    needs = total(_times(kind.needs, kind.count) for kind in kinds)
    limits = total(_times(kind.limits, kind.count) for kind in kinds)
    return {
        **needs,
        **{f"requests.{name}": amount for name, amount in needs.items()},
        **{f"limits.{name}": amount for name, amount in limits.items()},
        "count/pods": needs["pods"],
        f"count/{names.PLURAL}.{names.GROUP}": Decimal(1),
    }


# -- words -----------------------------------------------------------------------------------------------
def plain(name: str, amount: Decimal) -> str:
    """The number alone; memory in GiB."""
    if _is_memory(name):
        return f"{_number(amount / _GIB)} GiB"
    return _number(amount)


def named(name: str, amount: Decimal) -> str:
    if _is_memory(name):
        what = "memory limits" if name.startswith("limits.") else name.partition(".")[0]
        return f"{plain(name, amount)} of {what}"
    one = {"cpu": "CPU", "pods": "pod", "limits.cpu": "CPU limit"}.get(name)
    if one is None:
        one = "GPU" if name.rsplit("/", 1)[-1] in ("gpu", "vgpu") else ""
    shown = _number(amount)
    return f"{shown} {one}{'' if shown == '1' else 's'}" if one else f"{shown} {name}"


def _is_memory(name: str) -> bool:
    return name.removeprefix("limits.") in ("memory", "ephemeral-storage") or name.startswith("hugepages-")


def _number(amount: Decimal) -> str:
    return f"{amount.quantize(Decimal('0.01')).normalize():f}"


def _all_named(needs: Needs) -> str:
    return " and ".join(named(name, amount) for name, amount in needs.items() if amount and name != "pods")


def _counted(kind: Kind) -> str:
    return f"{kind.count} {kind.word}{'' if kind.count == 1 else 's'}"


def _times(needs: Needs, count: int) -> dict[str, Decimal]:
    return {name: amount * count for name, amount in needs.items()}


def _sum(found: Iterable[Needs]) -> Amounts:
    return amounts(total(found))
