"""People of a cluster: service accounts with rights in one namespace, and tokens that say who they are."""

from __future__ import annotations

import json
from collections.abc import Sequence

from cluster.kubectl import Kubectl

SEE = ("get", "list", "watch")
CHANGE = (*SEE, "create", "patch", "delete")
HOUR = 3600


def person(cluster: Kubectl, namespace: str, name: str, *, role: str = "", verbs: Sequence[str] = ()) -> str:
    """A token. `role`: a cluster role, bound in the namespace; `verbs`: what they may do there with MPIJobs alone."""
    where = f"--namespace={namespace}"
    cluster.kubectl(where, "create", "serviceaccount", name)
    if verbs:
        words = [f"--verb={verb}" for verb in verbs]
        cluster.kubectl(where, "create", "role", name, *words, "--resource=mpijobs.kubeflow.org")
    if verbs or role:
        given = f"--role={name}" if verbs else f"--clusterrole={role}"
        cluster.kubectl(where, "create", "rolebinding", name, given, f"--serviceaccount={namespace}:{name}")
    return token(cluster, namespace, name)


def token(cluster: Kubectl, namespace: str, name: str, *, seconds: int = HOUR) -> str:
    """As `kubectl create token` of newer clusters asks for it."""
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": seconds}}
    said = cluster.kubectl("create", f"--raw={path}", "-f", "-", stdin=json.dumps(asked)).stdout
    return str(json.loads(said)["status"]["token"])


def full_name(namespace: str, name: str) -> str:
    return f"system:serviceaccount:{namespace}:{name}"
