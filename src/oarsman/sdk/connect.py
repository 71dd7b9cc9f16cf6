"""Where jobs run, chosen as the command chooses it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from oarsman.runtime.jobs import Jobs


def connect(
    on: str = "embedded",
    *,
    context: str | None = None,
    kubeconfig: str | None = None,
    namespace: str | None = None,
    hosts: str | None = None,
) -> Jobs:
    """The jobs of this machine ("embedded"), of SSH hosts ("ssh") or of a cluster ("kube"): the same methods on each.

    `hosts` is the file that names the SSH hosts, by default the one that the command would find; `context` and
    `kubeconfig` choose the cluster, `namespace` is that of documents which mention none.
    """
    from oarsman.runtime import open_jobs  # late: a program that only builds documents needs nothing of it

    return open_jobs(on, context=context, kubeconfig=kubeconfig, namespace=namespace, hosts=hosts)
