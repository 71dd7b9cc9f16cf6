"""The rights of a v1 launcher: run commands in this job's workers, and nothing else."""

from __future__ import annotations

from oarsman.engines.kube.client import resources as kinds
from oarsman.engines.kube.objects.common import Object, owned
from oarsman.job.job import Job


def account_name(job: Job) -> str:
    """A service account the template names is used as it is."""
    return str((job.launcher.template.get("spec") or {}).get("serviceAccountName") or job.launcher_host)


def service_account(job: Job) -> Object:
    return owned(job, kinds.SERVICE_ACCOUNTS, account_name(job))


def role(job: Job) -> Object:
    workers = [job.worker_host(index) for index in range(job.workers)]
    rules: list[Object] = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}]
    if workers:
        rules.append({"apiGroups": [""], "resources": ["pods/exec"], "resourceNames": workers, "verbs": ["create"]})
    return owned(job, kinds.ROLES, job.launcher_host, rules=rules)


def role_binding(job: Job) -> Object:
    role = {"apiGroup": kinds.ROLES.group, "kind": "Role", "name": job.launcher_host}
    account = {"kind": "ServiceAccount", "name": account_name(job), "namespace": job.namespace}
    return owned(job, kinds.ROLE_BINDINGS, job.launcher_host, roleRef=role, subjects=[account])
