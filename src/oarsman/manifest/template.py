"""Checks a pod template: field names, kinds of values, quantities, and names that refer to each other.

A misspelled field in a template is otherwise dropped without a word by some API servers and refused
by others. But Kubernetes gets new ones with every release: a field that is not known here is a warning, and
the API server judges it. Only names and plain kinds of core/v1 are listed; what is below a field of kind
`mapping` or `list` passes through untouched.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Literal

from oarsman import names
from oarsman.errors import Problem, did_you_mean
from oarsman.manifest.problems import TOO_LITTLE_MEMORY, Path, nearest, quote_hint, quoted
from oarsman.manifest.quantity import QuantityError
from oarsman.manifest.quantity import parse as parse_quantity
from oarsman.manifest.source import Document
from oarsman.text.sentence import Text

# -- the field names of core/v1 that a pod template can hold, and the kind of value each takes ------------------
Plain = Literal["text", "flag", "whole", "texts", "text map", "quantities", "quantity", "mapping", "list"]


@dataclass(frozen=True, slots=True)
class One:
    """A mapping of a known shape, or a list of such."""

    shape: str
    listed: bool = False


Many = partial(One, listed=True)
Kind = Plain | One
Shape = Mapping[str, Kind]


def _shape(**kinds: str) -> dict[str, Plain]:
    """kind="name name ...": the fields of each plain kind. `_` stands for a blank in a kind."""
    return {name: kind.replace("_", " ") for kind, names in kinds.items() for name in names.split()}  # type: ignore[misc]


SHAPES: Final[Mapping[str, Shape]] = {
    "template": {"metadata": One("metadata"), "spec": One("pod")},
    "metadata": _shape(
        text="name generateName namespace selfLink uid resourceVersion creationTimestamp deletionTimestamp clusterName",
        whole="generation deletionGracePeriodSeconds",
        text_map="labels annotations",
        texts="finalizers",
        list="ownerReferences managedFields",
    ),
    "pod": {
        **_shape(
            text="""restartPolicy dnsPolicy serviceAccountName serviceAccount nodeName hostname subdomain schedulerName
                    priorityClassName runtimeClassName preemptionPolicy hostnameOverride""",
            whole="terminationGracePeriodSeconds activeDeadlineSeconds priority",
            flag="""automountServiceAccountToken hostNetwork hostPID hostIPC shareProcessNamespace enableServiceLinks
                    setHostnameAsFQDN hostUsers""",
            text_map="nodeSelector",
            list="""imagePullSecrets tolerations hostAliases readinessGates topologySpreadConstraints schedulingGates
                    resourceClaims ephemeralContainers""",
            mapping="securityContext affinity dnsConfig os workloadRef schedulingGroup",
            quantities="overhead",
        ),
        "volumes": Many("volume"),
        "containers": Many("container"),
        "initContainers": Many("container"),
        "resources": One("resources"),
    },
    "container": {
        **_shape(
            text="name image workingDir terminationMessagePath terminationMessagePolicy imagePullPolicy restartPolicy",
            texts="command args",
            flag="stdin stdinOnce tty",
            mapping="livenessProbe readinessProbe startupProbe lifecycle securityContext",
            list="volumeDevices resizePolicy restartPolicyRules",
        ),
        "ports": Many("port"),
        "env": Many("variable"),
        "envFrom": Many("variables from"),
        "resources": One("resources"),
        "volumeMounts": Many("mount"),
    },
    "resources": _shape(quantities="limits requests", list="claims"),
    "port": _shape(text="name hostIP protocol", whole="containerPort hostPort"),
    "variable": {"name": "text", "value": "text", "valueFrom": One("variable source")},
    "variable source": {
        "fieldRef": One("field ref"),
        **_shape(mapping="resourceFieldRef configMapKeyRef secretKeyRef fileKeyRef"),
    },
    "field ref": _shape(text="apiVersion fieldPath"),
    "variables from": _shape(text="prefix", mapping="configMapRef secretRef"),
    "mount": _shape(text="name mountPath subPath subPathExpr mountPropagation recursiveReadOnly", flag="readOnly"),
    "volume": {
        "name": "text",
        "hostPath": One("host path"),
        "emptyDir": One("empty dir"),
        **_shape(
            mapping="""gcePersistentDisk awsElasticBlockStore gitRepo secret nfs iscsi glusterfs persistentVolumeClaim
                       rbd flexVolume cinder cephfs flocker downwardAPI fc azureFile configMap vsphereVolume quobyte
                       azureDisk photonPersistentDisk projected portworxVolume scaleIO storageos csi ephemeral image"""
        ),
    },
    "host path": _shape(text="path type"),
    "empty dir": _shape(text="medium", quantity="sizeLimit"),
}

REQUIRED: Final[Mapping[str, tuple[str, ...]]] = {
    "template": ("spec",),
    "pod": ("containers",),
    "container": ("name",),
    "variable": ("name",),
    "mount": ("name", "mountPath"),
    "volume": ("name",),
    "host path": ("path",),
    "port": ("containerPort",),
    "field ref": ("fieldPath",),
}


# -- the checks ---------------------------------------------------------------------------------------------
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\Z")
_ENV_NAME = re.compile(r"[^=\x00-\x1f\x7f]+\Z")


def check_template(document: Document, path: Path, template: Mapping[str, Any]) -> list[Problem]:
    """What is wrong with one template. References are looked at only once every shape is right, or mended."""
    problems = list(_check(document, path, template, One("template")))
    if problems:
        return problems
    found = _check_pod(document, (*path, "spec"), template["spec"])
    return [problem for problem in found if document.sound(document.path(problem))]


def _check(document: Document, path: Path, value: Any, kind: Kind) -> Iterator[Problem]:
    if not isinstance(kind, One):
        yield from _check_plain(document, path, value, kind)
    elif not kind.listed:
        yield from _check_shape(document, path, value, kind.shape)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _check_shape(document, (*path, index), item, kind.shape)
    else:
        hint = Text("start each item with a dash") if isinstance(value, dict) else None
        yield document.problem(path, Text("must be a list, not {given}", given=quoted(value)), hint=hint)


def _check_shape(document: Document, path: Path, value: Any, shape: str) -> Iterator[Problem]:
    if not isinstance(value, dict):
        yield document.problem(path, Text("must be a mapping, not {given}", given=quoted(value)))
        return
    kinds = SHAPES[shape]
    for name, part in value.items():
        kind = kinds.get(name)
        if kind is None:
            hint = nearest(str(name), kinds)
            yield document.unknown((*path, name), Text("unknown field {name}", name=quoted(str(name))), hint=hint)
        elif part is not None:  # null is the same as absent
            yield from _check(document, (*path, name), part, kind)
    for name in REQUIRED.get(shape, ()):
        if value.get(name) is None:
            yield document.missing((*path, name), Text("is required"))


def _check_plain(document: Document, path: Path, value: Any, kind: Plain) -> Iterator[Problem]:
    if kind == "texts":
        yield from _check_texts(document, path, value)
    elif kind in ("text map", "quantities"):
        if not isinstance(value, dict):
            yield document.problem(path, Text("must be a mapping, not {given}", given=quoted(value)))
            return
        inner: Plain = "text" if kind == "text map" else "quantity"
        for name, part in value.items():
            if part is not None or inner == "quantity":
                yield from _check_plain(document, (*path, name), part, inner)
    elif kind == "quantity":
        try:
            if parse_quantity(value) < 0:
                yield document.problem(path, Text("must not be negative"))
        except QuantityError as error:
            yield document.problem(path, str(error), hint=error.hint)
    else:
        wanted, sentence = _PLAIN[kind]
        if type(value) is not wanted:
            hint = quote_hint(value) if kind == "text" else None
            yield document.problem(path, Text(sentence, given=quoted(value)), hint=hint)


_PLAIN: Mapping[Plain, tuple[type, str]] = {
    "text": (str, Text("must be a string, not {given}")),
    "flag": (bool, Text("must be true or false, not {given}")),
    "whole": (int, Text("must be a whole number, not {given}")),
    "mapping": (dict, Text("must be a mapping, not {given}")),
    "list": (list, Text("must be a list, not {given}")),
}


def _check_texts(document: Document, path: Path, value: Any) -> Iterator[Problem]:
    if not isinstance(value, list):
        hint = Text("write [sh, -c, '...'] for a shell line, or one list item per word")
        wrong = Text("must be a list of strings, not {given}", given=quoted(value))
        yield document.problem(path, wrong, hint=hint if isinstance(value, str) else None)
        return
    for index, item in enumerate(value):
        yield from _check_plain(document, (*path, index), item, "text")


# -- references ---------------------------------------------------------------------------------------
def _check_pod(document: Document, path: Path, pod: Mapping[str, Any]) -> Iterator[Problem]:
    if not pod["containers"]:
        yield document.problem((*path, "containers"), Text("must have at least one container"))
    volumes = pod.get("volumes") or []
    yield from _check_volumes(document, (*path, "volumes"), volumes)
    known = document.sound(*((*path, "volumes", index, "name") for index in range(len(volumes) or 1)))
    added = (names.VOLUME_CONFIG, names.VOLUME_SSH_AUTH)  # by the operator
    declared = {*added, *(volume["name"] for volume in volumes)} if known else None
    seen: set[str] = set()
    for part in ("initContainers", "containers"):
        for index, container in enumerate(pod.get(part) or []):
            where = (*path, part, index)
            yield from _check_name(document, (*where, "name"), container["name"], seen, Text("container"))
            yield from _check_mounts(document, where, container, declared)
            yield from _check_env(document, where, container)
            yield from _check_amounts(document, (*where, "resources"), container.get("resources") or {})


def _check_name(document: Document, path: Path, name: str, seen: set[str], what: str) -> Iterator[Problem]:
    if not _LABEL.match(name):
        template = Text("{given} is not a {what} name: lower-case letters, digits and dashes, at most 63")
        yield document.problem(path, Text(template, given=quoted(name), what=what))
    elif name in seen:
        yield document.problem(path, Text("another {what} already has the name '{name}'", what=what, name=name))
    seen.add(name)


def _check_volumes(document: Document, path: Path, volumes: list[dict[str, Any]]) -> Iterator[Problem]:
    seen: set[str] = set()
    for index, volume in enumerate(volumes):
        yield from _check_name(document, (*path, index, "name"), volume["name"], seen, Text("volume"))
        kinds = [name for name, value in volume.items() if name != "name" and value is not None]
        if len(kinds) > 1:
            yield document.problem((*path, index), Text("has more than one kind: {kinds}", kinds=" and ".join(kinds)))
        elif not kinds and len(volume) > 1:
            kind = next(name for name in volume if name != "name")
            hint = Text("write {text}", text=f"{kind}: {{}}")
            yield document.problem((*path, index, kind), Text("has no value"), hint=hint, on_key=True)
        elif not kinds:
            yield document.missing((*path, index), Text("has no kind, such as emptyDir: {} or hostPath"))


def _check_mounts(
    document: Document, path: Path, container: Mapping[str, Any], declared: set[str] | None
) -> Iterator[Problem]:
    paths: set[str] = set()
    for index, mount in enumerate(container.get("volumeMounts") or []):
        where = (*path, "volumeMounts", index)
        if declared is not None and mount["name"] not in declared:
            wrong = Text("the pod has no volume {name}", name=quoted(mount["name"]))
            yield document.problem((*where, "name"), wrong, hint=nearest(mount["name"], declared))
        if mount["mountPath"] in paths:
            wrong = Text("{path} is already mounted on", path=quoted(mount["mountPath"]))
            yield document.problem((*where, "mountPath"), wrong)
        paths.add(mount["mountPath"])


def _check_env(document: Document, path: Path, container: Mapping[str, Any]) -> Iterator[Problem]:
    for index, variable in enumerate(container.get("env") or []):
        where = (*path, "env", index)
        if not _ENV_NAME.match(variable["name"]):
            wrong = Text("{given} is not a name of a variable", given=quoted(variable["name"]))
            yield document.problem((*where, "name"), wrong)
        source = {name for name, value in (variable.get("valueFrom") or {}).items() if value is not None}
        if source and variable.get("value"):
            yield document.problem((*where, "valueFrom"), Text("value and valueFrom exclude each other"), on_key=True)
        if len(source) > 1:
            wrong = Text("has more than one source: {sources}", sources=" and ".join(sorted(source)))
            yield document.problem((*where, "valueFrom"), wrong)


_MIB = 2**20
_MOST_GIB = 100  # of a number without a unit, which is meant in GiB; a larger one in MiB


def _check_amounts(document: Document, path: Path, resources: Mapping[str, Any]) -> Iterator[Problem]:
    limits = resources.get("limits") or {}
    for part in ("limits", "requests"):
        memory = (resources.get(part) or {}).get("memory")
        if memory is not None and 0 < parse_quantity(memory) < _MIB:
            wrong, hint = Text(TOO_LITTLE_MEMORY, given=quoted(str(memory))), _with_unit(str(memory))
            yield replace(document.problem((*path, part, "memory"), wrong, hint=hint), warning=True)
    for name, value in (resources.get("requests") or {}).items():
        if name in limits and parse_quantity(value) > parse_quantity(limits[name]):
            wrong = Text("asks for {given}, more than the limit of {limit}", given=value, limit=limits[name])
            yield document.problem((*path, "requests", name), wrong)


def _with_unit(memory: str) -> str | None:
    number = memory.removesuffix("m")  # m is a thousandth, and hardly ever meant
    if not number.isdecimal():
        return None
    return did_you_mean(f"{number}{'Gi' if number == memory and int(number) < _MOST_GIB else 'Mi'}")
