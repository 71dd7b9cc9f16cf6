"""A manifest of one version in the words of the other, and what the other cannot say.

What a version does without being told is written out where the other would do something else, so
that the converted job behaves like the original. What both say alike stays as it is written, with its comments.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from oarsman.job.job import ApiVersion
from oarsman.manifest.build import DEFAULT_SSH_PATH, build_job, has_gpu_limit
from oarsman.manifest.check import without_nulls
from oarsman.manifest.document import AnyMPIJob
from oarsman.manifest.load import checked_models
from oarsman.manifest.places import ROLES, look
from oarsman.manifest.source import decode
from oarsman.manifest.text_edit import amended, documents
from oarsman.text.sentence import Text

_SAME_OPERATOR = {"kubeflow.org/training-operator": "kubeflow.org/mpi-operator"}


@dataclass(frozen=True, slots=True)
class Conversion:
    text: str  # YAML
    losses: tuple[str, ...]  # "<job>: <field>: <why>"


class _Draft:
    """The document being rewritten, and the notes about it."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document
        self.spec: dict[str, Any] = document["spec"]
        self.losses: list[str] = []

    def lose(self, path: str, why: str) -> None:
        self.losses.append(Text("{key}: {action}: {why}", key=self.document["metadata"]["name"], action=path, why=why))


def convert(text: str | bytes, source: str, target: ApiVersion) -> Conversion:
    """All jobs of the text in the target version. Raises ManifestError if the text is not valid."""
    drafts = [_converted(model, document, target) for model, document in checked_models(text, source)]
    losses = tuple(loss for draft in drafts for loss in draft.losses)
    written, jobs = decode(text, source)[0] or "", iter(draft.document for draft in drafts)
    before = documents(written)
    for which, whole in enumerate(before):
        after = {**whole, "items": [next(jobs) for _ in whole["items"]]} if whole["kind"] == "List" else next(jobs)
        written = amended(written, before, which, after)
        before = [*before[:which], after, *before[which + 1 :]]
    return Conversion(written, losses)


def _converted(model: AnyMPIJob, document: dict[str, Any], target: ApiVersion) -> _Draft:
    draft = _Draft(without_nulls(copy.deepcopy(document)))
    draft.document.pop("status", None)
    if model.api_version == target.value:
        return draft
    draft.document["apiVersion"] = target.value
    rewrite = _to_v2beta1 if target is ApiVersion.V2BETA1 else _to_v1
    rewrite(draft, model, document)
    return draft


def _to_v2beta1(draft: _Draft, model: AnyMPIJob, document: dict[str, Any]) -> None:
    spec = draft.spec
    old = spec.pop("cleanPodPolicy", None)
    if old is not None:
        spec.setdefault("runPolicy", {}).setdefault("cleanPodPolicy", old)
    _managed_by(spec, _SAME_OPERATOR)
    _main_first(draft)
    for name in ROLES:
        role = spec["mpiReplicaSpecs"].get(name)
        if role is not None and role.get("restartPolicy") == "Always":
            role["restartPolicy"] = "OnFailure"
            why = Text("kubeflow.org/v2beta1 has no Always; OnFailure is the nearest it has")
            draft.lose(f"spec.mpiReplicaSpecs.{name}.restartPolicy", why)
    spec["mpiReplicaSpecs"]["Launcher"].setdefault("restartPolicy", "Never")
    if build_job(model, document).run_launcher_as_worker:
        spec["runLauncherAsWorker"] = True


def _main_first(draft: _Draft) -> None:
    """v2beta1 takes the first container for MPI; the named one goes to the front."""
    main = draft.spec.pop("mainContainer", None)
    for name in ROLES if main else ():
        containers = look(draft.spec, "mpiReplicaSpecs", name, "template", "spec", "containers") or []
        index = next((i for i, c in enumerate(containers) if c["name"] == main), 0)
        if index > 0:
            containers.insert(0, containers.pop(index))
            why = Text("kubeflow.org/v2beta1 always uses the first container; {main} was moved to the front", main=main)
            draft.lose(f"spec.mainContainer of the {name}", why)


def _to_v1(draft: _Draft, model: AnyMPIJob, document: dict[str, Any]) -> None:
    spec = draft.spec
    _managed_by(spec, {new: old for old, new in _SAME_OPERATOR.items()})
    spec["mpiReplicaSpecs"]["Launcher"].setdefault("restartPolicy", "OnFailure")
    implementation = spec.pop("mpiImplementation", "OpenMPI")
    if implementation != "OpenMPI":
        draft.lose("spec.mpiImplementation", f"kubeflow.org/v1 knows Open MPI only, not {implementation}")
    path = spec.pop("sshAuthMountPath", DEFAULT_SSH_PATH)
    if path != DEFAULT_SSH_PATH:
        draft.lose("spec.sshAuthMountPath", Text("kubeflow.org/v1 does not use SSH; {path} is not needed", path=path))
    if spec.pop("launcherCreationPolicy", "AtStartup") != "AtStartup":
        draft.lose("spec.launcherCreationPolicy", Text("kubeflow.org/v1 cannot ask the launcher to wait for workers"))
    takes_ranks, has_gpu = spec.pop("runLauncherAsWorker", False), has_gpu_limit(build_job(model, document).launcher)
    if takes_ranks and not has_gpu:
        draft.lose("spec.runLauncherAsWorker", Text("in kubeflow.org/v1 only a launcher with a GPU limit takes ranks"))
    elif has_gpu and not takes_ranks:
        why = Text("in kubeflow.org/v1 a launcher with a GPU limit always takes ranks")
        draft.lose("spec.runLauncherAsWorker", why)


def _managed_by(spec: dict[str, Any], other_names: dict[str, str]) -> None:
    policy = spec.get("runPolicy", {})
    if policy.get("managedBy") in other_names:
        policy["managedBy"] = other_names[policy["managedBy"]]
