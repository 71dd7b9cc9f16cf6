from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from for_every import for_every_row
from hypothesis import given
from hypothesis import strategies as st

from oarsman import names
from oarsman.job.job import Container, Resources, RestartPolicy, Role
from oarsman.job.observed import Place
from oarsman.plan.capacity import one_machine, queue
from oarsman.plan.capacity.amounts import Capacity
from oarsman.plan.capacity.gang import Gang, Party, Placed
from oarsman.plan.capacity.placement import Machine
from oarsman.plan.capacity.queue import Decision
from tests.builders import a_job, at

EIGHT = Machine(name="", capacity=Capacity(gpu=Decimal(2), cpu=Decimal(8), memory=Decimal(16 * 1024**3)))


def ask(key: str, cpus: float = 1, *, minutes: float = 0, memory_gib: int = 0, gpus: int = 0, **given: Any) -> Gang:
    need = Capacity(gpu=Decimal(gpus), cpu=Decimal(str(cpus)), memory=Decimal(memory_gib * 1024**3))
    return Gang(
        key=f"default/{key}",
        launcher=f"{key}-launcher",
        launcher_alone=Party(need=need),
        launcher_apart=True,
        waited=timedelta(minutes=minutes),
        **given,
    )


def admit(waiting: list[Gang], running: list[Gang]) -> list[Decision]:
    return queue.admit(
        waiting,
        [Placed(gang=gang, placement=(Place(member=gang.launcher, machine=EIGHT.name),)) for gang in running],
        [EIGHT],
        one_machine,
    )


def admitted(decisions: list[Decision]) -> list[str]:
    return [d.key.removeprefix("default/") for d in decisions if d.admission.admitted]


@pytest.mark.parametrize(
    ("waiting", "running", "starts"),
    [
        pytest.param([ask("a", 8)], [], ["a"], id="all of the machine"),
        pytest.param([ask("a", 4)], [ask("r", 6)], [], id="not enough left"),
        pytest.param([ask("a", 4), ask("b", 4), ask("c", 1)], [], ["a", "b"], id="as many as fit"),
        pytest.param([ask("young", 8), ask("old", 8, minutes=1)], [], ["old"], id="older first"),
        pytest.param([ask("old", 8, minutes=9), ask("vip", 8, priority=1)], [], ["vip"], id="priority before age"),
        pytest.param([ask("big", 8, minutes=9), ask("small", 1)], [ask("r", 4)], ["small"], id="backfill"),
        pytest.param([ask("big", 8, minutes=10), ask("small", 1)], [ask("r", 4)], [], id="none past a long wait"),
        pytest.param([ask("g", 1, gpus=1), ask("h", 1, gpus=2)], [ask("r", 1, gpus=1)], ["g"], id="GPUs count"),
        pytest.param([ask("m", 1, memory_gib=10)], [ask("r", 1, memory_gib=10)], [], id="memory counts"),
        pytest.param([ask("o", 99, oversubscribe=True)], [], ["o"], id="oversubscribed alone"),
        pytest.param([ask("o", 99, oversubscribe=True)], [ask("r", 1)], ["o"], id="oversubscribed waits for nobody"),
        pytest.param([ask("w", 4)], [ask("o", 99, oversubscribe=True)], ["w"], id="oversubscribed holds nothing"),
        pytest.param([ask("huge", 9, minutes=60), ask("b", 8)], [], ["b"], id="the impossible block nobody"),
    ],
)
def test_who_may_start(waiting: list[Gang], running: list[Gang], starts: list[str]) -> None:
    assert admitted(admit(waiting, running)) == starts


def test_a_waiting_job_is_told_what_it_waits_for_and_who_has_it() -> None:
    [decision] = admit([ask("a", 4)], [ask("train", 6), ask("eval", 0.5)])
    assert decision.admission.position == 1
    assert decision.admission.reason == (
        "needs 4 CPUs, 1.5 of 8 are free (held by default/train: 6, default/eval: 0.5)"
    )


