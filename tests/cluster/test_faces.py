"""The command and the library with --on kube, on a real cluster with the operator in it: as on one machine."""

from __future__ import annotations

import contextlib
import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from waiting import waiting

from cluster.cluster import Cluster
from cluster.face import Face, a_face, ended
from cluster.jobs import mpijob
from cluster.kubectl import until
from cluster.operator import Operator
from cluster.pods import headless, pod
from oarsman.backends import open_backend
from oarsman.backends.base import JobRecord, LogQuery
from oarsman.errors import NotFoundError

WORLD = "from mpi4py import MPI; rank = MPI.COMM_WORLD.rank; "
PATIENT = "import os, time\nwhile not os.path.exists('/tmp/go'): time.sleep(0.1)"


@pytest.fixture
def face(cluster: Cluster, namespace: str, operator: Operator, tmp_path: Path) -> Face:
    """With a kubeconfig whose context names the namespace, as users have one."""
    return a_face(cluster, namespace, tmp_path)


@pytest.fixture
def image(cluster: Cluster) -> str:
    return f"--image={cluster.images['openmpi4']}"


def test_a_command_runs_as_on_one_machine_and_leaves_its_story(face: Face, image: str) -> None:
    program = WORLD + "print('hello from', rank, flush=True)"
    done = face.says("run", "-n", "2", image, "--name", "hello", "--", "python3", "-c", program)
    lines = ["[rank 0 hello-worker-0] hello from 0", "[rank 1 hello-worker-1] hello from 1"]
    assert sorted(done.stdout.splitlines()) == lines
    assert done.stderr.startswith("hello succeeded after ")

    assert sorted(face.says("logs", "hello").stdout.splitlines()) == lines
    assert face.says("logs", "hello", "--rank", "1").stdout.splitlines() == lines[1:]
    assert face.says("logs", "hello", "--rank", "0", "--no-tags").stdout == "hello from 0\n"
    (line,) = [
        json.loads(line) for line in face.says("logs", "hello", "--worker", "1", "-o", "json").stdout.splitlines()
    ]
    assert (line["rank"], line["host"]) == (1, "hello-worker-1")

    listed = face.says("list").stdout.splitlines()
    assert listed[0].split()[:3] == ["NAME", "STATE", "WORKERS"]
    assert listed[1].split()[:3] == ["hello", "Succeeded", "2"]
    assert face.says("list", "-o", "name").stdout == "mpijob/hello\n"
    assert "mpijob/hello" in face.says("list", "--all-namespaces", "-o", "name").stdout.split()
    described = face.says("describe", "hello").stdout
    for part in ("State:        Succeeded", "2 hosts x 1 = 2", "Timeline", "MPIJobSucceeded"):
        assert part in described
    reasons = [event["reason"] for event in json.loads(face.says("events", "hello", "-o", "json").stdout)["items"]]
    # Of a job this short the operator may see the end before it has seen it run.
    assert [reason for reason in reasons if reason != "MPIJobRunning"] == ["MPIJobCreated", "MPIJobSucceeded"]
    got = json.loads(face.says("get", "hello", "-o", "json").stdout)
    assert got["status"]["phase"] == "Succeeded"
    face.says("wait", "hello", "--for", "succeeded")
    again = face.says("submit", "-n", "1", image, "--name", "hello", "--", "true", code=None)
    assert again.returncode
    assert "already" in again.stderr

    face.says("delete", "hello")
    face.says("wait", "hello", "--for", "deleted", "--timeout", "180s")
    assert face.says("list", "-o", "name").stdout == ""
    missing = face.says("describe", "hello", code=None)
    assert missing.returncode
    assert "there is no job" in missing.stderr


def test_the_exit_code_is_that_of_the_rank_that_failed(face: Face, image: str) -> None:
    program = WORLD + "import sys; print('working', flush=True); sys.exit(7 if rank == 1 else 0)"
    words = ("--name", "sad", "--", "python3", "-c", program)
    done = face.says("run", "-n", "2", image, *words, code=7)
    assert "sad failed after " in done.stderr
    assert "exit" in done.stderr
    assert "7" in done.stderr
    assert face.says("wait", "sad", "--for", "succeeded", code=1)
    assert "Failed" in face.says("list").stdout


def test_a_manifest_with_a_mistake_never_reaches_the_cluster(face: Face, cluster: Cluster) -> None:
    manifest = mpijob("wrong", cluster.images["openmpi4"])
    manifest["spec"]["slotsPerWorker"] = -1
    (face.home / "wrong.json").write_text(json.dumps(manifest))
    done = face.says("submit", "wrong.json", code=None)
    assert done.returncode
    assert "slotsPerWorker" in done.stderr
    assert face.says("list", "-o", "name").stdout == ""


