"""The server: one gate, one set of backends, the API in front of them, and an end that waits for no stream."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import cache, partial
from types import FrameType

import uvicorn
from fastapi import FastAPI
from fastapi.responses import PlainTextResponse
from pydantic.alias_generators import to_camel
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Lifespan, Receive, Scope, Send

from oarsman.backends.base import Backend
from oarsman.console import pages
from oarsman.console.api import PREFIX, accounts, problems, routes
from oarsman.console.console import Backends, Console
from oarsman.console.security.connections import Connection, ConnectionLimits, Patience
from oarsman.console.security.credentials import ClusterTokens
from oarsman.console.security.gate import Gate
from oarsman.console.security.headers import security_headers
from oarsman.console.security.proxies import is_proxy
from oarsman.console.security.store import ConsoleStore
from oarsman.console.settings import ConsoleSettings, is_loopback, refusal, tls_context
from oarsman.errors import OarsmanError, UsageError
from oarsman.portal import shared
from oarsman.store.change_watch import ChangeWatch
from oarsman.text.sentence import Text
from oarsman.version import __version__

log = logging.getLogger("oarsman.console")
_HEALTH = "/healthz"  # for whoever starts the server anew if it does not answer; nobody has to log in
_BACKLOG = 2048
_END_WITHIN_SECONDS = 10


def make_app(console: Console) -> FastAPI:
    """The API alone; pages are added to it by whoever wants them."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        await console.close()

    app = bare_app(lifespan)
    app.state.console = console
    app.state.gate = console.gate
    app.add_middleware(problems.body_limit)
    return app


def bare_app(lifespan: Lifespan[FastAPI] | None = None) -> FastAPI:
    """All routes, and nobody behind them: enough to describe the API."""
    # Documentation pages of the framework would load scripts from elsewhere; the description alone is served.
    app = FastAPI(
        title="Oarsman",
        version=__version__,
        openapi_url=f"{PREFIX}/openapi.json",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        generate_unique_id_function=lambda route: to_camel(route.name),
    )
    problems.install(app)
    app.openapi = cache(partial(routes.described, app))  # type: ignore[method-assign]
    for router in (routes.router, accounts.router, accounts.once):
        app.include_router(router)

    @app.get(_HEALTH, include_in_schema=False)
    async def healthz() -> PlainTextResponse:
        """Of the cluster nothing is said: a server that is started anew would not bring it back."""
        return PlainTextResponse("ok\n")

    return app


def front(console: Console) -> ASGIApp:
    """The API and the pages behind one address. Pages answer whatever nobody else does, and must not for the API."""
    api = make_app(console)
    others = pages.make_app(console, api.openapi)

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")  # none for the beginning and the end, which only the pages care about
        is_api = path in ("/api", _HEALTH) or path.startswith(("/api/", "/login/"))
        if scope["type"] == "http" and not (is_api or path.startswith("/_nicegui")):
            try:
                await console.look_ahead(HTTPConnection(scope))
            except OarsmanError as error:
                await problems.answer_error(error)(scope, receive, send)
                return
        await (api if is_api else others)(scope, receive, send)

    return answer


class Server(uvicorn.Server):
    """Ends the streams before it waits for requests to end: they would go on for ever."""

    def __init__(
        self,
        config: uvicorn.Config,
        console: Console,
        ready: Callable[[], None],
        limits: ConnectionLimits | None = None,
    ) -> None:
        super().__init__(config)
        self._console = console
        self._ready = ready
        self._limits = limits or ConnectionLimits()
        self._patience = Patience(self._limits)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listens by itself: uvicorn has no word for how long a handshake may take."""
        await super().startup([])
        handshake = self._limits.head_seconds if self.config.ssl else None
        for sock in sockets or ():
            self.servers.append(
                await asyncio.get_running_loop().create_server(
                    self._connection,
                    sock=sock,
                    ssl=self.config.ssl,
                    ssl_handshake_timeout=handshake,
                    backlog=self.config.backlog,
                )
            )
        if self.started:
            self._console.backends.begin()
            self._ready()

    def _connection(self) -> Connection:
        return Connection(
            limits=self._limits,
            is_proxy=partial(is_proxy, self._console.gate.site),
            config=self.config,
            server_state=self.server_state,
            app_state=self.lifespan.state,
        )

    async def on_tick(self, counter: int) -> bool:
        if counter % 10 == 0:
            self._patience.look(self.server_state.connections)
        return await super().on_tick(counter)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Being told to end is not a failure: nothing is raised again afterwards. Told twice, nothing is waited for."""
        self.force_exit = self.should_exit
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._console.streams.stop()
        await super().shutdown(sockets)
        await self._console.close()


