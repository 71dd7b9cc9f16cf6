from __future__ import annotations

import json
from dataclasses import is_dataclass
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oarsman import names
from oarsman.job.state import Attempt, Cause, Condition, QueuePlace, ReplicaCount, Status, described
from oarsman.status.codec import from_wire, to_wire
from oarsman.text.sentence import Text, dump
from tests.builders import T0, a_status, at

EPOCH = datetime.fromtimestamp(0, UTC)
times = st.datetimes(datetime(1970, 1, 2), datetime(2200, 1, 1), timezones=st.just(UTC))
texts = st.text(max_size=20)
small = st.integers(0, 300)
causes = st.builds(
    Cause,
    summary=texts,
    rank=st.none() | small,
    host=st.none() | texts,
    exit_code=st.none() | small,
    signal=st.none() | small,
    memory_limit_hit=st.booleans(),
    last_lines=st.lists(texts, max_size=3).map(tuple),
    hint=st.none() | texts,
)
counts = st.builds(ReplicaCount, active=small, succeeded=small, failed=small, ready=small)
attempts = st.builds(
    Attempt,
    number=small,
    started=st.none() | times,
    ended=st.none() | times,
    outcome=texts,
    cause=st.none() | causes,
    workers=st.none() | small,
)
conditions = st.builds(
    Condition,
    type=texts,
    status=st.booleans(),
    reason=texts,
    message=texts,
    last_update_time=times,
    since=times,
)
statuses = st.builds(
    Status,
    conditions=st.lists(conditions, max_size=4).map(tuple),
    launcher=counts,
    worker=counts,
    start_time=st.none() | times,
    completion_time=st.none() | times,
    observed_generation=small,
    attempts=st.lists(attempts, max_size=3).map(tuple),
    cause=st.none() | causes,
    queue=st.none() | st.builds(QueuePlace, position=small, reason=texts),
    timeline=st.dictionaries(st.sampled_from(names.STEPS), times),
    retry_at=st.none() | times,
    placement=st.dictionaries(small, st.sampled_from(["a-worker-0", "a-worker-1", "a-launcher"])),
    machines=st.dictionaries(st.sampled_from(["a-worker-0", "a-launcher"]), st.sampled_from(["node1", "node2"])),
)


@given(statuses)
def test_a_status_comes_back_from_the_wire_as_it_went(status: Status) -> None:
    assert from_wire(json.loads(json.dumps(to_wire(status)))) == status


WHY = Text("{who} {did}", who=Text("the launcher"), did=Text("exited with code {code}", code=3))
SAID = Status(
    conditions=a_status().conditions,
    cause=Cause(summary=WHY, hint=Text("check {file}", file="a")),
    attempts=(Attempt(number=1, cause=Cause(summary=WHY)),),
    queue=QueuePlace(position=1, reason=Text("needs {need}", need=Text("{n} CPUs", n=2))),
)


def sentences(status: Status) -> list[str]:
    assert status.cause is not None
    assert status.queue is not None
    assert status.attempts[0].cause is not None
    return [status.cause.summary, status.cause.hint or "", status.queue.reason, status.attempts[0].cause.summary]


def test_a_sentence_is_written_in_english_and_comes_back_with_what_it_is_made_of() -> None:
    written = to_wire(SAID)
    assert type(written["cause"]["summary"]) is str
    assert written["cause"]["summary"] == "the launcher exited with code 3"
    read = from_wire(json.loads(json.dumps(written)))
    assert read == SAID
    assert [dump(text) for text in sentences(read)] == [dump(text) for text in sentences(SAID)]
    assert to_wire(read) == written


def test_what_sentences_are_made_of_is_left_out_where_nobody_asks_for_it() -> None:
    written = to_wire(SAID)
    made_of = written.pop("texts")
    assert list(made_of) == ["the launcher exited with code 3", "check a", "needs 2 CPUs"]
    assert to_wire(SAID, texts=False) == written
    assert [type(text) for text in sentences(from_wire(written))] == [str] * 4


def test_what_a_sentence_is_made_of_counts_only_where_it_makes_that_sentence() -> None:
    written = to_wire(SAID)
    written["texts"] = {"check a": {"template": "delete {file}", "arguments": {"file": "a"}}, "needs 2 CPUs": 7}
    assert [type(text) for text in sentences(from_wire(written))] == [str] * 4
    assert from_wire(written) == SAID


def test_upstream_fields_are_where_upstream_tools_look() -> None:
    status = a_status(launcher=ReplicaCount(active=1), worker=ReplicaCount(active=2, ready=2))
    assert to_wire(status) == {
        "phase": status.phase,
        "conditions": [
            {
                "type": "Created",
                "status": "True",
                "reason": "MPIJobCreated",
                "message": "said before",
                "lastUpdateTime": "2026-01-01T00:00:00Z",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }
        ],
        "replicaStatuses": {"Launcher": {"active": 1}, "Worker": {"active": 2, "ready": 2}},
        "startTime": "2026-01-01T00:00:00Z",
        "observedGeneration": 1,
    }


