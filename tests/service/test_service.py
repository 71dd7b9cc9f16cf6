"""The service: what it says of jobs, to whom, and what it makes of what it is sent."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from console.api.memory import FAILED, QUEUED, RUNNING, SUCCEEDED, MemoryJobs, a_document, at
from waiting import waiting

from oarsman import names
from oarsman.backends.base import Amounts, HostRecord, Preview
from oarsman.backends.local import capacity as local_preview
from oarsman.errors import ConflictError, ForbiddenError, ManifestError, NotFoundError, UsageError
from oarsman.job.state import QueuePlace
from oarsman.manifest import documents, job_from_document
from oarsman.portal import shared
from oarsman.service import JobService
from oarsman.service.documents import all_templates
from oarsman.service.job_index import JobIndex
from oarsman.service.models import Clone, Create, Identity, JobQuery, Role
from oarsman.service.preview import arithmetic

ADA = Identity(name="ada", role=Role.USER)
BOB = Identity(name="bob", role=Role.USER)
VERA = Identity(name="vera", role=Role.VIEWER)
ROOT = Identity(name="root", role=Role.ADMIN)


@pytest.fixture
def jobs() -> MemoryJobs:
    return MemoryJobs()


@pytest.fixture
def job_index(jobs: MemoryJobs) -> Iterator[JobIndex]:
    found = JobIndex(jobs)
    yield found
    waiting(found).close()


def a_desk(jobs: MemoryJobs, who: Identity = ADA, **given: Any) -> Any:
    return waiting(JobService(jobs, who, environment={"PATH": "/bin"}, folder=Path("/"), now=lambda: at(60), **given))


def test_no_change_of_a_job_takes_the_name_of_one_of_its_runs(jobs: MemoryJobs) -> None:
    """Whose run it was may not be whose the job is now."""
    jobs.add(status=FAILED, owner="ada")
    jobs.keep("default/pi")
    jobs.add(status=SUCCEEDED, owner="bob", run=2)
    service = a_desk(jobs)
    for change in (service.rerun, service.stop, service.delete, lambda key: service.clone(key, Clone())):
        with pytest.raises(NotFoundError):
            change("default/pi#1")
    assert jobs.submitted == []
    assert a_desk(jobs).job("default/pi", run=1).summary.state == "Failed"


class OfACluster(MemoryJobs):
    runs = None  # type: ignore[assignment]


def test_where_earlier_runs_are_not_kept_the_job_is_the_only_one_and_others_are_not_found() -> None:
    jobs = OfACluster()
    jobs.add(status=FAILED, run=3)
    service = a_desk(jobs)
    assert [row.run for row in service.runs("default/pi")] == [3]
    with pytest.raises(NotFoundError, match="only the newest run"):
        service.events("default/pi", run=1)


# -- what it says ------------------------------------------------------------------------------------
def test_a_row_has_everything_the_page_shows(jobs: MemoryJobs) -> None:
    annotations = {"oarsman.dev/priority": "5", "oarsman.dev/description": "the digits"}
    jobs.add(status=QUEUED, metadata={"annotations": annotations})
    (row,) = a_desk(jobs).jobs().items
    assert (row.state, row.queue_position, row.priority) == ("Queued", 1, 5)
    assert (row.description, row.message) == ("the digits", "needs 4 CPUs, 2 are free")
    assert (row.workers, row.slots_per_worker, row.ranks, row.total_replicas) == (2, 2, 4, 3)
    assert (row.cpus, row.memory_bytes, row.gpus) == (2.0, 2 << 30, 0)


def test_whoever_waits_says_for_what_and_in_which_queue(jobs: MemoryJobs) -> None:
    jobs.add(status=QUEUED, document=a_document(runPolicy={"schedulingPolicy": {"queue": "night"}}))
    jobs.add("other")
    service = a_desk(jobs)
    assert {row.name: row.queue for row in service.jobs().items} == {"pi": "night", "other": ""}
    (waits,) = service.queue()
    assert (waits.key, waits.position, waits.reason) == ("default/pi", 1, "needs 4 CPUs, 2 are free")
    assert (waits.wanted.cpus, waits.wanted.memory_bytes, waits.wanted.gpus) == (2.0, 2 << 30, 0)


def test_who_is_far_from_the_head_of_the_queue_is_counted_when_the_queue_is_asked_for(jobs: MemoryJobs) -> None:
    said = replace(QUEUED.conditions[-1], reason=names.REASON_WAITING)
    far = replace(QUEUED, conditions=(said,), queue=QueuePlace(position=0, reason="at least 10 jobs are before it"))
    head = replace(far, queue=QueuePlace(position=10, reason="needs 4 CPUs"))
    for name, status in (("b", far), ("head", head), ("a", far)):
        jobs.add(name, status=status)
    jobs.add("urgent", status=far, metadata={"annotations": {"oarsman.dev/priority": "5"}})
    places = {waits.key.partition("/")[2]: waits.position for waits in a_desk(jobs).queue()}
    assert list(places.values()) == [10, 11, 12, 13]
    assert (places["head"], places["urgent"]) == (10, 11)


@pytest.mark.parametrize(
    ("given", "state"),
    [
        ({"status": RUNNING}, "Running"),
        ({"status": RUNNING, "stop_requested": True}, "Stopping"),
        ({"status": SUCCEEDED, "stop_requested": True}, "Succeeded"),
        ({"status": RUNNING, "deleting": True}, "Deleting"),
        ({"status": FAILED}, "Failed"),
        ({"status": QUEUED}, "Queued"),
    ],
)
def test_what_was_just_asked_for_comes_before_what_still_is(
    jobs: MemoryJobs, given: dict[str, Any], state: str
) -> None:
    jobs.add(**given)
    assert a_desk(jobs).job("default/pi").summary.state == state


def test_a_failed_job_says_why_and_which_rank(jobs: MemoryJobs) -> None:
    jobs.add(status=FAILED)
    job = a_desk(jobs).job("default/pi")
    assert job.cause is not None
    assert (job.summary.cause, job.cause.rank, job.cause.last_lines) == (job.cause.summary, 1, ("no luck",))
    assert [(rank.rank, rank.planned_host, rank.exit_code) for rank in job.ranks] == [
        (0, "pi-worker-0", None),
        (1, "pi-worker-0", 3),
        (2, "pi-worker-1", None),
        (3, "pi-worker-1", None),
    ]


def test_ranks_that_run_are_told_from_those_nobody_has_seen(jobs: MemoryJobs) -> None:
    jobs.add(status=RUNNING)
    ranks = a_desk(jobs).job("default/pi").ranks
    assert [(rank.host, rank.state) for rank in ranks][2:] == [("pi-worker-1", "running"), ("pi-worker-1", "")]


def test_of_a_script_that_launched_more_than_once_the_ranks_of_the_last_launch_are_shown(jobs: MemoryJobs) -> None:
    document = a_document()
    launcher = document["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]
    launcher["command"] = ["sh", "-c", "mpirun -n 4 ./prepare; mpirun -n 2 --map-by node ./pi"]
    last = {0: "pi-worker-0", 1: "pi-worker-1"}
    jobs.add(document=document, status=replace(SUCCEEDED, placement=last))
    ranks = a_desk(jobs).job("default/pi").ranks
    assert [(rank.host, rank.planned_host) for rank in ranks] == [
        ("pi-worker-0", "pi-worker-0"),
        ("pi-worker-1", None),  # the first launch had another plan for it
    ]


def test_the_completed_manifest_is_the_same_job_with_nothing_left_out(jobs: MemoryJobs) -> None:
    jobs.add()
    job = a_desk(jobs).job("default/pi")
    (completed,) = documents(job.completed)
    assert completed["spec"]["mpiReplicaSpecs"]["Worker"]["restartPolicy"] == "Never"
    assert completed["spec"]["mpiImplementation"] == "OpenMPI"
    (given,) = documents(job.manifest)
    assert given == a_document()
    assert job_from_document(completed).launch == job_from_document(given).launch


def test_failures_of_the_last_day_come_newest_first(jobs: MemoryJobs) -> None:
    jobs.add("old", FAILED)
    jobs.add("fine", SUCCEEDED)
    assert [found.key for found in a_desk(jobs).overview().failures] == ["default/old"]
    late = waiting(JobService(jobs, ADA, now=lambda: at(0) + timedelta(days=2)))
    assert late.overview().failures == []


def test_a_host_that_gets_no_jobs_is_no_room_but_what_they_have_of_it(jobs: MemoryJobs) -> None:
    four, one = Amounts(cpus=4.0), Amounts(cpus=1.0)
    jobs.machines = [
        HostRecord(name="a", state="ready", total=four, held=one),
        HostRecord(name="b", state="left out", total=four, held=one),
    ]
    found = a_desk(jobs).overview()
    assert (found.total.cpus, found.held.cpus) == (5.0, 2.0)


# -- to whom -----------------------------------------------------------------------------------------
def test_everybody_sees_what_is_theirs_to_see(jobs: MemoryJobs) -> None:
    jobs.add("mine")
    jobs.add("theirs", owner="bob")
    seen = {who.name: {row.name for row in a_desk(jobs, who).jobs().items} for who in (ADA, BOB, VERA, ROOT)}
    assert seen == {"ada": {"mine"}, "bob": {"theirs"}, "vera": {"mine", "theirs"}, "root": {"mine", "theirs"}}


def test_filters_offer_what_the_caller_may_see(jobs: MemoryJobs) -> None:
    jobs.add("mine")
    jobs.add("theirs", owner="bob", metadata={"namespace": "team"})
    assert a_desk(jobs, ROOT).facets() == (["ada", "bob"], ["default", "team"], ["local"], ["OpenMPI"], [], [0])
    assert a_desk(jobs, ADA).facets() == (["ada"], ["default"], ["local"], ["OpenMPI"], [], [0])


def test_a_viewer_neither_makes_nor_copies_nor_ends(jobs: MemoryJobs) -> None:
    jobs.add(status=SUCCEEDED)
    service = a_desk(jobs, VERA)
    for act in (
        lambda: service.create(Create(document=a_document("x"))),
        lambda: service.clone("default/pi", Clone()),
        lambda: service.rerun("default/pi"),
        lambda: service.delete("default/pi"),
    ):
        with pytest.raises(ForbiddenError):
            act()
    assert jobs.submitted == []


def test_a_name_that_somebody_else_has_is_not_replaced(jobs: MemoryJobs) -> None:
    jobs.add(status=SUCCEEDED, owner="bob")
    with pytest.raises(ConflictError):
        a_desk(jobs).create(Create(document=a_document(), replace=True))
    assert jobs.record("default/pi").owner == "bob"


def test_an_admin_who_runs_a_job_again_does_not_take_it_away(jobs: MemoryJobs) -> None:
    jobs.add(status=SUCCEEDED)
    assert a_desk(jobs, ROOT).rerun("default/pi").summary.owner == "ada"
    with pytest.raises(ConflictError):  # it has not ended now
        a_desk(jobs, ROOT).rerun("default/pi")


# -- what it makes -----------------------------------------------------------------------------------
def test_a_job_is_made_for_whoever_asks_with_what_they_say(jobs: MemoryJobs, tmp_path: Path) -> None:
    wanted = Create(document=a_document(), folder=str(tmp_path), environment={"A": "1"})
    assert a_desk(jobs).create(wanted).summary.owner == "ada"
    assert jobs.submitted == [{"environment": {"PATH": "/bin", "A": "1"}, "folder": tmp_path, "owner": "ada"}]


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({}, UsageError),
        ({"manifest": "a: 1", "document": {}}, UsageError),
        ({"manifest": "a: 1"}, ManifestError),
        ({"document": a_document(), "folder": "here"}, UsageError),
        ({"document": a_document(), "folder": "/no/such/folder"}, UsageError),
    ],
)
def test_what_makes_no_job_is_refused(jobs: MemoryJobs, given: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        a_desk(jobs).create(Create(**given))


def test_two_jobs_in_one_text_are_refused(jobs: MemoryJobs) -> None:
    text = "\n---\n".join(template.manifest for template in all_templates()[:2])
    with pytest.raises(UsageError, match="2 jobs"):
        a_desk(jobs).create(Create(manifest=text))


def test_clones_find_free_names_and_take_changes(jobs: MemoryJobs) -> None:
    jobs.add(status=SUCCEEDED, metadata={"annotations": {"oarsman.dev/stop-requested": "true"}})
    service = a_desk(jobs)
    patch = {"spec": {"slotsPerWorker": 4, "runPolicy": None}}
    names = [service.clone("default/pi", Clone(patch=patch)).summary.name for _ in range(2)]
    assert names == ["pi-2", "pi-3"]
    made = jobs.record("default/pi-3").job
    assert (made.slots_per_worker, "runPolicy" in made.document["spec"]) == (4, False)
    assert made.annotations == {}  # that the first one was stopped says nothing about this one
    assert service.clone("default/pi-3", Clone()).summary.name == "pi-4"
    assert service.clone("default/pi", Clone(name="tau")).summary.name == "tau"
    assert service.clone("default/pi", Clone(patch={"metadata": {"name": "phi"}})).summary.name == "phi"


@pytest.mark.parametrize(
    "patch", [{"spec": None}, {"kind": "Pod"}, {"metadata": None}, {"spec": {"slotsPerWorker": -1}}]
)
def test_a_clone_that_is_no_job_is_refused(jobs: MemoryJobs, patch: dict[str, Any]) -> None:
    jobs.add()
    with pytest.raises((ManifestError, UsageError)):
        a_desk(jobs).clone("default/pi", Clone(patch=patch))


# -- before it runs ----------------------------------------------------------------------------------
class OnThisMachine(MemoryJobs):
    async def preview(self, document: Mapping[str, Any], *, environment: Mapping[str, str], folder: Path) -> Preview:
        return local_preview.preview(job_from_document(document), environment, folder)


def test_a_preview_says_what_the_job_would_be() -> None:
    for jobs in (OnThisMachine(), MemoryJobs()):
        seen = a_desk(jobs).preview(Create(document=a_document()))
        assert (seen.total_replicas, seen.slots, seen.ranks, seen.problems) == (3, 4, 4, ())
        assert seen.placement == {"pi-worker-0": [0, 1], "pi-worker-1": [2, 3]}
        assert seen.hostfile.startswith("pi-worker-0")
        assert seen.launch_line.endswith("-n 4 ./pi")
        assert seen.fit is not None
        assert seen.fit.now


def test_a_preview_warns_of_a_command_that_would_run_once(jobs: MemoryJobs) -> None:
    (said,) = a_desk(jobs).preview(Create(document=a_launch("python", "train.py"))).warnings
    assert said.startswith("the command does not start MPI, so it runs once")


def test_a_preview_warns_of_fields_that_are_not_known(jobs: MemoryJobs) -> None:
    document = a_document()
    document["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["hostNetwrok"] = True
    seen = a_desk(jobs).preview(Create(document=document))
    assert seen.problems == ()
    assert seen.warnings[0].endswith("Worker.template.spec.hostNetwrok: unknown field 'hostNetwrok'")


def test_a_document_of_an_old_version_is_kept_in_todays_words(jobs: MemoryJobs) -> None:
    made = a_desk(jobs).create(Create(document={**a_document(), "apiVersion": "kubeflow.org/v1alpha2"}))
    assert made.document["apiVersion"] == "kubeflow.org/v2beta1"


def test_a_preview_of_a_mistake_names_its_place_and_nothing_else(jobs: MemoryJobs) -> None:
    seen = a_desk(jobs).preview(
        Create(manifest="kind: MPIJob\napiVersion: kubeflow.org/v2beta1\nmetadata: {name: A_b}\n")
    )
    assert {(found.line, found.field) for found in seen.problems} >= {(3, "metadata.name")}
    assert seen.document is None
    assert a_desk(jobs).preview(Create()).problems[0].field == "manifest"


def a_launch(*words: str, workers: int = 2, slots: int = 4, **spec: Any) -> dict[str, Any]:
    document = a_document(slotsPerWorker=slots, **spec)
    roles = document["spec"]["mpiReplicaSpecs"]
    roles["Launcher"]["template"]["spec"]["containers"][0]["command"] = list(words)
    roles["Worker"]["replicas"] = workers
    return document


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        (a_launch("mpirun", "-np", "8", "x"), "2 workers x 4 slots = 8 slots; mpirun starts 8 ranks, which fills them"),
        (
            a_launch("mpirun", "-np", "2", "x"),
            "2 workers x 4 slots = 8 slots; mpirun starts 2 ranks, which leaves 6 free",
        ),
        (
            a_launch("mpirun", "x", workers=1, slots=1),
            "1 worker x 1 slot = 1 slot; mpirun starts 1 rank because it is not told a number (-np), which fills them",
        ),
        (
            a_launch("sleep", "1"),
            "2 workers x 4 slots = 8 slots; the command does not visibly start MPI, so the number of ranks "
            "is not known",
        ),
        (
            a_launch("mpirun", "-np", "12", "x", runLauncherAsWorker=True),
            "(2 workers + 1 launcher) x 4 slots = 12 slots; mpirun starts 12 ranks, which fills them",
        ),
        (
            a_launch("horovodrun", "--min-np", "1", "--max-np", "3", "--host-discovery-script", "/etc/mpi/d.sh", "x"),
            "2 workers x 4 slots = 8 slots; horovodrun is elastic: 1 to 3 ranks, as hosts come and go",
        ),
    ],
)
def test_slots_and_ranks_are_explained(document: dict[str, Any], sentence: str) -> None:
    assert arithmetic(job_from_document(document)) == sentence


@pytest.mark.parametrize("template", all_templates(), ids=lambda template: template.name)
def test_every_template_is_a_job(jobs: MemoryJobs, template: Any) -> None:
    seen = a_desk(jobs).preview(Create(manifest=template.manifest))
    assert seen.problems == ()
    assert seen.arithmetic


def test_a_document_is_converted_and_losses_are_told(jobs: MemoryJobs) -> None:
    converted = a_desk(jobs).convert(a_document(mpiImplementation="MPICH"), "v1")
    assert documents(converted.manifest)[0]["apiVersion"] == "kubeflow.org/v1"
    assert ["mpiImplementation" in loss for loss in converted.losses] == [True]
    with pytest.raises(UsageError):
        a_desk(jobs).convert(a_document(), "v3")


# -- lists and changes -------------------------------------------------------------------------------
def test_pages_stay_right_while_jobs_come_and_go(jobs: MemoryJobs, job_index: JobIndex) -> None:
    for number in range(6):
        jobs.add(f"job-{number}", created_at=at(number))
    service = a_desk(jobs, job_index=job_index)
    first = service.jobs(JobQuery(limit=2))
    assert [row.name for row in first.items] == ["job-5", "job-4"]
    jobs.vanish("default/job-4")  # the very one the cursor names
    job_index.learn(jobs.add("job-9", created_at=at(9)))
    wait_for(lambda: job_index.get("default/job-4") is None)
    second = service.jobs(JobQuery(limit=2, cursor=first.next))
    assert [row.name for row in second.items] == ["job-3", "job-2"]
    last = service.jobs(JobQuery(limit=2, cursor=second.next))
    assert ([row.name for row in last.items], last.next) == (["job-1", "job-0"], None)


@pytest.mark.parametrize("sort", ["name", "-name", "ended", "-ended", "memoryBytes", "-queuePosition", "state"])
def test_every_order_shows_every_job_once(jobs: MemoryJobs, sort: str) -> None:
    statuses = (RUNNING, SUCCEEDED, FAILED, QUEUED)
    for number in range(11):
        jobs.add(f"job-{number}", statuses[number % 4], created_at=at(number // 3))
    service, seen, cursor = a_desk(jobs), [], None
    while True:
        found = service.jobs(JobQuery(limit=3, sort=sort, cursor=cursor))
        seen += [row.name for row in found.items]
        cursor = found.next
        if cursor is None:
            break
    assert sorted(seen) == sorted(f"job-{number}" for number in range(11))
    assert seen == [row.name for row in service.jobs(JobQuery(limit=100, sort=sort)).items]


def test_a_page_by_its_number_begins_behind_the_rows_before_it(jobs: MemoryJobs) -> None:
    for number in range(5):
        jobs.add(f"job-{number}")
    found = a_desk(jobs).jobs(JobQuery(sort="name", limit=2, offset=4))
    assert ([row.name for row in found.items], found.total, found.next) == (["job-4"], 5, None)
    assert not a_desk(jobs).jobs(JobQuery(limit=2, offset=6)).items


def test_a_cursor_of_another_order_is_refused(jobs: MemoryJobs) -> None:
    for number in range(3):
        jobs.add(f"job-{number}")
    cursor = a_desk(jobs).jobs(JobQuery(limit=1, sort="name")).next
    with pytest.raises(UsageError, match="cursor"):
        a_desk(jobs).jobs(JobQuery(limit=1, sort="-name", cursor=cursor))


def test_changes_tell_only_what_the_caller_may_see(jobs: MemoryJobs, job_index: JobIndex) -> None:
    jobs.add("mine")
    jobs.add("theirs", owner="bob")
    changes = a_desk(jobs, job_index=job_index).changes()
    assert next(changes).reset
    assert (first := next(changes).changed) is not None
    assert first.name == "mine"
    jobs.become("default/theirs", SUCCEEDED)
    jobs.vanish("default/theirs")
    jobs.become("default/mine", SUCCEEDED)
    assert (change := next(changes).changed) is not None
    assert (change.name, change.state) == ("mine", "Succeeded")
    jobs.vanish("default/mine")
    assert next(changes).removed == "default/mine"
    changes.close()
    assert list(changes) == []


def test_a_job_that_leaves_the_filter_is_removed_from_the_view(jobs: MemoryJobs, job_index: JobIndex) -> None:
    jobs.add()
    changes = a_desk(jobs, job_index=job_index).changes(JobQuery(states=["running"]))
    assert [next(changes).reset, next(changes).changed is not None] == [True, True]
    jobs.become("default/pi", SUCCEEDED)
    assert next(changes).removed == "default/pi"
    changes.close()


def test_somebody_slow_is_told_to_start_over_instead_of_being_sent_everything(
    jobs: MemoryJobs, job_index: JobIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("oarsman.service.job_index._MOST_PENDING", 3)

    async def story() -> None:
        subscription = job_index.subscribe()
        await subscription.changed.wait()
        assert (news := subscription.take()) is not None
        assert news.reset
        for number in range(5):
            job_index.learn(jobs.add(f"job-{number}"))
        assert (news := subscription.take()) is not None
        assert (news.reset, len(news.keys)) == (True, 5)
        subscription.close()

    shared().run(story())


def test_a_job_index_of_ones_own_ends_with_whoever_listens(jobs: MemoryJobs, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[JobIndex] = []
    monkeypatch.setattr("oarsman.service.service.JobIndex", lambda backend: made.append(JobIndex(backend)) or made[-1])
    changes = a_desk(jobs).changes()
    assert next(changes).reset
    (job_index,) = made
    assert job_index._task is not None
    changes.close()
    assert job_index._task is None


def test_watching_ends_with_the_job(jobs: MemoryJobs) -> None:
    jobs.add()
    watched = a_desk(jobs).watch("default/pi")
    assert next(watched).summary.state == "Running"
    jobs.become("default/pi", SUCCEEDED)
    assert next(watched).summary.state == "Succeeded"
    jobs.vanish("default/pi")
    assert list(watched) == []
    with pytest.raises(NotFoundError):
        next(a_desk(jobs).watch("default/pi"))


def wait_for(condition: Any) -> None:
    while not condition():
        threading.Event().wait(0.01)
