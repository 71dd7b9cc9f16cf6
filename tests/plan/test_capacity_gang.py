from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oarsman import names
from oarsman.job.policies import RestartPolicy
from oarsman.job.role import Container, Resources, Role
from oarsman.plan.capacity.gang import Capacity, Decision, Request, admit, request_of
from tests.builders import a_job, at

EIGHT = Capacity(cpus=Decimal(8), memory=Decimal(16 * 1024**3), gpus=2)


def ask(key: str, cpus: float = 1, *, minutes: float = 0, memory_gib: int = 0, **given: Any) -> Request:
    return Request(
        key=f"default/{key}",
        cpus=Decimal(str(cpus)),
        memory=Decimal(memory_gib * 1024**3),
        waited=timedelta(minutes=minutes),
        **given,
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
def test_who_may_start(waiting: list[Request], running: list[Request], starts: list[str]) -> None:
    assert admitted(admit(waiting, running, EIGHT)) == starts


def test_a_waiting_job_is_told_what_it_waits_for_and_who_has_it() -> None:
    [decision] = admit([ask("a", 4)], [ask("train", 6), ask("eval", 0.5)], EIGHT)
    assert decision.admission.position == 1
    assert decision.admission.reason == (
        "needs 4 CPUs, 1.5 of 8 are free (held by default/train: 6, default/eval: 0.5)"
    )


def test_jobs_of_others_are_counted_and_not_named() -> None:
    mine, theirs = ask("mine", 2, owner="ada"), [ask("x", 2, owner="eve"), ask("y", 1, owner="bob")]
    [decision] = admit([ask("a", 4, owner="ada")], [mine, *theirs], EIGHT)
    assert decision.admission.reason == "needs 4 CPUs, 3 of 8 are free (held by others: 3, default/mine: 2)"
    waiting = [ask("big", 8, minutes=12, owner="eve"), ask("small", 1, owner="ada")]
    reason = admit(waiting, [ask("r", 4, owner="eve")], EIGHT)[1].admission.reason
    assert reason == "waits behind a job of somebody else, which has waited 12 min"


def test_behind_a_long_wait_the_reason_names_it() -> None:
    decisions = admit([ask("big", 8, minutes=12), ask("small", 1)], [ask("r", 4)], EIGHT)
    assert [d.admission.position for d in decisions] == [1, 2]
    assert decisions[1].admission.reason == "waits behind default/big, which has waited 12 min"


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        (ask("a", gpus=4), "asks for 4 GPUs, the machine has 2"),
        (ask("a", gpus=4, oversubscribe=True), "asks for 4 GPUs, the machine has 2"),
        (ask("a", 9), "asks for 9 CPUs, the machine has 8; --oversubscribe starts it all the same"),
        (
            ask("a", memory_gib=17),
            "asks for 17 GiB of memory, the machine has 16; --oversubscribe starts it all the same",
        ),
    ],
)
def test_what_can_never_fit_is_impossible(request_: Request, reason: str) -> None:
    [decision] = admit([request_], [], EIGHT)
    assert decision.admission.impossible
    assert decision.admission.reason == reason


requests = st.builds(
    Request,
    key=st.uuids().map(str),
    cpus=st.integers(0, 10).map(Decimal),
    gpus=st.integers(0, 3),
    priority=st.integers(0, 2),
    waited=st.integers(0, 20).map(lambda m: timedelta(minutes=m)),
)


@given(st.lists(requests, max_size=8, unique_by=lambda r: r.key), st.lists(requests, max_size=4))
def test_never_more_is_given_than_there_is_and_everyone_gets_an_answer(
    waiting: list[Request], running: list[Request]
) -> None:
    decisions = admit(waiting, running, EIGHT)
    assert sorted(d.key for d in decisions) == sorted(r.key for r in waiting)
    starting = [r for r in waiting if r.key in {d.key for d in decisions if d.admission.admitted}]
    for name, whole in (("cpus", 8), ("gpus", 2)):
        asked = sum(getattr(r, name) for r in starting)
        held = sum(getattr(r, name) for r in running)
        assert asked == 0 or asked <= whole - held
    positions = [d.admission.position for d in decisions if not d.admission.admitted and not d.admission.impossible]
    assert positions == list(range(1, len(positions) + 1))
    assert all(d.admission.reason for d in decisions if not d.admission.admitted)


def test_a_request_sums_launcher_and_workers() -> None:
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
    request = request_of(job, at(90))
    assert (request.cpus, request.memory, request.gpus) == (Decimal("3.5"), Decimal(7168), 7)
    assert (request.priority, request.oversubscribe, request.waited) == (-3, True, timedelta(seconds=90))
