"""Bringing MPIJobs and the operator to a real API server, and taking them away. No pod ever runs here."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

import pytest
from cluster.cluster import Cluster
from cluster.kubectl import until
from kube_objects import delete
from waiting import waiting

from oarsman import names
from oarsman.backends.kube import doctor, install, lookups
from oarsman.backends.kube.backend import KubeBackend
from oarsman.backends.kube.install import Document, InstallSettings, InstallStep, documents
from oarsman.backends.local.doctor import DoctorFinding
from oarsman.control.operator_settings import LEASE_NAME
from oarsman.engines.kube.client import Kube, Resource, load_access, resources
from oarsman.engines.kube.lease import micro_time
from oarsman.errors import ConflictError, RetryableError

WANTED = documents(InstallSettings(namespace="oarsman-under-test"))


def now() -> str:
    return micro_time(datetime.now(UTC))


@pytest.fixture
def backend(served: Cluster) -> Iterator[KubeBackend]:
    found = waiting(KubeBackend(load_access(kubeconfig=Path(str(served.kubeconfig)))))
    yield found
    removed(found)
    found.close()


def applied(backend: KubeBackend) -> list[InstallStep]:
    return list(backend.stream(lambda kube: install.apply(kube, WANTED)))


def removed(backend: KubeBackend) -> list[InstallStep]:
    return list(backend.stream(lambda kube: install.remove(kube, WANTED, with_definition=False)))


def examined(backend: KubeBackend) -> list[DoctorFinding]:
    return backend.portal.run(doctor.examine(backend.here))


def test_everything_is_made_once_and_then_left_alone(backend: KubeBackend) -> None:
    first = {step.object: step.what for step in applied(backend)}
    assert first.pop("customresourcedefinition mpijobs.kubeflow.org") in ("configured", "unchanged")
    assert set(first.values()) == {"created"}
    assert {step.what for step in applied(backend)} == {"unchanged"}
    assert {step.what for step in backend.stream(lambda kube: install.preview(kube, WANTED))} == {"present"}


def test_what_somebody_changed_is_put_right(backend: KubeBackend) -> None:
    applied(backend)
    change = {"spec": {"replicas": 7}}
    backend.ask(lambda kube: kube.patch(resources.DEPLOYMENTS, "oarsman", change, "oarsman-under-test"))
    assert [step.object for step in applied(backend) if step.what == "configured"] == [
        "deployment oarsman-under-test/oarsman"
    ]


def test_what_a_controller_writes_meanwhile_is_no_change(backend: KubeBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on any busy cluster: between the look at an object and its writing, somebody else writes to it."""
    applied(backend)
    look, looks = install._found, count(1)

    async def looked_at_too_early(kube: Kube, resource: Resource, name: str, namespace: str | None) -> Document | None:
        found = await look(kube, resource, name, namespace)
        if resource == resources.DEPLOYMENTS:
            turn = next(looks)  # the same words once more would be no change
            await kube.patch(resource, name, {"metadata": {"annotations": {"controller": f"turn {turn}"}}}, namespace)
            await kube.patch(resource, name, {"status": {"collisionCount": turn}}, namespace, subresource="status")
        return found

    monkeypatch.setattr(install, "_found", looked_at_too_early)
    assert {step.what for step in applied(backend)} == {"unchanged"}


def test_an_operator_that_does_not_start_is_not_waited_for_for_ever(backend: KubeBackend) -> None:
    applied(backend)
    steps = backend.stream(lambda kube: install.ready(kube, WANTED, 1.0))
    assert next(steps).what == "waiting"
    with pytest.raises(RetryableError, match="deployment oarsman-under-test/oarsman is not available"):
        list(steps)


def test_without_the_operator_the_definition_and_the_jobs_stay(backend: KubeBackend, jobs: KubeBackend) -> None:
    applied(backend)
    steps = {step.object: step.what for step in removed(backend)}
    assert steps.pop("customresourcedefinition mpijobs.kubeflow.org") == "kept"
    assert set(steps.values()) == {"deleted"}
    assert jobs.list(jobs.home) == []


@pytest.mark.parametrize(
    ("holder", "stays"), [("oarsman-5d4f-x2_1", False), ("", False), ("mpi-operator-7c9-k8_2", True)]
)
def test_the_lease_of_the_operator_goes_with_it_and_that_of_another_stays(
    backend: KubeBackend, served: Cluster, holder: str, stays: bool
) -> None:
    """In a namespace that stays; others take all that is in them along."""
    with served.fresh_namespace() as place:
        wanted = documents(InstallSettings(namespace=place))
        list(backend.stream(lambda kube: install.apply(kube, wanted)))
        lease = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": LEASE_NAME},
            "spec": {"holderIdentity": holder, "leaseDurationSeconds": 3600, "renewTime": now()},
        }
        backend.ask(lambda kube: kube.create(resources.LEASES, lease, place))
        steps = list(backend.stream(lambda kube: install.remove(kube, wanted, with_definition=False)))
        assert (InstallStep("deleted", f"lease {place}/{LEASE_NAME}") in steps) is not stays
        assert (place in [leader.namespace for leader in backend.ask(lookups.leaders)]) is stays
        if stays:  # namespaces go slowly, and whoever asks for operators meanwhile would find this one
            backend.ask(lambda kube: delete(kube, resources.LEASES, LEASE_NAME, place))


def test_what_is_being_deleted_is_waited_for(backend: KubeBackend) -> None:
    applied(backend)
    removed(backend)
    assert {step.what for step in applied(backend)} <= {"created", "unchanged"}