def test_ctrl_c_stops_the_job_and_says_that_its_pods_go(face: Face, image: str) -> None:
    words = ("--name", "long", "--", "sh", "-c", "echo begun; sleep 600")
    with face.starts("run", "-n", "1", image, *words) as running, ended(running):
        assert running.stdout
        assert running.stdout.readline() == "[rank 0 long-worker-0] begun\n"
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=180)
        assert running.returncode == 130
        assert "stopping long" in said
        assert "long was stopped after" in said
        assert "its pods are going away" in said
    until(lambda: not [pod for pod in face.pods() if "worker" in pod], "the workers are gone")
    reason = json.loads(face.says("get", "long", "-o", "json").stdout)["status"]["conditions"][-1]["reason"]
    assert reason == "StoppedByUser"


def test_a_log_is_followed_until_the_job_is_stopped(face: Face, image: str) -> None:
    words = (
        "--name",
        "talker",
        "--",
        "sh",
        "-c",
        "echo one; until test -e /tmp/go; do sleep 0.1; done; echo two; sleep 600",
    )
    assert face.says("submit", "-n", "1", image, *words).stdout == "talker\n"
    face.says("wait", "talker", "--for", "running", "--timeout", "180s")
    with face.starts("logs", "--follow", "talker") as following, ended(following):
        assert following.stdout
        assert following.stdout.readline() == "[rank 0 talker-worker-0] one\n"
        face.cluster.run_in(face.namespace, "talker-worker-0", "touch", "/tmp/go")
        assert following.stdout.readline() == "[rank 0 talker-worker-0] two\n"
        face.says("stop", "talker")
        following.communicate(timeout=180)
        assert following.returncode == 0
    assert face.says("wait", "talker", "--for", "failed", "--timeout", "180s")
    again = face.says("stop", "talker", code=None)
    assert again.returncode
    assert "has ended already" in again.stderr


def test_a_job_is_suspended_resumed_and_scaled(face: Face, cluster: Cluster) -> None:
    """The launcher waits for a sign and is not disturbed by a worker more."""
    waiting = ["python3", "-c", PATIENT]
    manifest = mpijob("elastic", cluster.images["openmpi4"], waiting, workers=1, policy={"suspend": True})
    (face.home / "job.json").write_text(json.dumps(manifest))
    face.says("submit", "job.json")
    face.says("wait", "elastic", "--for", "suspended", "--timeout", "180s")
    assert face.pods() == []
    face.says("resume", "elastic")
    face.says("wait", "elastic", "--for", "running", "--timeout", "180s")
    face.says("scale", "elastic", "2")
    until(lambda: "pod/elastic-worker-1" in face.pods(), "a second worker comes")
    face.says("scale", "elastic", "1")
    until(lambda: "pod/elastic-worker-1" not in face.pods(), "the second worker goes")
    face.says("suspend", "elastic")
    face.says("wait", "elastic", "--for", "suspended", "--timeout", "180s")
    until(lambda: face.pods() == [], "nothing of a suspended job is left")
    refused = face.says("scale", "elastic", "0", code=None)
    assert refused.returncode
    face.says("delete", "elastic")
    face.says("wait", "elastic", "--for", "deleted", "--timeout", "180s")


def test_the_doctor_finds_server_definition_operator_and_nodes(face: Face) -> None:
    found = {one["subject"]: one for one in json.loads(face.says("doctor", "-o", "json").stdout)}
    assert found["operator"]["level"] == "ok"
    assert found["MPIJobs"]["level"] == "ok"
    assert found["nodes"]["message"] == "2 of 2 are ready"


def test_a_program_does_it_all_through_the_library(face: Face, cluster: Cluster) -> None:
    jobs = waiting(open_backend("kube", kubeconfig=str(face.home / "kubeconfig")))
    try:
        assert jobs.home == face.namespace
        manifest = mpijob("library", cluster.images["openmpi4"], workers=1)
        key = jobs.submit(manifest, environment={}, folder=face.home).job.key
        phases = [record.status.phase for record in until_finished(jobs.watch(key, timeout=180))]
        assert phases[-1] == "Succeeded"
        lines = [line.text for line in jobs.logs(key, LogQuery(ranks=(0,)))]
        assert lines == ["rank 0 of 1 on library-worker-0"]
        assert [record.job.name for record in jobs.list(face.namespace)] == ["library"]
        # It is told after the status is on record, which ends the watch.
        until(lambda: jobs.events(key)[-1].reason == "MPIJobSucceeded", "its end is told")
        jobs.delete(key)
        with contextlib.suppress(NotFoundError):  # gone before it could be watched
            for _ in jobs.watch(key, timeout=180):
                pass
        with pytest.raises(NotFoundError):
            jobs.get(key)
    finally:
        jobs.close()


