"""The field names of core/v1 that a pod template can hold, and the kind of value each takes.

A misspelled field in a template is otherwise dropped without a word by some API servers and refused
by others. Only names and plain kinds are listed; what is below a field of kind `any` passes through
untouched, and the API server is the judge of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

Plain = Literal["any", "text", "flag", "whole", "texts", "text map", "quantities", "quantity", "mapping", "list"]


@dataclass(frozen=True, slots=True)
class One:
    """A mapping of a known shape."""

    shape: str


@dataclass(frozen=True, slots=True)
class Many:
    """A list of mappings of a known shape."""

    shape: str


Kind = Plain | One | Many
Shape = Mapping[str, Kind]


def _shape(**kinds: str) -> dict[str, Plain]:
    """kind="name name ...": the fields of each plain kind. `_` stands for a blank in a kind."""
    return {name: kind.replace("_", " ") for kind, names in kinds.items() for name in names.split()}  # type: ignore[misc]


METADATA: Final[Shape] = _shape(
    text="name generateName namespace selfLink uid resourceVersion creationTimestamp deletionTimestamp clusterName",
    whole="generation deletionGracePeriodSeconds",
    text_map="labels annotations",
    texts="finalizers",
    list="ownerReferences managedFields",
)

POD_SPEC: Final[Shape] = {
    **_shape(
        text="""restartPolicy dnsPolicy serviceAccountName serviceAccount nodeName hostname subdomain schedulerName
                priorityClassName runtimeClassName preemptionPolicy hostnameOverride""",
        whole="terminationGracePeriodSeconds activeDeadlineSeconds priority",
        flag="""automountServiceAccountToken hostNetwork hostPID hostIPC shareProcessNamespace enableServiceLinks
                setHostnameAsFQDN hostUsers""",
        text_map="nodeSelector",
        list="""imagePullSecrets tolerations hostAliases readinessGates topologySpreadConstraints schedulingGates
                resourceClaims""",
        mapping="securityContext affinity dnsConfig os workloadRef",
        quantities="overhead",
    ),
    "volumes": Many("volume"),
    "containers": Many("container"),
    "initContainers": Many("container"),
    "ephemeralContainers": "list",
    "resources": One("resources"),
}

CONTAINER: Final[Shape] = {
    **_shape(
        text="""name image workingDir terminationMessagePath terminationMessagePolicy imagePullPolicy restartPolicy""",
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
}

RESOURCES: Final[Shape] = _shape(quantities="limits requests", list="claims")
PORT: Final[Shape] = _shape(text="name hostIP protocol", whole="containerPort hostPort")
VARIABLE: Final[Shape] = {"name": "text", "value": "text", "valueFrom": One("variable source")}
VARIABLE_SOURCE: Final[Shape] = {
    "fieldRef": One("field ref"),
    **_shape(mapping="resourceFieldRef configMapKeyRef secretKeyRef fileKeyRef"),
}
FIELD_REF: Final[Shape] = _shape(text="apiVersion fieldPath")
VARIABLES_FROM: Final[Shape] = _shape(text="prefix", mapping="configMapRef secretRef")
MOUNT: Final[Shape] = _shape(
    text="name mountPath subPath subPathExpr mountPropagation recursiveReadOnly", flag="readOnly"
)

VOLUME: Final[Shape] = {
    "name": "text",
    "hostPath": One("host path"),
    "emptyDir": One("empty dir"),
    **_shape(
        mapping="""gcePersistentDisk awsElasticBlockStore gitRepo secret nfs iscsi glusterfs persistentVolumeClaim rbd
                   flexVolume cinder cephfs flocker downwardAPI fc azureFile configMap vsphereVolume quobyte azureDisk
                   photonPersistentDisk projected portworxVolume scaleIO storageos csi ephemeral image"""
    ),
}
HOST_PATH: Final[Shape] = _shape(text="path type")
EMPTY_DIR: Final[Shape] = _shape(text="medium", quantity="sizeLimit")

TEMPLATE: Final[Shape] = {"metadata": One("metadata"), "spec": One("pod")}

SHAPES: Final[Mapping[str, Shape]] = {
    "template": TEMPLATE,
    "metadata": METADATA,
    "pod": POD_SPEC,
    "container": CONTAINER,
    "resources": RESOURCES,
    "port": PORT,
    "variable": VARIABLE,
    "variable source": VARIABLE_SOURCE,
    "field ref": FIELD_REF,
    "variables from": VARIABLES_FROM,
    "mount": MOUNT,
    "volume": VOLUME,
    "host path": HOST_PATH,
    "empty dir": EMPTY_DIR,
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
