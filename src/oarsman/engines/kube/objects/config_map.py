"""The ConfigMap: hosts, how to reach them, and the scripts that use both.

One holds a mebibyte. A job of many workers calls them by their first names, which pods look up in the job's own domain,
and has the script that changes with its hosts in a second ConfigMap.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
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
from oarsman.job.launch_options import LAUNCHERS, SURVIVING

MPIRUN: Final = "mpirun.sh"
_EVERYWHERE: Final = ("passwd.sh", "barrier.sh", "launch.sh")
_MANY: Final = 1500
_OF_RANKS: Final = (preparing.RANK, MPIRUN, "ranks.sh")
_SCRIPTS: Final = {Transport.SSH: ("worker.sh", "ssh.sh"), Transport.EXEC: (names.KUBEXEC,)}


def name(job: Job) -> str:
    return f"{job.name}-config"


def name_of_hosts(job: Job) -> str:
    return f"{job.name}-hosts"


def has_many_hosts(job: Job) -> bool:
    return job.workers > _MANY


def config_maps(
    job: Job, published: tuple[str, ...], options: KubeOptions, preparation: PodPreparation = preparing.NOTHING
) -> list[Object]:
    """The one that pods of every kind mount is the last."""
    many = preparation.many_hosts

    def called(pods: Iterable[str]) -> Iterator[str]:
        return iter(pods) if many else (host(job, pod, options) for pod in pods)

    listed = job.hosts if many else [_listed(job, pod, options) for pod in job.hosts]
    of_the_moment = {names.DISCOVER_HOSTS: mpi.discover_hosts(called(published), job.slots_per_worker)}
    data = {
        names.HOSTFILE: mpi.hostfile(job.implementation, listed, job.slots_per_worker),
        **({} if many else of_the_moment),
        **{each: script(each) for each in (*_EVERYWHERE, *_SCRIPTS[job.transport])},
    }
    if job.transport is Transport.SSH:
        data["ssh_config"] = ssh.client_config(job)
    if preparation.shim:
        data |= {each: script(each) for each in _OF_RANKS}
    if preparation.ends_ranks:
        data[preparing.PYTHON] = (resources.files("oarsman.engines") / "python" / preparing.PYTHON).read_text()
    if preparation:
        data |= {preparing.SCRIPT: script(preparing.SCRIPT), **preparation.data}
    apart = [owned(job, CONFIG_MAPS, name_of_hosts(job), data=of_the_moment)] if many else []
    return [*apart, owned(job, CONFIG_MAPS, name(job), data=data)]


def _listed(job: Job, pod: str, options: KubeOptions) -> str:
    """The launcher as its own /etc/hosts has it: DNS may learn its long name only after it runs. On the network of a
    node that file is the node's."""
    by_file = pod == job.launcher_host and not ssh.on_host_network(job.launcher)
    return pod if by_file else host(job, pod, options)


def published(data: Mapping[str, str]) -> tuple[str, ...]:
    """The hosts that discover_hosts.sh names, as `config_map` was told them."""
    lines = data.get(names.DISCOVER_HOSTS, "").splitlines()
    return tuple(line.removeprefix("echo ").split(":")[0].split(".")[0] for line in lines if line.startswith("echo "))


@functools.cache
def script(file: str) -> str:
    """As pods have it."""
    text = (resources.files("oarsman.engines.kube") / "scripts" / file).read_text()
    return _with_options(text) if file == MPIRUN else text


def _with_options(text: str) -> str:
    """Those of mpirun, by the number of words that follow: from the table that `launch.parse` reads lines with."""
    words: dict[int, list[str]] = {0: [], 1: [], 2: []}
    for option, count in LAUNCHERS["mpirun"].items():
        words[count].append(option)
    shebang, _, rest = text.partition("\n")
    tables = [f"{name}='{' '.join(sorted(words[count]))}'\n" for count, name in enumerate(("alone", "one", "two"))]
    return "".join((shebang, "\n", *tables, f"surviving='{' '.join(SURVIVING)}'\n", rest))
