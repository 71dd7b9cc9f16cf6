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
    cluster.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}, namespace=namespace)
    if verbs or role:
        let(cluster, namespace, name, role=role, verbs=verbs)
    return token(cluster, namespace, name)


def let(
    cluster: Kubectl, namespace: str, name: str, *, role: str = "", verbs: Sequence[str] = (), there: str = ""
) -> None:
    """Gives somebody of that namespace these rights in it, or in another one, `there`."""
    made: list[dict[str, Any]] = []
    if verbs:
        rule = {"apiGroups": ["kubeflow.org"], "resources": ["mpijobs"], "verbs": list(verbs)}
        made.append({"apiVersion": f"{RBAC}/v1", "kind": "Role", "metadata": {"name": name}, "rules": [rule]})
    given = ("Role", name) if verbs else ("ClusterRole", role)
    made.append({"kind": "RoleBinding", **binding(name, *given, namespace, name)})
    cluster.apply(*made, namespace=there or namespace)


def binding(name: str, kind: str, role: str, namespace: str, account: str) -> dict[str, Any]:
    """All of one but whether it holds in a namespace or everywhere."""
    return {
        "apiVersion": f"{RBAC}/v1",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": RBAC, "kind": kind, "name": role},
        "subjects": [{"kind": "ServiceAccount", "namespace": namespace, "name": account}],
    }


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
