"""What the API server itself says of an MPIJob, before any operator has seen it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from cluster.cluster import Cluster
from cluster.kubectl import until

from oarsman.manifest.template import REQUIRED, SHAPES, One

Edit = Callable[[dict[str, Any]], object]


def job(name: str = "pi", version: str = "v2beta1") -> dict[str, Any]:
    def template(name: str) -> dict[str, Any]:
        return {"template": {"spec": {"containers": [{"name": name, "image": "pi"}]}}}

    roles = {"Launcher": {"replicas": 1, **template("launcher")}, "Worker": {"replicas": 2, **template("worker")}}
    spec = {"mpiReplicaSpecs": roles}
    return {"apiVersion": f"kubeflow.org/{version}", "kind": "MPIJob", "metadata": {"name": name}, "spec": spec}


def pod(manifest: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = manifest["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]
    return found


def said(served: Cluster, namespace: str, verb: str, manifest: dict[str, Any]) -> str:
    """The refusal; empty if it was taken."""
    done = served.kubectl(f"--namespace={namespace}", verb, "-f", "-", stdin=json.dumps(manifest), check=False)
    return done.stderr if done.returncode else ""


def with_policy(manifest: dict[str, Any], **policy: Any) -> None:
    manifest["spec"]["runPolicy"] = policy


def named(manifest: dict[str, Any], length: int) -> None:
    manifest["metadata"]["name"] = "a" * length


WRONG_KINDS: dict[str, tuple[Edit, str]] = {
    "a number as a variable": (lambda m: pod(m)["containers"][0].update(env=[{"name": "A", "value": 1}]), "env"),
    "a word as a list": (lambda m: pod(m)["containers"][0].update(command="true"), "command"),
    "a list as a mapping": (lambda m: pod(m).update(nodeSelector=[]), "nodeSelector"),
    "no containers": (lambda m: pod(m).pop("containers"), "containers"),
}
TAKEN: dict[str, Edit] = {
    "a field that a later Kubernetes brings": lambda m: pod(m).update(ofTomorrow={"a": [1]}),
    "null for nothing": lambda m: pod(m)["containers"][0].update(env=None, resources=None),
    "a quantity as a number": lambda m: pod(m)["containers"][0].update(resources={"limits": {"cpu": 1}}),
    "no Worker": lambda m: m["spec"]["mpiReplicaSpecs"].update(Worker=None),
    "a policy of nothing": lambda m: m["spec"].update(runPolicy=None),
    "the longest name": lambda m: named(m, 54),
}
IMPOSSIBLE: dict[str, tuple[Edit, str]] = {
    "more members than pods": (lambda m: with_policy(m, schedulingPolicy={"minAvailable": 4}), "minAvailable"),
    "a name too long for a host": (lambda m: named(m, 55), "name is too long"),
}
UNCHANGED: dict[str, tuple[Edit, str]] = {
    "who manages it": (lambda m: with_policy(m, managedBy="kueue.x-k8s.io/multikueue"), "managedBy"),
}


@pytest.mark.parametrize("version", ["v1", "v2beta1"])
def test_a_value_of_the_wrong_kind_in_a_pod_template_is_refused(
    served: Cluster, api_namespace: str, version: str
) -> None:
    for what, (edit, field) in WRONG_KINDS.items():
        manifest = job(version=version)
        edit(manifest)
        assert field in said(served, api_namespace, "create", manifest), what


@pytest.mark.parametrize("version", ["v1", "v2beta1"])
def test_what_a_pod_may_have_is_taken_and_kept(served: Cluster, api_namespace: str, version: str) -> None:
    for number, (what, edit) in enumerate(TAKEN.items()):
        manifest = job(f"taken-{number}", version)
        edit(manifest)
        assert said(served, api_namespace, "create", manifest) == "", what
    kept = served.get(f"mpijobs.{version}.kubeflow.org", "taken-0", api_namespace)
    assert pod(kept)["ofTomorrow"] == {"a": [1]}


def test_rules_are_asked_by_servers_that_know_them_and_ignored_by_older_ones(
    served: Cluster, api_namespace: str
) -> None:
    knows = served.version >= (1, 25)
    for what, (edit, word) in IMPOSSIBLE.items():
        manifest = job("impossible")
        edit(manifest)
        assert (word in said(served, api_namespace, "create", manifest)) is knows, what
        if not knows:
            served.delete_all("mpijobs.v2beta1.kubeflow.org", api_namespace)
    assert said(served, api_namespace, "create", job()) == ""
    for what, (edit, word) in UNCHANGED.items():
        manifest = job()
        edit(manifest)
        assert (word in said(served, api_namespace, "replace", manifest)) is knows, what
    suspended = job("other")
    assert said(served, api_namespace, "create", suspended) == ""
    with_policy(suspended, suspend=True)
    assert said(served, api_namespace, "replace", suspended) == ""


def test_jobs_can_be_chosen_by_their_state_where_the_server_can(served: Cluster, api_namespace: str) -> None:
    for version in ("v1", "v2beta1"):
        words = ("get", f"mpijobs.{version}.kubeflow.org", "--field-selector=status.phase=Running")
        done = served.kubectl(f"--namespace={api_namespace}", *words, check=False)
        assert (done.returncode == 0) is (served.version >= (1, 30)), done.stderr


def test_kubectl_explains_pod_templates(served: Cluster) -> None:
    if served.version < (1, 27):  # older clients get no fields below one that keeps what it does not know
        return
    resources = "mpijobs.spec.mpiReplicaSpecs.Worker.template.spec.containers.resources"

    def explained(version: str) -> bool:
        """The server describes a definition some time after it serves it."""
        words = ("explain", f"--api-version=kubeflow.org/{version}", resources)
        return "limits" in served.kubectl(*words, check=False).stdout

    until(lambda: explained("v1") and explained("v2beta1"), "its fields are explained")


# -- the table of fields beside the server's own -------------------------------------------------------------------
OF_SERVER = {"template": "PodTemplateSpec", "pod": "PodSpec", "container": "Container", "volume": "Volume"}
OF_SERVER |= {"resources": "ResourceRequirements", "port": "ContainerPort", "variable": "EnvVar"}
OF_SERVER |= {"mount": "VolumeMount", "variables from": "EnvFromSource", "variable source": "EnvVarSource"}
OF_SERVER |= {"field ref": "ObjectFieldSelector", "host path": "HostPathVolumeSource"}
OF_SERVER |= {"empty dir": "EmptyDirVolumeSource"}
JSON = {"text": "string", "flag": "boolean", "whole": "integer", "texts": "array", "list": "array"}


def test_the_table_of_fields_has_each_of_the_server_with_its_kind(served: Cluster) -> None:
    known = json.loads(served.kubectl("get", "--raw=/openapi/v2").stdout)["definitions"]
    wrong = []
    for shape, name in OF_SERVER.items():
        theirs, ours = known[f"io.k8s.api.core.v1.{name}"], SHAPES[shape]
        for field, schema in theirs["properties"].items():
            kind = ours.get(field)
            if kind is None:
                wrong.append(f"{name}.{field} would be warned of")
            elif isinstance(kind, One):
                wrong += [f"{name}.{field} is a list"] if ("items" in schema) is not kind.listed else []
            elif kind in JSON and schema.get("type") != JSON[kind]:
                wrong.append(f"{name}.{field} is {schema}")
        more = {*REQUIRED.get(shape, ())} - {"spec", *theirs.get("required", ())}
        wrong += [f"{name} does not need {more}"] if more else []
    assert wrong == []
