"""The gate: whose a request is, or that it is nobody's. Nothing passes without it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeVar

from starlette.requests import HTTPConnection
from starlette.responses import Response

from oarsman.backends.base import current_user
from oarsman.console.security.credentials import LONGEST, TOKEN_PREFIX, ClusterTokens, Holder
from oarsman.console.security.database import hashed
from oarsman.console.security.store import ConsoleStore, link
from oarsman.console.security.throttle import Attempt, Throttle, network
from oarsman.console.settings import Site, is_loopback
from oarsman.errors import ForbiddenError, ThrottledError, UnauthenticatedError, UnsupportedError
from oarsman.service.models import Account, Identity, Role
from oarsman.text.sentence import Text

if TYPE_CHECKING:
    from oarsman.backends.kube.identity import TokenOwner

T = TypeVar("T")
HEADER = "X-Oarsman"
HOW_TO_GET_A_TOKEN = Text("`kubectl create token NAME` prints one for a service account")
WRONG_PASSWORD = Text("name or password is wrong")
NOT_THE_PASSWORD = Text("this is not the password so far")
NO_PASSWORD = Text("only somebody who logged in with a password can change it")
TOKEN_REFUSED = Text("the cluster does not accept this token")
NOBODY = Text("nobody is logged in")
STRANGE_PAGE = Text("this request does not come from a page of this server")
FOR_PROGRAMS = Text("programs had better use an API token")
_READING = ("GET", "HEAD", "OPTIONS")
_LONGEST_SECRET = 200


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks, how they showed it, and from where."""

    identity: Identity
    account: str | None  # None: the owner of this machine, who came by a link or a token of theirs
    way: Literal["session", "token"]
    address: str
    hash: bytes  # of what they showed
    token: str | None = field(default=None, repr=False)  # their own for the cluster, if that is who knows them

    @property
    def counted_as(self) -> tuple[str, ...]:
        """Whose share of what all share is used. A token may be in many hands, and one person may have many."""
        person = f"person {self.identity.name}"
        by_password = self.account is not None and self.way == "session"
        return (person,) if by_password else (person, f"address {network(self.address)}")


