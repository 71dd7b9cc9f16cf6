"""Which version a job was written in, from what a cluster keeps of it."""

from __future__ import annotations

from typing import Any

import pytest

from oarsman.engines.kube import views
from oarsman.engines.kube.client.codec import decode, encode
from oarsman.engines.kube.views import document_of, version_of

V1, V2BETA1 = "kubeflow.org/v1", "kubeflow.org/v2beta1"


def wrote(version: str, *, part: str = "f:spec", **more: Any) -> dict[str, Any]:
    return {"apiVersion": version, "fieldsV1": {part: {}}, **more}


@pytest.mark.parametrize(
    ("document", "version"),
    [
        pytest.param({}, V2BETA1, id="nothing is known"),
        pytest.param({"apiVersion": V1}, V1, id="it says so"),
        pytest.param({"metadata": {"managedFields": [wrote(V1)]}}, V1, id="written through v1"),
        pytest.param({"metadata": {"managedFields": [wrote(V2BETA1)]}}, V2BETA1, id="written through v2beta1"),
        pytest.param(
            {"metadata": {"managedFields": [wrote(V2BETA1, time="2026-02"), wrote(V1, time="2026-01")]}},
            V1,
            id="created through v1, then scaled",
        ),
        pytest.param(
            {"metadata": {"managedFields": [wrote(V1, time="2026-02"), wrote(V2BETA1, time="2026-01")]}},
            V2BETA1,
            id="edited by a tool that prefers v1",
        ),
        pytest.param({"metadata": {"managedFields": [wrote(V1, part="f:status")]}}, V2BETA1, id="only its status"),
        pytest.param(
            {"metadata": {"managedFields": [wrote(V1, subresource="scale")]}}, V2BETA1, id="only scaled through v1"
        ),
        pytest.param(
            {"spec": {"cleanPodPolicy": "All"}, "metadata": {"managedFields": [wrote(V2BETA1)]}},
            V2BETA1,
            id="a field of v1 written through v2beta1",
        ),
        pytest.param(
            {"spec": {"writtenAs": V2BETA1}, "metadata": {"managedFields": [wrote(V1)]}},
            V2BETA1,
            id="a copy that kubectl printed in v1",
        ),
        pytest.param(
            {"spec": {"writtenAs": V1}, "status": {"writtenAs": V2BETA1}},
            V2BETA1,
            id="replaced through the other version",
        ),
        pytest.param({"spec": {"mainContainer": "a"}}, V1, id="a field of v1"),
        pytest.param({"spec": {"cleanPodPolicy": "All"}}, V1, id="another field of v1"),
        pytest.param(
            {"spec": {"sshAuthMountPath": "/a"}, "metadata": {"managedFields": [wrote(V1)]}},
            V2BETA1,
            id="a field of v2beta1",
        ),
        pytest.param(
            {"metadata": {"annotations": {"oarsman.dev/api-version": V1}}, "spec": {"mpiImplementation": "Intel"}},
            V1,
            id="our annotation wins",
        ),
        pytest.param(
            {"status": {"writtenAs": V1}, "metadata": {"managedFields": [wrote(V2BETA1)]}},
            V1,
            id="what was noted stays",
        ),
        pytest.param(
            {"status": {"writtenAs": V2BETA1}, "metadata": {"annotations": {"oarsman.dev/api-version": V1}}},
            V1,
            id="the annotation before the note",
        ),
        pytest.param({"status": {"writtenAs": "v9"}}, V2BETA1, id="a note of nonsense"),
    ],
)
def test_the_version_a_job_was_written_in(document: dict[str, Any], version: str) -> None:
    assert version_of(document).value == version
    assert document_of(document)["apiVersion"] == version


def test_what_the_server_noted_is_no_part_of_the_document() -> None:
    stored = {"apiVersion": V2BETA1, "kind": "MPIJob", "spec": {"writtenAs": V1, "slotsPerWorker": 2}}
    assert document_of(stored) == {"apiVersion": V1, "kind": "MPIJob", "spec": {"slotsPerWorker": 2}}


@pytest.mark.parametrize(("version", "found"), [(V1, V1), (V2BETA1, V2BETA1)])
def test_what_an_informer_keeps_is_enough_to_tell(version: str, found: str) -> None:
    stored = {
        "apiVersion": V2BETA1,
        "kind": "MPIJob",
        "metadata": {
            "name": "pi",
            "namespace": "default",
            "managedFields": [{**wrote(version), "manager": "kubectl"}, wrote(V2BETA1, part="f:status")],
        },
        "spec": {"slotsPerWorker": 2},
    }
    kept = decode("read", encode(stored), views.MPIJobView)
    assert version_of(kept.document()).value == found
    assert kept.document()["spec"] == {"slotsPerWorker": 2}
    assert kept.key == "default/pi"
