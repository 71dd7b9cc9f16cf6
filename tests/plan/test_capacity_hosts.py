"""Gangs on a rack. A row of machines is written `4 4 2+1g`: slots, and GPUs behind a plus."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from types import ModuleType
from typing import Any

import pytest

from oarsman import names
from oarsman.job.job import Container, Job, Resources, Role
from oarsman.job.observed import Admission, Place
from oarsman.plan.capacity import hosts, queue
from oarsman.plan.capacity.amounts import Capacity
from oarsman.plan.capacity.gang import Gang, Party, Placed
from oarsman.plan.capacity.hosts import gang_of
from oarsman.plan.capacity.placement import Machine
from oarsman.plan.capacity.queue import Decision, extend, room_left
from oarsman.text.sentence import Text
from tests.builders import a_job, at
from tests.text.chinese import english_words, in_chinese

GIB = 1024**3
NO_LABELS: Mapping[str, str] = {}
WORDS_OF_OTHERS = ("no route to host", "its clock is wrong", "silent", "disk=ssd", "zone=b")


def amounts(*, slots: int = 0, memory: int = 0, gpus: int = 0) -> Capacity:
    return Capacity(gpu=Decimal(gpus), slots=Decimal(slots), memory=Decimal(memory))


def rack(row: str, *, memory_gib: int = 16) -> list[Machine]:
    machines = []
    for number, written in enumerate(row.split(), 1):
        slots, _, gpus = written.partition("+")
        has = amounts(slots=int(slots), memory=memory_gib * GIB, gpus=int(gpus.removesuffix("g") or 0))
        machines.append(Machine(name=f"node{number}", capacity=has))
    return machines


def left_out(machines: Sequence[Machine], **why: str) -> list[Machine]:
    return [replace(machine, left_out=why.get(machine.name, "")) for machine in machines]


def labelled(machines: Sequence[Machine], **labels: dict[str, str]) -> list[Machine]:
    return [replace(machine, labels=labels.get(machine.name, {})) for machine in machines]


def ask(
    name: str = "pi",
    workers: int = 1,
    slots: int = 1,
    *,
    gpus: int = 0,
    memory_gib: int = 0,
    minutes: float = 0,
    launcher_slots: int = 0,
    apart: bool = False,
    selector: Mapping[str, str] = NO_LABELS,
    **given: Any,
) -> Gang:
    need = amounts(slots=slots, memory=memory_gib * GIB, gpus=gpus)
    return Gang(
        key=f"default/{name}",
        waited=timedelta(minutes=minutes),
        launcher=names.launcher_name(name),
        workers=tuple(names.worker_name(name, i) for i in range(workers)),
        worker=Party(need=need, selector=selector),
        launcher_alone=Party(need=amounts(slots=launcher_slots)),
        launcher_apart=apart,
        **given,
    )


def runs(name: str, *nodes: int, slots: int = 1, **given: Any) -> Placed:
    """A job with one worker on each of these nodes, its launcher beside the first."""
    gang = ask(name, len(nodes), slots, **given)
    return Placed(gang=gang, placement=places(gang, (nodes[0], *nodes)))


def places(gang: Gang, nodes: Sequence[int]) -> tuple[Place, ...]:
    members = (gang.launcher, *gang.workers)
    return tuple(Place(member=m, machine=f"node{n}") for m, n in zip(members, nodes, strict=True))


def where(placement: Sequence[Place], *, launcher: bool = False) -> str:
    """`1 1 2`: the nodes of the workers, in order."""
    seats = [seat for seat in placement if launcher or not seat.member.endswith("-launcher")]
    return " ".join(seat.machine.removeprefix("node") for seat in seats)


def admit(waiting: Sequence[Gang], running: Sequence[Placed], machines: Sequence[Machine]) -> list[Decision]:
    return queue.admit(waiting, running, machines, hosts)


def answer(gang: Gang, machines: Sequence[Machine], *running: Placed) -> Admission:
    [decision] = admit([gang], running, machines)
    return decision.admission


def assert_has_chinese(reason: str) -> None:
    said = in_chinese(reason)
    assert said != reason
    assert english_words(said, WORDS_OF_OTHERS) == [], said


# -- where -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("row", "gang", "running", "nodes"),
    [
        pytest.param("4 4", ask(workers=6), [], "1 1 1 1 2 2", id="one machine is filled first"),
        pytest.param("4 4", ask(workers=3, slots=2), [], "1 1 2", id="a worker is not cut in two"),
        pytest.param("1 4", ask(workers=4), [], "2 2 2 2", id="as few machines as possible"),
        pytest.param("1 2 3 3", ask(workers=5), [], "2 2 3 3 3", id="of the smallest choices the earliest"),
        pytest.param("3 1 2", ask(workers=5), [], "1 1 1 3 3", id="a small one between is passed over"),
        pytest.param("4 4", ask(workers=3), [runs("r", 1, slots=3)], "2 2 2", id="what is held is not free"),
        pytest.param("4 4+2g", ask(workers=2, gpus=1), [], "2 2", id="GPUs count"),
        pytest.param("4 4 4", ask(workers=4, spread=True), [], "1 2 3 1", id="by node"),
        pytest.param("1 2 9", ask(workers=6, spread=True), [], "1 2 3 2 3 3", id="by node, the full ones left out"),
        pytest.param("4 4", ask(workers=2, launcher_slots=1, slots=2), [], "1 2", id="a launcher takes room"),
        pytest.param("2 3", ask(workers=2, launcher_slots=1, slots=2), [], "2 1", id="only one takes the launcher"),
        pytest.param("2 3 4", ask(workers=2, launcher_slots=1, slots=2, spread=True), [], "2 1", id="and by node"),
        pytest.param("4 4", ask(workers=8, slots=9, oversubscribe=True), [], "1 2 1 2 1 2 1 2", id="crowded evenly"),
        pytest.param("8 4", ask(workers=6, oversubscribe=True), [], "1 1 2 1 1 2", id="by what they have"),
        pytest.param("4 4", ask(oversubscribe=True), [runs("r", 1, slots=2)], "2", id="crowded where least is"),
        pytest.param("4 4", ask(oversubscribe=True), [runs("r", 1, oversubscribe=True)], "2", id="beside the crowd"),
        pytest.param("4+1g 4+1g", ask(workers=2, gpus=1, oversubscribe=True), [], "1 2", id="GPUs are not shared"),
    ],
)
def test_every_worker_has_a_machine(row: str, gang: Gang, running: list[Placed], nodes: str) -> None:
    decision = answer(gang, rack(row), *running)
    assert decision.admitted, decision.reason
    assert where(decision.placement) == nodes


def test_the_launcher_sits_beside_the_first_worker() -> None:
    decision = answer(ask("pi", 2, 2, launcher_slots=1), rack("2 3"))
    assert decision.placement == (
        Place(member="pi-launcher", machine="node2"),
        Place(member="pi-worker-0", machine="node2"),
        Place(member="pi-worker-1", machine="node1"),
    )


@pytest.mark.parametrize(("workers", "nodes"), [(0, "1"), (2, "1 1 2"), (3, "1 1 2 2")])
def test_a_launcher_that_takes_ranks_has_a_place_of_its_own(workers: int, nodes: str) -> None:
    decision = answer(ask("pi", workers, 2, launcher_slots=2, apart=True), rack("4 4"))
    assert where(decision.placement, launcher=True) == nodes


@pytest.mark.parametrize(("workers", "nodes"), [(1, "1 3"), (2, "2 1 3")])
def test_by_node_such_a_launcher_leaves_the_machines_to_workers_if_it_must(workers: int, nodes: str) -> None:
    decision = answer(ask("pi", workers, 2, launcher_slots=1, apart=True, spread=True), rack("3 1 2"))
    assert where(decision.placement, launcher=True) == nodes


@pytest.mark.parametrize(
    ("selector", "nodes"),
    [
        ({"disk": "ssd"}, "2 2"),
        ({"disk": "ssd", "zone": "b"}, "3 3"),
        ({"kubernetes.io/hostname": "node3"}, "3 3"),
        ({}, "1 1"),
    ],
)
def test_workers_go_where_the_labels_are(selector: dict[str, str], nodes: str) -> None:
    machines = labelled(rack("4 4 4"), node2={"disk": "ssd"}, node3={"disk": "ssd", "zone": "b"})
    assert where(answer(ask(workers=2, selector=selector), machines).placement) == nodes


# -- who ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("waiting", "running", "starts"),
    [
        pytest.param([ask("a", 8)], [], "a", id="the whole rack"),
        pytest.param([ask("a", 2, 3), ask("b", 1, 2)], [], "a", id="no machine has two slots left"),
        pytest.param([ask("a", 2, 3), ask("b", 2, 1)], [], "a b", id="one slot on each"),
        pytest.param([ask("young", 8), ask("old", 8, minutes=1)], [], "old", id="older first"),
        pytest.param([ask("old", 8, minutes=9), ask("vip", 8, priority=1)], [], "vip", id="priority before age"),
        pytest.param([ask("big", 8, minutes=9), ask("small", 1)], [runs("r", 1)], "small", id="passing over"),
        pytest.param([ask("big", 8, minutes=10), ask("small", 1)], [runs("r", 1)], "", id="none past a long wait"),
        pytest.param([ask("huge", 9, minutes=60), ask("b", 8)], [], "b", id="the impossible block nobody"),
        pytest.param([ask("w", 8)], [runs("o", 1, 2, slots=9, oversubscribe=True)], "w", id="who crowds holds nothing"),
        pytest.param([ask("m", 2, memory_gib=9)], [runs("r", 1, memory_gib=8)], "", id="memory counts"),
    ],
)
def test_who_may_start(waiting: list[Gang], running: list[Placed], starts: str) -> None:
    decisions = admit(waiting, running, rack("4 4"))
    started = [decision.key.removeprefix("default/") for decision in decisions if decision.admission.admitted]
    assert " ".join(started) == starts


def test_a_job_that_waits_for_a_machine_that_is_away_holds_nobody_up() -> None:
    machines = left_out(rack("4 4"), node2="no route to host")
    big, small = admit([ask("big", 8, minutes=60), ask("small", 1)], [], machines)
    assert (big.admission.admitted, big.admission.impossible) == (False, False)
    assert small.admission.admitted


# -- why not -----------------------------------------------------------------------------------------------
OTHER = runs("other", 3, slots=3)
LEFT_OUT = left_out(rack("4 4"), node2="no route to host")
ALL_OUT = left_out(rack("1 " * 10), **{f"node{n}": f"silent {n}" for n in range(1, 11)})
DENIED = left_out(
    rack("1 1"),
    node1=Text("{host}: {why}", host="node1", why=Text("it does not let us log in")),
    node2=Text("{host}: {why}", host="node2 (10.0.0.2)", why=Text("no answer on port {port}", port=22)),
)


@pytest.mark.parametrize(
    ("machines", "gang", "running", "reason"),
    [
        (
            rack("4+1g 4+2g 4+2g"),
            ask(workers=4, slots=2, gpus=1),
            [OTHER],
            "needs 4 workers with 2 slots and 1 GPU each; 3 fit now: "
            "node3 has 1 of 4 slots free (held by default/other: 3)",
        ),
        (
            rack("4 4"),
            ask(workers=4, slots=2),
            [runs("a", 1), runs("b", 1)],
            "needs 4 workers with 2 slots each; 3 fit now: "
            "node1 has 2 of 4 slots free (held by default/a: 1, default/b: 1)",
        ),
        (
            rack("4"),
            ask(slots=4),
            [runs("a", 1)],
            "needs 1 worker with 4 slots; it does not fit now: node1 has 3 of 4 slots free (held by default/a: 1)",
        ),
        (
            rack("2 2"),
            ask(workers=2, slots=2),
            [runs("a", 1)],
            "needs 2 workers with 2 slots each; 1 fits now: node1 has 1 of 2 slots free (held by default/a: 1)",
        ),
        (
            rack("2 2"),
            ask(workers=2, slots=2),
            [runs("a", 1, 2)],
            "needs 2 workers with 2 slots each; none fits now: node1 has 1 of 2 slots free (held by default/a: 1)",
        ),
        (
            rack("1+1g"),
            ask(gpus=1, oversubscribe=True),
            [runs("a", 1, gpus=1)],
            "needs 1 worker with 1 GPU; it does not fit now: node1 has 0 of 1 GPU free (held by default/a: 1)",
        ),
        (
            rack("8"),
            ask(memory_gib=12),
            [runs("a", 1, memory_gib=8)],
            "needs 1 worker with 1 slot and 12 GiB of memory; it does not fit now: "
            "node1 has 8 of 16 GiB of memory free (held by default/a: 8)",
        ),
        (
            rack("4"),
            ask(workers=0, launcher_slots=4, apart=True),
            [runs("a", 1)],
            "needs 1 launcher with 4 slots; it does not fit now: node1 has 3 of 4 slots free (held by default/a: 1)",
        ),
        (
            rack("4 4"),
            ask(workers=3, slots=2, launcher_slots=2, apart=True),
            [runs("a", 1)],
            "needs 1 launcher and 3 workers with 2 slots each; 3 fit now: "
            "node1 has 3 of 4 slots free (held by default/a: 1)",
        ),
        (
            rack("3"),
            ask(workers=1, slots=2, launcher_slots=1),
            [runs("a", 1)],
            "needs 1 worker with 2 slots and 1 launcher with 1 slot; it does not fit now: "
            "node1 has 2 of 3 slots free (held by default/a: 1)",
        ),
        (
            rack("4 4"),
            ask(workers=2, slots=2, launcher_slots=1, apart=True),
            [runs("a", 1, 2, slots=3)],
            "needs 2 workers with 2 slots each and 1 launcher with 1 slot; 1 fits now: "
            "node1 has 1 of 4 slots free (held by default/a: 3)",
        ),
        (
            rack("4 4"),
            ask(slots=2, launcher_slots=2),
            [runs("a", 1, 2, slots=3)],
            "needs 1 worker with 2 slots and 1 launcher with 2 slots; it does not fit now: "
            "node1 has 1 of 4 slots free (held by default/a: 3)",
        ),
        (
            rack("8"),
            ask(workers=8, owner="ada"),
            [runs("a", 1, owner="ada"), runs("b", 1, slots=3, owner="eve")],
            "needs 8 workers with 1 slot each; 4 fit now: "
            "node1 has 4 of 8 slots free (held by others: 3, default/a: 1)",
        ),
        (
            LEFT_OUT,
            ask(workers=8),
            [],
            "asks for 8 slots, the hosts have 4; --oversubscribe starts it anyway; node2 is left out: no route to host",
        ),
        (
            LEFT_OUT,
            ask(workers=4),
            [runs("a", 1)],
            "needs 4 workers with 1 slot each; 3 fit now: node1 has 3 of 4 slots free (held by default/a: 1); "
            "node2 is left out: no route to host",
        ),
        (
            ALL_OUT,
            ask(),
            [],
            f"no host can be used now; {'; '.join(f'node{n} is left out: silent {n}' for n in range(1, 9))}; "
            "2 more hosts are left out",
        ),
        (
            ALL_OUT[:9],
            ask(),
            [],
            f"no host can be used now; {'; '.join(f'node{n} is left out: silent {n}' for n in range(1, 9))}; "
            "1 more host is left out",
        ),
        (
            DENIED,
            ask(),
            [],
            "no host can be used now; node1: it does not let us log in; node2 (10.0.0.2): no answer on port 22",
        ),
    ],
)
def test_a_waiting_job_is_told_what_it_waits_for(
    machines: list[Machine], gang: Gang, running: list[Placed], reason: str
) -> None:
    decision = answer(gang, machines, *running)
    assert decision.reason == reason
    assert_has_chinese(decision.reason)
    assert (decision.position, decision.impossible, decision.placement) == (1, False, ())


def test_a_machine_that_is_left_out_is_not_mentioned_where_it_would_not_help() -> None:
    machines = left_out(rack("4 1"), node2="no route to host")
    assert "left out" not in answer(ask(slots=4), machines, runs("a", 1)).reason


@pytest.mark.parametrize(
    ("machines", "workers", "about"),
    [
        (LEFT_OUT, 4, names.REASON_WAITING),
        (LEFT_OUT, 8, names.REASON_NO_HOSTS),
        (ALL_OUT, 1, names.REASON_NO_HOSTS),
        (rack("4 4"), 8, names.REASON_WAITING),
        (rack("4 4"), 9, names.REASON_NEVER_FITS),
    ],
)
def test_a_job_waits_for_room_or_for_hosts_or_never_fits(machines: list[Machine], workers: int, about: str) -> None:
    assert answer(ask(workers=workers), machines, runs("a", 1)).about == about


CLOSED = [replace(machine, left_out="node2: its host key is not known yet", closed=True) for machine in rack("4")]


@pytest.mark.parametrize(
    ("others", "workers", "about"),
    [
        (rack("4"), 8, names.REASON_CLOSED),
        (left_out(rack("4"), node1="away"), 4, names.REASON_NO_HOSTS),  # it may come back
        (left_out(rack("4"), node1="away"), 8, names.REASON_CLOSED),
        (rack("4"), 4, names.REASON_WAITING),
    ],
)
def test_a_job_that_cannot_start_before_somebody_acts_is_told_so(
    others: list[Machine], workers: int, about: str
) -> None:
    closed = [replace(machine, name="node2") for machine in CLOSED]
    assert answer(ask(workers=workers), [*others, *closed], runs("a", 1)).about == about


UNKNOWN = [Machine(name="node1", capacity=Capacity(), unknown=("gpu", "slots", "memory"), left_out="silent")]


@pytest.mark.parametrize("gang", [ask(), ask(slots=64), ask(gpus=8), ask(workers=100, memory_gib=500)])
def test_a_host_whose_size_is_not_known_turns_nobody_away_for_good(gang: Gang) -> None:
    found = answer(gang, UNKNOWN)
    assert (found.admitted, found.impossible) == (False, False)
    assert found.reason == "no host can be used now; node1 is left out: silent"
    assert room_left([], UNKNOWN) == (Capacity(), Capacity())


def test_a_known_size_counts_where_the_rest_is_not_known() -> None:
    known = Capacity(slots=Decimal(2))
    machine = Machine(name="node1", capacity=known, unknown=("gpu", "memory"), left_out="silent")
    assert answer(ask(slots=3), [machine]).impossible
    assert not answer(ask(slots=2, gpus=1), [machine]).impossible


def test_behind_a_long_wait_the_reason_names_it() -> None:
    decisions = admit([ask("big", 8, minutes=12), ask("small")], [runs("r", 1)], rack("4 4"))
    assert decisions[1].admission.reason == "waits behind default/big, which has waited 12 min"


def test_who_has_waited_longest_is_waited_for_and_not_the_next_who_has_waited_long() -> None:
    waiting = [ask("first", 8, minutes=30), ask("second", 7, minutes=20), ask("small")]
    *_, small = admit(waiting, [runs("r", 1)], rack("4 4"))
    assert small.admission.reason == "waits behind default/first, which has waited 30 min"


WAY_OUT = "; --oversubscribe starts it anyway"


@pytest.mark.parametrize(
    ("machines", "gang", "reason"),
    [
        ([], ask(), "the inventory has no hosts"),
        (rack("8 4"), ask(slots=16), f"no host has 16 slots for one worker (node1 has most: 8){WAY_OUT}"),
        (rack("8 8 8 8"), ask(workers=40), f"asks for 40 slots, the hosts have 32{WAY_OUT}"),
        (rack("2 2"), ask(workers=4, launcher_slots=1, apart=True), f"asks for 5 slots, the hosts have 4{WAY_OUT}"),
        (rack("8+2g 8+1g"), ask(gpus=4), "no host has 4 GPUs for one worker (node1 has most: 2)"),
        (rack("8 8"), ask(gpus=1), "no host has 1 GPU for one worker (none has any)"),
        (rack("8 8"), ask(gpus=1, oversubscribe=True), "no host has 1 GPU for one worker (none has any)"),
        (rack("8+2g 8+2g"), ask(workers=5, gpus=1), "asks for 5 GPUs, the hosts have 4"),
        (
            rack("8"),
            ask(memory_gib=17),
            f"no host has 17 GiB of memory for one worker (node1 has most: 16 GiB){WAY_OUT}",
        ),
        (rack("8 4+1g"), ask(slots=8, gpus=1), f"no host has 8 slots and 1 GPU together for one worker{WAY_OUT}"),
        (
            rack("5 5"),
            ask(workers=3, slots=3),
            f"even with nothing else on them, the hosts have room for 2 of 3 workers{WAY_OUT}",
        ),
        (
            rack("4 4"),
            ask(slots=4, launcher_slots=1),
            f"no host has 5 slots for the launcher and a worker (node1 has most: 4){WAY_OUT}",
        ),
        (
            rack("4 4"),
            ask(workers=0, launcher_slots=5, apart=True),
            f"no host has 5 slots for the launcher (node1 has most: 4){WAY_OUT}",
        ),
        (
            rack("4 4"),
            ask(selector={"zone": "b", "disk": "ssd"}),
            "no host has the labels for one worker: disk=ssd, zone=b",
        ),
        (
            labelled(rack("4 8"), node1={"disk": "ssd"}),
            ask(slots=5, selector={"disk": "ssd"}),
            f"no host with its labels has 5 slots for one worker (node1 has most: 4){WAY_OUT}",
        ),
        (
            labelled(rack("4 8"), node1={"disk": "ssd"}),
            ask(workers=5, selector={"disk": "ssd"}),
            f"asks for 5 slots, the hosts with its labels have 4{WAY_OUT}",
        ),
    ],
)
def test_what_can_never_fit_is_impossible(machines: list[Machine], gang: Gang, reason: str) -> None:
    decision = answer(gang, machines)
    assert (decision.reason, decision.impossible, decision.placement) == (reason, True, ())
    assert_has_chinese(decision.reason)


# -- scaling what runs ---------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("row", "nodes", "gang", "others", "after"),
    [
        pytest.param("4 4", [1, 1, 2], ask(workers=4), [], "1 2 1 1", id="its own machines first"),
        pytest.param("2 4 4", [1, 1, 1], ask(workers=4), [runs("r", 2, slots=3)], "1 1 3 3", id="few new ones"),
        pytest.param("4 4 4", [1, 1, 2], ask(workers=4, spread=True), [], "1 2 3 1", id="by node"),
        pytest.param("4 4", [1, 1, 2], ask(workers=1), [], "1", id="the highest leave"),
        pytest.param("4 4", [2, 2, 1], ask(workers=2), [], "2 1", id="nothing changed"),
        pytest.param("1 4", [1, 1], ask(workers=3, oversubscribe=True), [], "1 2 2", id="crowded evenly"),
    ],
)
def test_a_running_job_keeps_its_places_when_it_is_scaled(
    row: str, nodes: list[int], gang: Gang, others: list[Placed], after: str
) -> None:
    before = places(ask(workers=len(nodes) - 1), nodes)
    answered = extend(before, gang, others, rack(row))
    assert answered.admitted, answered.reason
    assert where(answered.placement) == after
    assert [seat.member for seat in answered.placement] == [gang.launcher, *gang.workers]


@pytest.mark.parametrize(
    ("machines", "reason"),
    [
        (
            rack("4 4"),
            "needs 3 more workers with 2 slots each; 2 fit now: node1 has 0 of 4 slots free "
            "(held by default/pi: 2, default/r: 2)",
        ),
        (
            left_out(rack("4 4 8"), node3="its clock is wrong"),
            "needs 3 more workers with 2 slots each; 2 fit now: "
            "node1 has 0 of 4 slots free (held by default/pi: 2, default/r: 2); node3 is left out: its clock is wrong",
        ),
    ],
)
def test_more_workers_get_their_places_together_or_not_at_all(machines: list[Machine], reason: str) -> None:
    before = places(ask(workers=1, slots=2), [1, 1])
    answered = extend(before, ask(workers=4, slots=2), [runs("r", 1, slots=2)], machines)
    assert (answered.admitted, answered.placement, answered.reason) == (False, before, reason)
    assert_has_chinese(answered.reason)


@pytest.mark.parametrize(
    ("more", "needs"),
    [
        (1, "1 more worker with 2 slots; it does not fit now"),
        (2, "2 more workers with 2 slots each; none fits now"),
    ],
)
def test_workers_that_find_no_place_are_counted(more: int, needs: str) -> None:
    before = places(ask(slots=2), [1, 1])
    answered = extend(before, ask(workers=1 + more, slots=2), [], rack("3"))
    assert answered.reason == f"needs {needs}: node1 has 1 of 3 slots free (held by default/pi: 2)"
    assert_has_chinese(answered.reason)


# -- what a job asks for ------------------------------------------------------------------------------------
def a_role(replicas: int = 1, template: dict[str, Any] | None = None, **requests: int) -> Role:
    amounts = {name.replace("gpu", "nvidia.com/gpu"): Decimal(amount) for name, amount in requests.items()}
    container = Container(name="c", resources=Resources(requests=amounts))
    return Role(containers=(container,), replicas=replicas, template=template or {})


def needs(gang: Gang) -> tuple[str, str]:
    launcher, worker = (party.need for party in (gang.launcher_alone, gang.worker))
    return f"{launcher.cpus} {launcher.memory} {launcher.gpus}", f"{worker.cpus} {worker.memory} {worker.gpus}"


@pytest.mark.parametrize(
    ("launcher", "worker", "as_worker", "expected"),
    [
        pytest.param(a_role(), a_role(3), False, ("0 0 0", "2 0 0"), id="slots where nothing is said"),
        pytest.param(a_role(), a_role(3, cpu=5, gpu=1), False, ("0 0 0", "5 0 1"), id="CPUs where they are"),
        pytest.param(a_role(), a_role(3, cpu=1), False, ("0 0 0", "2 0 0"), id="never fewer slots than processes"),
        pytest.param(a_role(cpu=1, memory=7), a_role(3), False, ("1 7 0", "2 0 0"), id="a launcher that asks"),
        pytest.param(a_role(), a_role(3, memory=9), True, ("2 0 0", "2 9 0"), id="a launcher that takes ranks"),
        pytest.param(a_role(memory=7), None, False, ("2 7 0", "0 0 0"), id="a launcher alone"),
    ],
)
def test_a_gang_asks_member_by_member(
    launcher: Role, worker: Role | None, as_worker: bool, expected: tuple[str, str]
) -> None:
    job = Job(name="pi", launcher=launcher, worker=worker, slots_per_worker=2, run_launcher_as_worker=as_worker)
    gang = gang_of(job, at(0))
    assert needs(gang) == expected
    assert gang.launcher_apart == (as_worker or worker is None)
    assert gang.whole.cpus == gang.launcher_alone.need.cpus + 3 * gang.worker.need.cpus


def test_labels_and_the_way_of_placing_come_from_the_manifest() -> None:
    template = {"spec": {"nodeSelector": {"disk": "ssd"}}}
    job = replace(a_job(), worker=a_role(2, template), annotations={names.ANNOTATION_PLACEMENT: "node"}, owner="ada")
    gang = gang_of(job, at(90))
    assert (gang.worker.selector, gang.launcher_alone.selector, gang.spread) == ({"disk": "ssd"}, {}, True)
    assert (gang.key, gang.owner, gang.waited) == ("default/pi", "ada", timedelta(seconds=90))
    assert not gang_of(a_job(), at(0)).spread


def test_what_a_job_holds_is_summed_by_machine() -> None:
    job = runs("pi", 1, 1, 2, slots=2, gpus=1, launcher_slots=1)
    assert job.holds() == {"node1": amounts(slots=5, gpus=2), "node2": amounts(slots=2, gpus=1)}
    crowding = replace(job, gang=replace(job.gang, oversubscribe=True))
    assert {name: (held.cpus, held.gpus) for name, held in crowding.holds().items()} == {
        "node1": (0, 2),
        "node2": (0, 1),
    }


def test_a_preview_says_what_the_queue_will() -> None:
    machines, running = left_out(rack("4 4 4"), node3="away"), [runs("r", 1, slots=3)]
    found = queue.preview(ask(workers=4), [], running, machines, hosts)
    assert (found.admitted, found.impossible, where(found.placement)) == (True, False, "2 2 2 2")
    free, whole = room_left(running, machines)
    assert (free.cpus, whole.cpus) == (5, 8)
    later = queue.preview(ask(workers=4), [ask("before", 4, minutes=1)], running, machines, hosts)
    assert (later.admitted, later.impossible, later.placement) == (False, False, ())
    assert later.reason.startswith("needs 4 workers with 1 slot each; 1 fits now: node2 has 0 of 4 slots free")
    assert queue.preview(ask(slots=5), [], running, machines, hosts).impossible


def test_what_many_jobs_ask_alike_is_gone_through_once_and_each_is_told_the_same_as_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    times = {"fits": 0, "never": 0, "short": 0}

    def count(module: ModuleType, name: str) -> None:
        real = getattr(module, name)

        def counted(*given: Any) -> Any:
            times[name] += 1
            return real(*given)

        monkeypatch.setattr(module, name, counted)

    for module, name in ((queue, "fits"), (hosts, "never"), (hosts, "short")):
        count(module, name)
    machines, running = rack("4 4"), runs("big", 1, 1, 1, 2, 2, 2)
    crowd = [ask(f"job-{number:03}", 3) for number in range(100)] + [ask("small", 2), ask("huge", 99)]
    told = {decision.key: decision.admission for decision in admit(crowd, [running], machines)}
    assert [key for key, admission in told.items() if admission.admitted] == ["default/small"]
    assert times == {"fits": 3, "never": 1, "short": 1}
    assert (told[crowd[99].key].position, told[crowd[99].key].reason) == (0, "at least 10 jobs are before it")
    for gang in (crowd[0], crowd[9], crowd[101]):
        alone = answer(gang, machines, running)
        assert (told[gang.key].reason, told[gang.key].about) == (alone.reason, alone.about)
