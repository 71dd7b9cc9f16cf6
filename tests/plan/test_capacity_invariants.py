"""What holds for every queue on every rack."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from oarsman.job.observed import Place
from oarsman.plan.capacity import hosts, queue
from oarsman.plan.capacity.amounts import Capacity
from oarsman.plan.capacity.gang import Gang, Party, Placed
from oarsman.plan.capacity.placement import Machine
from oarsman.plan.capacity.queue import Decision, extend

LABELS = st.sampled_from([{}, {"disk": "ssd"}])


def amounts(slots: int, memory: int = 0, gpus: int = 0) -> Capacity:
    return Capacity(gpu=Decimal(gpus), slots=Decimal(slots), memory=Decimal(memory))


machines_of_all_kinds = st.lists(
    st.builds(
        Machine,
        name=st.just(""),
        capacity=st.builds(amounts, st.integers(0, 8), st.integers(0, 8), st.integers(0, 2)),
        labels=LABELS,
        left_out=st.sampled_from(["", "", "", "away"]),
    ),
    max_size=5,
).map(lambda machines: [replace(machine, name=f"node{n}") for n, machine in enumerate(machines, 1)])


@st.composite
def gangs(draw: st.DrawFn) -> Gang:
    name, workers = draw(st.uuids().map(str)), draw(st.integers(0, 6))
    needs = st.builds(amounts, st.integers(0, 3), st.integers(0, 3), st.integers(0, 1))
    return Gang(
        key=name,
        launcher=f"{name}-launcher",
        workers=tuple(f"{name}-worker-{i}" for i in range(workers)),
        worker=Party(need=draw(needs), selector=draw(LABELS)),
        launcher_alone=Party(need=draw(needs), selector=draw(LABELS)),
        launcher_apart=not workers or draw(st.booleans()),
        spread=draw(st.booleans()),
        oversubscribe=draw(st.sampled_from([False, False, True])),
        priority=draw(st.integers(0, 1)),
        waited=timedelta(minutes=draw(st.integers(0, 20))),
    )


queues = st.lists(gangs(), max_size=6, unique_by=lambda gang: gang.key)


def admit(waiting: Sequence[Gang], running: Sequence[Placed], machines: Sequence[Machine]) -> list[Decision]:
    return queue.admit(waiting, running, machines, hosts)


def started(waiting: Sequence[Gang], running: Sequence[Placed], machines: Sequence[Machine]) -> list[Placed]:
    by_key = {gang.key: gang for gang in waiting}
    return [
        Placed(gang=by_key[decision.key], placement=decision.admission.placement)
        for decision in admit(waiting, running, machines)
        if decision.admission.admitted
    ]


def assert_within(machines: Sequence[Machine], jobs: Sequence[Placed]) -> None:
    for machine in machines:
        shares = [job.holds().get(machine.name) for job in jobs]
        for what in ("cpus", "memory", "gpus"):
            assert sum(getattr(share, what) for share in shares if share) <= getattr(machine.capacity, what)


@given(machines_of_all_kinds, queues)
def test_no_machine_is_ever_given_more_than_it_has(machines: list[Machine], waiting: list[Gang]) -> None:
    running = started(waiting[:3], [], machines)
    later = started(waiting[3:], running, machines)
    assert_within(machines, [*running, *later])
    usable = {machine.name: machine for machine in machines if not machine.left_out}
    for job in later:
        for seat in job.placement:
            worker = seat.member != job.gang.launcher
            labels = (job.gang.worker if worker else job.gang.first).selector
            assert labels.items() <= usable[seat.machine].labels.items()


@given(machines_of_all_kinds, queues)
def test_all_members_have_a_place_or_none_has(machines: list[Machine], waiting: list[Gang]) -> None:
    by_key = {gang.key: gang for gang in waiting}
    decisions = admit(waiting, [], machines)
    assert sorted(by_key) == sorted(decision.key for decision in decisions)
    for decision in decisions:
        gang, answered = by_key[decision.key], decision.admission
        members = [seat.member for seat in answered.placement]
        assert members == ([gang.launcher, *gang.workers] if answered.admitted else [])
        assert bool(answered.reason) == (not answered.admitted)
        if answered.admitted and not gang.launcher_apart:
            assert answered.placement[0].machine == answered.placement[1].machine
    assert decisions == admit(waiting[::-1], [], machines)


@given(machines_of_all_kinds, queues)
def test_whoever_fits_on_the_empty_rack_starts_in_the_end(machines: list[Machine], waiting: list[Gang]) -> None:
    possible = {gang.key for gang in waiting if started([gang], [], machines)}
    done: set[str] = set()
    for _ in waiting:
        left = [replace(gang, waited=gang.waited + timedelta(minutes=11)) for gang in waiting if gang.key not in done]
        done |= {job.gang.key for job in started(left, [], machines)}  # and all of them end before the next round
    assert done == possible


def a_small_one(name: str) -> Gang:
    return Gang(key=name, launcher=f"{name}-launcher", workers=(f"{name}-0",), worker=Party(need=amounts(1)))


@given(machines_of_all_kinds, gangs())
def test_while_small_jobs_keep_coming_a_large_one_starts(machines: list[Machine], large: Gang) -> None:
    if not started([large], [], machines):
        return
    running: list[Placed] = []
    for minute in range(20):
        small = [a_small_one(f"small-{minute}-{n}") for n in range(8)]
        waiting = [replace(large, waited=timedelta(minutes=minute)), *small]
        new = started(waiting, running, machines)
        if large.key in {job.gang.key for job in new}:
            return
        running = [*running[8:], *new]  # the oldest end
    raise AssertionError("it never started")


@given(machines_of_all_kinds, gangs(), gangs(), st.integers(0, 8))
def test_scaling_moves_nobody_and_overfills_nothing(
    machines: list[Machine], gang: Gang, other: Gang, workers: int
) -> None:
    running = started([gang, other], [], machines)
    mine = next((job for job in running if job.gang.key == gang.key), None)
    if mine is None or not gang.workers:
        return
    others = [job for job in running if job is not mine]
    scaled = replace(gang, workers=tuple(f"{gang.key}-worker-{i}" for i in range(max(workers, 1))))
    answered = extend(mine.placement, scaled, others, machines)
    kept = [seat for seat in mine.placement if seat.member in {scaled.launcher, *scaled.workers}]
    assert list(answered.placement[: len(kept)]) == kept
    assert answered.admitted or len(answered.placement) == len(kept)
    assert not answered.admitted or len(answered.placement) == 1 + len(scaled.workers)
    assert_within(machines, [*others, Placed(gang=scaled, placement=answered.placement)])


def every_placement(gang: Gang, machines: Sequence[Machine]) -> Iterator[tuple[Place, ...]]:
    """All that are allowed, found by trying all there are."""
    beside = int(not gang.launcher_apart)
    for chosen in product([machine for machine in machines if not machine.left_out], repeat=1 + len(gang.others)):
        parties = [gang.first, *([gang.worker] * len(gang.others))]
        if not all(machine.takes(party) for machine, party in zip(chosen, parties, strict=True)):
            continue
        seats = (chosen[0], *[chosen[0]] * beside, *chosen[1:])
        members = (gang.launcher, *gang.workers)
        yield tuple(Place(member=m, machine=s.name) for m, s in zip(members, seats, strict=True))


def is_within(machines: Sequence[Machine], job: Placed) -> bool:
    held = job.holds()
    free = [machine.capacity - held.get(machine.name, Capacity()) for machine in machines]
    return all(amount >= 0 for left in free for amount in left.values())


def used(placement: Sequence[Place]) -> int:
    return len({seat.machine for seat in placement})


@given(machines_of_all_kinds.map(lambda machines: machines[:3]), gangs().filter(lambda gang: len(gang.workers) < 5))
def test_whatever_can_be_placed_is_and_on_the_right_number_of_machines(machines: list[Machine], gang: Gang) -> None:
    right = [p for p in every_placement(gang, machines) if is_within(machines, Placed(gang=gang, placement=p))]
    [decision] = admit([gang], [], machines)
    assert decision.admission.admitted == bool(right)
    if right and not gang.oversubscribe:
        best = max if gang.spread else min
        assert used(decision.admission.placement) == best(used(placement) for placement in right)
