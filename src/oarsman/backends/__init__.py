"""What each place offers the faces: local, ssh and kube; opened here, imported late."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from oarsman.text.sentence import Text

if TYPE_CHECKING:
    from oarsman.backends.base import Backend
    from oarsman.backends.kube.backend import KubeBackend
    from oarsman.backends.kube.identity import Reviewer


_EXTRA = {"aiohttp", "msgspec", "cryptography", "uvloop"}


def open_backend(
    engine: str = "local",
    *,
    context: str | None = None,
    kubeconfig: str | None = None,
    namespace: str | None = None,
    hosts: str | None = None,
) -> Backend:
    """The jobs of this user at that place. Imported late, so that `oarsman --version` stays quick. It opens nothing yet
    that needs an event loop; whoever uses it does that in one, or through a portal.

    `hosts`: the inventory of SSH hosts, if not the one that is found in the usual places.
    """
    from oarsman import names
    from oarsman.errors import UsageError

    engine = names.PLACE_ALIASES.get(engine, engine)
    if engine == "kube":
        return open_kube(context=context, kubeconfig=kubeconfig, namespace=namespace)
    if engine == "ssh":
        from oarsman.backends.ssh.backend import SshBackend

        return SshBackend(hosts)
    if engine != "local":
        raise UsageError(Text("there is no engine '{engine}'", engine=engine), hint="local, ssh or kube")
    from oarsman.backends.local.backend import LocalBackend

    return LocalBackend()


def open_kube(
    *,
    context: str | None = None,
    kubeconfig: str | None = None,
    namespace: str | None = None,
    token: str | None = None,
    namespaces: Sequence[str] | None = None,
) -> KubeBackend:
    """The jobs of a cluster: the one of the kubeconfig's context, or the one this pod is in.

    `token`: with whose rights, if not with those of the kubeconfig's user or of the pod. `namespaces`: where to look
    for jobs if that user may not see those of all namespaces.
    """
    from pathlib import Path

    from oarsman.store.paths import note_secret

    with _the_extra():
        from oarsman.backends.kube.backend import KubeBackend
        from oarsman.engines.kube.client import load_access
    if kubeconfig:
        note_secret(kubeconfig)
    access = load_access(kubeconfig=Path(kubeconfig) if kubeconfig else None, context=context, token=token)
    return KubeBackend(access, namespace=namespace, namespaces=namespaces)


def open_reviewer(*, context: str | None = None, kubeconfig: str | None = None) -> Reviewer:
    """Who says whose a token of the same cluster is. In a pod that has a token of its own, that may review others."""
    from pathlib import Path

    with _the_extra():
        from oarsman.backends.kube.identity import Reviewer
        from oarsman.engines.kube.client import load_access
        from oarsman.engines.kube.client.access import POD, SERVICE_ACCOUNT
    file = Path(kubeconfig) if kubeconfig else None
    anybody = load_access(kubeconfig=file, context=context, token="none")
    has_token = anybody.source == POD and (SERVICE_ACCOUNT / "token").exists()
    return Reviewer(anybody, load_access() if has_token else None)


@contextmanager
def _the_extra() -> Iterator[None]:
    from oarsman.errors import UsageError

    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _EXTRA:
            raise
        message = Text("Kubernetes needs a package that is not installed: {name}", name=error.name)
        raise UsageError(message, hint="pip install 'oarsman[kube]'") from error
