"""Jobs that are changed while they are there: more and fewer workers, suspended and resumed, edited."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cluster.jobs import HELLO, Object, Submitted, hosts_in, mpijob
from cluster.together import Place, together

pytestmark = pytest.mark.timeout(900)  # a body waits for others before it, and says more than a time limit

# In place of Horovod's: tells the list of hosts when it is another one, and which host cannot be reached for long. A
# list reaches the launcher a moment after it was made, and a machine may be busy in that moment: a host is wrong if it
# is still listed and still does not answer ten seconds later.
# horovodrun -np N --min-np N --max-np N --host-discovery-script FILE COMMAND...
HOROVODRUN = """#!/usr/bin/python3
import os, socket, subprocess, sys, time

silent = {}

def reach(host):
    try:
        socket.create_connection((host, 2222), timeout=5).close()
        silent.pop(host, None)
    except OSError as error:
        if time.monotonic() - silent.setdefault(host, time.monotonic()) > 10:
            print("UNREACHABLE", host, error, flush=True)

last = None
while not os.path.exists("/tmp/end"):
    hosts = subprocess.run([sys.argv[8]], capture_output=True, text=True, check=True).stdout.split()
    for gone in set(silent) - {host.split(":")[0] for host in hosts}:
        del silent[gone]
    for host in hosts:
        reach(host.split(":")[0])
    if hosts != last:
        print("hosts", *hosts, flush=True)
        last = hosts
    time.sleep(0.1)
