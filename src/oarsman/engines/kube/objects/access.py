"""The rights of a v1 launcher: run commands in this job's workers, and nothing else."""

from __future__ import annotations

from oarsman.engines.kube.objects.common import Object, metadata
from oarsman.job.job import Job

_RBAC = "rbac.authorization.k8s.io"


def account_name(job: Job) -> str:
    """A service account the template names is used as it is."""
    return str((job.launcher.template.get("spec") or {}).get("serviceAccountName") or job.launcher_host)


def service_account(job: Job) -> Object:
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata(job, account_name(job))}


def role(job: Job) -> Object:
    workers = [job.worker_host(index) for index in range(job.workers)]
    rules: list[Object] = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}]
    if workers:
        rules.append({"apiGroups": [""], "resources": ["pods/exec"], "resourceNames": workers, "verbs": ["create"]})
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "Role",
        "metadata": metadata(job, job.launcher_host),
        "rules": rules,
    }


def role_binding(job: Job) -> Object:
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": metadata(job, job.launcher_host),
        "roleRef": {"apiGroup": _RBAC, "kind": "Role", "name": job.launcher_host},
        "subjects": [{"kind": "ServiceAccount", "name": account_name(job), "namespace": job.namespace}],
    }
