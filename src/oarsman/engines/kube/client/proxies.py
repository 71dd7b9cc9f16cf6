"""Whether the way to a server leads through a proxy, decided as kubectl decides it."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit


def proxy_for(server: str, environ: Mapping[str, str]) -> str | None:
    """$HTTPS_PROXY or $HTTP_PROXY by the server's scheme, unless $NO_PROXY or the loopback speaks against it."""
    parts = urlsplit(server)
    host = (parts.hostname or "").rstrip(".")
    proxy = _either(environ, f"{parts.scheme}_proxy")
    if not proxy or is_loopback(host) or _excepted(host, parts.port, _either(environ, "no_proxy")):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def is_loopback(host: str) -> bool:
    address = _address(host)
    return host == "localhost" or (address is not None and address.is_loopback)


def _either(environ: Mapping[str, str], name: str) -> str:
    return environ.get(name.upper()) or environ.get(name) or ""


def _excepted(host: str, port: int | None, exceptions: str) -> bool:
    return any(_matches(host, port, one.strip().lower()) for one in exceptions.split(",") if one.strip())


def _matches(host: str, port: int | None, exception: str) -> bool:
    if exception == "*":
        return True
    address = _address(host)
    if address is not None:
        try:
            return address in ipaddress.ip_network(exception, strict=False)
        except ValueError:
            pass  # a name, or an address with a port
    name, _, wanted_port = exception.rpartition(":") if exception.count(":") == 1 else (exception, "", "")
    if wanted_port and wanted_port != str(port):
        return False
    if name.startswith(("*.", ".")):
        return host.endswith(name.lstrip("*"))
    return host == name or (address is None and host.endswith(f".{name}"))


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