@dataclass(eq=False)
class Gate:
    """`cluster`: who says whose a token of the cluster is; without one, such tokens are not known."""

    store: ConsoleStore
    site: Site
    cluster: ClusterTokens | None = None
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._throttle = Throttle(self.clock)
        for name, where in self.store.audit.entered():  # before this start
            self._throttle.welcome(name, network(where))
        self.store.links.serve_at(self.site.address)  # for links that the command prints

    def caller(self, request: HTTPConnection) -> Caller:
        """Raises UnauthenticatedError or ForbiddenError. For requests and for web sockets."""
        scheme, _, secret = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":  # never sent by a browser on its own: nobody else can have caused it
            secret = secret.strip()
            if self.cluster is not None and not secret.startswith(TOKEN_PREFIX):
                return self._of_cluster(request, "token", secret, hashed(secret))
            return self._known(request, "token", secret)
        secret = self._cookie(request)
        if not secret:
            raise UnauthenticatedError(NOBODY, hint=self._how_to_come_in())
        found = self._known(request, "session", secret)
        self._refuse_others_pages(request, origin_needed=True)
        return found

    def still_holds(self, caller: Caller) -> bool:
        """Whether what they showed is still good and still says the same; for streams that last. No use is noted."""
        if caller.token is not None:
            lasts = caller.way == "token" or self.store.cluster_sessions.find(caller.hash, note=False) is not None
            known = self._ask_cluster(caller.address, caller.token, caller.way) if lasts else None
            return known is not None and known.name == caller.identity.name
        found = self._holder(caller.way, caller.hash, note=False)
        return found is not None and found.identity == caller.identity

    def doubt(self, caller: Caller) -> None:
        """The cluster did not know them: it is asked anew whose their token is before the next request counts."""
        if self.cluster is not None and caller.token is not None:
            self.cluster.doubt(caller.token)

    def _known(self, request: HTTPConnection, way: Literal["session", "token"], secret: str) -> Caller:
        hash = hashed(secret[:_LONGEST_SECRET])
        holder = self._holder(way, hash, note=True)
        if holder is None and way == "session" and self.cluster is not None:
            sealed = self.store.cluster_sessions.find(hash)
            if sealed is not None:
                return self._of_cluster(request, way, sealed.open(secret), hash)
        if holder is None:
            raise UnauthenticatedError(
                Text("this session is not known, or no longer")
                if way == "session"
                else Text("this token is not known, or no longer"),
                hint=self._how_to_come_in(),
            )
        return Caller(holder.identity, holder.account, way, address(request), hash)

    def _of_cluster(self, request: HTTPConnection, way: Literal["session", "token"], token: str, hash: bytes) -> Caller:
        """Somebody whom only the cluster knows; a session whose token it has taken back ends."""
        known = self._ask_cluster(address(request), token, way)
        if known is None:
            if way == "session":
                self.store.cluster_sessions.close(hash)
            raise UnauthenticatedError(
                Text("the cluster does not accept this token, or no longer"), hint=HOW_TO_GET_A_TOKEN
            )
        return Caller(Identity(name=known.name, role=Role.CLUSTER), None, way, address(request), hash, token)

    def _ask_cluster(self, where: str, token: str, way: Literal["session", "token"]) -> TokenOwner | None:
        """What a session has is no guess: the cluster accepted it once."""
        if self.cluster is None:
            raise UnsupportedError(
                Text("this server asks no cluster"), hint=Text("it has accounts, or a link opens it")
            )
        if way == "session":
            return self.cluster.known(token, count=lambda: None, uncount=lambda: None)
        attempts: list[Attempt] = []
        return self.cluster.known(
            token,
            count=lambda: attempts.append(self._throttle.begin(where, None)),
            uncount=lambda: self._throttle.take_back(attempts.pop()),
        )

    def _holder(self, way: Literal["session", "token"], hash: bytes, *, note: bool) -> Holder | None:
        return (self.store.sessions if way == "session" else self.store.tokens).holder(hash, note=note)

    def _how_to_come_in(self) -> str:
        if self.cluster is not None and not is_loopback(self.site.host):
            return HOW_TO_GET_A_TOKEN
        if self.store.accounts.enabled():
            return Text("log in with name and password, or send an API token")
        return Text(
            "`oarsman tokens link` prints a link that opens the console once, `oarsman tokens add` an API token"
        )

    def _refuse_others_pages(self, request: HTTPConnection, *, origin_needed: bool) -> None:
        """A request that changes something, or a web socket, has to come from our own pages."""
        is_socket = request.scope["type"] == "websocket"
        if not is_socket and request.scope["method"] in _READING:
            return
        origin = request.headers.get("origin")
        fetched_from = request.headers.get("sec-fetch-site")
        host = request.headers.get("host")
        foreign = (
            (origin is not None and not self.site.is_own_origin(origin, host, encrypted=self._encrypted(request)))
            or (fetched_from is not None and fetched_from != "same-origin")
            or (origin_needed and origin is None and (is_socket or fetched_from is None))
        )
        if foreign:
            raise ForbiddenError(STRANGE_PAGE, hint=FOR_PROGRAMS)
        if not is_socket and request.headers.get(HEADER) != "1":
            raise ForbiddenError(Text("the header {header}: 1 is missing", header=HEADER), hint=FOR_PROGRAMS)

    def refuse_others_connections(self, request: HTTPConnection) -> None:
        """Of those that keep a page up to date, however they are made: not every such request has an Origin, but then
        it says where it comes from in other words."""
        headers = request.headers
        origin, page = headers.get("origin"), headers.get("referer")
        if origin is None and page is not None:
            origin = "/".join(page.split("/", 3)[:3])
        if origin is None and request.scope["type"] != "websocket" and headers.get("sec-fetch-site") == "same-origin":
            return
        encrypted = self._encrypted(request)
        if origin is None or not self.site.is_own_origin(origin, headers.get("host"), encrypted=encrypted):
            raise ForbiddenError(STRANGE_PAGE)

    def shown(self, request: HTTPConnection) -> bytes:
        """What a request shows of whom it comes from, good or not: two requests that show the same are of the same."""
        return hashed(request.headers.get("authorization") or self._cookie(request))

    def log_in(self, request: HTTPConnection, name: str, password: str) -> tuple[Identity, str]:
        """Who it is, and the new cookie's value. Slow on purpose: not for an event loop."""
        self._refuse_others_pages(request, origin_needed=False)
        where = address(request)

        def enter(account: Account) -> tuple[Identity, str]:
            self.store.audit.refuse_too_often(account.name, "login")
            secret = self._fresh_session(request, account.name, account.name)
            self.store.audit.note(account.name, where, "login")
            return Identity(name=account.name, role=account.role), secret

        entered = self._with_password(request, name, password, enter)
        if entered is None:
            self.store.audit.refused(name, where, "login")
            raise UnauthenticatedError(WRONG_PASSWORD)
        self._throttle.welcome(name, hashed(entered[1]).hex())
        return entered

    def _with_password(
        self, request: HTTPConnection, name: str, password: str, then: Callable[[Account], T]
    ) -> T | None:
        """What `then` makes for the account; None: name or password is wrong, which counts as a guess."""
        attempt = self._throttle.begin(address(request), name, hashed(self._cookie(request)).hex())
        try:
            found = self.store.accounts.log_in(name, password, then, known=attempt.known)
        except ThrottledError:
            self._throttle.take_back(attempt)
            raise
        if found is not None:
            self._throttle.succeeded(attempt)
        return found

    def change_password(self, request: HTTPConnection, current: str, new: str) -> str:
        """The new cookie's value: every other session of the account ends. Slow on purpose."""
        caller = self.caller(request)
        if caller.account is None or caller.way == "token":
            raise ForbiddenError(NO_PASSWORD)
        self._throttle.welcome(caller.account, caller.hash.hex())  # since a restart nobody may have told
        if self._with_password(request, caller.account, current, lambda account: account.name) is None:
            self.store.audit.note(caller.account, caller.address, "change password", outcome="refused")
            raise ForbiddenError(NOT_THE_PASSWORD, field="current")
        password = self.store.accounts.hash(new, of=caller.account)
        with self.store.together():
            self.store.accounts.change(caller.account, hashed_password=password)
            self.store.audit.note(caller.account, caller.address, "change password")
            secret = self._fresh_session(request, caller.account, caller.account)
        self._throttle.welcome(caller.account, hashed(secret).hex())
        return secret

    def log_in_to_cluster(self, request: HTTPConnection, token: str) -> tuple[Identity, str]:
        """Who the cluster says it is, and the new cookie's value. It asks the cluster: not for an event loop."""
        self._refuse_others_pages(request, origin_needed=False)
        where, token = address(request), token.strip()
        known = self._ask_cluster(where, token, "token")
        if known is None:
            self.store.audit.refused("", where, "login", "with a token of the cluster")
            raise UnauthenticatedError(TOKEN_REFUSED, hint=HOW_TO_GET_A_TOKEN)
        self.store.audit.refuse_too_often(known.name, "login")
        with self.store.together():
            self._end_session_before(request)
            self.store.audit.note(known.name, where, "login", "with a token of the cluster")
            secret = self.store.cluster_sessions.open(known.name, token, known.expires)
        return Identity(name=known.name, role=Role.CLUSTER), secret

    def enter_by_link(self, request: HTTPConnection, key: str) -> str:
        """The new cookie's value; the key is burnt. Nobody guesses a key, so a good one opens whatever others tried."""
        where = address(request)
        with self.store.together():
            name = self.store.links.burn(key[:_LONGEST_SECRET])
            if name is not None:
                self.store.audit.note(name, where, "login", "by link")
                return self._fresh_session(request, name, None)
        self._throttle.begin(where, None)
        self.store.audit.refused("", where, "login", "by link")
        raise UnauthenticatedError(
            Text("this link was used before, or is older than ten minutes"),
            hint=Text("`oarsman tokens link` prints a new one"),
        )

    def log_out(self, request: HTTPConnection) -> None:
        caller = self.caller(request)
        if caller.way == "token":
            raise ForbiddenError(Text("a token has no session to end"), hint=Text("revoke it instead"))
        with self.store.together():
            self.store.sessions.close(caller.hash)
            self.store.cluster_sessions.close(caller.hash)
            self.store.audit.note(caller.identity.name, caller.address, "logout")

    def _fresh_session(self, request: HTTPConnection, name: str, account: str | None) -> str:
        self._end_session_before(request)
        return self.store.sessions.open(name, account)

    def _end_session_before(self, request: HTTPConnection) -> None:
        """Whatever session the browser had before ends: it may have been planted."""
        before = self._cookie(request)
        if before:
            hash = hashed(before)
            self.store.sessions.close(hash)
            self.store.cluster_sessions.close(hash)

    def new_link(self) -> str:
        """An address that opens the console once, as the owner of this machine; for the terminal alone."""
        return link(self.site.address, self.store.links.make(current_user()))

    def give_cookie(self, request: HTTPConnection, response: Response, secret: str) -> None:
        encrypted = self._encrypted(request)
        response.set_cookie(
            self.site.cookie(encrypted=encrypted),
            secret,
            max_age=int(LONGEST.total_seconds()),
            path="/",
            secure=encrypted,
            httponly=True,
            samesite="lax",
        )

    def take_cookie(self, request: HTTPConnection, response: Response) -> None:
        encrypted = self._encrypted(request)
        name = self.site.cookie(encrypted=encrypted)
        response.delete_cookie(name, path="/", secure=encrypted, httponly=True, samesite="lax")

    def _cookie(self, request: HTTPConnection) -> str:
        """Empty: none. One that was set without TLS is not looked at where there is TLS: anybody could have set it."""
        return request.cookies.get(self.site.cookie(encrypted=self._encrypted(request)), "")[:_LONGEST_SECRET]

    def _encrypted(self, request: HTTPConnection) -> bool:
        return self.site.is_encrypted(request.scope.get("scheme", "http"), request.headers.get("host"))


def address(request: HTTPConnection) -> str:
    """Of whoever asks; `seen_through` has put that of a client in the place of its proxy's."""
    return request.client.host if request.client is not None else "unknown"