"""
GO = {"name": "go", "configMap": {"name": "go", "optional": True}}


def config(place: Place, name: str, **data: str) -> None:
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}
    place.cluster.apply(made, namespace=place.namespace)


def when_told(place: Place, name: str, **more: Any) -> Object:
    """A job that runs without end, and to its end if it starts when go was said."""
    wait = 'until [ -e /go/now ]; do sleep 0.2; done; exec mpirun -n 2 "$@"'
    return mpijob(
        name,
        place.image(),
        ["sh", "-c", wait, "sh", *HELLO],
        launcher_pod={"volumes": [GO]},
        launcher={"volumeMounts": [{"name": "go", "mountPath": "/go"}]},
        **more,
    )


def lists_in(log: str) -> list[list[str]]:
    lines = [line.split()[1:] for line in log.splitlines() if line.startswith("hosts")]
    return [[host.split(":")[0].split(".")[0] for host in hosts] for hosts in lines]


def suspend(job: Submitted, whether: bool) -> None:
    job.patch(json.dumps({"spec": {"runPolicy": {"suspend": whether}}}))


def outcomes(status: Object) -> list[str]:
    return [attempt["outcome"] for attempt in status["attempts"]]


def made_before_its_workers_were_ready(place: Place, job: Submitted) -> bool:
    launcher = place.cluster.get("job", f"{job.name}-launcher", place.namespace)
    ready = [
        condition["lastTransitionTime"]
        for pod in job.pods("worker")
        for condition in pod["status"]["conditions"]
        if condition["type"] == "Ready"
    ]
    assert len(ready) == 2
    return bool(launcher["metadata"]["creationTimestamp"] < max(ready))


# -- more and fewer workers ------------------------------------------------------------------------------
@together
def test_an_elastic_job_is_told_hosts_that_can_be_reached_and_no_others(place: Place) -> None:
    config(place, "horovod", horovodrun=HOROVODRUN)
    volume = {"name": "horovod", "configMap": {"name": "horovod", "defaultMode": 0o755}}
    job = place.submit(
        mpijob(
            "elastic",
            place.image(),
            [
                "/opt/horovod/horovodrun",
                "-np",
                "2",
                "--min-np",
                "1",
                "--max-np",
                "3",
                "--host-discovery-script",
                "/etc/mpi/discover_hosts.sh",
                "python3",
                "train.py",
            ],
            launcher_pod={"volumes": [volume]},
            launcher={"volumeMounts": [{"name": "horovod", "mountPath": "/opt/horovod"}]},
        )
    )
    job.wait_for("Running")

    def heard(*indexes: int) -> None:
        wanted = [job.worker(index) for index in indexes]
        job.poll(lambda: wanted in lists_in(job.log(check=False)), f"to be told {wanted}")

    heard(0, 1)
    job.kubectl("scale", job.resource, job.name, "--replicas=3")
    heard(0, 1, 2)
    job.patch('{"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": 1}}}}')
    heard(0)
    job.until_pods(lambda pods: len(pods) == 1, "the others to be gone", role="worker")
    (launcher,) = job.pod_names("launcher")
    log = job.log()
    job.tell(launcher, "/tmp/end")
    status = job.wait_for("Succeeded")
    names = [job.worker(index) for index in range(3)]
    assert lists_in(log) == [names[:2], names, names[:1]]
    assert "UNREACHABLE" not in log, log
    assert outcomes(status) == ["Succeeded"]


# -- suspended and resumed -------------------------------------------------------------------------------
@together
def test_a_job_that_ran_is_suspended_and_runs_again_when_it_is_resumed(place: Place) -> None:
    job = place.submit(when_told(place, "paused"))
    job.wait_for("Running")
    suspend(job, True)
    status = job.wait_for("Suspended")
    assert "startTime" not in status
    assert outcomes(status) == ["Suspended"]
    assert job.condition("Running")["status"] == "False"
    job.until_pods(lambda pods: not pods, "all pods to be gone")
    config(place, "go", now="yes")
    suspend(job, False)
    status = job.wait_for("Succeeded")
    assert outcomes(status) == ["Suspended", "Succeeded"]
    assert hosts_in(job.log()) == ["paused-worker-0", "paused-worker-1"]


@together
def test_a_job_created_suspended_has_a_status_and_nothing_else(place: Place) -> None:
    job = place.submit(mpijob("asleep", place.image(), policy={"suspend": True}))
    status = job.wait_for("Suspended")
    assert "startTime" not in status
    made = job.kubectl("get", "pods,jobs,services,configmaps,secrets,roles", "-o", "name")
    assert "asleep" not in made


@together
def test_what_a_queue_writes_into_a_suspended_job_is_on_its_pods_when_it_starts(place: Place) -> None:
    """As Kueue does it: where to run is decided while the job sleeps."""
    node = sorted(node["metadata"]["name"] for node in place.cluster.get("nodes")["items"])[0]
    job = place.submit(
        mpijob("queued", place.image(), policy={"suspend": True}, launcherCreationPolicy="WaitForWorkersReady")
    )
    job.wait_for("Suspended")
    toleration = {"key": "flavor", "operator": "Equal", "value": "spot", "effect": "NoSchedule"}
    template = {
        "metadata": {"labels": {"kueue.x-k8s.io/podset": "main"}, "annotations": {"flavor": "spot"}},
        "spec": {"nodeSelector": {"kubernetes.io/hostname": node}, "tolerations": [toleration]},
    }
    roles = {role: {"template": template} for role in ("Launcher", "Worker")}
    job.patch(json.dumps({"spec": {"runPolicy": {"suspend": False}, "mpiReplicaSpecs": roles}}))
    job.wait_for("Succeeded")
    pods = job.pods()
    assert len(pods) == 3
    for pod in pods:
        assert pod["metadata"]["labels"]["kueue.x-k8s.io/podset"] == "main"
        assert pod["metadata"]["annotations"]["flavor"] == "spot"
        assert pod["spec"]["nodeName"] == node
        assert toleration in pod["spec"]["tolerations"]
    assert not made_before_its_workers_were_ready(place, job), "resuming must not skip what launchers wait for"
    assert job.condition("EditsPending").get("status") != "True"


# -- edited ----------------------------------------------------------------------------------------------
@together
def test_an_edit_that_cannot_reach_running_pods_is_told_until_it_is_taken_back(place: Place) -> None:
    job = place.submit(mpijob("edited", place.image(), ["sleep", "infinity"]))
    job.wait_for("Running")

    def label(value: str | None) -> None:
        template = {"template": {"metadata": {"labels": {"shade": value}}}}
        job.patch(json.dumps({"spec": {"mpiReplicaSpecs": {"Worker": template}}}))

    label("dark")
    pending = job.wait_for_condition("EditsPending")
    assert pending["reason"] == "EditWithoutEffect"
    assert "spec.mpiReplicaSpecs.Worker.template" in pending["message"]
    assert job.status["phase"] == "Running"
    template = {"op": "remove", "path": "/spec/mpiReplicaSpecs/Worker/template/metadata"}
    job.kubectl("patch", job.resource, job.name, "--type=json", f"--patch={json.dumps([template])}")
    job.wait_for_condition("EditsPending", "False")


@together
def test_a_running_job_is_not_handed_to_another_controller(place: Place) -> None:
    job = place.submit(mpijob("kept", place.image(), ["sh", "-c", "until [ -e /tmp/end ]; do sleep 0.2; done"]))
    job.wait_for("Running")
    handed = '{"spec": {"runPolicy": {"managedBy": "kueue.x-k8s.io/multikueue"}}}'
    if place.cluster.version >= (1, 25):  # the server itself refuses it
        with pytest.raises(RuntimeError, match="managedBy cannot be changed"):
            job.patch(handed)
    else:
        job.patch(handed)
        pending = job.wait_for_condition("EditsPending")
        assert "spec.runPolicy.managedBy" in pending["message"]
    (launcher,) = job.pod_names("launcher")
    job.tell(launcher, "/tmp/end")
    job.wait_for("Succeeded")