def test_a_long_log_is_paged_followed_and_searched_and_the_nodes_say_who_is_there(face: Face, cluster: Cluster) -> None:
    """Real kubelets: their times, their idea of a tail, their way to cut long lines."""
    count = 3000
    talk = (
        f"{WORLD}import os, sys, time\nfor n in range({count}): print('line', n, '.' * 40, flush=n % 10 == 0)\n"
        "print('Needle', 'x' * 40000, flush=True)\n" + PATIENT + "\nprint('the end', flush=True)"
    )
    asks = {"resources": {"requests": {"cpu": "10m", "memory": "16Mi"}}}
    manifest = mpijob("talk", cluster.images["openmpi4"], workers=1, program=("python3", "-c", talk), container=asks)
    jobs = waiting(open_backend("kube", kubeconfig=str(face.home / "kubeconfig")))
    try:
        key = jobs.submit(manifest, environment={}, folder=face.home, owner="ada").job.key
        # Long enough: of thousands that were shorter than their tags, mpirun of Open MPI 4 passed on only a part.
        lines = [f"line {number} {'.' * 40}" for number in range(count)]
        followed = jobs.log_follow(key)
        seen: list[str] = []
        while not any(text.startswith("Needle") for text in seen):
            page = next(followed)
            seen += [placed.line.text for placed in page.lines]
        assert seen[:count] == lines
        (needle,) = seen[count:]
        assert needle == "Needle " + "x" * 40000

        last = jobs.log_page(key, limit=1000)
        texts = [placed.line.text for placed in last.lines]
        while last.before is not None:
            last = jobs.log_page(key, before=last.before, limit=1000)
            texts = [placed.line.text for placed in last.lines] + texts
        assert texts == [*lines, needle]
        found = jobs.log_page(key, LogQuery(search="line 29", ranks=(0,)), limit=7)
        assert [placed.line.text for placed in found.lines] == lines[-7:]
        assert [line.text for line in jobs.logs(key, LogQuery(search="needle"))] == [needle]
        middle = jobs.log_page(key, after="1", limit=1500)
        onwards = jobs.log_page(key, after=middle.after, limit=5000)
        assert [placed.line.text for placed in (*middle.lines, *onwards.lines)] == [*lines, needle]

        held = [holding for host in jobs.hosts() for holding in host.holdings if holding.key == key]
        assert sum(holding.amounts.cpus for holding in held) == pytest.approx(0.02)
        assert {host.state for host in jobs.hosts()} == {"ready"}
        assert jobs.fit(manifest).now
        assert jobs.get(key).owner == "ada"

        cluster.run_in(face.namespace, "talk-worker-0", "touch", "/tmp/go")
        assert [placed.line.text for page in followed for placed in page.lines] == ["the end"]
        assert [placed.line.text for placed in jobs.log_page(key, after=onwards.after).lines] == ["the end"]
    finally:
        jobs.close()


def test_a_pod_of_the_cluster_needs_no_kubeconfig(face: Face, cluster: Cluster) -> None:
    """A script that submits jobs from within: it has what its service account may, in its own namespace."""
    where = f"--namespace={face.namespace}"
    cluster.kubectl(where, "create", "serviceaccount", "student")
    cluster.kubectl(
        where, "create", "rolebinding", "student", "--clusterrole=edit", f"--serviceaccount={face.namespace}:student"
    )
    inner = f"oarsman run -n 1 --image {cluster.images['openmpi4']} --name inner -- echo from within"
    script = 'oarsman() { python3 -m oarsman.cli "$@"; }; export OARSMAN_ON=kube HOME=/tmp; ' + (
        f"{inner} && oarsman list -o name && ! oarsman list --namespace kube-system"
    )
    asking = pod("asking", cluster.images["operator"], "sh", "-c", script, serviceAccountName="student")
    cluster.apply(headless(), asking, namespace=face.namespace)

    def phase() -> str:
        return str(cluster.get("pod", "asking", face.namespace)["status"].get("phase"))

    until(lambda: phase() in ("Succeeded", "Failed"), "the pod has ended")
    said = cluster.kubectl("logs", "asking", where).stdout
    assert "[rank 0 inner-worker-0] from within" in said.splitlines(), said
    assert "mpijob/inner" in said.splitlines(), said
    assert 'cannot list resource "mpijobs"' in said, said
    assert phase() == "Succeeded", said


def until_finished(records: Iterator[JobRecord]) -> Iterator[JobRecord]:
    for record in records:
        yield record
        if record.status.finished:
            return
