"""The resources Oarsman deals with, and where they are on the server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from oarsman import names
from oarsman.errors import UnsupportedError
from oarsman.text.sentence import Text


@dataclass(frozen=True, slots=True)
class Resource:
    group: str  # empty: the core of Kubernetes
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def root(self) -> str:
        """Where the server describes this group and version."""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"

    def path(self, namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
        """Without a namespace: in all of them. Without a name: all of them."""
        place = f"/namespaces/{_quoted(namespace)}" if self.namespaced and namespace else ""
        path = f"{self.root}{place}/{self.plural}"
        if name:
            path += f"/{_quoted(name)}"
        return f"{path}/{subresource}" if subresource else path


def _quoted(name: str) -> str:
    """Names come from users too, and must not lead elsewhere."""
    return quote(name, safe=":").replace("..", "%2E%2E")


def _core(plural: str, kind: str, *, namespaced: bool = True) -> Resource:
    return Resource("", "v1", plural, kind, namespaced)


def _rbac(plural: str, kind: str, *, namespaced: bool = True) -> Resource:
    return Resource("rbac.authorization.k8s.io", "v1", plural, kind, namespaced)


PODS: Final = _core("pods", "Pod")
SERVICES: Final = _core("services", "Service")
CONFIG_MAPS: Final = _core("configmaps", "ConfigMap")
SECRETS: Final = _core("secrets", "Secret")
EVENTS: Final = _core("events", "Event")
SERVICE_ACCOUNTS: Final = _core("serviceaccounts", "ServiceAccount")
ENDPOINTS: Final = _core("endpoints", "Endpoints")
PERSISTENT_VOLUME_CLAIMS: Final = _core("persistentvolumeclaims", "PersistentVolumeClaim")
NAMESPACES: Final = _core("namespaces", "Namespace", namespaced=False)
NODES: Final = _core("nodes", "Node", namespaced=False)
JOBS: Final = Resource("batch", "v1", "jobs", "Job")
DEPLOYMENTS: Final = Resource("apps", "v1", "deployments", "Deployment")
ROLES: Final = _rbac("roles", "Role")
ROLE_BINDINGS: Final = _rbac("rolebindings", "RoleBinding")
CLUSTER_ROLES: Final = _rbac("clusterroles", "ClusterRole", namespaced=False)
CLUSTER_ROLE_BINDINGS: Final = _rbac("clusterrolebindings", "ClusterRoleBinding", namespaced=False)
LEASES: Final = Resource("coordination.k8s.io", "v1", "leases", "Lease")
CRDS: Final = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", False)
PRIORITY_CLASSES: Final = Resource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", False)
MPIJOBS: Final = Resource(names.GROUP, "v2beta1", names.PLURAL, names.KIND)
MPIJOBS_V1: Final = Resource(names.GROUP, "v1", names.PLURAL, names.KIND)
VOLCANO_POD_GROUPS: Final = Resource("scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup")
PLUGINS_POD_GROUPS: Final = Resource("scheduling.x-k8s.io", "v1alpha1", "podgroups", "PodGroup")
NATIVE_POD_GROUPS: Final = Resource("scheduling.k8s.io", "v1alpha2", "podgroups", "PodGroup")  # of 1.36

_BY_TYPE: Final = {
    (resource.api_version, resource.kind): resource
    for resource in tuple(globals().values())
    if isinstance(resource, Resource)
}


def for_document(document: Mapping[str, Any]) -> Resource:
    api_version, kind = document.get("apiVersion"), document.get("kind")
    found = _BY_TYPE.get((str(api_version), str(kind)))
    if found is None:
        known = ", ".join(sorted({kind for _, kind in _BY_TYPE}))
        template = Text("documents of kind {kind} with apiVersion {version} are not known here")
        hint = Text("known kinds: {known}; use kubectl for others", known=known)
        raise UnsupportedError(Text(template, kind=repr(kind), version=repr(api_version)), field="kind", hint=hint)
    return found
