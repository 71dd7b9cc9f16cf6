"""What a server was told when it was started: where it listens, with which certificate, and which names lead to it.

- A page of another origin whose name is made to lead to this machine (DNS rebinding) would be of the same origin to
  the browser. Its `Host` is still its own name, so only names that are known to be ours are answered.
- Behind a proxy that ends TLS the browser's cookie has to be as safe as with TLS here. That the way is encrypted is
  believed of a proxy that was named (--trusted-proxy), and of a name that was given as https://NAME.
- The cookie is SameSite=Lax: the link to a job in a chat opens the job. Strict would show a login page to people who
  are logged in, and would not be safer: what Lax lets through is opening a page, which changes nothing. Neither is
  enough, because all ports of a host are one "site": another server on the same machine passes for us. So requests
  that change something also have to come from our origin and carry a header that other origins cannot set.
"""

from __future__ import annotations

import ipaddress
import ssl
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from oarsman.errors import UsageError
from oarsman.service.others import Others, RunAs
from oarsman.store.paths import Paths
from oarsman.text.sentence import Text

DEFAULT_PORT = 8470
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_HTTPS = "https://"
_LOOPBACK_NAMES = ("127.0.0.1", "::1", "localhost")
_DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Which names lead to the server, which requests come from its own pages, how its cookie is called."""

    host: str = "127.0.0.1"  # that the server listens on
    port: int
    tls: bool = False
    public_names: tuple[str, ...] = ()  # "jobs.example.org", "jobs.example.org:8443", "https://jobs.example.org"
    trusted_proxies: tuple[Network, ...] = ()  # what they say of their clients is believed

    @property
    def scheme(self) -> str:
        return "https" if self.tls else "http"

    @property
    def address(self) -> str:
        """To be opened in a browser of this machine, or of another one if there is a public name."""
        if self.public_names:
            name = self.public_names[0]
            if name.startswith(_HTTPS):
                return name
            return f"{self.scheme}://{name}" if _split(name)[1] is not None else f"{self.scheme}://{name}:{self.port}"
        listens_on = _address(self.host)
        everywhere = not self.host or (listens_on is not None and listens_on.is_unspecified)
        host = "localhost" if everywhere else self.host
        return f"{self.scheme}://{f'[{host}]' if ':' in host else host}:{self.port}"

    def is_encrypted(self, scheme: str, host: str | None) -> bool:
        """Whether the way between the browser and whoever ends TLS is. `scheme`: of the request, as it was seen."""
        if self.tls or scheme in ("https", "wss"):
            return True
        name, port = _split(host or "")
        told = (_split(public.removeprefix(_HTTPS)) for public in self.public_names if public.startswith(_HTTPS))
        return any(name == public and on_port in (None, port) for public, on_port in told)

    def stays_encrypted(self, host: str | None, *, encrypted: bool) -> bool:
        """Whether browsers are told never to come without TLS again: that counts for every port of the host, so only
        where TLS has the port that browsers expect."""
        name, port = _split(host or "")
        return encrypted and name is not None and port in (None, _DEFAULT_PORTS["https"])

    def cookie(self, *, encrypted: bool) -> str:
        """With the port, because cookies have none: two consoles on one machine do not log each other out.

        With the prefix, browsers take it only from this very host, over TLS: no neighbour in DNS can plant one.
        """
        return f"{'__Host-' if encrypted else ''}oarsman-{self.port}"

    def answers_to(self, host: str | None) -> bool:
        """Whether this `Host` header is one of ours."""
        name, port = _split(host or "")
        if name is None:
            return False
        if any(name == public and on_port in (None, port) for public, on_port in self._public()):
            return True
        right_port = (port or _DEFAULT_PORTS[self.scheme]) == self.port
        if name in _LOOPBACK_NAMES or name == self.host.strip("[]").lower():
            return right_port
        return right_port and not is_loopback(self.host) and _address(name) is not None  # an address is nobody's name

    def is_own_origin(self, origin: str, host: str | None, *, encrypted: bool) -> bool:
        """Whether an `Origin` is the one that this request, by its `Host`, was sent to."""
        try:
            parts = urlsplit(origin)
            wanted = _split(parts.netloc)
        except ValueError:
            return False
        name, port = _split(host or "")
        if name is None or parts.path or parts.query or parts.fragment or wanted[0] != name:
            return False
        # A proxy may speak TLS and not say so; the other way round nothing good is going on.
        is_public = name in {public for public, _ in self._public()}
        scheme = "https" if encrypted else "http"
        if parts.scheme != scheme and not (parts.scheme == "https" and is_public):
            return False
        default = _DEFAULT_PORTS[parts.scheme]
        return (wanted[1] or default) == (port or default)

    def _public(self) -> Iterator[tuple[str | None, int | None]]:
        return (_split(name.removeprefix(_HTTPS)) for name in self.public_names)


def _names(given: tuple[str, ...]) -> tuple[str, ...]:
    for text in given:
        if _split(text.removeprefix(_HTTPS))[0] is None:
            raise UsageError(
                Text("{name} is no name by which a server is reached", name=text or "''"),
                field="--public-name",
                hint=Text("write jobs.example.org, jobs.example.org:8443 or https://jobs.example.org"),
            )
    return given


def trusted_networks(given: Iterable[str]) -> tuple[Network, ...]:
    """Addresses and networks of proxies, as they are given to --trusted-proxy."""
    found = []
    for text in given:
        try:
            network = ipaddress.ip_network(text)
        except ValueError:
            network = None
        if network is None or not network.prefixlen:  # of everybody: then everybody could claim to be anybody
            raise UsageError(
                Text("{proxy} is neither the address of a proxy nor a network of proxies", proxy=text or "''"),
                field="--trusted-proxy",
                hint=Text("write 192.0.2.7, 192.0.2.0/24 or 2001:db8::/64"),
            )
        found.append(network)
    return tuple(found)


def is_loopback(host: str) -> bool:
    """Only what can be known without asking anybody: a name other than localhost may lead anywhere."""
    address = _address(host)
    return host.lower() == "localhost" or (address is not None and address.is_loopback)


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return None


def _split(host: str) -> tuple[str | None, int | None]:
    """Name and port of a `Host` header; no name if it is not one."""
    try:
        parts = urlsplit(f"//{host}")
        port = parts.port
    except ValueError:
        return None, None
    if not host or parts.netloc != host or "@" in host or host.endswith(":") or not parts.hostname:
        return None, None
    return parts.hostname.lower(), port


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleSettings:
    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT  # 0: any that is free
    engine: str = "local"
    cert: Path | None = None
    key: Path | None = None
    insecure: bool = False
    public_names: tuple[str, ...] = ()
    trusted_proxies: tuple[str, ...] = ()
    folder: Path = field(default_factory=Path.cwd)  # of jobs that mention none
    verbose: bool = False
    context: str | None = None  # of the kubeconfig
    kubeconfig: str | None = None
    hosts: str | None = None  # the file that names the SSH hosts
    namespaces: tuple[str, ...] = ()  # the first: of manifests that mention none; all: where jobs are looked for
    run_as: tuple[str, ...] = ()
    paths: Paths = field(default_factory=Paths.default)

    @property
    def others(self) -> Others | None:
        """Raises UsageError where --run-as cannot be had."""
        if self.run_as and self.engine != "local":
            raise UsageError(Text("--run-as is for jobs of this machine"), field="--run-as")
        if self.engine == "kube":
            return None
        hidden = (*self.paths.secrets(), str(self.paths.run))
        here = self.engine == "local"
        return Others(folder=self.folder, hidden=hidden, here=here, run_as=RunAs.of(self.run_as))

    @property
    def by_token(self) -> bool:
        """On a cluster everybody is asked for a token of their own, and acts with its rights."""
        return self.engine == "kube"

    def site(self, port: int) -> Site:
        """`port`: the one that is really listened on."""
        return Site(
            host=self.host,
            port=port,
            tls=self.cert is not None,
            public_names=_names(self.public_names),
            trusted_proxies=trusted_networks(self.trusted_proxies),
        )


def refusal(asked: ConsoleSettings, accounts: int) -> str | None:
    """Why the server must not start like this, in a sentence; None if it may. `accounts`: how many could log in.

    Jobs are commands: whoever comes in runs what they like. On this machine alone a link on the terminal is
    enough; where others can reach it, passwords must not be readable on the way, and there must be some.
    """
    if asked.key is not None and asked.cert is None:
        return Text("a key for TLS needs its certificate: --tls-cert FILE")
    if is_loopback(asked.host):
        return None
    host = asked.host or Text("every address")
    if asked.cert is None and not asked.insecure:
        return Text(
            "{host} can be reached by others, who could read passwords on the way: give --tls-cert "
            "and --tls-key, or say --insecure if something else encrypts the way",
            host=host,
        )
    if accounts == 0 and not asked.by_token:
        return Text(
            "{host} can be reached by others, and nobody could log in: make an account first, with "
            "`oarsman users add NAME --role admin`",
            host=host,
        )
    return None


def remarks(asked: ConsoleSettings) -> list[str]:
    """What whoever starts the server like this should know."""
    if is_loopback(asked.host):
        return []
    others = asked.others
    why = others.refusal() if others is not None else None
    unkept: list[str] = [Text("accounts cannot run jobs here: {why}", why=why)] if why is not None else []
    if asked.cert is not None or asked.trusted_proxies or not asked.insecure:
        return unkept
    return [
        *unkept,
        Text(
            "--insecure without --trusted-proxy: unless something else encrypts the way, passwords and sessions can be "
            "read on it; and all who come through one proxy count as one address when logins fail. Name the proxy "
            "with --trusted-proxy ADDRESS"
        ),
    ]


_HINT = "both are PEM: -----BEGIN CERTIFICATE----- (the server's own first) and -----BEGIN PRIVATE KEY-----"


class _Encrypted(Exception):
    pass


def _no_password() -> str:
    """Instead of a question on the terminal, which is what OpenSSL would do with an encrypted key."""
    raise _Encrypted


def tls_context(cert: Path, key: Path | None = None) -> ssl.SSLContext:
    """For a server. Without a key, it is in the certificate's file."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    for path, what, option in ((cert, "certificate", "--tls-cert"), (key, "key", "--tls-key")):
        try:
            if path is not None:
                path.read_bytes()
        except OSError as error:
            raise UsageError(
                Text("the {what} {path} cannot be read: {why}", what=what, path=path, why=error.strerror), field=option
            ) from error
    try:
        context.load_cert_chain(cert, key, password=_no_password)
    except _Encrypted:
        raise UsageError(
            Text("the key {key} is encrypted", key=key or cert),
            field="--tls-key",
            hint=Text("give one without a passphrase"),
        ) from None
    except ssl.SSLError as error:
        names = {"cert": cert, "key": key or cert}
        mismatch = Text("the key {key} does not belong to the certificate {cert}", **names)
        unusable = Text(
            "the certificate {cert} and its key {key} cannot be used: {reason}", **names, reason=error.reason or error
        )
        raise UsageError(
            mismatch if error.reason == "KEY_VALUES_MISMATCH" else unusable,
            field="--tls-cert",
            hint=_HINT,
        ) from error
    return context
