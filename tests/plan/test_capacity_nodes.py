"""Gangs on nodes: where taints keep them off, and that what can be placed is."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oarsman.job.observed import Admission
from oarsman.plan.capacity import nodes
from oarsman.plan.capacity.amounts import Capacity, total
from oarsman.plan.capacity.gang import Gang, Party, Share, Taint, Toleration
from oarsman.plan.capacity.nodes import Quota
from oarsman.plan.capacity.placement import Machine, Spot

GIB = 1024**3


def need(cpus: int, memory: int = 0) -> Capacity:
    return Capacity(cpu=Decimal(cpus), memory=Decimal(memory), pods=Decimal(1))


def node(name: str, cpus: int, memory: int = 0, **given: object) -> Spot:
    has = Capacity(cpu=Decimal(cpus), memory=Decimal(memory), pods=Decimal(10))
    return Spot(machine=Machine(name=name, capacity=has, **given), free=has)  # type: ignore[arg-type]


def a_gang(launcher: Party, worker: Party | None = None, workers: int = 0) -> Gang:
    return Gang(
        key="n/a",
        launcher="l",
        workers=tuple(f"w{n}" for n in range(workers)),
        launcher_alone=launcher,
        worker=worker or Party(),
        launcher_apart=True,
    )


def answer(gang: Gang, *spots: Spot, quotas: Sequence[Quota] = ()) -> Admission:
    return nodes.preview(gang, spots, {}, counted=gang.whole, quotas=quotas)


@pytest.mark.parametrize(
    ("toleration", "covered"),
    [
        pytest.param(Toleration(operator="Exists"), True, id="of everything"),
        pytest.param(Toleration(), False, id="of nothing"),
        pytest.param(Toleration(key="gpu", operator="Exists"), True, id="of the key"),
        pytest.param(Toleration(key="gpu", operator="Equal", value="yes"), True, id="of the value"),
        pytest.param(Toleration(key="gpu", value="yes"), True, id="of the value, which Equal is for"),
        pytest.param(Toleration(key="gpu", value="no"), False, id="of another value"),
        pytest.param(Toleration(key="disk", operator="Exists"), False, id="of another key"),
        pytest.param(Toleration(key="gpu", operator="Exists", effect="NoSchedule"), True, id="of the effect"),
        pytest.param(Toleration(key="gpu", operator="Exists", effect="NoExecute"), False, id="of another effect"),
    ],
)
def test_a_taint_keeps_off_whoever_does_not_tolerate_it(toleration: Toleration, covered: bool) -> None:
    tainted = node("a", 4, taints=(Taint(key="gpu", value="yes", effect="NoSchedule"),))
    found = answer(a_gang(Party(need=need(1), tolerations=(toleration,))), tainted)
    assert (found.admitted, found.impossible) == (covered, not covered)


@pytest.mark.parametrize(
    ("taint", "now", "ever"),
    [
        (Taint(key="gpu", effect="PreferNoSchedule"), True, True),
        (Taint(key="gpu", effect="NoExecute"), False, False),
        (Taint(key="node.kubernetes.io/unreachable", effect="NoExecute"), False, True),
    ],
)
def test_some_taints_only_advise_and_some_go_by_themselves(taint: Taint, now: bool, ever: bool) -> None:
    found = answer(a_gang(Party(need=need(1))), node("a", 4, taints=(taint,)))
    assert (found.admitted, not found.impossible) == (now, ever)


@pytest.mark.parametrize(
    ("labels", "selector", "taken"),
    [
        ({"disk": "ssd"}, {"disk": "ssd"}, True),
        ({"disk": "ssd"}, {"disk": "ssd", "zone": "b"}, False),
        ({}, {"kubernetes.io/hostname": "a"}, True),
        ({"kubernetes.io/hostname": "ip-10-0-0-1"}, {"kubernetes.io/hostname": "a"}, False),
        ({"kubernetes.io/hostname": "ip-10-0-0-1"}, {"kubernetes.io/hostname": "ip-10-0-0-1"}, True),
    ],
)
def test_a_pod_goes_where_its_labels_are(labels: dict[str, str], selector: dict[str, str], taken: bool) -> None:
    assert answer(a_gang(Party(need=need(1), selector=selector)), node("a", 4, labels=labels)).admitted == taken


def test_a_launcher_that_fits_on_one_node_only_leaves_the_others_to_the_workers() -> None:
    """Whoever fills the nodes one after the other puts a worker there first, and has no place for the launcher."""
    gang = a_gang(Party(need=need(2), selector={"disk": "ssd"}), Party(need=need(4)), workers=1)
    assert answer(gang, node("a", 4, labels={"disk": "ssd"}), node("b", 4)).admitted


def test_where_each_alone_has_a_place_but_not_all_have_one_it_is_said_how_many_do() -> None:
    gang = a_gang(Party(need=need(2)), Party(need=need(3)), workers=1)
    whole = Machine(name="a", capacity=Capacity(cpu=Decimal(8), pods=Decimal(10)))
    left = [Spot(machine=whole, free=need(3)), node("b", 1), node("c", 1)]
    found = answer(gang, *[Spot(machine=spot.machine, free=spot.free + Capacity(pods=Decimal(9))) for spot in left])
    assert (found.admitted, found.impossible) == (False, False)
    assert found.reason == "there is room for 0 of 1 worker: free resources are scattered over the nodes"


def test_of_what_all_nodes_together_lack_the_right_one_is_named() -> None:
    gang = a_gang(Party(need=need(2, 2 * GIB)), Party(need=need(2, 2 * GIB)), workers=3)
    found = answer(gang, node("a", 4, 3 * GIB), node("b", 4, 3 * GIB))
    assert (found.impossible, found.reason) == (True, "needs 8 GiB of memory, all nodes together have 6 GiB")


def test_what_no_node_has_together_is_named_without_the_pod_that_it_takes() -> None:
    gang, large, wide = a_gang(Party(need=need(4, 4 * GIB))), node("a", 2, 8 * GIB), node("b", 8, 2 * GIB)
    never = answer(gang, large, wide)
    assert (never.impossible, never.reason) == (
        True,
        "no node has 4 CPUs and 4 GiB of memory together, which the launcher asks for",
    )
    both = Capacity(cpu=Decimal(8), memory=Decimal(8 * GIB), pods=Decimal(10))
    busy = [Spot(machine=Machine(name=spot.machine.name, capacity=both), free=spot.free) for spot in (large, wide)]
    later = answer(gang, *busy)
    assert (later.impossible, later.reason) == (
        False,
        "no node has 4 CPUs and 4 GiB of memory free at the same time, which the launcher asks for",
    )


def test_what_several_nodes_have_of_a_job_is_told_as_one_amount() -> None:
    spots = [Spot(machine=node(name, 4).machine, free=need(1)) for name in "ab"]
    shares = {name: [Share(key="x/big", amounts=need(3))] for name in "ab"}
    gang = a_gang(Party(need=need(4)))
    reason = nodes.preview(gang, spots, shares, counted=gang.whole).reason
    assert reason == "needs 4 CPUs, 2 of 8 are free (held by x/big: 6)"


def test_the_first_quota_in_the_way_is_named_and_one_that_never_allows_it_before_all_others() -> None:
    def quota(name: str, hard: int, used: int) -> Quota:
        return Quota(name=name, namespace="n", hard=Capacity(cpu=Decimal(hard)), used=Capacity(cpu=Decimal(used)))

    gang, room = a_gang(Party(need=need(4))), node("a", 8)
    later = answer(gang, room, quotas=[quota("free", 9, 0), quota("full", 9, 8), quota("fuller", 9, 9)])
    assert (later.impossible, later.reason) == (
        False,
        "needs 4 CPUs, the quota full of namespace n allows 9 and 1 of it are left",
    )
    never = answer(gang, room, quotas=[quota("full", 9, 8), quota("small", 3, 0)])
    assert (never.impossible, never.reason) == (True, "needs 4 CPUs, the quota small of namespace n allows 3")


@pytest.mark.parametrize(
    ("counted", "needs"),
    [
        ("requests.cpu", "4 CPUs"),
        ("limits.cpu", "4 CPU limits"),
        ("requests.memory", "4 GiB of memory"),
        ("limits.memory", "4 GiB of memory limits"),
        ("requests.ephemeral-storage", "4 GiB of ephemeral-storage"),
        ("limits.ephemeral-storage", "4 GiB of ephemeral-storage limits"),
        ("requests.nvidia.com/gpu", "4 GPUs"),
        ("pods", "4 pods"),
    ],
)
def test_what_a_quota_counts_has_a_name(counted: str, needs: str) -> None:
    unit = GIB if "GiB" in needs else 1
    quota = Quota(name="q", namespace="n", hard=Capacity({counted: Decimal(2 * unit)}), used=Capacity())
    job = Capacity({counted: Decimal(4 * unit)})
    found = nodes.preview(a_gang(Party(need=need(1))), [node("a", 4)], {}, counted=job, quotas=[quota])
    assert found.reason.startswith(f"needs {needs}, the quota q of namespace n allows 2")


parties = st.builds(Party, need=st.builds(need, st.integers(0, 3), st.integers(0, 3)))


@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=3),
    parties,
    parties,
    st.integers(0, 4),
)
def test_whatever_can_be_placed_fits(
    sizes: list[tuple[int, int]], launcher: Party, worker: Party, workers: int
) -> None:
    spots = [node(f"n{number}", *size) for number, size in enumerate(sizes)]
    needs = [launcher.need, *[worker.need] * workers]

    def holds(chosen: Sequence[int]) -> bool:
        shares = [total(one for one, at in zip(needs, chosen, strict=True) if at == i) for i in range(len(spots))]
        return all(spot.free.fitting(share) for spot, share in zip(spots, shares, strict=True))

    possible = any(holds(chosen) for chosen in product(range(len(spots)), repeat=len(needs)))
    found = answer(a_gang(launcher, worker, workers), *spots)
    assert (found.admitted, not found.impossible) == (possible, possible)
