"""The door to a cluster's jobs, on a real API server."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest
from cluster.cluster import Cluster
from waiting import waiting

from oarsman import names
from oarsman.backends.base import JobRecord, LogQuery
from oarsman.backends.kube import logs, usage
from oarsman.backends.kube.backend import KubeBackend
from oarsman.engines.kube.client import Access, load_access, resources
from oarsman.errors import ConflictError, ManifestError, NotFoundError, UnsupportedError, UserError
from oarsman.job.job import ApiVersion
from oarsman.job.state import Attempt, Cause, Condition, Status

from .played import V1, Played, a_document

NOW = datetime(2026, 1, 1, 8, tzinfo=UTC)


def a_status(*true: str, **given: object) -> Status:
    conditions = tuple(
        Condition(type=kind, status=True, reason=f"MPIJob{kind}", message=kind, last_update_time=NOW, since=NOW)
        for kind in true
    )
    return replace(Status(conditions=conditions), **given)  # type: ignore[arg-type]


def submit(jobs: KubeBackend, document: dict[str, object] | None = None, **given: bool) -> JobRecord:
    return jobs.submit(document or a_document(), environment={"SECRET": "1"}, folder=Path.cwd(), **given)


def test_what_was_submitted_is_found_again(jobs: KubeBackend) -> None:
    record = submit(jobs)
    assert record.job.key == f"{jobs.home}/pi"
    again = jobs.get(record.job.key)
    assert (again.job.uid, again.engine, again.job.workers, again.folder) == (record.job.uid, "kube", 2, None)
    assert again.owner
    assert [found.job.name for found in jobs.list(jobs.home)] == ["pi"]
    assert record.job.key in [found.job.key for found in jobs.list()]
    assert "SECRET" not in str(again.job.document)


def test_lines_are_to_be_tagged_unless_the_manifest_says_otherwise(jobs: KubeBackend) -> None:
    assert submit(jobs).job.annotation(names.ANNOTATION_TAG_OUTPUT) == "true"
    other = a_document(name="other", annotations={names.ANNOTATION_TAG_OUTPUT: "false"})
    assert submit(jobs, other).job.annotation(names.ANNOTATION_TAG_OUTPUT) == "false"


def test_a_v1_job_stays_one_whatever_is_done_to_it(jobs: KubeBackend) -> None:
    key = submit(jobs, a_document(V1)).job.key
    jobs.scale(key, 3)
    jobs.suspend(key)
    record = jobs.get(key)
    assert (record.job.api_version, record.job.workers) == (ApiVersion.V1, 3)
    assert record.job.run_policy.clean_pod_policy.value == "All"


def test_a_mistake_is_found_before_the_cluster_is_asked(jobs: KubeBackend) -> None:
    document = a_document()
    document["spec"]["slotsPerWorker"] = 0
    with pytest.raises(ManifestError):
        submit(jobs, document)
    assert jobs.list(jobs.home) == []


def test_a_name_is_taken_until_the_job_of_that_name_has_ended_and_is_replaced(
    jobs: KubeBackend, played: Played
) -> None:
    first = submit(jobs)
    with pytest.raises(ConflictError, match="there is a job"):
        submit(jobs)
    with pytest.raises(ConflictError, match="has not ended"):
        submit(jobs, replaces=first.job.uid)
    played.status(first.job.key, a_status(names.SUCCEEDED))
    with pytest.raises(ConflictError, match="there is a job"):  # of another one that had that name
        submit(jobs, replaces="uid-before")
    second = submit(jobs, replaces=first.job.uid)
    assert (second.job.uid != first.job.uid, first.run, second.run) == (True, 1, 2)
    played.status(first.job.key, a_status(names.SUCCEEDED))
    third = submit(jobs, replaces=second.job.uid)
    clone = {**third.job.document, "metadata": {**third.job.document["metadata"], "name": "clone"}}
    assert (third.run, submit(jobs, clone).run) == (3, 1)


def test_a_printed_job_can_be_submitted_again(jobs: KubeBackend) -> None:
    first = submit(jobs)
    stopped = jobs.stop(first.job.key)
    document = {**stopped.job.document, "metadata": {**stopped.job.document["metadata"], "name": "again"}}
    again = submit(jobs, document)
    assert (again.stop_requested, stopped.stop_requested) == (False, True)
    assert again.job.uid != first.job.uid


def test_changes_reach_the_object(jobs: KubeBackend) -> None:
    key = submit(jobs).job.key
    assert jobs.scale(key, 5).job.workers == 5
    assert jobs.suspend(key).job.run_policy.suspend
    assert not jobs.resume(key).job.run_policy.suspend
    generation = jobs.get(key).job.generation
    assert jobs.resume(key).job.generation == generation
    with pytest.raises(ManifestError):
        jobs.scale(key, 0)


def test_a_finished_job_is_not_changed(jobs: KubeBackend, played: Played) -> None:
    key = submit(jobs).job.key
    played.status(key, a_status(names.FAILED))
    for change in (jobs.suspend, jobs.resume, jobs.stop, lambda key: jobs.scale(key, 3)):
        with pytest.raises(ConflictError):
            change(key)


def test_an_unknown_job_is_not_found(jobs: KubeBackend) -> None:
    for look in (
        jobs.get,
        jobs.stop,
        jobs.delete,
        jobs.events,
        lambda key: list(jobs.watch(key)),
        jobs.usage,
        lambda key: list(jobs.logs(key)),
    ):
        with pytest.raises(NotFoundError, match="there is no job"):
            look(f"{jobs.home}/nope")


def test_a_namespace_that_is_not_there_is_named(jobs: KubeBackend) -> None:
    with pytest.raises(NotFoundError, match="no namespace nowhere") as caught:
        submit(jobs, a_document(namespace="nowhere"))
    assert caught.value.hint == "make it: kubectl create namespace nowhere"


def test_a_job_that_only_others_would_submit_is_shown_as_far_as_it_goes(jobs: KubeBackend) -> None:
    document = a_document(namespace=jobs.home)
    document["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"] = {"containers": []}
    jobs.ask(lambda kube: kube.create(resources.MPIJOBS, document))
    record = jobs.get(f"{jobs.home}/pi")
    assert (record.job.workers, record.status.phase) == (2, "Pending")


def test_a_watch_sees_every_step_and_ends_with_the_job(jobs: KubeBackend, played: Played) -> None:
    key = submit(jobs).job.key
    seen = []
    for record in jobs.watch(key, timeout=60):
        seen.append(record.status.phase)
        if record.deleting:
            continue
        if len(seen) == 1:
            played.status(key, a_status(names.RUNNING))
        elif record.status.finished:
            jobs.delete(key)
        elif record.status.is_true(names.RUNNING):
            played.status(key, a_status(names.RUNNING, names.SUCCEEDED))
    assert seen[:3] == ["Pending", "Running", "Succeeded"]
    with pytest.raises(NotFoundError):
        jobs.get(key)


def test_a_watch_gives_up_in_time(jobs: KubeBackend) -> None:
    key = submit(jobs).job.key
    with pytest.raises(TimeoutError):
        list(jobs.watch(key, timeout=0.5))


def test_a_watch_that_is_left_leaves_nothing_behind(jobs: KubeBackend) -> None:
    key = submit(jobs).job.key
    watch = jobs.watch(key)
    assert next(watch).job.key == key
    watch.close()  # type: ignore[attr-defined]
    assert jobs.get(key).job.key == key


def test_events_are_those_of_the_job_in_their_order(jobs: KubeBackend, played: Played) -> None:
    record = submit(jobs)
    played.event(
        record, "Late", "second", firstTimestamp="2026-01-01T08:00:00Z", lastTimestamp="2026-01-01T09:00:00Z", count=3
    )
    played.event(record, "Early", "first", firstTimestamp="2026-01-01T08:30:00Z", lastTimestamp="2026-01-01T08:30:00Z")
    found = jobs.events(record.job.key)
    assert [(event.reason, event.count) for event in found] == [("Early", 1), ("Late", 3)]
    assert found[1].first_time < found[0].time


def test_logs_of_a_job_that_has_not_begun_are_empty(jobs: KubeBackend, played: Played) -> None:
    key = submit(jobs).job.key
    assert list(jobs.logs(key)) == []
    played.launcher(key)  # no kubelet: it waits to be scheduled
    assert list(jobs.logs(key)) == []


def test_the_launcher_of_a_v1_job_is_found_by_either_of_its_labels(jobs: KubeBackend, played: Played) -> None:
    record = submit(jobs, a_document(V1))
    for attempt, role in enumerate(("launcher", "master"), 1):
        played.launcher(record.job.key, attempt=attempt, suffix=str(attempt), role=role)
        found = jobs.ask(lambda kube: logs.launcher_of(kube, record.job, None))
        assert found is not None
        assert usage.host_of(found) == record.job.launcher_host
        assert names.role_of(found["metadata"]["labels"]) == "launcher"
        assert found["metadata"]["annotations"][names.ANNOTATION_ATTEMPT] == str(attempt)


def test_of_a_pod_that_is_gone_the_last_lines_are_shown(jobs: KubeBackend, played: Played) -> None:
    key = submit(jobs).job.key
    cause = Cause(summary="rank 1 failed", rank=1, host="pi-worker-0", last_lines=("Traceback", "ValueError"))
    played.status(key, a_status(names.FAILED, cause=cause, attempts=(Attempt(number=1, ended=NOW),)))
    for query in (LogQuery(), LogQuery(follow=True)):
        found = jobs.logs(key, query)
        lines = [next(found), next(found)]
        with pytest.raises(NotFoundError, match="is gone, and its log with it; its status kept the last 2 lines"):
            next(found)
        assert [(line.rank, line.host, line.text) for line in lines] == [
            (1, "pi-worker-0", "Traceback"),
            (1, "pi-worker-0", "ValueError"),
        ]


def test_last_lines_that_may_be_of_any_rank_are_shown_as_the_launchers(jobs: KubeBackend, played: Played) -> None:
    record = submit(jobs)
    words = ("epoch 2", "Process name: [[9651,1],3]", "Exit code:    5")
    cause = Cause(summary="rank 3 failed", rank=3, host="pi-worker-1", last_lines=words)
    played.status(record.job.key, a_status(names.FAILED, cause=cause, attempts=(Attempt(number=1, ended=NOW),)))
    found = jobs.logs(record.job.key, LogQuery())
    assert [(line.rank, line.host, line.text) for line in (next(found), next(found), next(found))] == [
        (None, record.job.launcher_host, text) for text in words
    ]


def test_following_a_job_that_is_deleted_before_it_begins_ends(jobs: KubeBackend) -> None:
    key = submit(jobs).job.key
    threading.Timer(1, jobs.delete, [key]).start()
    assert list(jobs.logs(key, LogQuery(follow=True))) == []


def test_use_is_not_known_without_a_metrics_server(jobs: KubeBackend) -> None:
    key = submit(jobs).job.key
    with pytest.raises(UnsupportedError) as caught:
        jobs.usage(key)
    assert "metrics server" in (caught.value.hint or "")


def test_a_young_job_is_not_called_forgotten(jobs: KubeBackend) -> None:
    key = submit(jobs).job.key
    assert jobs.silence(key) is None
    assert jobs.silence(f"{jobs.home}/nope") is None


def test_a_job_that_nobody_looks_at_is_explained(jobs: KubeBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oarsman.backends.kube.backend.SILENCE_SECONDS", -60.0)
    assert "operator" in (jobs.silence(submit(jobs).job.key) or "")


def test_event_loops_close_what_nobody_closed_and_others_open_it_again() -> None:
    backend = KubeBackend(Access(server="https://127.0.0.1:1", ssl=None, source=""))
    first = asyncio.run(backend.kube())
    assert first._session is None

    async def later() -> None:
        second = await backend.kube()
        assert second is not first
        assert second is await backend.kube()
        assert second._session is not None
        await backend.close()
        assert second._session is None

    asyncio.run(later())


def test_a_user_without_rights_is_told_so(served: Cluster, api_namespace: str) -> None:
    from oarsman.engines.kube.client.credentials import Impersonating

    access = load_access(kubeconfig=Path(str(served.kubeconfig)))
    nobody = waiting(
        KubeBackend(replace(access, credentials=Impersonating(access.credentials, user="nobody", uid="", groups=())))
    )
    try:
        with pytest.raises(UserError, match="this user may not do that") as caught:
            nobody.list(api_namespace)
        assert "doctor" in (caught.value.hint or "")
    finally:
        nobody.close()


def test_what_is_asked_of_one_job_is_not_done_to_another_that_has_its_name_by_now(jobs: KubeBackend) -> None:
    before = submit(jobs)
    for ask in (jobs.stop, jobs.delete, jobs.suspend, jobs.resume, partial(jobs.scale, workers=1)):
        with pytest.raises(NotFoundError, match="there is no job"):
            ask(before.job.key, uid="of the job that had this name")
    assert jobs.get(before.job.key).job.document == before.job.document
    assert jobs.suspend(before.job.key, uid=before.job.uid).job.run_policy.suspend
