"""Turns the crank: the loop that plans and acts, the supervisor it lives in, and the door for the faces."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from oarsman.runtime.cluster import ClusterJobs
    from oarsman.runtime.jobs import Jobs

_EXTRA = {"aiohttp", "msgspec", "cryptography", "uvloop"}


def open_jobs(
    engine: str = "embedded",
    *,
    context: str | None = None,
    kubeconfig: str | None = None,
    namespace: str | None = None,
) -> Jobs:
    """The jobs of this user on that engine. Imported late, so that `oarsman --version` stays quick."""
    from oarsman.errors import UnsupportedError

    if engine == "kube":
        return open_cluster(context=context, kubeconfig=kubeconfig, namespace=namespace)
    if engine != "embedded":
        raise UnsupportedError(f"jobs cannot be run on '{engine}' yet")
    from oarsman.runtime.embedded import EmbeddedJobs

    return EmbeddedJobs()


def open_cluster(
    *,
    context: str | None = None,
    kubeconfig: str | None = None,
    namespace: str | None = None,
    token: str | None = None,
) -> ClusterJobs:
    """The jobs of a cluster: the one of the kubeconfig's context, or the one this pod is in.

    `token`: with whose rights, if not with those of the kubeconfig's user or of the pod.
    """
    from pathlib import Path

    from oarsman.errors import UsageError

    try:
        from oarsman.engines.kube.client import load_access
        from oarsman.runtime.cluster import ClusterJobs
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _EXTRA:
            raise
        raise UsageError(
            f"Kubernetes needs a package that is not installed: {error.name}", hint="pip install 'oarsman[kube]'"
        ) from error
    access = load_access(kubeconfig=Path(kubeconfig) if kubeconfig else None, context=context, token=token)
    return ClusterJobs(access, namespace=namespace)