def listen(settings: ConsoleSettings) -> socket.socket:
    """The socket, before anything else is started: a port that is taken is said at once."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        found = socket.getaddrinfo(
            settings.host or None, settings.port, family, socket.SOCK_STREAM, 0, socket.AI_PASSIVE
        )
        sock = socket.socket(found[0][0], socket.SOCK_STREAM)
    except OSError as error:
        raise UsageError(
            Text("{host} is no address of this machine: {why}", host=settings.host, why=error.strerror), field="--host"
        ) from error
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(found[0][4])
        sock.listen(_BACKLOG)
    except OSError as error:
        sock.close()
        raise UsageError(
            Text(
                "{host}:{port} cannot be listened on: {why}", host=settings.host, port=settings.port, why=error.strerror
            ),
            field="--port",
            hint=Text("is it running already? --port 0 takes any that is free"),
        ) from error
    return sock


def open_console(settings: ConsoleSettings, port: int) -> Console:
    """Raises UsageError where the server must not start like this."""
    settings.paths.make()
    store = ConsoleStore(settings.paths.console_database)
    try:
        refused = refusal(settings, store.accounts.enabled())
        if refused is not None:
            raise UsageError(refused)
        gate = Gate(store, settings.site(port), cluster=_cluster_tokens(settings))
        return Console(_backends(settings), gate, folder=settings.folder, others=settings.others)
    except BaseException:
        store.close()
        raise


def _backends(settings: ConsoleSettings) -> Backends:
    if settings.engine != "kube":
        ChangeWatch(settings.paths.database).close()  # its library asks a program once; not for whoever only looks
    if settings.engine == "local":
        from oarsman.backends.local.backend import LocalBackend
        from oarsman.engines.hosts.local import capacity

        capacity.gpus()  # asked for now, and not by whoever only looks
        return Backends(lambda _: LocalBackend(settings.paths, any_inventory=False))
    if settings.engine == "ssh":
        from oarsman.backends.ssh.backend import SshBackend

        backend = SshBackend(settings.hosts, settings.paths, any_inventory=False)
        shared().run(backend.check())
        return Backends(lambda _: backend)
    from oarsman.backends import open_kube
    from oarsman.backends.kube.identity import namespace_of

    def open_with(token: str | None) -> Backend:
        """The first namespace is that of manifests which mention none; into all of them is looked for somebody who may
        not see every one. A service account has one of its own; what the server's own pod is in means nothing to those
        who come with a token."""
        namespaces = settings.namespaces
        if token is not None:
            own = namespace_of(token)
            namespaces = (*namespaces, *([own] if own else ()), "default")
        home = namespaces[0] if namespaces else None
        return open_kube(
            context=settings.context, kubeconfig=settings.kubeconfig, namespace=home, token=token, namespaces=namespaces
        )

    # On loopback, whoever came in by the link is the owner of the kubeconfig. Anybody else brings a token.
    return Backends(open_with, per_token=True, tokens_needed=not is_loopback(settings.host))


def _cluster_tokens(settings: ConsoleSettings) -> ClusterTokens | None:
    """Who says whose the tokens are that people bring."""
    if not settings.by_token:
        return None
    from oarsman.backends import open_reviewer

    reviewer = open_reviewer(context=settings.context, kubeconfig=settings.kubeconfig)
    return ClusterTokens(lambda token: shared().run(reviewer.known(token)))  # the gate asks in threads


def serve(settings: ConsoleSettings, announce: Callable[[str, str | None], None]) -> None:
    """Until Ctrl-C or SIGTERM. `announce` is told the address, and the link that opens it once, when it answers."""
    with listen(settings) as sock:
        console = open_console(settings, sock.getsockname()[1])

        def ready() -> None:
            """The link is for the owner of this machine; where others can listen in, people log in."""
            announce(console.gate.site.address, console.gate.new_link() if is_loopback(settings.host) else None)

        try:
            tls = tls_context(settings.cert, settings.key) if settings.cert is not None else None
            config = uvicorn.Config(
                security_headers(front(console), console.gate.site),
                log_config=None,
                access_log=settings.verbose,
                server_header=False,
                proxy_headers=False,
                timeout_graceful_shutdown=_END_WITHIN_SECONDS,
                lifespan="on",
                ws_max_size=problems.LARGEST_BODY,
                ws_per_message_deflate=False,  # a kilobyte would become a megabyte, for whoever is not in, too
                ssl_context_factory=(lambda *_: tls) if tls is not None else None,
            )
            Server(config, console, ready).run(sockets=[sock])
        finally:
            console.gate.store.close()
