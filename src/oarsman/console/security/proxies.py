"""Who is behind a proxy, and whether the way there is encrypted.

Anybody can write the headers of a proxy. They are read if the connection comes from a proxy that was named when the
server was started (--trusted-proxy), and from nobody else:

- `X-Forwarded-For`: each proxy adds, at the right, whom it was asked by. From the right, the first who is not a trusted
  proxy is the client; what stands left of it is the client's own claim. Where that place holds no address, it is the
  proxy's address that counts.
- `X-Forwarded-Proto`: https, if every one of them says so.

`Forwarded` (RFC 7239) is not read: of two headers that say the same, a client can send the one that its proxy leaves
alone. Nor is `X-Forwarded-Host`: a proxy hands on `Host` as it was. `X-Forwarded-Prefix` is taken away: the framework
of the pages would put it in front of wherever it redirects to.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable

from starlette.datastructures import Headers
from starlette.types import Scope

from oarsman.console.settings import Network, Site

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_FORM = re.compile(r"\[(.*)\](?::[0-9]+)?|([^:]*):[0-9]+")  # [2001:db8::7]:4711, [2001:db8::7], 192.0.2.7:4711
_PREFIX = b"x-forwarded-prefix"
_COOKIES, _LONGEST_COOKIE = (b"oarsman-", b"__Host-oarsman-"), 300
_ENCRYPTED = {"http": "https", "ws": "wss"}


def seen_through(scope: Scope, site: Site) -> Scope:
    """The request as it was sent to the proxy: with the client's address, and the scheme that the client used."""
    client, scheme = scope.get("client"), scope.get("scheme", "http")
    if client and is_proxy(site, client[0]):
        said = Headers(scope=scope)
        found = _client(_listed(said, "x-forwarded-for"), site.trusted_proxies)
        protocols = _listed(said, "x-forwarded-proto")
        client = (str(found), 0) if found is not None else client
        if protocols and all(protocol.lower() == "https" for protocol in protocols):
            scheme = _ENCRYPTED.get(scheme, scheme)
    headers = [(n, _our_cookies(value) if n == b"cookie" else value) for n, value in scope["headers"] if n != _PREFIX]
    return {**scope, "client": client, "scheme": scheme, "headers": headers}


def _our_cookies(line: bytes) -> bytes:
    """Those of other servers on this host are nothing to us, and until Python 3.11.10 a quoted one of 60 KB takes
    whoever looks at cookies seconds."""
    pairs = (pair.strip() for pair in line.split(b";"))
    return b"; ".join(pair for pair in pairs if pair.startswith(_COOKIES) and len(pair) <= _LONGEST_COOKIE)


def _listed(headers: Headers, name: str) -> list[str]:
    """Several lines are one list."""
    return [value.strip() for line in headers.getlist(name) for value in line.split(",")]


def is_proxy(site: Site, address: str) -> bool:
    found = _address(address)
    return found is not None and _is_one_of(site.trusted_proxies, found)


def _client(claimed: list[str], trusted: Iterable[Network]) -> Address | None:
    found = None
    for text in reversed(claimed):
        found = _address(text)
        if found is None or not _is_one_of(trusted, found):
            break
    return found


def _is_one_of(networks: Iterable[Network], address: Address) -> bool:
    return any(address in network for network in networks)


def _address(text: str) -> Address | None:
    """With or without a port."""
    form = _FORM.fullmatch(text)
    try:
        found = ipaddress.ip_address((form[1] or form[2]) if form else text)
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found
