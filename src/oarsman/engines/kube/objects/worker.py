"""A worker pod. Over ssh it runs an sshd; through the API server it only has to be there."""

from __future__ import annotations

from typing import Final

from oarsman import names
from oarsman.engines.kube import ssh
from oarsman.engines.kube.objects import gang, secret
from oarsman.engines.kube.objects.common import WORKER, KubeOptions, Object
from oarsman.engines.kube.objects.pod import PodDraft
from oarsman.engines.kube.objects.preparation import NOTHING, PodPreparation
from oarsman.job.job import Job, Transport

# Open MPI's daemons on the workers look whether the launcher's agent is there, and fail if not. They never use it.
_AGENT: Final = {"ssh.sh": 0o555}
# A bare sleep as a container's first process would take no notice of being asked to end.
_SLEEP: Final = "trap 'exit 0' TERM; sleep 365d & wait"


def worker(job: Job, index: int, options: KubeOptions, preparation: PodPreparation = NOTHING) -> Object:
    draft = PodDraft(job, index, options, preparation)
    draft.export({names.ENV_ROLE: WORKER})
    if job.transport is Transport.SSH:
        _serve_ssh(draft, index)
    else:
        _wait_for_exec(draft)
    draft.prepare()
    if preparation.commands:
        draft.spec["restartPolicy"] = "Never"  # what was installed goes with the container; the plan makes another pod
    gang.decorate(draft, job, options)
    return draft.pod()


def _serve_ssh(draft: PodDraft, index: int) -> None:
    job = draft.job
    assert job.worker is not None
    server = ssh.server_of(job.worker)
    # Upstream's images take id_rsa for the host key of an sshd that is not root's.
    draft.mount_ssh_auth(_keys(job, index, "id_rsa"))
    if server.ours:
        users = draft.name_the_user()
        containers = (*users, draft.main)
        draft.main["command"] = ["/bin/sh", f"{names.MPI_CONFIG_DIR}/worker.sh", *server.options]
        draft.main.pop("args", None)
        port = ssh.port_of(job, index)
        draft.export({"OARSMAN_SSH_PORT": str(port)})
        draft.mount_config({"passwd.sh": 0o555, "worker.sh": 0o555, **_AGENT}, *containers)
        draft.mount_run(*containers)
        draft.mount_keys(_keys(job, index, "host_key"))
        if users:
            draft.mount_passwd(draft.main)
        if ssh.on_host_network(job.worker):
            # The scheduler keeps apart what wants the same port of a host.
            draft.main.setdefault("ports", []).append({"containerPort": port, "hostPort": port, "protocol": "TCP"})
        return
    draft.mount_config(_AGENT)
    if server.pinned:
        draft.main["command"] = [*job.worker.container.argv, "-h", f"{job.ssh_auth_mount_path}/id_rsa"]
        draft.main.pop("args", None)


def _keys(job: Job, index: int, file: str) -> dict[str, dict[str, str]]:
    """A worker's own host key, in this file, and whose logins it takes, by the Secrets that have them."""
    keys = {secret.name(job, index): {secret.host_key(index): file}}
    keys.setdefault(secret.name(job), {})[secret.PUBLIC] = "authorized_keys"
    return keys


def _wait_for_exec(draft: PodDraft) -> None:
    if not draft.main.get("command"):
        draft.main["command"] = ["/bin/sh", "-c", _SLEEP]
        draft.main.pop("args", None)
    draft.mount_config({names.KUBEXEC: 0o555})
