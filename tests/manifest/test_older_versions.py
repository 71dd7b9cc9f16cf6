"""Manifests of v1alpha1 and v1alpha2, as old guides still have them."""

from __future__ import annotations

import json

import pytest
import yaml
from manifest_samples import V2BETA1, spec

from oarsman.errors import ManifestError
from oarsman.job.job import ApiVersion, CleanPodPolicy, Implementation, Job, RestartPolicy
from oarsman.manifest import convert, job_from_document, load

ALPHA2 = V2BETA1.replace("v2beta1", "v1alpha2")
ALPHA1 = """\
apiVersion: kubeflow.org/v1alpha1
kind: MPIJob
metadata:
  name: pi  # of the guide
spec:
  # sixteen of them
  gpus: 16
  gpusPerNode: 8
  backoffLimit: 3
  template:
    spec:
      containers:
      - name: mpi
        image: pi
        command: [mpirun, ./pi]
        resources: {limits: {memory: 1Gi}}
"""


def one(text: str) -> Job:
    (job,) = load(text)
    return job


def test_an_old_version_is_read_with_a_warning_at_its_place() -> None:
    job = one(ALPHA2)
    assert (job.api_version, job.workers) == (ApiVersion.V2BETA1, 2)
    (told,) = job.warnings
    assert (told.line, told.field, told.hint) == (1, "apiVersion", "`oarsman convert FILE` writes it anew")
    assert told.message == "an old version; it is read as kubeflow.org/v2beta1"
    assert job_from_document(job.document).warnings == ()


def test_what_v1alpha2_says_elsewhere_arrives() -> None:
    said = "cleanPodPolicy: Running\nbackoffLimit: 2\nactiveDeadlineSeconds: 60\nrunPolicy: {backoffLimit: 4}"
    job = one(
        spec(f"{said}\nmpiDistribution: IntelMPI\nmainContainer: train", base=ALPHA2).replace(
            "- name: mpi\n", "- {name: side, image: s}\n          - name: train\n"
        )
    )
    policy = job.run_policy
    assert (policy.clean_pod_policy, policy.backoff_limit) == (CleanPodPolicy.RUNNING, 4)  # runPolicy goes first
    assert policy.active_deadline_seconds == 60
    assert job.implementation is Implementation.INTEL
    assert [job.launcher.container.name, job.worker.container.name] == ["train", "train"]


@pytest.mark.parametrize(("said", "read"), [("Never", "Never"), ("Always", "OnFailure"), ("ExitCode", "OnFailure")])
def test_launchers_of_v1alpha2_restart_on_failure_unless_they_never_do(said: str, read: str) -> None:
    job = one(
        ALPHA2.replace("Launcher:", f"Launcher:\n      restartPolicy: {said}").replace(
            "replicas: 2", "replicas: 2\n      restartPolicy: Always"
        )
    )
    assert (job.launcher.restart_policy, job.worker.restart_policy) == (RestartPolicy(read), RestartPolicy.NEVER)


def test_units_of_v1alpha1_become_workers_that_wait_and_a_launcher_without_resources() -> None:
    job = one(ALPHA1)
    assert (job.workers, job.slots_per_worker, job.slots, job.run_policy.backoff_limit) == (2, 8, 16, 3)
    assert dict(job.worker.container.resources.limits) == {"memory": 2**30, "nvidia.com/gpu": 8}
    assert (job.worker.container.command, job.launcher.container.command) == ((), ("mpirun", "./pi"))
    assert not job.launcher.container.resources.limits
    assert not job.run_launcher_as_worker


@pytest.mark.parametrize(
    ("said", "workers", "slots"),
    [
        ("gpus: 4", 4, 1),
        ("gpus: 2\n  gpusPerNode: 4", 1, 2),
        ("processingUnits: 6\n  processingUnitsPerNode: 3\n  processingResourceType: cpu", 2, 3),
        ("replicas: 3\n  slotsPerWorker: 2", 3, 2),
    ],
)
def test_each_way_of_v1alpha1_to_say_how_many(said: str, workers: int, slots: int) -> None:
    job = one(ALPHA1.replace("gpus: 16\n  gpusPerNode: 8", said))
    assert (job.workers, job.slots_per_worker) == (workers, slots)


@pytest.mark.parametrize("text", [ALPHA1.replace("gpus: 16", "gpus: 12"), ALPHA2.replace("Launcher", "Laucher"), "[]"])
def test_what_cannot_be_understood_is_told_as_ever(text: str) -> None:
    with pytest.raises(ManifestError):
        load(text)


def test_convert_writes_v2beta1_and_keeps_comments() -> None:
    text = "# mine\n" + spec("# how often\nbackoffLimit: 2", base=ALPHA2).replace("image: pi", "image: pi  # ours", 1)
    converted = convert(text, "f", ApiVersion.V2BETA1)
    assert converted.losses == ()
    assert one(converted.text).warnings == ()
    assert one(converted.text).run_policy.backoff_limit == 2
    assert converted.text.startswith("# mine\napiVersion: kubeflow.org/v2beta1\n")
    assert "image: pi  # ours\n" in converted.text
    again = convert(ALPHA1, "f", ApiVersion.V2BETA1).text
    assert one(again).warnings == ()
    assert one(again).workers == 2
    assert "name: pi  # of the guide\n" in again


def test_between_the_present_versions_comments_stay_too() -> None:
    text = f"# first\n{V2BETA1}---\n# second\n{V2BETA1.replace('name: pi', 'name: pj  # the other', 1)}"
    converted = convert(text, "f", ApiVersion.V1).text
    assert [job.api_version for job in load(converted)] == [ApiVersion.V1, ApiVersion.V1]
    for kept in ("# first\n", "# second\n", "name: pj  # the other\n"):
        assert kept in converted
    listed = '{"kind": "List", "apiVersion": "v1", "items": [%s]}'
    (job,) = load(convert(listed % json.dumps(yaml.safe_load(V2BETA1)), "f", ApiVersion.V1).text)
    assert job.api_version is ApiVersion.V1
