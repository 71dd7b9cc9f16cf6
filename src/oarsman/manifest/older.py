"""Manifests of `kubeflow.org/v1alpha1` and `v1alpha2`, which old guides still have, in the words of v2beta1.

What cannot be understood is left as it is, for the usual checks to tell.
"""

from __future__ import annotations

import copy
from typing import Any, Final

from oarsman.job.job import ApiVersion
from oarsman.manifest.places import ROLES, look, unshared
from oarsman.names import GROUP, KIND

ALPHA1: Final = f"{GROUP}/v1alpha1"
ALPHA2: Final = f"{GROUP}/v1alpha2"
_POLICIES: Final = ("cleanPodPolicy", "backoffLimit", "activeDeadlineSeconds")
_DISTRIBUTIONS: Final = {"IntelMPI": "Intel"}
_GPU: Final = "nvidia.com/gpu"

Spec = dict[str, Any]


def modern(document: Any) -> dict[str, Any] | None:
    """The same job in v2beta1; None where it is written in no older version, or cannot be understood."""
    read = {ALPHA1: _alpha1, ALPHA2: _alpha2}.get(str(look(document, "apiVersion")))
    if read is None or look(document, "kind") != KIND or not isinstance(look(document, "spec"), dict):
        return None
    try:
        spec = read(unshared(document["spec"]))
    except (LookupError, TypeError, AttributeError, ValueError, ZeroDivisionError):
        return None
    found = {**document, "apiVersion": ApiVersion.V2BETA1.value, "spec": spec}
    found.pop("status", None)  # of another form
    return found


def _alpha2(spec: Spec) -> Spec:
    policy = dict(spec.pop("runPolicy", None) or {})
    for name in _POLICIES:
        if (value := spec.pop(name, None)) is not None:
            policy.setdefault(name, value)
    if policy:
        spec["runPolicy"] = policy
    if (distribution := spec.pop("mpiDistribution", None)) is not None:
        spec["mpiImplementation"] = _DISTRIBUTIONS.get(distribution, distribution)
    roles, main = spec["mpiReplicaSpecs"], spec.pop("mainContainer", None)
    launcher = roles["Launcher"]
    if launcher.get("restartPolicy") not in (None, "Never"):
        launcher["restartPolicy"] = "OnFailure"  # as it was understood
    for name in ROLES:
        containers = roles[name]["template"]["spec"]["containers"] if name in roles else []
        containers.sort(key=lambda container: container["name"] != main)  # v2beta1 takes the first
    if "Worker" in roles:
        roles["Worker"].pop("restartPolicy", None)  # it was always Always, which v2beta1 does not have
    if any("gpu" in name for one in launcher["template"]["spec"]["containers"] for name in _limits(one)):
        spec["runLauncherAsWorker"] = True
    return spec


def _alpha1(spec: Spec) -> Spec:
    """One template for all: the launcher runs its command, without its resources, the workers only wait."""
    template, replicas = spec.pop("template"), spec.pop("replicas", None)
    kind = spec.pop("processingResourceType", None) or _GPU
    gpus, units = spec.pop("gpus", None), spec.pop("processingUnits", None)
    each = spec.pop("gpusPerNode", None) or spec.pop("processingUnitsPerNode", None) or 1
    spec.pop("launcherOnMaster", None)  # where Kubernetes itself ran
    launcher, worker = copy.deepcopy(template), copy.deepcopy(template)
    main = worker["spec"]["containers"][0]
    for name in ("command", "args"):
        main.pop(name, None)
    launcher["spec"]["containers"][0].pop("resources", None)
    if (total := gpus or units) is not None:
        each = min(each, total)
        if total % each:
            raise ValueError
        replicas = total // each
        main.setdefault("resources", {}).setdefault("limits", {})[_GPU if gpus else kind] = each
        spec.setdefault("slotsPerWorker", each)
    spec["mpiReplicaSpecs"] = {"Launcher": {"template": launcher}, "Worker": {"replicas": replicas, "template": worker}}
    return _alpha2(spec)


def _limits(container: dict[str, Any]) -> dict[str, Any]:
    return look(container, "resources", "limits") or {}