def test_a_thousand_ranks_take_one_line_per_host() -> None:
    placement = {rank: f"x-worker-{rank // 500}" for rank in range(1000)}
    assert to_wire(Status(placement=placement))["placement"] == {"x-worker-0": "0-499", "x-worker-1": "500-999"}


def test_a_status_of_another_operator_is_read() -> None:
    found: dict[str, object] = {
        "conditions": [{"type": "Running", "status": "Unknown", "lastTransitionTime": "2026-01-01T00:00:05Z"}],
        "replicaStatuses": {"Launcher": {}, "Worker": {"labelSelector": {}}},
        "lastReconcileTime": None,
        "somethingElse": 1,
    }
    status = from_wire(found)
    assert not status.is_true("Running")
    assert status.conditions[0].last_update_time == status.conditions[0].since == at(5)
    assert (status.conditions[0].reason, status.conditions[0].message) == ("", "")


def test_a_condition_without_times_is_as_old_as_can_be() -> None:
    (bare,) = from_wire({"conditions": [{"type": "Running", "status": "True"}]}).conditions
    assert bare.last_update_time == bare.since == datetime(1970, 1, 1, tzinfo=UTC)
    found = {"type": "Running", "status": "True", "lastUpdateTime": "2026-01-01T00:00:05Z"}
    (updated,) = from_wire({"conditions": [found]}).conditions
    assert updated.last_update_time == updated.since == at(5)


def test_a_condition_that_does_not_say_whether_it_holds_does_not() -> None:
    (bare,) = from_wire({"conditions": [{"type": "Running"}]}).conditions
    assert bare.status is False


def test_a_time_without_a_zone_is_utc() -> None:
    assert from_wire({"startTime": "2026-01-01T00:00:05"}).start_time == at(5)


def test_ranks_of_a_host_are_written_as_ranges() -> None:
    for ranks, text in (([0], "0"), ([0, 1], "0-1"), ([0, 2, 3, 4, 9], "0,2-4,9")):
        assert to_wire(Status(placement=dict.fromkeys(ranks, "a")))["placement"] == {"a": text}
        assert from_wire({"placement": {"a": text}}).placement == dict.fromkeys(ranks, "a")


def test_a_cause_that_says_nothing_is_read() -> None:
    assert from_wire({"cause": {}}).cause == Cause(summary="")


def test_what_is_empty_is_left_out_and_what_is_zero_is_not() -> None:
    attempt = Attempt(number=0, workers=0, cause=Cause(summary="", rank=0, exit_code=0, signal=0))
    assert to_wire(Status(attempts=(attempt,))) == {
        "conditions": [],
        "replicaStatuses": {"Launcher": {}, "Worker": {}},
        "attempts": [{"number": 0, "workers": 0, "cause": {"summary": "", "rank": 0, "exitCode": 0, "signal": 0}}],
    }


def test_nothing_at_all_is_a_new_status() -> None:
    assert from_wire(None) == from_wire({}) == Status()


def test_times_of_other_zones_and_finer_clocks_are_read() -> None:
    read = from_wire({"startTime": "2026-01-01T01:00:00+01:00", "completionTime": "2026-01-01T00:00:00.123456789Z"})
    assert read.start_time == T0
    assert read.completion_time == at(0.123456)


def test_what_is_null_or_empty_is_read_as_missing() -> None:
    found: dict[str, object] = {
        "conditions": [{"type": "Running", "status": True, "reason": None, "lastUpdateTime": "", "message": None}],
        "replicaStatuses": {"Launcher": None, "Worker": {"ready": None, "active": 2}},
        "attempts": [{"number": 1, "startedAt": "", "outcome": None, "cause": {}, "workers": 0, "launcher": None}],
        "cause": {"summary": None, "rank": 0, "lastLines": None, "memoryLimitHit": None},
        "queue": {},
        "timeline": {"submitted": "", "admitted": None},
        "placement": None,
    }
    status = from_wire(found)
    assert status == Status(
        conditions=(
            Condition(type="Running", status=False, reason="", message="", last_update_time=EPOCH, since=EPOCH),
        ),
        worker=ReplicaCount(active=2),
        attempts=(Attempt(number=1, cause=Cause(summary=""), workers=0),),
        cause=Cause(summary="", rank=0),
    )


@pytest.mark.parametrize("found", [{"conditions": [{"status": "True"}]}, {"attempts": [{"outcome": "Failed"}]}])
def test_what_has_no_name_or_number_is_no_condition_and_no_attempt(found: dict[str, object]) -> None:
    with pytest.raises(KeyError):
        from_wire(found)


@pytest.mark.parametrize("cls", [Status, Condition, ReplicaCount, Attempt, Cause, QueuePlace])
def test_every_field_of_a_status_says_what_it_is(cls: type) -> None:
    assert [one.name for one in described(cls) if not (one.says.what or is_dataclass(one.type))] == []
    stand_ins = {one.says.otherwise for one in described(cls)} - {""}
    assert stand_ins <= {one.wire for one in described(cls)}
