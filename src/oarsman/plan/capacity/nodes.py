"""The nodes of a cluster and the quotas of a namespace: why a job does not start there. Who starts when, the cluster's
own scheduler decides; here is said whether it could now, later, or never."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Final

from oarsman.job.observed import Admission
from oarsman.plan.capacity.amounts import Capacity, all_named, held_by, named, plain, total
from oarsman.plan.capacity.gang import Gang, Party, Share
from oarsman.plan.capacity.placement import Spot, emptied, fits, most_placed
from oarsman.text.sentence import Text, sentences
from oarsman.text.units import workers

UNSEEN_NODES: Final = Text("this user may not see the nodes; whether there is room is not known")
UNSEEN_PODS: Final = Text("this user may not see what runs on the nodes; whether there is room now is not known")


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """What a namespace may have, of all that is counted there."""

    name: str
    namespace: str
    hard: Capacity
    used: Capacity


def preview(
    gang: Gang,
    spots: Sequence[Spot] | None,
    shares: Mapping[str, Sequence[Share]],
    *,
    counted: Capacity,
    quotas: Iterable[Quota] = (),
    pods_seen: bool = True,
) -> Admission:
    """Without spots the nodes are not to be seen. `counted` is what the job is for quotas."""
    never, later = _by_quota(counted, quotas)
    if spots is not None:
        never = never or _never(gang, emptied(spot.machine for spot in spots))
        later = later or (_short(gang, spots, shares) if pods_seen and not never else "")
    unknown = UNSEEN_NODES if spots is None else "" if pods_seen else UNSEEN_PODS
    return Admission(admitted=not (never or later), impossible=bool(never), reason=never or later or unknown)


# -- nodes ------------------------------------------------------------------------------------------------
def _never(gang: Gang, empty: Sequence[Spot]) -> str:
    """Why it would not fit even if nothing else ran and every node were well; empty if it would."""
    if fits(gang, empty):
        return ""
    if not empty:
        return Text("the cluster has no nodes")
    for word, party in _parties(gang):
        those = [spot for spot in empty if spot.machine.takes(party)]
        if not those:
            template = Text("no node takes the {role}: none has the labels and taints that its template allows for")
            return Text(template, role=word)
        if not any(spot.free.fitting(party.need) for spot in those):
            return _too_large(word, party.need, those)
    whole = total(spot.free for spot in empty)
    for name, amount in gang.whole.items():
        if amount > whole[name]:
            need, have = named(name, amount), plain(name, whole[name])
            return Text("needs {need}, all nodes together have {whole}", need=need, whole=have)
    return _some(Text("even with nothing else on them, the nodes have room for {placed} of {all}"), gang, empty)


def _parties(gang: Gang) -> list[tuple[str, Party]]:
    launcher = (Text("launcher"), gang.launcher_alone)
    return [launcher, (Text("worker"), gang.worker)] if gang.workers else [launcher]


def _too_large(word: str, need: Capacity, those: Sequence[Spot]) -> str:
    for name, amount in need.items():
        most = max(spot.free[name] for spot in those)
        if amount > most:
            if not most:
                return Text("the {role} asks for {need}, no node has any", role=word, need=named(name, amount))
            template = Text("the {role} asks for {need}, no node has more than {most}")
            return Text(template, role=word, need=named(name, amount), most=plain(name, most))
    return Text("no node has {needs} together, which the {role} asks for", needs=_all_named(need), role=word)


def _short(gang: Gang, spots: Sequence[Spot], shares: Mapping[str, Sequence[Share]]) -> str:
    """Why it does not fit into the room that is left; empty if it does."""
    ready = [spot for spot in spots if not spot.machine.left_out]
    if fits(gang, ready):
        return ""
    if not ready:
        return Text("no node is ready")
    free, whole = total(spot.free for spot in ready), total(spot.machine.capacity for spot in ready)
    held = [share for spot in ready for share in shares.get(spot.machine.name, ())]
    missing = [
        Text(
            "needs {need}, {free} of {whole} are free{held}",
            need=named(name, amount),
            free=plain(name, free[name]),
            whole=plain(name, whole[name]),
            held=held_by(
                total(Capacity({share.key: share.amounts[name]}) for share in held).items(),
                partial(plain, name),
                jobs=True,
            ),
        )
        for name, amount in gang.whole.items()
        if amount > free[name]
    ]
    return sentences(missing) or _scattered(gang, ready, free, whole)


def _scattered(gang: Gang, ready: Sequence[Spot], free: Capacity, whole: Capacity) -> str:
    """There is enough, but not in one place."""

    def share(one: tuple[str, Party]) -> Decimal:
        return max((need / whole[name] for name, need in one[1].need.items() if whole[name]), default=Decimal(0))

    for word, party in sorted(_parties(gang), key=share, reverse=True):  # of two, the larger one is told about
        those = [spot for spot in ready if spot.machine.takes(party)]
        if not those:
            return Text("no node that is ready takes the {role}", role=word)
        for name, amount in party.need.items():
            if all(spot.free[name] < amount for spot in those):
                template = Text("{free} are free, but no node has the {need} that the {role} asks for")
                return Text(template, free=named(name, free[name]), need=plain(name, amount), role=word)
        if not any(spot.free.fitting(party.need) for spot in those):
            template = Text("no node has {needs} free at the same time, which the {role} asks for")
            return Text(template, needs=_all_named(party.need), role=word)
    return _some(Text("there is room for {placed} of {all}: free resources are scattered over the nodes"), gang, ready)


def _some(template: str, gang: Gang, spots: Sequence[Spot]) -> str:
    """The launcher has its place, some of the workers have not."""
    return Text(template, placed=most_placed(gang, spots) - 1, all=workers(len(gang.workers)))


def _all_named(need: Capacity) -> str:
    return all_named(need, (name for name in need if name != "pods"))


# -- quotas -----------------------------------------------------------------------------------------------
def _by_quota(counted: Capacity, quotas: Iterable[Quota]) -> tuple[str, str]:
    """Why the namespace never allows it, and why it does not now."""
    later = ""
    for quota in quotas:
        for name, hard in quota.hard.items():
            need, left, what = counted[name], hard - quota.used[name], name.removeprefix("requests.")
            allowed, needed = plain(what, hard), named(what, need)
            said = {"quota": quota.name, "space": quota.namespace, "hard": allowed, "need": needed}
            if need > hard:
                return Text("needs {need}, the quota {quota} of namespace {space} allows {hard}", **said), ""
            if need > left and not later:
                template = Text(
                    "needs {need}, the quota {quota} of namespace {space} allows {hard} and {left} of it are left"
                )
                later = Text(template, left=plain(what, max(left, Decimal(0))), **said)
    return "", later
