"""From pods, a Job and a ConfigMap to what the plan looks at."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from oarsman import names
from oarsman.engines.kube import views
from oarsman.engines.kube.client.codec import decode
from oarsman.engines.kube.objects.common import KubeOptions
from oarsman.engines.kube.objects.config_map import config_maps
from oarsman.engines.kube.objects.launcher import launcher
from oarsman.engines.kube.objects.pod import fingerprint
from oarsman.engines.kube.objects.preparation import PodPreparation
from oarsman.engines.kube.objects.worker import worker
from oarsman.engines.kube.observe import JobObjects, launcher_pod, observe, retired
from oarsman.job.job import Job
from oarsman.job.observed import Exit, Member, Observed, Phase
from oarsman.job.state import Status
from tests.builders import a_status, at

from .kube_jobs import UID, V1, a_kube_job

Object = dict[str, Any]
OPTIONS = KubeOptions()
JOB = a_kube_job()
JOB_UID = "job-of-the-launcher"


def time(seconds: float) -> str:
    return at(seconds).isoformat()


def viewed(found: Object, view: Any) -> Any:
    return decode("read", json.dumps(found).encode(), view)


def worker_pod(status: Object, *, job: Job = JOB, index: int = 0, **meta: Any) -> views.Pod:
    made = worker(job, index, OPTIONS)
    made["metadata"] |= {"uid": f"w{index}", "resourceVersion": "1", **meta}
    found: views.Pod = viewed({**made, "status": status}, views.Pod)
    return found


def launcher_pod_of(status: Object, *, job: Job = JOB, name: str = "pi-launcher-x", **meta: Any) -> views.Pod:
    made = launcher(job, 1, OPTIONS)
    pod = made["spec"]["template"] if made["kind"] == "Job" else made
    owner = {"kind": "Job", "name": "pi-launcher", "uid": JOB_UID, "controller": True, "apiVersion": "batch/v1"}
    own = {"ownerReferences": [owner], "name": name, "namespace": "default"} if made["kind"] == "Job" else {}
    pod["metadata"] |= {**own, "uid": f"uid-of-{name}", "resourceVersion": "1", **meta}
    found: views.Pod = viewed({**pod, "status": status}, views.Pod)
    return found


def launcher_job(conditions: list[Object] | None = None, **meta: Any) -> views.BatchJob:
    made = launcher(JOB, 1, OPTIONS)
    made["metadata"] |= {"uid": JOB_UID, **meta}
    found: views.BatchJob = viewed({**made, "status": {"conditions": conditions or []}}, views.BatchJob)
    return found


def container(name: str = "mpi", **state: Any) -> Object:
    return {"name": name, "ready": "running" in state, "state": state}


def condition(type_: str, status: str, when: float = 0, **more: str) -> Object:
    return {"type": type_, "status": status, "lastTransitionTime": time(when), **more}


def ended(code: int, **more: Any) -> Object:
    return {"terminated": {"exitCode": code, "startedAt": time(1), "finishedAt": time(9), **more}}


UP = {
    "phase": "Running",
    "conditions": [condition("PodScheduled", "True", 1), condition("Ready", "True", 3)],
    "containerStatuses": [container(running={"startedAt": time(2)})],
}
PLACED = [condition("PodScheduled", "True", 5)]


def the_worker(status: Object, **given: Any) -> Member:
    [found] = observe(JOB, JobObjects(status=Status(), pods=[worker_pod(status, **given)])).workers
    return found


def the_launcher(status: Object, **given: Any) -> Member:
    seen = JobObjects(status=Status(), pods=[launcher_pod_of(status)], launcher_job=launcher_job(), **given)
    found = observe(JOB, seen).launcher
    assert found is not None
    return found


def member(**fields: Any) -> Member:
    return Member(**{"name": "pi-worker-0", "instance": "pi-worker-0", **fields})


# -- workers ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param({}, member(phase=Phase.PENDING, waits_for_room=True), id="just created"),
        pytest.param({"phase": "Unknown"}, member(phase=Phase.PENDING, waits_for_room=True), id="nobody knows"),
        pytest.param(
            {"conditions": [condition("PodScheduled", "False", message="0/2 nodes", reason="Unschedulable")]},
            member(phase=Phase.PENDING, not_ready_because="not scheduled: 0/2 nodes", waits_for_room=True),
            id="no place",
        ),
        pytest.param(
            {"conditions": [condition("PodScheduled", "False", reason="SchedulingGated")]},
            member(phase=Phase.PENDING, not_ready_because="not scheduled: SchedulingGated", waits_for_room=True),
            id="held back",
        ),
        pytest.param(
            {"conditions": PLACED, "containerStatuses": [container(waiting={"reason": "ContainerCreating"})]},
            member(phase=Phase.PENDING, waits_for_room=True, started_at=at(5)),
            id="its image is fetched",
        ),
        pytest.param(
            {
                "conditions": PLACED,
                "containerStatuses": [container(waiting={"reason": "ErrImagePull", "message": "no such image"})],
            },
            member(phase=Phase.PENDING, not_ready_because="ErrImagePull: no such image", started_at=at(5)),
            id="its image is not there",
        ),
        pytest.param(
            {"conditions": PLACED, "initContainerStatuses": [container("i", waiting={"reason": "CrashLoopBackOff"})]},
            member(phase=Phase.PENDING, not_ready_because="CrashLoopBackOff", started_at=at(5)),
            id="what runs before it fails",
        ),
        pytest.param(UP, member(phase=Phase.RUNNING, ready=True, started_at=at(2)), id="up"),
        pytest.param(
            {**UP, "conditions": [condition("Ready", "False")]},
            member(phase=Phase.RUNNING, started_at=at(2)),
            id="running, not ready",
        ),
        pytest.param(
            {"phase": "Failed", "containerStatuses": [container(**ended(3))]},
            member(phase=Phase.FAILED, exit=Exit(code=3), started_at=at(1), finished_at=at(9)),
            id="ended with a code",
        ),
        pytest.param(
            {"phase": "Failed", "containerStatuses": [container(**ended(137))]},
            member(phase=Phase.FAILED, exit=Exit(code=137), started_at=at(1), finished_at=at(9)),
            id="killed, perhaps a process of its own",
        ),
        pytest.param(
            {"phase": "Failed", "containerStatuses": [container(**ended(139, signal=11))]},
            member(phase=Phase.FAILED, exit=Exit(code=139, signal=11), started_at=at(1), finished_at=at(9)),
            id="the kubelet tells the signal",
        ),
        pytest.param(
            {"phase": "Failed", "containerStatuses": [container(**ended(255))]},
            member(phase=Phase.FAILED, exit=Exit(code=255), started_at=at(1), finished_at=at(9)),
            id="255 is no signal",
        ),
        pytest.param(
            {"phase": "Failed", "containerStatuses": [container(**ended(137, reason="OOMKilled"))]},
            member(
                phase=Phase.FAILED,
                exit=Exit(code=137, memory_limit_hit=True),
                reason="OOMKilled",
                started_at=at(1),
                finished_at=at(9),
            ),
            id="out of memory",
        ),
        pytest.param(
            {"phase": "Failed", "reason": "Evicted", "message": "disk", "conditions": [condition("Ready", "False", 8)]},
            member(phase=Phase.FAILED, reason="Evicted", message="disk", finished_at=at(8)),
            id="evicted",
        ),
        pytest.param(
            {**UP, "reason": "NodeLost", "message": "node n1 is gone"},
            member(phase=Phase.RUNNING, ready=True, reason="HostLost", message="node n1 is gone", started_at=at(2)),
            id="its node is gone",
        ),
        pytest.param(
            {
                "phase": "Failed",
                "initContainerStatuses": [container("fetch", **ended(2, message="line\nno such file\n"))],
            },
            member(
                phase=Phase.FAILED,
                reason="InitContainerFailed",
                message="init container fetch ended with code 2: no such file",
            ),
            id="what runs before it failed",
        ),
        pytest.param(
            {
                "phase": "Failed",
                "initContainerStatuses": [container("sidecar", **ended(143)), container("fetch", **ended(2))],
                "containerStatuses": [container(waiting={"reason": "PodInitializing"})],
            },
            member(
                phase=Phase.FAILED,
                reason="InitContainerFailed",
                message="init container fetch ended with code 2",
            ),
            id="a sidecar that starts first was ended with the pod",
        ),
        pytest.param(
            {
                "phase": "Failed",
                "initContainerStatuses": [container("sidecar", **ended(143))],
                "containerStatuses": [container(**ended(3))],
            },
            member(phase=Phase.FAILED, exit=Exit(code=3), started_at=at(1), finished_at=at(9)),
            id="its own code counts, although a sidecar that started first was ended after it",
        ),
        pytest.param(
            {
                "phase": "Failed",
                "initContainerStatuses": [container("sidecar", **ended(143))],
                "containerStatuses": [container(running={"startedAt": time(2)})],
            },
            member(phase=Phase.FAILED, started_at=at(2)),
            id="nobody knows how it ended",
        ),
        pytest.param(
            {"phase": "Succeeded", "containerStatuses": [container(**ended(0))]},
            member(phase=Phase.SUCCEEDED, exit=Exit(code=0), started_at=at(1), finished_at=at(9)),
            id="ended by itself",
        ),
        pytest.param(
            {**UP, "containerStatuses": [container("side", **ended(1)), container(running={"startedAt": time(2)})]},
            member(phase=Phase.RUNNING, ready=True, started_at=at(2)),
            id="a sidecar does not count",
        ),
    ],
)
def test_the_state_of_a_worker(status: Object, expected: Member) -> None:
    assert the_worker(status) == expected


def test_a_worker_on_its_way_out_is_terminating() -> None:
    assert the_worker(UP, deletionTimestamp=time(10)).terminating


def test_a_worker_that_its_node_may_never_end_says_what_lets_it_go() -> None:
    pod = worker_pod(UP, deletionTimestamp=time(10))
    placed = msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name="node-2"))
    [found] = observe(JOB, JobObjects(status=Status(), pods=[placed])).workers
    assert found.message == (
        "it is going away from node node-2; if that is lost for good: kubectl delete pod --force pi-worker-0"
    )


def test_workers_come_in_numeric_order_with_the_numbers_of_their_names() -> None:
    job = a_kube_job(workers=12)
    pods = [worker_pod(UP, job=job, index=i) for i in (10, 2, 0)]
    found = observe(job, JobObjects(status=Status(), pods=pods)).workers
    assert [(w.index, w.name) for w in found] == [(0, "pi-worker-0"), (2, "pi-worker-2"), (10, "pi-worker-10")]


def test_the_number_in_the_name_counts_although_the_label_is_shifted() -> None:
    job = a_kube_job(runLauncherAsWorker=True)
    [found] = observe(job, JobObjects(status=Status(), pods=[worker_pod(UP, job=job, index=1)])).workers
    assert found.index == 1


def test_pods_of_others_do_not_count_whatever_their_labels() -> None:
    strangers = [
        worker_pod(UP, ownerReferences=[]),
        worker_pod(UP, index=1, ownerReferences=[{"kind": "MPIJob", "name": "pi", "uid": "old", "controller": True}]),
    ]
    assert observe(JOB, JobObjects(status=Status(), pods=strangers)).workers == ()


TARGET = condition("DisruptionTarget", "True", 8, reason="PreemptionByScheduler", message="preempting")


@pytest.mark.parametrize(
    ("status", "meta", "reason"),
    [
        pytest.param(
            {**UP, "conditions": [TARGET]}, {"deletionTimestamp": time(8)}, "PreemptionByScheduler", id="goes"
        ),
        pytest.param({**UP, "conditions": [TARGET]}, {}, "", id="may still be left alone"),
        pytest.param(
            {**UP, "conditions": [{**TARGET, "status": "False"}]},
            {"deletionTimestamp": time(8)},
            "",
            id="was left alone",
        ),
        pytest.param(
            {"phase": "Failed", "conditions": [TARGET], "containerStatuses": [container(**ended(143))]},
            {},
            "PreemptionByScheduler",
            id="has gone",
        ),
        pytest.param(
            {
                "phase": "Failed",
                "conditions": [{**TARGET, "lastTransitionTime": time(60)}],
                "containerStatuses": [container(**ended(1))],
            },
            {"deletionTimestamp": time(60)},
            "",
            id="had failed before",
        ),
    ],
)
def test_what_the_cluster_takes_away_is_disrupted(status: Object, meta: Object, reason: str) -> None:
    found = the_worker(status, **meta)
    assert (found.disrupted, found.reason) == (bool(reason), reason)


def test_what_the_kubelet_says_of_an_eviction_is_kept() -> None:
    target = {**TARGET, "reason": "TerminationByKubelet"}
    status = {"phase": "Failed", "reason": "Evicted", "message": "low on memory", "conditions": [target]}
    found = the_worker(status)
    assert (found.disrupted, found.reason, found.message) == (True, "TerminationByKubelet", "low on memory")


# -- the launcher -------------------------------------------------------------------------------------------
def test_without_a_launcher_there_is_none() -> None:
    assert observe(JOB, JobObjects(status=Status())).launcher is None


def test_a_job_without_a_pod_yet_is_a_launcher_on_its_way() -> None:
    found = observe(JOB, JobObjects(status=Status(), launcher_job=launcher_job())).launcher
    told = "its Job has created no pod yet; see kubectl describe job pi-launcher"
    assert found == Member(name="pi-launcher", phase=Phase.PENDING, waits_for_room=True, not_ready_because=told)


def test_a_job_that_completed_has_succeeded_although_its_pod_is_gone() -> None:
    said = {"type": "Complete", "status": "True", "lastTransitionTime": "2026-01-01T00:00:05Z"}
    found = observe(JOB, JobObjects(status=Status(), launcher_job=launcher_job([said]))).launcher
    assert found is not None
    assert (found.phase, found.finished_at) == (Phase.SUCCEEDED, datetime(2026, 1, 1, 0, 0, 5, tzinfo=UTC))


def test_a_job_whose_pod_cannot_be_made_has_failed_with_the_servers_words() -> None:
    said = {"type": "Failed", "status": "True", "reason": "FailedCreate", "message": "exceeded quota"}
    found = observe(JOB, JobObjects(status=Status(), launcher_job=launcher_job([said]))).launcher
    assert found is not None
    assert (found.phase, found.reason, found.message) == (Phase.FAILED, "FailedCreate", "exceeded quota")


VERDICTS = {
    "Complete": {"type": "Complete", "status": "True", "lastTransitionTime": time(12)},
    "Backoff": {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "lastTransitionTime": time(12)},
    "Deadline": {"type": "Failed", "status": "True", "reason": "DeadlineExceeded", "message": "was active too long"},
    "Not yet": {"type": "Failed", "status": "False"},
}
POD_FAILED = {"phase": "Failed", "containerStatuses": [container(**ended(143))]}


@pytest.mark.parametrize(
    ("verdict", "pod", "facts"),
    [
        pytest.param("Complete", UP, {"phase": Phase.SUCCEEDED, "finished_at": at(12)}, id="it completed"),
        pytest.param("Backoff", UP, {"phase": Phase.FAILED, "finished_at": at(12)}, id="it failed"),
        pytest.param(
            "Backoff", POD_FAILED, {"phase": Phase.FAILED, "reason": "", "finished_at": at(9)}, id="its pod says how"
        ),
        pytest.param(
            "Deadline",
            POD_FAILED,
            {"phase": Phase.FAILED, "reason": "DeadlineExceeded", "message": "was active too long"},
            id="a deadline was over, for which its pod was ended",
        ),
        pytest.param("Not yet", UP, {"phase": Phase.RUNNING, "reason": ""}, id="it goes on"),
    ],
)
def test_a_job_that_is_over_decides_whatever_its_pod_still_says(verdict: str, pod: Object, facts: Object) -> None:
    seen = JobObjects(status=Status(), pods=[launcher_pod_of(pod)], launcher_job=launcher_job([VERDICTS[verdict]]))
    found = observe(JOB, seen).launcher
    assert {name: getattr(found, name) for name in facts} == facts


def test_a_job_that_failed_and_has_no_pod_any_more_has_lost_its_launcher() -> None:
    found = observe(JOB, JobObjects(status=Status(), launcher_job=launcher_job([VERDICTS["Backoff"]]))).launcher
    assert found is not None
    assert (found.phase, found.reason) == (Phase.FAILED, "Vanished")


def test_a_barrier_that_is_ended_with_its_pod_is_no_verdict_about_hosts() -> None:
    status = {"phase": "Failed", "initContainerStatuses": [container("oarsman-barrier", **ended(143))]}
    pod = launcher_pod_of(status, deletionTimestamp=time(9))
    found = observe(JOB, JobObjects(status=Status(), pods=[pod], launcher_job=launcher_job())).launcher
    assert found is not None
    assert (found.phase, found.reason, found.terminating) == (Phase.FAILED, "", True)


def test_the_attempt_and_the_instance_of_a_launcher_are_read_from_its_pod() -> None:
    annotations = {"oarsman.dev/attempt": "7"}
    pod = launcher_pod_of(UP, annotations=annotations)
    found = observe(JOB, JobObjects(status=Status(), pods=[pod], launcher_job=launcher_job())).launcher
    assert found is not None
    assert (found.name, found.instance, found.attempt) == ("pi-launcher", "pi-launcher-x", 7)


@pytest.mark.parametrize(
    ("status", "facts"),
    [
        pytest.param(UP, {"phase": Phase.RUNNING, "ready": True}, id="runs"),
        pytest.param(
            {"conditions": PLACED, "initContainerStatuses": [container("oarsman-barrier", running={})]},
            {"phase": Phase.PENDING, "not_ready_because": "", "waits_for_room": False},
            id="waits inside",
        ),
        pytest.param(
            {**UP, "containerStatuses": [container(**ended(0)), container("side", running={})]},
            {"phase": Phase.SUCCEEDED, "exit": Exit(code=0)},
            id="has succeeded although a sidecar goes on",
        ),
        pytest.param(
            {**UP, "containerStatuses": [container(**ended(4)), container("side", running={})]},
            {"phase": Phase.FAILED, "exit": Exit(code=4)},
            id="has failed although a sidecar goes on",
        ),
        pytest.param(
            {
                "phase": "Failed",
                "initContainerStatuses": [container("oarsman-barrier", **ended(1, message="pi-worker-1: refused\n"))],
            },
            {"reason": "HostsNotReady", "message": "pi-worker-1: refused"},
            id="gave up waiting",
        ),
        pytest.param(
            {"phase": "Failed", "initContainerStatuses": [container("oarsman-barrier", **ended(127))]},
            {"reason": "HostsNotReady", "message": "the start barrier ended with code 127"},
            id="gave up without a word",
        ),
        pytest.param(
            {
                "phase": "Failed",
                "initContainerStatuses": [container("sidecar", **ended(143)), container("oarsman-barrier", **ended(0))],
                "containerStatuses": [container(**ended(7))],
            },
            {"reason": "", "message": "", "exit": Exit(code=7)},
            id="failed by itself, beside a sidecar that is ended last",
        ),
        pytest.param(
            {
                "phase": "Failed",
                "containerStatuses": [
                    container(
                        **ended(69, message="ok\noarsman: no rank was started on pi-worker-1: mpirun never went there")
                    )
                ],
            },
            {
                "reason": "WrongPlacement",
                "message": "no rank was started on pi-worker-1: mpirun never went there",
            },
            id="went nowhere",
        ),
        pytest.param(
            {"phase": "Failed", "containerStatuses": [container(**ended(69, message="its own 69"))]},
            {"reason": "", "exit": Exit(code=69)},
            id="has a code of its own that is like ours",
        ),
    ],
)
def test_the_state_of_a_launcher(status: Object, facts: Object) -> None:
    found = the_launcher(status)
    assert {name: getattr(found, name) for name in facts} == facts


def test_what_the_barrier_says_is_what_the_launcher_waits_for() -> None:
    waiting = {"conditions": PLACED, "initContainerStatuses": [container("oarsman-barrier", running={})]}
    found = the_launcher(waiting, barrier_says="pi-worker-1: Connection refused")
    assert (found.not_ready_because, found.waits_for_room) == ("pi-worker-1: Connection refused", False)


def test_the_last_lines_of_a_launcher_are_its_message_without_ours_about_memory() -> None:
    words = "boom\noarsman: memory limit reached on pi-worker-1\nthe end"
    status = {"phase": "Failed", "containerStatuses": [container(**ended(1, message=words))]}
    found = observe(JOB, JobObjects(status=Status(), pods=[launcher_pod_of(status)], launcher_job=launcher_job()))
    assert found.launcher_lines == ("boom", "the end")
    assert found.out_of_memory == ("pi-worker-1",)


def test_of_lines_with_tags_it_is_known_whose_they_are_and_of_one_that_lost_its_tag_nothing_is() -> None:
    words = "[1,0]<stdout>:epoch 2\n[1,3]<stderr>:boom\nmpirun detected"
    status = {"phase": "Failed", "containerStatuses": [container(**ended(1, message=words))]}
    found = observe(JOB, JobObjects(status=Status(), pods=[launcher_pod_of(status)], launcher_job=launcher_job()))
    assert found.launcher_lines == ("epoch 2", "boom", "mpirun detected")
    assert found.launcher_ranks == (0, 3, None)

    cut = ("[1,0]<stdout>:epoch 1\n" * 100)[-2048:]  # what the kubelet keeps
    status = {"phase": "Failed", "containerStatuses": [container(**ended(1, message=cut))]}
    found = observe(JOB, JobObjects(status=Status(), pods=[launcher_pod_of(status)], launcher_job=launcher_job()))
    assert set(found.launcher_ranks) == {0}


def test_lines_without_tags_are_nobodys_unless_tags_were_asked_for() -> None:
    status = {"phase": "Failed", "containerStatuses": [container(**ended(1, message="boom"))]}
    seen = JobObjects(status=Status(), pods=[launcher_pod_of(status)], launcher_job=launcher_job())
    assert observe(JOB, seen).launcher_ranks == ()
    asking = replace(JOB, annotations={**JOB.annotations, names.ANNOTATION_TAG_OUTPUT: "true"})
    assert observe(asking, seen).launcher_ranks == (None,)


def the_end(message: str, code: int = 0, *, shim: bool = True, job: Job = JOB) -> Observed:
    status = {
        "phase": "Failed" if code else "Succeeded",
        "containerStatuses": [container(**ended(code, message=message))],
    }
    *_, config = config_maps(job, (), OPTIONS, PodPreparation(shim=shim))
    pods = [launcher_pod_of(status, job=job)]
    return observe(
        job,
        JobObjects(status=Status(), pods=pods, launcher_job=launcher_job(), config=viewed(config, views.ConfigMap)),
    )


def test_where_ranks_ran_is_in_the_message_of_a_launcher_that_ended_well() -> None:
    found = the_end("oarsman: ranks 0-3 on pi-worker-0..1\n")
    assert {report.rank: report.host for report in found.ranks} == {
        0: "pi-worker-0",
        1: "pi-worker-0",
        2: "pi-worker-1",
        3: "pi-worker-1",
    }
    assert (found.launcher_lines, found.unverified) == ((), False)


def test_which_ranks_failed_is_at_the_end_of_the_log_of_a_launcher_that_failed() -> None:
    found = the_end(
        "boom\n"
        "oarsman: memory limit reached on pi-worker-1\n"
        "\0oarsman: ranks 0-1 on pi-worker-0..1\n"
        "oarsman: rank 1 on pi-worker-1 ended with code 137 at 2026-11-19T21:31:19.573983777\n"
        "oarsman: rank 0 on pi-worker-0 ended with code 3 at 2026-11-19T21:31:20\n",
        137,
    )
    assert found.launcher_lines == ("boom",)
    zero, one = found.ranks
    assert (zero.exit, one.exit) == (Exit(code=3), Exit(code=137, memory_limit_hit=True))
    assert one.finished_at == datetime(2026, 11, 19, 21, 31, 19, 573983, UTC)
    assert zero.finished_at == datetime(2026, 11, 19, 21, 31, 20, 0, UTC)


def test_a_job_whose_hosts_nobody_checks_may_be_told_to_be_not_verified() -> None:
    """Where the launch line says where mpirun has to go, the launcher has checked that."""
    torch = a_kube_job(command=["torchrun", "train.py"])
    assert the_end("", job=torch).unverified
    assert not the_end("", job=torch, shim=False).unverified
    assert not the_end("").unverified


def test_of_two_pods_of_a_job_the_first_that_stays_counts() -> None:
    going = launcher_pod_of(UP, name="a", creationTimestamp=time(1), deletionTimestamp=time(9))
    first = launcher_pod_of(UP, name="b", creationTimestamp=time(2))
    second = launcher_pod_of(UP, name="c", creationTimestamp=time(3))
    assert launcher_pod(JOB, [second, going, first], launcher_job()) == first
    assert launcher_pod(JOB, [going], launcher_job()) == going


def test_pods_handed_to_the_mpijob_are_launchers_of_earlier_attempts() -> None:
    mine = [{"kind": "MPIJob", "name": "pi", "uid": UID, "controller": True}]
    old = [
        launcher_pod_of(UP, name=name, ownerReferences=mine, creationTimestamp=time(when))
        for name, when in (("b", 2), ("a", 1))
    ]
    assert [p.metadata.name for p in retired(JOB, [*old, launcher_pod_of(UP), worker_pod(UP)])] == ["a", "b"]
    assert launcher_pod(JOB, old, launcher_job()) is None


def test_the_launcher_of_v1_is_the_pod_itself() -> None:
    job = a_kube_job(version=V1)
    pod = launcher_pod_of(UP, job=job, name="pi-launcher")
    found = observe(job, JobObjects(status=Status(), pods=[pod])).launcher
    assert found is not None
    assert (found.phase, found.instance) == (Phase.RUNNING, "pi-launcher")
    assert retired(job, [pod]) == []


# -- the rest -----------------------------------------------------------------------------------------------
def read(job: Job = JOB, **given: Any) -> Observed:
    return observe(job, JobObjects(status=given.pop("status", Status()), **given))


def test_hosts_that_are_published_are_read_from_the_config_map() -> None:
    [made] = config_maps(JOB, ("pi-worker-1",), OPTIONS)
    found = read(config=viewed(made, views.ConfigMap))
    assert (found.published_hosts, found.prepared) == (("pi-worker-1",), True)
    assert (read().published_hosts, read().prepared) == (None, False)


def test_what_the_engine_adds_passes_through() -> None:
    found = read(conflict="c", refused="r", stop_requested=True, patience=timedelta(seconds=7))
    assert (found.conflict, found.refused, found.stop_requested) == ("c", "r", True)
    assert (found.patience, found.ranks_report) == (timedelta(seconds=7), False)


@pytest.mark.parametrize(("said", "holds"), [({}, True), ({"oarsman.dev/start-barrier": "false"}, False)])
def test_launchers_wait_inside_unless_the_job_says_otherwise(said: dict[str, str], holds: bool) -> None:
    assert read(a_kube_job(annotations=said)).launcher_holds is holds


@pytest.mark.parametrize(
    ("given", "fields"),
    [
        pytest.param({}, ("spec.mpiReplicaSpecs.Launcher.template", "spec.mpiReplicaSpecs.Worker.template"), id="both"),
        pytest.param({"status": a_status(true=("Created", "Succeeded"))}, (), id="it is over"),
        pytest.param({"suspend": True}, (), id="all will be made anew"),
    ],
)
def test_templates_edited_since_pods_were_made_from_them_are_told(given: Object, fields: tuple[str, ...]) -> None:
    edited = a_kube_job(
        launcher={"nodeSelector": {"a": "b"}},
        worker={"nodeSelector": {"a": "b"}},
        runPolicy={"suspend": given.get("suspend", False)},
    )
    pods = [worker_pod(UP), launcher_pod_of(UP)]
    found = read(edited, pods=pods, launcher_job=launcher_job(), status=given.get("status", Status()))
    assert found.outdated == fields


def test_templates_that_were_not_edited_are_not_told() -> None:
    assert read(pods=[worker_pod(UP), launcher_pod_of(UP)], launcher_job=launcher_job()).outdated == ()


def test_the_order_of_fields_makes_no_edit() -> None:
    assert fingerprint({"a": 1, "b": {"c": 2, "d": 3}}) == fingerprint({"b": {"d": 3, "c": 2}, "a": 1})
    assert fingerprint({"a": 1}) != fingerprint({"a": 2})
