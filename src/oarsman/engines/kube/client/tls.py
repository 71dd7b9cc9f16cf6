"""TLS contexts made from kubeconfigs, and whether a server is reached through a proxy (decided as kubectl does)."""

from __future__ import annotations

import ipaddress
import ssl
import tempfile
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from oarsman.errors import AccessError
from oarsman.text.sentence import Text


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


def context(authority: bytes | None, *, verify: bool = True) -> ssl.SSLContext:
    """Trusts the given authority, or else those of the machine."""
    try:
        made = ssl.create_default_context(cadata=_certificates(authority) if authority else None)
    except (ssl.SSLError, ValueError) as error:
        raise AccessError(Text("the certificate authority of the cluster cannot be read: {why}", why=error)) from error
    made.verify_flags &= (
        ~ssl.VERIFY_X509_STRICT
    )  # many a cluster's own authority does not follow RFC 5280 to the letter
    if not verify:
        made.check_hostname = False
        made.verify_mode = ssl.CERT_NONE
    return made


def present_certificate(made: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """New connections show this certificate. The ssl module takes it from files only."""
    with tempfile.TemporaryDirectory(prefix="oarsman-") as folder:  # readable by us alone
        certificate_file, key_file = Path(folder, "certificate"), Path(folder, "key")
        certificate_file.write_bytes(certificate)
        key_file.touch(mode=0o600)
        key_file.write_bytes(key)
        try:
            made.load_cert_chain(certificate_file, key_file, password=_no_password)
        except (ssl.SSLError, ValueError) as error:
            raise AccessError(Text("the client certificate and its key cannot be used: {why}", why=error)) from error


def _certificates(authority: bytes) -> str | bytes:
    """PEM as text, DER as it is: that is how the ssl module tells them apart."""
    return authority.decode() if b"-----BEGIN" in authority else authority


def _no_password() -> str:
    """Instead of a question on the terminal, which is what OpenSSL would do with an encrypted key."""
    raise ValueError(Text("the key is encrypted"))