def test_jobs_of_others_are_counted_and_not_named() -> None:
    mine, theirs = ask("mine", 2, owner="ada"), [ask("x", 2, owner="eve"), ask("y", 1, owner="bob")]
    [decision] = admit([ask("a", 4, owner="ada")], [mine, *theirs])
    assert decision.admission.reason == "needs 4 CPUs, 3 of 8 are free (held by others: 3, default/mine: 2)"
    waiting = [ask("big", 8, minutes=12, owner="eve"), ask("small", 1, owner="ada")]
    reason = admit(waiting, [ask("r", 4, owner="eve")])[1].admission.reason
    assert reason == "waits behind another user's job, which has waited 12 min"


def test_behind_a_long_wait_the_reason_names_it() -> None:
    decisions = admit([ask("big", 8, minutes=12), ask("small", 1)], [ask("r", 4)])
    assert [d.admission.position for d in decisions] == [1, 2]
    assert decisions[1].admission.reason == "waits behind default/big, which has waited 12 min"


@pytest.mark.parametrize(
    ("gang", "reason"),
    [
        (ask("a", gpus=4), "asks for 4 GPUs, the machine has 2"),
        (ask("a", gpus=4, oversubscribe=True), "asks for 4 GPUs, the machine has 2"),
        (ask("a", 9), "asks for 9 CPUs, the machine has 8; --oversubscribe starts it anyway"),
        (
            ask("a", memory_gib=17),
            "asks for 17 GiB of memory, the machine has 16 GiB; --oversubscribe starts it anyway",
        ),
    ],
)
def test_what_can_never_fit_is_impossible(gang: Gang, reason: str) -> None:
    [decision] = admit([gang], [])
    assert decision.admission.impossible
    assert decision.admission.reason == reason


@for_every_row(
    [
        (2, 0, "memory", 12, "asks for 24 GiB of memory (2 workers x 12 GiB), the machine has 16 GiB"),
        (1, 0, "memory", 17, "asks for 17 GiB of memory, the machine has 16 GiB"),
        (2, 1, "memory", 12, "asks for 25 GiB of memory, the machine has 16 GiB"),  # the launcher is a part of it
        (4, 0, "cpu", 3, "asks for 12 CPUs (4 workers x 3), the machine has 8"),
        (9, 0, "", 0, ""),  # nobody said how many CPUs, so that it gets all
    ]
)
def test_what_can_never_fit_is_told_by_worker(workers: int, launcher: int, name: str, each: int, reason: str) -> None:
    def role(amount: int, **given: Any) -> Role:
        size = Decimal(amount << 30 if name == "memory" else amount)
        resources = Resources(limits={name: size} if name and amount else {})
        return Role(containers=(Container(name="c", resources=resources),), **given)

    job = replace(a_job(), launcher=role(launcher), worker=role(each, replicas=workers))
    [decision] = admit([one_machine.gang_of(job, at(0), [EIGHT])], [])
    assert decision.admission.reason.removesuffix("; --oversubscribe starts it anyway") == reason


