"""What one call of the command knows: the common options, the clock, and the service that verbs ask.

Everything a verb needs from outside comes through here, so a test hands in a `Session` with a backend and a
clock of its own. The service is imported when the first job is asked for, not before.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import click

from oarsman import names
from oarsman.cli.text import note, t, why
from oarsman.errors import OarsmanError, UsageError, UserError

if TYPE_CHECKING:
    from pathlib import Path

    from oarsman.backends.base import Backend
    from oarsman.backends.kube.backend import KubeBackend
    from oarsman.portal import PortalIterator
    from oarsman.service import JobService
    from oarsman.service.contract import Service
    from oarsman.service.models import JobSummary, ServerInfo

T = TypeVar("T")
_KINDS = {"mpijob", "mpijobs", "mpijob.kubeflow.org", "mpijobs.kubeflow.org", *names.SHORT_NAMES}
_ROWS_AT_ONCE = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedServer:
    """What `oarsman server set` remembers."""

    url: str
    token: str | None = field(default=None, repr=False)
    ca_file: str | None = None  # the certificate of its issuer, where that is not one everybody trusts

    @staticmethod
    def file() -> Path:
        from pathlib import Path  # late: not every verb asks for it

        folder = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
        return Path(folder) / "oarsman" / "server.json"

    @staticmethod
    def load() -> SavedServer | None:
        import json

        path = SavedServer.file()
        try:
            return SavedServer(**json.loads(path.read_text("utf-8")))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError) as error:
            raise UserError(
                t("{file} cannot be read: {error}", file=path, error=error), hint=t("`oarsman server unset` removes it")
            ) from error


def token_in(path: str) -> str:
    """The token in a file; `-`: from standard input."""
    import sys
    from pathlib import Path

    try:
        text = sys.stdin.readline() if path == "-" else Path(path).read_text("utf-8")
    except (OSError, ValueError) as error:
        raise UserError(t("cannot read {source}: {reason}", source=path, reason=why(error))) from error
    token = text.strip()
    if not token or not token.isascii() or len(token.split()) != 1:
        raise UserError(t("{source} does not hold a token", source=path), hint=t("`oarsman tokens add` makes one"))
    return token


@dataclass(kw_only=True)
class Session:
    factory: Callable[[str], Backend] | None = None  # None: the real ones
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    engine: str = "local"
    server: str | None = None
    said: dict[str, str] = field(default_factory=dict)  # where `engine` and `server` come from: option or variable
    token_file: str | None = None
    namespace: str | None = None
    context: str | None = None  # of the kubeconfig
    kubeconfig: str | None = None
    hosts: str | None = None  # the file with the hosts of an inventory
    everywhere: bool = False  # --all-namespaces
    quiet: bool = False
    debug: bool = False
    asked: list[str] = field(default_factory=list)  # the keys this call was about, for suggestions
    _opened: list[Service] = field(default_factory=list)
    _service: Service | None = None

    # -- speaking --------------------------------------------------------------------------------------
    def say(self, text: str) -> None:
        if not self.quiet:
            click.echo(text)

    def note(self, text: str) -> None:
        if not self.quiet:
            note(text)

    # -- asking ----------------------------------------------------------------------------------------
    def run(self, answer: Coroutine[Any, Any, T]) -> T:
        """What the service answers. Whatever it is asked is asked within this, or within `iterate`."""
        from oarsman.portal import shared

        return shared().run(answer)

    def iterate(self, answers: AsyncGenerator[T, None]) -> PortalIterator[T]:
        """What it answers one by one. Any thread may close it."""
        from oarsman.portal import shared

        return shared().iterate(answers)

    @property
    def service(self) -> Service:
        if self._service is None:
            self._service = self.here() if self.remote is None else self.reached(self.remote)
        return self._service

    def close(self) -> None:
        """Whoever still follows something is not waited for."""
        while self._opened:
            self.run(self._opened.pop().close())

    def here(self, *, namespace: str | None = None) -> JobService:
        """The service in this process, on the jobs of this user, who may do whatever the place allows."""
        from oarsman.backends import open_backend
        from oarsman.backends.base import current_user
        from oarsman.service import JobService
        from oarsman.service.models import Identity, Role

        if self.engine != "kube":
            for option, given in (("--context", self.context), ("--kubeconfig", self.kubeconfig)):
                if given:
                    raise UsageError(t("{option} needs --on kube", option=option))
        if self.hosts and self.engine != "ssh":
            raise UsageError(t("--hosts needs --on ssh"))
        how = {"context": self.context, "kubeconfig": self.kubeconfig, "namespace": namespace, "hosts": self.hosts}
        jobs = self.factory(self.engine) if self.factory is not None else open_backend(self.engine, **how)
        return JobService(jobs, Identity(name=current_user(), role=Role.ADMIN), now=self.now)

    # -- the place, or a server --------------------------------------------------------------------------
    @cached_property
    def remote(self) -> SavedServer | None:
        """The server that is meant, if it is one: what is on the command line goes before variables, these before what
        is saved."""
        on, server = self.said.get("engine"), self.said.get("server")
        if on == server == "option":
            raise UsageError(t("--on does not go with --server"), hint=t("a server knows itself where its jobs run"))
        chosen = self.engine != "local" or on is not None or self.factory is not None
        if on == "option" or (chosen and server is None):
            return None
        saved = SavedServer.load()
        if self.server is not None and (saved is None or saved.url != self.server):
            saved = SavedServer(url=self.server)
        if saved is None or (self.token_file is None and not os.environ.get("OARSMAN_TOKEN")):
            return saved
        token = token_in(self.token_file) if self.token_file is not None else None  # None: the variable
        return SavedServer(url=saved.url, token=token, ca_file=saved.ca_file)

    @property
    def asks_server(self) -> bool:
        """Whether a server was asked, as far as it came to that."""
        return self.__dict__.get("remote") is not None

    def reached(self, server: SavedServer) -> Service:
        from oarsman.client import places

        service = places.at_server(server.url, server.token, server.ca_file or True)
        self._opened.append(service)
        return service

    def refuse_server(self, verb: str) -> None:
        """For verbs that are about a place itself."""
        if self.said.get("server") == "option":
            raise UsageError(
                t("`{verb}` needs the place itself, and cannot be asked of a server", verb=verb),
                hint=t("leave out --server, and say it there"),
            )

    @cached_property
    def info(self) -> ServerInfo:
        return self.run(self.service.info())

    @property
    def place(self) -> str:
        """Where jobs run: local, ssh or kube."""
        return self.engine if self.remote is None else self.info.engine

    def cluster(self) -> KubeBackend:
        """The backend to the cluster, for verbs that are about nothing else."""
        from oarsman.backends import open_kube

        return open_kube(context=self.context, kubeconfig=self.kubeconfig, namespace=self.namespace)

    # -- names -------------------------------------------------------------------------------------------
    @property
    def home(self) -> str:
        """The namespace of names that mention none: a cluster's own is in the kubeconfig."""
        return self.info.home

    @property
    def opened_home(self) -> str:
        """The same, without opening anything for it."""
        return self.home if self._service is not None else names.DEFAULT_NAMESPACE

    @property
    def scope(self) -> str | None:
        """The namespace to list: one, or None for all of them. On a cluster all have to be asked for."""
        if self.everywhere:
            return None
        return self.namespace or (self.home if self.place == "kube" else None)

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

    # -- all jobs ----------------------------------------------------------------------------------------
    def rows(self) -> list[JobSummary]:
        """Those of the scope, the newest last."""
        return [row for row, _ in self.rows_with_documents(documents=False)]

    def rows_with_documents(self, *, documents: bool) -> Iterator[tuple[JobSummary, Mapping[str, Any]]]:
        from oarsman.service.models import JobQuery

        query = JobQuery(namespace=self.scope, sort="created", limit=_ROWS_AT_ONCE, documents=documents)
        while True:
            page = self.run(self.service.jobs(query))
            yield from zip(page.items, page.documents if documents else ({},) * len(page.items), strict=True)
            if page.next is None:
                return
            query = query.model_copy(update={"cursor": page.next})

    def nearest(self) -> str | None:
        """A hint for a job that was not found: the names most like it."""
        try:
            known = [row.key for row in self.rows()]
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
