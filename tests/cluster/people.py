"""People of a cluster: service accounts with rights in one namespace, and tokens that say who they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cluster.kubectl import Kubectl

SEE = ("get", "list", "watch")
CHANGE = (*SEE, "create", "patch", "delete")
HOUR = 3600
RBAC = "rbac.authorization.k8s.io"


def person(cluster: Kubectl, namespace: str, name: str, *, role: str = "", verbs: Sequence[str] = ()) -> str:
    """A token. `role`: a cluster role, bound in the namespace; `verbs`: what they may do there with MPIJobs alone."""
    named = {"metadata": {"name": name}}
    made: list[dict[str, Any]] = [{"apiVersion": "v1", "kind": "ServiceAccount", **named}]
    if verbs:
        rule = {"apiGroups": ["kubeflow.org"], "resources": ["mpijobs"], "verbs": list(verbs)}
        made.append({"apiVersion": f"{RBAC}/v1", "kind": "Role", **named, "rules": [rule]})
    if verbs or role:
        given = {"kind": "Role", "name": name} if verbs else {"kind": "ClusterRole", "name": role}
        who = {"kind": "ServiceAccount", "namespace": namespace, "name": name}
        binding = {"roleRef": {"apiGroup": RBAC, **given}, "subjects": [who]}
        made.append({"apiVersion": f"{RBAC}/v1", "kind": "RoleBinding", **named, **binding})
    cluster.apply(*made, namespace=namespace)
    return token(cluster, namespace, name)


def token(cluster: Kubectl, namespace: str, name: str, *, seconds: int = HOUR) -> str:
    """As `kubectl create token` of newer clusters asks for it."""
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": seconds}}
    return str(cluster.post(path, asked)["status"]["token"])


def allowed(cluster: Kubectl, user: str, verb: str, resource: str, namespace: str = "") -> bool:
    """Whether somebody may do that there, or, without a namespace, everywhere. A resource: `jobs.batch`."""
    kind, _, group = resource.partition(".")
    groups = ["system:authenticated"]
    if user.startswith("system:serviceaccount:"):
        groups += ["system:serviceaccounts", f"system:serviceaccounts:{user.split(':')[2]}"]
    asked = {"verb": verb, "group": group, "resource": kind, "namespace": namespace}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": user, "groups": groups, "resourceAttributes": asked},
    }
    return bool(cluster.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", review)["status"]["allowed"])


def full_name(namespace: str, name: str) -> str:
    return f"system:serviceaccount:{namespace}:{name}"
