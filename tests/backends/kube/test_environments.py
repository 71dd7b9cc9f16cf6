"""Environments of a namespace on a real API server; Jobs and pods become what a test says they become."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from base64 import b64decode
from collections.abc import AsyncGenerator
from dataclasses import replace
from importlib import resources as files
from pathlib import Path
from typing import Any

import pytest
from cluster.kubectl import until
from kube_objects import delete

from oarsman import names
from oarsman.backends.kube import environment_builds as states
from oarsman.backends.kube import environments as cluster_environments
from oarsman.backends.kube.backend import KubeBackend
from oarsman.engines.kube import environments as kept
from oarsman.engines.kube import views
from oarsman.engines.kube.client import Meta, resources
from oarsman.engines.kube.client.codec import decode
from oarsman.errors import ConflictError, NotFoundError, UsageError, UserError
from oarsman.job.environment import EnvironmentWanted, digest_of
from tests.builders import a_status

from .played import Played, a_document

WANTED = EnvironmentWanted(name="torch", requirements="numpy\n", image="pi")
DIGEST = digest_of(WANTED)
BUILD = kept.build_name("torch", DIGEST)
TOLD = {"python": "3.11.2", "packages": ["numpy==2.1.0"], "sizeBytes": 4096}


@pytest.fixture
def claim(jobs: KubeBackend) -> None:
    spec = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
    body = {"metadata": {"name": "oarsman-environments"}, "spec": spec}
    jobs.ask(lambda kube: kube.create(resources.PERSISTENT_VOLUME_CLAIMS, body, jobs.home))


def ends(jobs: KubeBackend, kind: str, name: str = BUILD) -> None:
    """As the controller of Jobs says it, after it has said that the Job began: it overwrites what was said before."""
    found: list[dict[str, Any]] = []

    def begun() -> bool:
        found[:] = [jobs.ask(lambda kube: kube.get(resources.JOBS, name, jobs.home))["status"]]
        return "startTime" in found[0]

    until(begun, "it has begun")
    # Newer servers insist on all of it.
    before = {"Complete": "SuccessCriteriaMet", "Failed": "FailureTarget"}[kind]
    conditions = [{"type": each, "status": "True", "message": "Job has failed"} for each in (before, kind)]
    ended = {"completionTime": found[0]["startTime"]} if kind == "Complete" else {}
    status = {"status": {"conditions": conditions, "active": 0, "ready": 0, **ended}}
    jobs.ask(lambda kube: kube.patch(resources.JOBS, name, status, jobs.home, subresource="status"))


def pod_ends(jobs: KubeBackend, phase: str, state: dict[str, Any]) -> None:
    """As a kubelet says it of the pod that the controller of Jobs has made; the controller then ends the Job."""
    found: list[dict[str, Any]] = []

    def made() -> bool:
        found[:] = jobs.ask(lambda kube: kube.list(resources.PODS, jobs.home, labels=f"job-name={BUILD}"))
        return bool(found)

    until(made, "the pod of the build is made")
    container = {"name": "build", "image": "pi", "imageID": "", "ready": False, "restartCount": 0, "state": state}
    status = {"status": {"phase": phase, "containerStatuses": [container]}}
    name = found[0]["metadata"]["name"]
    jobs.ask(lambda kube: kube.patch(resources.PODS, name, status, jobs.home, subresource="status"))


def terminated(code: int, message: str, **more: Any) -> dict[str, Any]:
    return {"terminated": {"exitCode": code, "message": message, "finishedAt": "2026-01-31T08:00:00Z", **more}}


@pytest.mark.usefixtures("claim")
def test_what_is_wanted_is_kept_and_built_by_a_job_of_its_image(jobs: KubeBackend) -> None:
    record = jobs.environments.put(replace(WANTED, description="for the team", python="3.11"), owner="ann")
    assert (record.state, record.owner, record.wanted.description) == ("Waiting", "ann", "for the team")
    listed, got = jobs.environments.list(), jobs.environments.get("torch")
    assert [(one.wanted, one.digest, one.owner) for one in listed] == [(got.wanted, got.digest, got.owner)]
    build = jobs.ask(lambda kube: kube.get(resources.JOBS, kept.build_name("torch", record.digest), jobs.home))
    pod = build["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    variables = {variable["name"]: variable.get("value", "") for variable in container["env"]}
    assert container["image"] == "pi"
    assert (variables["OARSMAN_DIGEST"], variables["OARSMAN_PYTHON"]) == (record.digest, "3.11")
    assert variables["OARSMAN_REQUIREMENTS"] == "numpy\n"
    assert container["volumeMounts"][0]["mountPath"] == "/opt/oarsman/environments"
    assert container["securityContext"] == {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    assert pod["securityContext"] == {"seccompProfile": {"type": "RuntimeDefault"}}


@pytest.mark.usefixtures("claim")
def test_credentials_are_in_a_secret_of_the_build_and_nowhere_else(jobs: KubeBackend) -> None:
    wanted = replace(WANTED, requirements="--index-url https://me:s3cret$$x@packages.example/simple\nnumpy\n")
    for _ in range(2):  # the second time over a secret that an earlier build has left
        record = jobs.environments.put(wanted)
        name = kept.build_name("torch", record.digest)
        build = jobs.ask(lambda kube, name=name: kube.get(resources.JOBS, name, jobs.home))
        secret = jobs.ask(lambda kube, name=name: kube.get(resources.SECRETS, name, jobs.home))
        assert b64decode(secret["data"]["OARSMAN_REQUIREMENTS"]).decode() == wanted.requirements
        assert [owner["uid"] for owner in secret["metadata"]["ownerReferences"]] == [build["metadata"]["uid"]]
        maps = jobs.ask(lambda kube: kube.list(resources.CONFIG_MAPS, jobs.home))
        assert "s3cret" not in f"{record} {build} {maps} {jobs.environments.get('torch')}"
        (variable,) = [each for each in container_of(build)["env"] if each["name"] == "OARSMAN_REQUIREMENTS"]
        assert variable["valueFrom"]["secretKeyRef"]["name"] == name
        uid = build["metadata"]["uid"]
        jobs.ask(lambda kube, name=name, uid=uid: kube.delete(resources.JOBS, name, jobs.home, uid=uid))


def container_of(build: dict[str, Any]) -> dict[str, Any]:
    (container,) = build["spec"]["template"]["spec"]["containers"]
    return dict(container)


@pytest.mark.usefixtures("claim")
def test_where_nobody_may_be_root_the_build_is_somebody_else(jobs: KubeBackend) -> None:
    label = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}
    jobs.ask(lambda kube: kube.patch(resources.NAMESPACES, jobs.home, label))
    jobs.environments.put(WANTED)
    build = jobs.ask(lambda kube: kube.get(resources.JOBS, BUILD, jobs.home))
    context = build["spec"]["template"]["spec"]["securityContext"]
    assert (context["runAsNonRoot"], context["runAsUser"], context["fsGroup"]) == (True, 65532, 65532)


NO_CLAIM = 'persistentvolumeclaim "oarsman-environments" not found'
UNSCHEDULED = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}


@pytest.mark.parametrize(
    ("end", "phase", "state", "more", "said", "message"),
    [
        ("", "", {}, {}, "Waiting", "its Job has created no pod yet; see kubectl describe job b"),
        ("", "Pending", {}, {"conditions": [{**UNSCHEDULED, "message": NO_CLAIM}]}, "Waiting", states.NO_CLAIM),
        ("", "Pending", {}, {"conditions": [{**UNSCHEDULED, "message": "full"}]}, "Waiting", "not scheduled: full"),
        ("", "Pending", {"waiting": {"reason": "ErrImagePull", "message": "x"}}, {}, "Waiting", "ErrImagePull: x"),
        ("", "Pending", {"waiting": {"reason": "ContainerCreating"}}, {}, "Waiting", ""),
        ("", "Running", {"running": {}}, {}, "Building", ""),
        ("Complete", "Succeeded", terminated(0, json.dumps(TOLD)), {}, "Ready", ""),
        ("Complete", "Succeeded", terminated(0, "not json"), {}, "Ready", ""),
        ("Complete", "", {}, {}, "Ready", ""),
        ("Failed", "Failed", terminated(1, "a\nERROR: No such package\nhint\n"), {}, "Failed", "No such package"),
        ("Failed", "Failed", terminated(1, "one\ntwo\n\n"), {}, "Failed", "two"),
        ("Failed", "Failed", terminated(1, "ERROR: https://a:b@c"), {}, "Failed", "https://****@c"),
        ("Failed", "Failed", terminated(137, "", reason="OOMKilled"), {}, "Failed", "the build ended with code 137"),
        ("Failed", "Failed", {}, {"reason": "Evicted", "message": "no disk"}, "Failed", "no disk"),
        ("Failed", "", {}, {}, "Failed", "Job has failed"),
    ],
)
def test_the_state_is_that_of_the_build(
    end: str, phase: str, state: dict[str, Any], more: dict[str, Any], said: str, message: str
) -> None:
    conditions = [{"type": end, "status": "True", "message": "Job has failed"}] if end else []
    build = {"metadata": {"name": "b"}, "status": {"conditions": conditions}}
    status = {"phase": phase, "containerStatuses": [{"name": "build", "state": state}] if state else [], **more}
    pod = decode("show", json.dumps({"metadata": {}, "status": status}).encode(), views.Pod) if phase else None
    result = states.result_of("abc", decode("show", json.dumps(build).encode(), views.BatchJob), pod)
    assert result["state"] == said
    found = result.get("message", "")
    assert found.startswith(message)
    assert bool(found) == bool(message)


def test_a_build_that_was_taken_away_has_failed() -> None:
    assert states.result_of("abc", None, None)["state"] == "Failed"


@pytest.mark.usefixtures("claim")
def test_what_became_of_a_build_is_known_when_its_job_is_gone(jobs: KubeBackend) -> None:
    jobs.environments.put(WANTED)
    pod_ends(jobs, "Succeeded", terminated(0, json.dumps(TOLD)))
    until(lambda: jobs.environments.get("torch").state == "Ready", "the build is over")
    seen = jobs.environments.get("torch")
    assert (seen.python, seen.packages, seen.size_bytes) == ("3.11.2", ("numpy==2.1.0",), 4096)
    assert str(seen.built_at) == "2026-01-31 08:00:00+00:00"
    jobs.ask(lambda kube: delete(kube, resources.JOBS, BUILD, jobs.home))
    assert jobs.environments.get("torch") == seen
    jobs.environments.put(replace(WANTED, description="new words"))
    assert jobs.environments.get("torch").state == "Ready"
    assert jobs.ask(lambda kube: kube.list(resources.JOBS, jobs.home)) == []  # not built again


@pytest.mark.usefixtures("claim")
def test_a_failed_build_is_tried_again_and_other_contents_are_built_beside(jobs: KubeBackend) -> None:
    jobs.environments.put(WANTED)
    first = jobs.ask(lambda kube: kube.get(resources.JOBS, BUILD, jobs.home))["metadata"]["uid"]
    ends(jobs, "Failed")
    assert jobs.environments.get("torch").state == "Failed"
    assert jobs.environments.put(WANTED).state == "Waiting"
    assert jobs.ask(lambda kube: kube.get(resources.JOBS, BUILD, jobs.home))["metadata"]["uid"] != first
    changed = jobs.environments.put(replace(WANTED, requirements="scipy"))
    assert (changed.state, changed.digest != DIGEST) == ("Waiting", True)
    assert len(jobs.ask(lambda kube: kube.list(resources.JOBS, jobs.home))) == 2


@pytest.mark.usefixtures("claim")
def test_an_environment_in_use_is_not_deleted(jobs: KubeBackend, played: Played) -> None:
    jobs.environments.put(WANTED)
    document = a_document(annotations={names.ANNOTATION_ENVIRONMENT: "torch"})
    key = jobs.submit(document, environment={}, folder=Path("/")).job.key
    assert jobs.environments.get("torch").used_by == (key,)
    with pytest.raises(ConflictError, match=f"environment torch is used by {key}"):
        jobs.environments.delete("torch")
    played.status(key, a_status(true=(names.CREATED, names.SUCCEEDED)))
    jobs.environments.delete("torch")
    assert jobs.environments.list() == []
    assert jobs.ask(lambda kube: kube.list(resources.JOBS, jobs.home)) == []  # nothing was built, nothing is cleared up


@pytest.mark.usefixtures("claim")
def test_what_was_built_is_cleared_up_unless_another_has_the_same(jobs: KubeBackend) -> None:
    for name in ("torch", "same"):
        jobs.environments.put(replace(WANTED, name=name))
        ends(jobs, "Complete", kept.build_name(name, DIGEST))
        assert jobs.environments.get(name).state == "Ready"
    jobs.environments.delete("same")
    assert [found["metadata"]["name"] for found in jobs.ask(lambda kube: kube.list(resources.JOBS, jobs.home))] == [
        BUILD
    ]
    jobs.environments.delete("torch")
    (job,) = jobs.ask(lambda kube: kube.list(resources.JOBS, jobs.home))
    variables = {v["name"]: v.get("value") for v in job["spec"]["template"]["spec"]["containers"][0]["env"]}
    assert variables["OARSMAN_DIGESTS"] == DIGEST


def test_a_missing_claim_is_told_with_the_way_out(jobs: KubeBackend) -> None:
    with pytest.raises(UserError, match="there is no claim oarsman-environments") as raised:
        jobs.environments.put(WANTED)
    assert "kubectl apply" in str(raised.value.hint)
    assert jobs.environments.list() == []


@pytest.mark.parametrize(
    ("wanted", "field"),
    [
        (replace(WANTED, image=None), "image"),
        (replace(WANTED, name="No"), "name"),
        (replace(WANTED, mpi="lam"), "mpi"),
        (replace(WANTED, requirements="x" * 70000), "requirements"),
    ],
    ids=["image", "name", "mpi", "requirements"],
)
def test_what_cannot_be_built_is_refused_with_its_field(
    jobs: KubeBackend, wanted: EnvironmentWanted, field: str
) -> None:
    with pytest.raises(UsageError) as raised:
        jobs.environments.put(wanted)
    assert raised.value.field == field


@pytest.mark.parametrize("ask", ["get", "delete", "log"])
@pytest.mark.parametrize("name", ["nobody", "../x"])
def test_an_unknown_one_is_not_found(jobs: KubeBackend, ask: str, name: str) -> None:
    with pytest.raises(NotFoundError, match="there is no environment"):
        getattr(jobs.environments, ask)(name)


# -- its log -------------------------------------------------------------------------------------------------
class Logging:
    def __init__(self, text: bytes) -> None:
        self.text = text

    async def log(self, pod: str, namespace: str, **_: Any) -> AsyncGenerator[bytes, None]:
        for line in self.text.splitlines():
            yield line


def test_a_log_is_read_in_bounded_pieces_from_place_to_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_environments, "_LOG_PIECE", 10)
    text = b"one\ntwo\nthree\nfour and more than one piece\nend\n"
    pod, read, after = views.Pod(metadata=Meta(name="p", namespace="n")), "", 0
    for _ in range(20):
        piece = asyncio.run(cluster_environments._log_piece(Logging(text), pod, after, ended=True))  # type: ignore[arg-type]
        assert len(piece.text) <= 10
        read, after = read + piece.text, piece.after
        if piece.ended:
            break
    assert (read.encode(), after) == (text, len(text))


def test_a_place_in_the_log_of_an_earlier_build_begins_anew() -> None:
    pod = views.Pod(metadata=Meta(name="p", namespace="n"))
    piece = asyncio.run(cluster_environments._log_piece(Logging(b"short\n"), pod, 100, ended=True))  # type: ignore[arg-type]
    assert (piece.text, piece.after, piece.ended) == ("", 0, False)


def test_shellcheck_has_nothing_to_say_about_the_build() -> None:
    script = files.files("oarsman.backends.kube") / "environment_build.sh"
    program = Path(sys.executable).with_name("shellcheck")
    done = subprocess.run([str(program), "-S", "warning", str(script)], text=True, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")