def test_two_jobs_that_ask_for_as_much_in_other_parts_are_told_of_their_own() -> None:
    jobs = [replace(a_job(workers=count), name=f"w{count}") for count in (2, 4)]
    each = [Resources(limits={"cpu": Decimal(24 // job.workers)}) for job in jobs]
    made = [
        replace(job, worker=Role(containers=(Container(name="c", resources=own),), replicas=job.workers))
        for job, own in zip(jobs, each, strict=True)
    ]
    decisions = admit([one_machine.gang_of(job, at(0), [EIGHT]) for job in made], [])
    assert ["2 workers x 12" in d.admission.reason for d in decisions] == [True, False]
    assert ["4 workers x 6" in d.admission.reason for d in decisions] == [False, True]


gangs = st.builds(
    ask,
    st.uuids().map(str),
    st.integers(0, 10),
    gpus=st.integers(0, 3),
    priority=st.integers(0, 2),
    minutes=st.integers(0, 20),
)


@given(st.lists(gangs, max_size=8, unique_by=lambda gang: gang.key), st.lists(gangs, max_size=4))
def test_never_more_is_given_than_there_is_and_everyone_gets_an_answer(
    waiting: list[Gang], running: list[Gang]
) -> None:
    decisions = admit(waiting, running)
    assert sorted(d.key for d in decisions) == sorted(r.key for r in waiting)
    starting = [r for r in waiting if r.key in {d.key for d in decisions if d.admission.admitted}]
    for name, whole in (("cpu", 8), ("gpu", 2)):
        asked = sum(r.whole[name] for r in starting)
        held = sum(r.whole[name] for r in running)
        assert asked == 0 or asked <= whole - held
    positions = [d.admission.position for d in decisions if not d.admission.admitted and not d.admission.impossible]
    assert positions == list(range(1, len(positions) + 1))
    assert all(d.admission.reason for d in decisions if not d.admission.admitted)


def test_a_gang_of_one_machine_is_the_sum_of_launcher_and_workers() -> None:
    resources = Resources(
        requests={"cpu": Decimal("0.5"), "memory": Decimal(1024)}, limits={"nvidia.com/gpu": Decimal(1)}
    )
    container = Container(name="c", resources=resources)
    worker = Role(containers=(container, Container(name="side", resources=resources)), replicas=3)
    job = a_job(restart=RestartPolicy.NEVER)
    job = type(job)(
        name="pi",
        created_at=at(0),
        launcher=Role(containers=(container,)),
        worker=worker,
        annotations={names.ANNOTATION_PRIORITY: "-3", names.ANNOTATION_OVERSUBSCRIBE: "true"},
    )
    gang = one_machine.gang_of(job, at(90), [EIGHT])
    assert gang.whole == Capacity(gpu=Decimal(7), cpu=Decimal("3.5"), memory=Decimal(7168))
    assert (gang.priority, gang.oversubscribe, gang.waited) == (-3, True, timedelta(seconds=90))


@pytest.mark.parametrize(("slots", "cpus"), [(3, 6), (5, 8)])
def test_where_nothing_is_said_of_cpus_a_job_needs_one_per_slot_or_all_there_are(slots: int, cpus: int) -> None:
    job = replace(a_job(workers=2), slots_per_worker=slots)
    assert one_machine.gang_of(job, at(0), [EIGHT]).whole.cpus == cpus


@pytest.mark.parametrize(("written", "priority"), [("", 0), ("5", 5), ("-5", -5), ("--5", 0), ("high", 0)])
def test_a_priority_is_a_whole_number(written: str, priority: int) -> None:
    job = replace(a_job(), annotations={names.ANNOTATION_PRIORITY: written})
    assert one_machine.gang_of(job, at(0), [EIGHT]).priority == priority


def test_a_job_waits_since_it_was_created_whatever_the_clocks_say() -> None:
    assert one_machine.gang_of(a_job(), at(-5), [EIGHT]).waited == timedelta(0)
    assert one_machine.gang_of(replace(a_job(), created_at=None), at(5), [EIGHT]).waited == timedelta(0)
    assert one_machine.gang_of(a_job(), at(5), [EIGHT]).oversubscribe is False


def test_the_largest_holders_are_named_and_the_others_counted() -> None:
    running = [ask(name, cpus) for name, cpus in (("a", 1), ("b", 2), ("c", 1.5), ("d", 0.25), ("e", 0), ("f", 0.25))]
    [decision] = admit([ask("x", 6)], running)
    assert decision.admission.reason == (
        "needs 6 CPUs, 3 of 8 are free (held by default/b: 2, default/c: 1.5, default/a: 1 and 2 more)"
    )
    [three] = admit([ask("x", 6)], running[:3])
    assert three.admission.reason.endswith("(held by default/b: 2, default/c: 1.5, default/a: 1)")
    [one] = admit([ask("x", 1)], [ask("r", 9)])
    assert one.admission.reason == "needs 1 CPU, 0 of 8 are free (held by default/r: 9)"
    [two] = admit([ask("x", 8, memory_gib=16)], [ask("r", 1, memory_gib=1)])
    assert two.admission.reason == (
        "needs 8 CPUs, 7 of 8 are free (held by default/r: 1);"
        " needs 16 GiB of memory, 15 of 16 are free (held by default/r: 1)"
    )


def test_what_is_free_to_the_last_bit_is_not_what_a_job_waits_for() -> None:
    (one,) = admit([ask("a", 7, memory_gib=16)], [ask("r", 1, memory_gib=1)])
    assert one.admission.reason == "needs 16 GiB of memory, 15 of 16 are free (held by default/r: 1)"
