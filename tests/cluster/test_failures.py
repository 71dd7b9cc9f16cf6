"""What goes wrong in a cluster: the job ends or starts again as it says it does, and its status names who and why."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cluster.jobs import V1, V2BETA1, Object, Submitted, condition, mpijob
from cluster.together import Place, together

pytestmark = pytest.mark.timeout(300)  # a body waits for others before it, and says more than a time limit

# Waits for its end the first time, and ends at once the second time. Worker 0 remembers: it outlives both.
# Whoever finds that an earlier run still holds the lock says so.
SECOND_TIME_LUCKY = """
from mpi4py import MPI
import fcntl, os, time
world = MPI.COMM_WORLD
again = False
if world.rank == 0:
    again = os.path.exists("/tmp/ran")
    lock = open("/tmp/ran", "w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print("RUNS TWICE", flush=True)
        world.Abort(9)
again = world.bcast(again)
print("rank", world.rank, "of", world.size, "on", MPI.Get_processor_name(), flush=True)
world.Barrier()
if not again:
    time.sleep(600)
"""
# Rank 1 ends without a word, but not before all ranks run: mpirun has heard of that when they have met.
SILENT = """
from mpi4py import MPI
import os, time
MPI.COMM_WORLD.Barrier()
if MPI.COMM_WORLD.rank == 1:
    os._exit(3)
time.sleep(600)
"""
ONCE = {"backoffLimit": 0}
FOREVER = ("sleep", "infinity")


def second_time_lucky(place: Place, name: str, **more: Any) -> Submitted:
    """A job in the middle of its first run."""
    policy = {"backoffLimit": 2, **more.pop("policy", {})}
    program = ("python3", "-c", SECOND_TIME_LUCKY)
    job = place.submit(mpijob(name, place.image(), program=program, policy=policy, **more))
    job.wait_for("Running")
    job.poll(lambda: job.log(check=False).count("rank ") == 2, "to have both ranks at work")
    return job


def outcomes(status: Object) -> list[str]:
    return [attempt["outcome"] for attempt in status["attempts"]]


def uids(job: Submitted) -> dict[str, str]:
    return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in job.pods("worker")}


# -- a worker goes ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("version", [V2BETA1, V1], ids=["v2beta1", "v1"])
@together
def test_when_a_worker_is_deleted_the_gang_starts_once_more_with_another_in_its_place(
    place: Place, version: str
) -> None:
    job = second_time_lucky(place, "robbed", version=version)
    before = uids(job)
    job.kubectl("delete", "pod", job.worker(1), "--wait=false")
    status = job.wait_for("Succeeded")
    assert outcomes(status) == ["Failed", "Succeeded"]
    first = status["attempts"][0]["cause"]
    assert first["host"] == job.worker(1)
    assert first["summary"].startswith(f"{job.worker(1)} was lost: ")
    after = uids(job)
    assert after[job.worker(0)] == before[job.worker(0)], "a worker that is well stays"
    assert after[job.worker(1)] != before[job.worker(1)]


@together
def test_when_the_process_of_a_worker_ends_the_gang_starts_once_more_with_another_in_its_place(place: Place) -> None:
    job = second_time_lucky(place, "struck")
    before = uids(job)
    job.kubectl("exec", job.worker(1), "--", "sh", "-c", "kill 1", check=False)  # which may not survive that itself
    status = job.wait_for("Succeeded")
    assert outcomes(status) == ["Failed", "Succeeded"]
    first = status["attempts"][0]["cause"]
    assert first["host"] == job.worker(1)
    assert first["summary"].startswith(f"{job.worker(1)} was lost: it ended with code ")
    after = uids(job)
    assert after[job.worker(0)] == before[job.worker(0)]
    assert after[job.worker(1)] != before[job.worker(1)]


@together
def test_when_a_worker_is_evicted_nothing_is_left_and_the_job_goes_when_its_time_is_over(place: Place) -> None:
    policy = {"backoffLimit": 0, "cleanPodPolicy": "All", "ttlSecondsAfterFinished": 15}
    job = second_time_lucky(place, "evicted", policy=policy)
    eviction = {
        "apiVersion": "policy/v1beta1",
        "kind": "Eviction",
        "metadata": {"name": job.worker(1), "namespace": place.namespace},
    }
    path = f"/api/v1/namespaces/{place.namespace}/pods/{job.worker(1)}/eviction"
    place.cluster.kubectl("create", "--raw", path, "-f", "-", stdin=json.dumps(eviction))
    status = job.wait_for("Failed")
    assert status["cause"]["host"] == job.worker(1)
    assert condition(status, "Failed")["reason"] in ("MPIJobEvicted", "HostLost")  # before 1.26 nobody says why it goes
    job.until_gone()
    job.until_pods(lambda pods: not pods, "all pods to be gone")


@together
def test_a_job_whose_worker_the_kubelet_evicted_says_so(place: Place) -> None:
    job = second_time_lucky(place, "pressed", policy={"backoffLimit": 0, "cleanPodPolicy": "All"})
    pod = place.cluster.get("pod", job.worker(1), place.namespace)
    words = "The node was low on resource: memory."
    pod["status"] = {"phase": "Failed", "reason": "Evicted", "message": words}  # as the kubelet writes it
    path = f"/api/v1/namespaces/{place.namespace}/pods/{job.worker(1)}/status"
    place.cluster.kubectl("replace", "--raw", path, "-f", "-", stdin=json.dumps(pod))
    status = job.wait_for("Failed")
    failed = condition(status, "Failed")
    assert failed["reason"] == "MPIJobEvicted"
    assert f"{job.worker(1)} was lost: it was evicted: {words}" in failed["message"]
    job.until_pods(lambda pods: not pods, "all pods to be gone")


@together
def test_a_launcher_deleted_by_hand_is_a_failed_attempt_and_never_runs_twice_at_once(place: Place) -> None:
    job = second_time_lucky(place, "headless")
    (launcher,) = job.pod_names("launcher")
    job.kubectl("delete", "pod", launcher, "--wait=false")
    status = job.wait_for("Succeeded")
    assert outcomes(status) == ["Failed", "Succeeded"]
    assert status["attempts"][0]["cause"]["summary"] in (
        "headless-launcher was lost: it was deleted by someone else",
        "headless-launcher was lost: its pod has ended and is gone",
        "launcher lost: headless-launcher vanished before it ended",  # before 1.26 it has a successor at once
    )
    assert "RUNS TWICE" not in job.log()


# -- a rank fails ----------------------------------------------------------------------------------------
@together
def test_a_rank_that_reaches_the_memory_limit_is_named_with_its_host(place: Place) -> None:
    program = "from mpi4py import MPI\nif MPI.COMM_WORLD.rank == 1: x = b'x' * 10**9\nMPI.COMM_WORLD.Barrier()"
    limits = {"resources": {"limits": {"memory": "200Mi"}}}
    job = place.submit(mpijob("hungry", place.image(), program=("python3", "-c", program), worker=limits, policy=ONCE))
    cause = job.wait_for("Failed")["cause"]
    assert (cause["rank"], cause["host"], cause.get("memoryLimitHit")) == (1, "hungry-worker-1", True)
    assert "memory limit" in cause["summary"]


@together
def test_the_exit_code_and_the_last_lines_of_a_program_that_fails_are_in_the_status(place: Place) -> None:
    program = "from mpi4py import MPI\nimport sys\nif MPI.COMM_WORLD.rank == 1: sys.exit('no such parameter: depth')"
    tagged = {"oarsman.dev/tag-output": "true"}
    job = place.submit(
        mpijob("wrong", place.image(), program=("python3", "-c", program), policy=ONCE, annotations=tagged)
    )
    status = job.wait_for("Failed")
    failed, cause = condition(status, "Failed"), status["cause"]
    assert failed["reason"] == "MPIJobFailed"
    assert "exited with code 1" in failed["message"]
    assert "no such parameter: depth" in failed["message"]
    assert (cause["exitCode"], cause["rank"]) == (1, 1)
    assert any("no such parameter: depth" in line for line in cause["lastLines"])


# Rank 1 says what it lacks and ends; the others go on and say so until mpirun ends them or, with MPICH, they are done.
OTHERS_GO_ON = """
if [ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 1 ]; then echo 'part missing' >&2; sleep 1; exit 5; fi
for epoch in 1 2 3 4 5 6 7 8 9; do echo "epoch $epoch"; sleep 0.5; done
"""


@pytest.mark.parametrize("image", ["openmpi4", "openmpi5"])
@pytest.mark.parametrize("tagged", [True, False], ids=["tagged", "untagged"])
@together
def test_what_another_rank_wrote_last_is_not_the_reason(place: Place, image: str, tagged: bool) -> None:
    annotations = {"oarsman.dev/tag-output": "true"} if tagged else {}
    program = ("sh", "-c", OTHERS_GO_ON)
    name = f"not-i-{image}-{str(tagged).lower()}"
    job = place.submit(mpijob(name, place.image(image), program=program, policy=ONCE, annotations=annotations))
    cause = job.wait_for("Failed")["cause"]
    assert (cause["rank"], cause["exitCode"]) == (1, 5)
    if tagged:
        assert cause["summary"] == f"rank 1 on {job.worker(1)} exited with code 5: part missing"
        assert cause["lastLines"] == ["part missing"]
    else:
        assert cause["summary"] == f"rank 1 on {job.worker(1)} exited with code 5"
        told = [line.partition(" ")[0] for line in cause["lastLines"]]
        assert "epoch" in told, "the last lines of the launcher, whoever wrote them"


@pytest.mark.parametrize("tagged", [True, False], ids=["tagged", "untagged"])
@together
def test_where_mpich_does_not_say_which_rank_failed_no_ranks_line_is_the_reason(place: Place, tagged: bool) -> None:
    annotations = {"oarsman.dev/tag-output": "true"} if tagged else {}
    manifest = mpijob(
        f"not-us-{str(tagged).lower()}",
        place.image("mpich"),
        program=("sh", "-c", OTHERS_GO_ON),
        policy=ONCE,
        annotations=annotations,
        mpiImplementation="MPICH",
    )
    job = place.submit(manifest)
    cause = job.wait_for("Failed")["cause"]
    assert cause["summary"] == "the launcher exited with code 5"
    assert {"part missing", "epoch 1"} <= set(cause["lastLines"])


@together
def test_a_silent_rank_that_fails_is_named_with_its_host_and_no_words_of_mpiruns(place: Place) -> None:
    job = place.submit(mpijob("silent", place.image(), program=("python3", "-c", SILENT), policy=ONCE))
    cause = job.wait_for("Failed")["cause"]
    assert (cause["rank"], cause["host"], cause["exitCode"]) == (1, job.worker(1), 3)
    assert cause["summary"] == f"rank 1 on {job.worker(1)} exited with code 3"


@together
def test_a_rank_that_fails_before_all_ranks_run_is_named_even_if_mpirun_names_nobody(place: Place) -> None:
    """Open MPI 4 forgets who failed if it hears that all ranks run only after one of them has failed."""
    program = ("sh", "-c", '[ "$OMPI_COMM_WORLD_RANK" = 0 ] || exit 3; sleep 600')
    job = place.submit(mpijob("hasty", place.image(), program=program, policy=ONCE))
    cause = job.wait_for("Failed")["cause"]
    assert (cause["summary"], cause["exitCode"]) == (f"rank 1 on {job.worker(1)} exited with code 3", 3)


@pytest.mark.parametrize("image", ["openmpi4", "openmpi5"])
@together
def test_a_program_that_is_not_there_is_named_with_its_host_and_nobody_was_killed(place: Place, image: str) -> None:
    job = place.submit(mpijob(f"missing-{image}", place.image(image), program=("./solver",), policy=ONCE))
    cause = job.wait_for("Failed")["cause"]
    assert cause["host"] in (job.worker(0), job.worker(1))
    assert "./solver" in cause["summary"]
    assert "signal" not in cause


@together
def test_as_many_attempts_are_made_as_the_limit_says(place: Place) -> None:
    job = place.submit(mpijob("stubborn", place.image(), ["sh", "-c", "exit 3"], policy={"backoffLimit": 1}))
    status = job.wait_for("Failed")
    assert outcomes(status) == ["Failed", "Failed"]
    failed = condition(status, "Failed")
    assert failed["reason"] == "BackoffLimitExceeded"
    assert "after 2 attempts" in failed["message"]
    assert "code 3" in failed["message"]
    assert len(job.pods("launcher")) == 2, "the log of the first attempt is kept"


@together
def test_a_job_that_takes_longer_than_its_deadline_is_ended(place: Place) -> None:
    job = place.submit(mpijob("late", place.image(), FOREVER, policy={"activeDeadlineSeconds": 12}))
    failed = condition(job.wait_for("Failed"), "Failed")
    assert failed["reason"] == "DeadlineExceeded"
    job.until_pods(lambda pods: not pods, "all pods to be gone")


# -- it cannot start -------------------------------------------------------------------------------------
@together
def test_a_worker_without_an_sshd_is_named_and_no_attempt_is_repeated_for_it(place: Place) -> None:
    job = place.submit(mpijob("mute", place.image(), worker_command=FOREVER, policy={"backoffLimit": 3}))
    status = job.wait_for("Failed")
    failed = condition(status, "Failed")
    assert failed["reason"] == "HostsNotReady"
    assert failed["message"].startswith("mute-worker-0: ssh: connect to host mute-worker-0.mute.")
    assert status["cause"]["host"] == "mute-worker-0"
    assert len(status["attempts"]) == 1
    assert "oarsman: waiting for mute-worker-0: ssh: connect to host" in job.log("oarsman-barrier")


@together
def test_a_worker_whose_image_cannot_be_had_is_named_with_what_is_wrong(place: Place) -> None:
    job = place.submit(mpijob("bare", place.image(), worker={"image": "oarsman.test/nowhere:1"}))
    failed = condition(job.wait_for("Failed"), "Failed")
    assert failed["reason"] == "HostsNotReady"
    assert failed["message"].startswith("bare-worker-0 was not ready after ")
    assert "ErrImagePull" in failed["message"] or "ImagePullBackOff" in failed["message"]


@together
def test_workers_without_ssh_in_their_image_end_the_job_at_once_and_say_so(place: Place) -> None:
    job = place.submit(mpijob("mute", place.image(), worker={"image": place.image("busy")}))
    failed = condition(job.wait_for("Failed"), "Failed")
    assert failed["reason"] == "HostsNotReady"
    host, _, why = failed["message"].partition(": ")
    assert host in (job.worker(0), job.worker(1))
    assert why == "there is no sshd in this image: install openssh-server"


@together
def test_a_job_that_fits_nowhere_is_queued_and_says_what_the_scheduler_says(place: Place) -> None:
    job = place.submit(mpijob("huge", place.image(), worker={"resources": {"requests": {"cpu": "100"}}}))
    queued = job.wait_for_condition("Queued")
    assert queued["reason"] == "WaitingForRoom"
    assert queued["message"].startswith("huge-worker-0: not scheduled: 0/2 nodes are available")
    assert "Insufficient cpu" in queued["message"]


@together
def test_a_job_that_is_not_valid_says_which_field(place: Place) -> None:
    urgent = mpijob("urgent", place.image(), annotations={"oarsman.dev/priority": "high"})
    failed = condition(place.submit(urgent).wait_for("Failed"), "Failed")
    assert failed["reason"] == "ValidationError"
    assert "oarsman.dev/priority" in failed["message"]


@together
def test_a_pod_that_the_server_refuses_is_explained_with_its_field(place: Place) -> None:
    mounts = {"volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    job = place.submit(mpijob("unlike", place.image(), worker=mounts))
    failed = condition(job.wait_for("Failed"), "Failed")
    assert failed["reason"] == "ValidationError"
    assert "spec.containers[0].volumeMounts[0].name" in failed["message"]


@together
def test_a_name_that_another_object_has_is_told_and_the_object_is_left_alone(place: Place) -> None:
    taken = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "twin-config"}, "data": {"mine": "yes"}}
    place.cluster.apply(taken, namespace=place.namespace)
    job = place.submit(mpijob("twin", place.image()))
    failed = condition(job.wait_for("Failed"), "Failed")
    assert failed["reason"] == "ErrResourceExists"
    assert '"twin-config" of Kind "ConfigMap"' in failed["message"]
    assert place.cluster.get("configmap", "twin-config", place.namespace)["data"] == {"mine": "yes"}


@together
def test_a_job_that_another_controller_manages_is_not_touched(place: Place) -> None:
    other = place.submit(mpijob("theirs", place.image(), policy={"managedBy": "kueue.x-k8s.io/multikueue"}))
    ours = place.submit(mpijob("ours", place.image(), policy={"managedBy": "kubeflow.org/mpi-operator"}))
    ours.wait_for("Succeeded")
    assert "status" not in other.get()
    assert other.pods() == []
    assert "theirs" not in ours.kubectl("get", "pods,jobs,services,configmaps,secrets", "-o", "name")


# -- what is left ----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("policy", "left"),
    [("All", []), ("Running", ["launcher"]), ("None", ["launcher", "worker", "worker"])],
    ids=["All", "Running", "None"],
)
@together
def test_the_clean_pod_policy_says_which_pods_are_left(place: Place, policy: str, left: list[str]) -> None:
    job = place.submit(mpijob("over", place.image(), ["true"], policy={"cleanPodPolicy": policy}))
    job.wait_for("Succeeded")

    def roles(pods: list[Object]) -> list[str]:
        return sorted(pod["metadata"]["labels"]["training.kubeflow.org/job-role"] for pod in pods)

    job.until_pods(lambda pods: roles(pods) == left, f"what is left to be {left}")
    assert all("deletionTimestamp" not in pod["metadata"] for pod in job.pods())


# -- gangs -----------------------------------------------------------------------------------------------
def pod_groups(group: str, version: str) -> Object:
    """The least of the definitions that gang schedulers bring."""
    whatever = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"podgroups.{group}", "annotations": {"api-approved.kubernetes.io": "unapproved"}},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": "podgroups", "kind": "PodGroup"},
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": True,
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "properties": {"spec": whatever, "status": whatever},
                        }
                    },
                }
            ],
        },
    }


def define(place: Place, group: str, version: str) -> str:
    """Stays until the cluster goes: another test session may use it at the same time."""
    place.cluster.apply(pod_groups(group, version))
    kind = f"podgroups.{group}"
    place.cluster.kubectl("wait", "--for=condition=Established", f"crd/{kind}", "--timeout=180s")
    return kind


@together
def test_a_gang_whose_launcher_waits_for_its_workers_starts(place: Place) -> None:
    """The scheduler of the cluster is called a gang scheduler here: it does not look at pod groups, but pods run."""
    kind = define(place, "scheduling.x-k8s.io", "v1alpha1")
    until_told = ["sh", "-c", "until [ -e /tmp/go ]; do sleep 0.2; done"]
    job = place.submit(
        mpijob(
            "gang",
            place.image(),
            until_told,
            launcherCreationPolicy="WaitForWorkersReady",
            annotations={"oarsman.dev/gang-scheduler": "default-scheduler"},
            policy={"schedulingPolicy": {"scheduleTimeoutSeconds": 30}, "cleanPodPolicy": "Running"},
        )
    )

    def group() -> Object:
        found: Object = place.cluster.get(kind, "gang", place.namespace)["spec"]
        return found

    job.wait_for("Running")
    assert group()["minMember"] == 2, "a launcher that comes later cannot be waited for"
    assert group()["scheduleTimeoutSeconds"] == 30
    labels = {pod["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"] for pod in job.pods()}
    assert labels == {"gang"}
    job.patch('{"spec": {"runPolicy": {"schedulingPolicy": {"scheduleTimeoutSeconds": 77}}}}')
    job.poll(lambda: group()["scheduleTimeoutSeconds"] == 77, "its pod group to follow the edit")
    job.tell(job.pod_names("launcher")[0], "/tmp/go")
    job.wait_for("Succeeded")
    job.poll(lambda: not job.kubectl("get", kind, "-o", "name"), "its pod group to be given back")


@together
def test_the_pod_group_of_volcano_follows_the_edits_of_the_job(place: Place) -> None:
    kind = define(place, "scheduling.volcano.sh", "v1beta1")
    job = place.submit(
        mpijob(
            "erupts",
            place.image(),
            annotations={"oarsman.dev/gang-scheduler": "volcano"},
            policy={"schedulingPolicy": {"queue": "slow"}},
        )
    )
    job.poll(lambda: len(job.pods()) == 3, "all pods")
    group = place.cluster.get(kind, "erupts", place.namespace)["spec"]
    assert (group["minMember"], group["queue"]) == (3, "slow")
    for pod in job.pods():
        assert pod["spec"]["schedulerName"] == "volcano"
        assert pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"] == "erupts"
    job.patch('{"spec": {"runPolicy": {"schedulingPolicy": {"queue": "fast", "minAvailable": 2}}}}')

    def follows() -> bool:
        now = place.cluster.get(kind, "erupts", place.namespace)["spec"]
        return (now["minMember"], now["queue"]) == (2, "fast")

    job.poll(follows, "its pod group to follow the edit")
