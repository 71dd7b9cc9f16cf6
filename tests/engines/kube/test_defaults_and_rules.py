"""Upstream's cases of defaults (D1-D5) and validation (V1-V10), for jobs as a cluster hands them over."""

from __future__ import annotations

from typing import Any

import pytest

from oarsman.errors import ManifestError
from oarsman.job.job import CleanPodPolicy, Implementation, LauncherCreation, RestartPolicy
from oarsman.manifest import job_from_document

from .kube_jobs import V1, V2BETA1, document

Object = dict[str, Any]


# -- defaults ---------------------------------------------------------------------------------------------------
def test_d1_d4_d5_a_silent_manifest() -> None:
    job = job_from_document(document())
    assert job.slots_per_worker == 1
    assert job.run_policy.clean_pod_policy is CleanPodPolicy.NONE
    assert job.ssh_auth_mount_path == "/root/.ssh"
    assert job.implementation is Implementation.OPENMPI
    assert job.launcher_creation is LauncherCreation.AT_STARTUP
    assert (job.launcher.replicas, job.launcher.restart_policy) == (1, RestartPolicy.ON_FAILURE)
    assert job.worker is not None
    assert job.worker.restart_policy is RestartPolicy.NEVER


def test_d5_a_worker_without_a_number_is_asked_for_it() -> None:
    """Upstream takes none for 0 workers and refuses 0 in its validation: the message says what to write instead."""
    given = document()
    del given["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"]
    with pytest.raises(ManifestError) as raised:
        job_from_document(given)
    assert [p.field for p in raised.value.problems] == ["spec.mpiReplicaSpecs.Worker.replicas"]


@pytest.mark.parametrize("implementation", [pytest.param("Intel", id="D2"), pytest.param("MPICH", id="D3")])
def test_what_is_said_is_kept(implementation: str) -> None:
    policy = {
        "cleanPodPolicy": "Running",
        "ttlSecondsAfterFinished": 2,
        "activeDeadlineSeconds": 3,
        "backoffLimit": 4,
    }
    job = job_from_document(
        document(
            slotsPerWorker=10,
            runPolicy=policy,
            sshAuthMountPath="/home/mpiuser/.ssh",
            mpiImplementation=implementation,
            launcherCreationPolicy="WaitForWorkersReady",
        )
    )
    assert job.slots_per_worker == 10
    assert job.ssh_auth_mount_path == "/home/mpiuser/.ssh"
    assert job.implementation.value == implementation
    assert job.launcher_creation is LauncherCreation.WAIT_FOR_WORKERS_READY
    found = job.run_policy
    assert found.clean_pod_policy is CleanPodPolicy.RUNNING
    assert (found.ttl_seconds_after_finished, found.active_deadline_seconds, found.backoff_limit) == (2, 3, 4)


# -- rules ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("implementation", ["Intel", "MPICH"])
@pytest.mark.parametrize("workers", [pytest.param(3, id="with workers"), pytest.param(None, id="without")])
def test_v1_to_v4_a_valid_job_is_valid(implementation: str, workers: int | None) -> None:
    job = job_from_document(document(workers=workers, mpiImplementation=implementation))
    assert job.workers == (workers or 0)


def problems(given: Object) -> set[str]:
    with pytest.raises(ManifestError) as raised:
        job_from_document(given)
    return {problem.field for problem in raised.value.problems}


ROLES = "spec.mpiReplicaSpecs"


def _of(roles: Object, **more: Any) -> Object:
    return {**document(), "spec": {"mpiReplicaSpecs": roles, **more}}


@pytest.mark.parametrize(
    ("given", "fields"),
    [
        pytest.param({"apiVersion": V2BETA1, "kind": "MPIJob"}, {"metadata", "spec"}, id="V5: empty"),
        pytest.param(
            document(
                workers=1000,
                name="a" * 60,
                mpiImplementation="Unknown",
                runPolicy={
                    "cleanPodPolicy": "unknown",
                    "ttlSecondsAfterFinished": -1,
                    "activeDeadlineSeconds": -1,
                    "backoffLimit": -1,
                    "managedBy": "invalid.com/controller",
                },
            ),
            {
                "metadata.name",
                "spec.mpiImplementation",
                "spec.runPolicy.cleanPodPolicy",
                "spec.runPolicy.ttlSecondsAfterFinished",
                "spec.runPolicy.activeDeadlineSeconds",
                "spec.runPolicy.backoffLimit",
                "spec.runPolicy.managedBy",
            },
            id="V6: every field is wrong",
        ),
        pytest.param(_of({}), {f"{ROLES}.Launcher"}, id="V7: no roles"),
        pytest.param(
            _of({"Launcher": {}, "Worker": {}}),
            {f"{ROLES}.Launcher.template", f"{ROLES}.Worker.template", f"{ROLES}.Worker.replicas"},
            id="V8: empty roles",
        ),
        pytest.param(
            document(
                launcher_role={"replicas": 2, "restartPolicy": "Always"},
                worker_role={"replicas": 0, "restartPolicy": "Invalid"},
            ),
            {
                f"{ROLES}.Launcher.replicas",
                f"{ROLES}.Launcher.restartPolicy",
                f"{ROLES}.Worker.replicas",
                f"{ROLES}.Worker.restartPolicy",
            },
            id="V9: numbers and policies",
        ),
        pytest.param(document(name="1-foo"), {"metadata.name"}, id="V10: a digit first"),
    ],
)
def test_an_invalid_job_is_told_every_field(given: Object, fields: set[str]) -> None:
    assert problems(given) == fields


# -- v1's own ---------------------------------------------------------------------------------------------------
def test_v1_launchers_and_workers_never_restart_by_themselves_unless_they_say_so() -> None:
    job = job_from_document(document(version=V1))
    assert job.worker is not None
    assert (job.launcher.restart_policy, job.worker.restart_policy) == (RestartPolicy.NEVER, RestartPolicy.NEVER)
    said = job_from_document(document(version=V1, launcher_role={"restartPolicy": "OnFailure"}))
    assert said.launcher.restart_policy is RestartPolicy.ON_FAILURE


@pytest.mark.parametrize(
    ("given", "field"),
    [
        pytest.param({"launcher_role": {"replicas": 2}}, f"{ROLES}.Launcher.replicas", id="two launchers"),
        pytest.param(
            {"launcher_role": {"template": {"spec": {"containers": []}}}},
            f"{ROLES}.Launcher.template.spec.containers",
            id="no container",
        ),
        pytest.param({"launcher_role": {"template": None}}, f"{ROLES}.Launcher.template", id="no template"),
        pytest.param(
            {"worker": {"containers": [{"image": "a"}]}},
            f"{ROLES}.Worker.template.spec.containers[0].name",
            id="no name",
        ),
        pytest.param({"sshAuthMountPath": "/a"}, "spec.sshAuthMountPath", id="a field of the other version"),
    ],
)
def test_an_invalid_job_of_v1_is_told_the_field(given: Object, field: str) -> None:
    assert field in problems(document(version=V1, **given))
