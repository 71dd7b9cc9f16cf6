"""What one call of the command knows: the common options, the clock, and the backend to the jobs.

Everything a verb needs from outside comes through here, so a test hands in a `Session` with jobs and a
clock of its own. The runtime is imported when the first job is asked for, not before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from oarsman import names
from oarsman.cli.messages import t
from oarsman.errors import OarsmanError, UsageError

if TYPE_CHECKING:
    from oarsman.backends.base import Backend
    from oarsman.backends.kube.backend import KubeBackend
    from oarsman.backends.ssh.backend import SshBackend

_KINDS = {"mpijob", "mpijobs", "mpijob.kubeflow.org", "mpijobs.kubeflow.org", *names.SHORT_NAMES}


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(kw_only=True)
class Session:
    factory: Callable[[str], Backend] | None = None  # None: the real ones
    now: Callable[[], datetime] = _now
    engine: str = "local"
    namespace: str | None = None
    context: str | None = None  # of the kubeconfig
    kubeconfig: str | None = None
    hosts: str | None = None  # the file with the hosts of an inventory
    everywhere: bool = False  # --all-namespaces
    quiet: bool = False
    debug: bool = False
    asked: list[str] = field(default_factory=list)  # the keys this call was about, for suggestions
    _jobs: Backend | None = None

    def open(self) -> Backend:
        """A backend of one's own, for a thread that must not share one."""
        if self.engine != "kube":
            for option, given in (("--context", self.context), ("--kubeconfig", self.kubeconfig)):
                if given:
                    raise UsageError(t("{option} needs --on kube", option=option))
        if self.hosts and self.engine != "ssh":
            raise UsageError(t("--hosts needs --on ssh"))
        if self.factory is not None:
            return self.factory(self.engine)
        from oarsman.backends import open_backend

        return open_backend(self.engine, context=self.context, kubeconfig=self.kubeconfig, hosts=self.hosts)

    @property
    def jobs(self) -> Backend:
        if self._jobs is None:
            self._jobs = self.open()
        return self._jobs

    def cluster(self) -> KubeBackend:
        """The backend to the cluster, for verbs that are about nothing else."""
        from oarsman.backends import open_kube

        return open_kube(context=self.context, kubeconfig=self.kubeconfig, namespace=self.namespace)

    def ssh_backend(self) -> SshBackend:
        """The backend to SSH hosts, for what only they can be asked."""
        from oarsman.backends.ssh.backend import SshBackend

        return SshBackend(self.hosts)

    @property
    def home(self) -> str:
        """The namespace of names that mention none: a cluster's own is in the kubeconfig."""
        return self.jobs.home if self.engine == "kube" else names.DEFAULT_NAMESPACE

    @property
    def opened_home(self) -> str:
        """The same, without opening a backend for it."""
        return self.home if self._jobs is not None else names.DEFAULT_NAMESPACE

    @property
    def scope(self) -> str | None:
        """The namespace to list: one, or None for all of them. On a cluster all have to be asked for."""
        if self.everywhere:
            return None
        return self.namespace or (self.home if self.engine == "kube" else None)

    def key(self, name: str) -> str:
        """The key of `name`, `namespace/name`, `mpijob/name` or `mpijob/namespace/name`."""
        parts = name.split("/")
        if len(parts) > 1 and parts[0].lower() in _KINDS:
            parts = parts[1:]
        if not all(parts) or len(parts) > 2:
            raise UsageError(
                t("'{name}' is not the name of a job", name=name), hint=t("write name, namespace/name or mpijob/name")
            )
        namespace = parts[0] if len(parts) == 2 else self.namespace or self.home
        if len(parts) == 2 and self.namespace not in (None, namespace):
            raise UsageError(
                t("'{name}' is not in namespace '{namespace}'", name=name, namespace=self.namespace),
                hint=t("leave out --namespace"),
            )
        key = f"{namespace}/{parts[-1]}"
        self.asked.append(key)
        return key

    def nearest(self) -> str | None:
        """A hint for a job that was not found: the names most like it."""
        try:
            known = [record.job.key for record in self.jobs.list(self.scope)]
        except OarsmanError:
            return None
        missing = [key for key in self.asked if key not in known]
        found = [short(key) for key in _alike(missing[-1], known)] if missing else []
        if found:
            return t("did you mean {names}?", names=t(" or ").join(found))
        return t("`oarsman list` shows the jobs there are") if known else t("there are no jobs yet")


def short(key: str) -> str:
    """The key as people say it: the namespace that is meant anyway is not mentioned."""
    ctx = click.get_current_context(silent=True)
    session = ctx.find_object(Session) if ctx is not None else None
    home = session.opened_home if session is not None else names.DEFAULT_NAMESPACE
    return key.removeprefix(f"{home}/")


def _alike(key: str, known: Sequence[str]) -> list[str]:
    from difflib import get_close_matches

    wanted = key.partition("/")[2]
    by_name: dict[str, list[str]] = {}
    for found in known:
        by_name.setdefault(found.partition("/")[2], []).append(found)
    if wanted in by_name:  # in another namespace
        return by_name[wanted][:3]
    return [found for name in get_close_matches(wanted, by_name, n=3) for found in by_name[name]][:3]


pass_session = click.make_pass_decorator(Session, ensure=True)
