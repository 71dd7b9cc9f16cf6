"""The job index: rows in order without sorting them anew, and what is made of them made once per change."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from console.api.memory import FAILED, RUNNING, SUCCEEDED, MemoryJobs
from hypothesis import given, settings
from hypothesis import strategies as st

from oarsman.backends.base import Batch, JobRecord
from oarsman.service import job_index as module
from oarsman.service.job_index import JobIndex, sort_key

STATUSES = (RUNNING, SUCCEEDED, FAILED)
FIELDS = ("name", "created", "state", "started", "priority")
# Which job, what becomes of it (None: it goes), and how many go into one batch.
CHANGES = st.lists(
    st.lists(st.tuples(st.integers(0, 9), st.sampled_from([None, 0, 1, 2])), min_size=1, max_size=6), max_size=12
)


def a_record(number: int, kind: int, revision: int) -> JobRecord:
    jobs = MemoryJobs()
    jobs.add(f"job-{number}", status=STATUSES[kind])
    (record,) = jobs.records()
    created = record.created_at + timedelta(seconds=number % 3)  # some came at the same moment
    return replace(record, created_at=created, revision=revision)


RECORDS = {(number, kind): a_record(number, kind, 0) for number in range(10) for kind in range(len(STATUSES))}


@pytest.fixture(scope="module")
def empty() -> JobIndex:
    """One that never learns anything by itself."""
    return JobIndex(MemoryJobs())


def take(job_index: JobIndex, batch: Batch) -> None:
    job_index._take(module._entries(batch), batch.gone, whole=batch.whole)


@settings(deadline=None)
@given(changes=CHANGES, most=st.sampled_from([0, 3, 200]))
def test_an_order_that_was_mended_is_the_order_of_what_is_there(
    changes: list[list[tuple[int, int | None]]], most: int, empty: JobIndex
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_MOST_MENDED", most)
        take(empty, Batch(records=tuple(RECORDS[number, 0] for number in range(5)), whole=True))
        for revision, batch in enumerate(changes, 1):
            before = {by: empty.ordered(by) for by in FIELDS}
            kept = {by: list(order) for by, order in before.items()}
            last = dict(batch)
            records = [replace(RECORDS[n, kind], revision=revision) for n, kind in last.items() if kind is not None]
            gone = tuple(f"default/job-{n}" for n, kind in last.items() if kind is None)
            take(empty, Batch(records=tuple(records), gone=gone))
            for by in FIELDS:
                assert empty.ordered(by) == sorted(empty.entries(), key=sort_key(by))
                assert before[by] == kept[by], "whoever still reads an older order is not disturbed"


def test_what_is_made_of_the_rows_is_made_once_per_change(empty: JobIndex) -> None:
    made: list[int] = []
    assert {empty.once("the number", lambda: made.append(1) or len(made)) for _ in range(4)} == {1}
    take(empty, Batch(records=(replace(RECORDS[0, 1], revision=100),)))
    assert empty.once("the number", lambda: made.append(1) or len(made)) == 2


def test_what_was_made_while_jobs_changed_is_not_kept(empty: JobIndex) -> None:

    def slowly() -> str:
        take(empty, Batch(records=(replace(RECORDS[0, 1], revision=200),)))
        return "old"

    assert empty.once("word", slowly) == "old"
    assert empty.once("word", lambda: "new") == "new"
