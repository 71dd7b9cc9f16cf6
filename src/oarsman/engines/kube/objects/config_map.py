"""The ConfigMap: hosts, how to reach them, and the scripts that use both."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from importlib import resources
from typing import Final

from oarsman import names
from oarsman.engines.kube import ssh
from oarsman.engines.kube.client.resources import CONFIG_MAPS
from oarsman.engines.kube.objects import preparation as preparing
from oarsman.engines.kube.objects.common import KubeOptions, Object, host, owned
from oarsman.engines.kube.objects.preparation import PodPreparation
from oarsman.job import mpi
from oarsman.job.job import Job, Transport

_EVERYWHERE: Final = ("passwd.sh", "barrier.sh", "launch.sh")
_SCRIPTS: Final = {Transport.SSH: ("worker.sh", "ssh.sh"), Transport.EXEC: (names.KUBEXEC,)}


def name(job: Job) -> str:
    return f"{job.name}-config"


def config_map(
    job: Job, published: tuple[str, ...], options: KubeOptions, preparation: PodPreparation = preparing.NOTHING
) -> Object:
    hosts = [host(job, pod, options) for pod in job.hosts]
    data = {
        names.HOSTFILE: mpi.hostfile(job.implementation, hosts, job.slots_per_worker),
        names.DISCOVER_HOSTS: mpi.discover_hosts((host(job, pod, options) for pod in published), job.slots_per_worker),
        **{script: _text(script) for script in (*_EVERYWHERE, *_SCRIPTS[job.transport])},
    }
    if job.transport is Transport.SSH:
        data["ssh_config"] = ssh.client_config(job)
    if preparation:
        data |= {preparing.SCRIPT: _text(preparing.SCRIPT), **preparation.data}
    return owned(job, CONFIG_MAPS, name(job), data=data)


def published(data: Mapping[str, str]) -> tuple[str, ...]:
    """The hosts that discover_hosts.sh names, as `config_map` was told them."""
    lines = data.get(names.DISCOVER_HOSTS, "").splitlines()
    return tuple(line.removeprefix("echo ").split(":")[0].split(".")[0] for line in lines if line.startswith("echo "))


@functools.cache
def _text(script: str) -> str:
    return (resources.files("oarsman.engines.kube") / "scripts" / script).read_text()