def test_what_goes_with_its_namespace_is_not_taken_for_present(backend: KubeBackend) -> None:
    def kept_by(*finalizers: str) -> None:
        body = {"metadata": {"finalizers": list(finalizers)}}
        backend.ask(lambda kube: kube.patch(resources.DEPLOYMENTS, "oarsman", body, "oarsman-under-test"))

    applied(backend)
    kept_by("oarsman.test/kept")
    removed(backend)
    try:
        found = {step.object: step.what for step in backend.stream(lambda kube: install.preview(kube, WANTED))}
    finally:
        kept_by()
    assert found.pop("customresourcedefinition mpijobs.kubeflow.org") == "present"
    assert set(found.values()) == {"missing"}


def test_the_doctor_finds_what_is_missing(backend: KubeBackend) -> None:
    until(
        lambda: not any(leader.alive for leader in backend.ask(lookups.leaders)), "the leaders of other tests are gone"
    )
    found = {finding.subject: finding for finding in examined(backend)}
    assert found["server"].level == found["MPIJobs"].level == "ok"
    assert (found["operator"].level, found["operator"].advice) == ("missing", "oarsman install --image IMAGE")
    assert found["rights"].message.endswith("yes")
    assert found["metrics"].level == "warn"


def test_the_doctor_tells_an_operator_from_one_for_other_namespaces(backend: KubeBackend, jobs: KubeBackend) -> None:
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": LEASE_NAME, "annotations": {names.ANNOTATION_WATCHES: f"elsewhere,{jobs.home}"}},
        "spec": {"holderIdentity": "somebody", "leaseDurationSeconds": 3600, "renewTime": now()},
    }
    backend.ask(lambda kube: kube.create(resources.LEASES, lease, jobs.home))
    found = {finding.subject: finding for finding in examined(jobs)}["operator"]
    assert found.level == "ok"
    found = {finding.subject: finding for finding in examined(backend)}["operator"]
    assert (found.level, found.blocking) == ("missing", True)
    assert found.message == f"somebody manages jobs in elsewhere, {jobs.home} only, not in {backend.home}"
    backend.ask(lambda kube: delete(kube, resources.LEASES, LEASE_NAME, jobs.home))


def test_the_doctor_misses_a_namespace_that_is_not_there(backend: KubeBackend) -> None:
    lost = waiting(KubeBackend(backend.access, namespace="no-such-place"))
    try:
        found = {finding.subject: finding for finding in examined(lost)}["namespace"]
        assert (found.level, found.blocking, found.message) == ("missing", True, "the cluster has no no-such-place")
        assert "namespace" not in {finding.subject for finding in examined(backend)}
    finally:
        lost.close()


def test_what_helm_brought_is_helms_unless_it_is_taken_over(backend: KubeBackend) -> None:
    applied(backend)
    helms = {
        "metadata": {
            "labels": {"app.kubernetes.io/managed-by": "Helm"},
            "annotations": {"meta.helm.sh/release-name": "mpi", "meta.helm.sh/release-namespace": "oarsman-under-test"},
        }
    }
    backend.ask(lambda kube: kube.patch(resources.DEPLOYMENTS, "oarsman", helms, "oarsman-under-test"))
    for refused in (lambda: applied(backend), lambda: removed(backend)):
        with pytest.raises(ConflictError, match="belongs to the Helm release mpi in oarsman-under-test") as caught:
            refused()
        assert (caught.value.hint or "").startswith("helm u")
    forced = backend.stream(lambda kube: install.apply(kube, WANTED, force=True))
    assert {step.object: step.what for step in forced}["deployment oarsman-under-test/oarsman"] == "configured"
    assert {step.what for step in applied(backend)} == {"unchanged"}


def test_a_namespace_that_a_release_left_behind_is_nobodys(backend: KubeBackend) -> None:
    applied(backend)
    left = {
        "metadata": {
            "labels": {"app.kubernetes.io/managed-by": "Helm"},
            "annotations": {"meta.helm.sh/release-name": "mpi", "meta.helm.sh/release-namespace": "default"},
        }
    }
    backend.ask(lambda kube: kube.patch(resources.NAMESPACES, "oarsman-under-test", left))
    assert {step.object: step.what for step in applied(backend)}["namespace oarsman-under-test"] == "configured"
    assert {step.what for step in applied(backend)} == {"unchanged"}


def test_a_server_that_is_not_there_is_the_only_finding(backend: KubeBackend, tmp_path: Path) -> None:
    from dataclasses import replace

    lost = waiting(KubeBackend(replace(backend.access, server="https://127.0.0.1:1")))
    try:
        found = examined(lost)
        assert [(one.subject, one.level, one.blocking) for one in found] == [("server", "missing", True)]
    finally:
        lost.close()


def test_a_namespace_that_others_made_is_not_taken_over_and_stays(backend: KubeBackend, served: Cluster) -> None:
    with served.fresh_namespace() as theirs:
        wanted = documents(InstallSettings(namespace=theirs))
        done = {step.object: step.what for step in backend.stream(lambda kube: install.apply(kube, wanted))}
        assert done[f"namespace {theirs}"] == "unchanged"
        gone = backend.stream(lambda kube: install.remove(kube, wanted, with_definition=False))
        assert {step.object: step.what for step in gone}[f"namespace {theirs}"] == "kept"
        assert served.get("namespace", theirs)["status"]["phase"] == "Active"
