"""Who we are to the API server: headers that may change while we run; and the TLS and the proxy on the way there."""

from __future__ import annotations

import asyncio
import base64
import ipaddress
import json
import os
import ssl
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import msgspec
from multidict import CIMultiDict

from oarsman.engines.kube.client.kubeconfig import Cluster, Exec
from oarsman.errors import AccessError
from oarsman.text.sentence import Text, all_of

_PATIENCE = 60.0  # seconds for a credential program that cannot ask the user anything
_BEFORE_EXPIRY = timedelta(seconds=20)
_API_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")


class Credentials(Protocol):
    async def headers(self, *, renew: bool = False) -> Mapping[str, str]:
        """What to send with a request; a CIMultiDict where a header comes twice. `renew`: what we had was refused."""


@dataclass(frozen=True, slots=True)
class Fixed:
    """A token or a password as written, or nothing: a client certificate speaks for itself."""

    known: Mapping[str, str]

    async def headers(self, *, renew: bool = False) -> Mapping[str, str]:
        return self.known


def bearer(token: str) -> Mapping[str, str]:
    return {"Authorization": f"Bearer {token}"}


def basic(username: str, password: str) -> Mapping[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"{username}:{password}".encode()).decode()}


class TokenFile:
    """A token that someone else renews: inside a cluster it changes about every hour."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._seen: tuple[int, int] | None = None
        self._known: Mapping[str, str] = {}
        self._read(force=True)

    async def headers(self, *, renew: bool = False) -> Mapping[str, str]:
        self._read(force=renew)  # a look at the file's times costs two microseconds
        return self._known

    def _read(self, *, force: bool) -> None:
        try:
            found = self._file.stat()
            mark = (found.st_mtime_ns, found.st_ino)
            if mark != self._seen or force:
                self._known = bearer(self._file.read_text().strip())
                self._seen = mark
        except OSError as error:
            if not self._known:  # later on, the file may be missing for a moment while it is replaced
                message = Text("cannot read the token in {file}: {why}", file=self._file, why=error.strerror)
                raise AccessError(message) from error


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: datetime | None = None


class _Credential(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str
    status: _Status | None = None


class Program:
    """Asks a program for credentials, and asks again shortly before they expire or when they are refused."""

    def __init__(self, spec: Exec, folder: Path, cluster: Cluster, tls: ssl.SSLContext | None) -> None:
        if spec.api_version not in _API_VERSIONS:
            template = Text("the credential program {command} speaks {version}")
            message = Text(template, command=spec.command, version=spec.api_version)
            raise AccessError(message, hint=Text("known are {versions}", versions=all_of(_API_VERSIONS)))
        self._spec = spec
        # As kubectl does: a name is looked up on PATH, a relative path starts at the kubeconfig.
        self._command = str(folder / spec.command) if "/" in spec.command else spec.command
        self._interactive = spec.interactive_mode != "Never" and sys.stdin is not None and sys.stdin.isatty()
        told: dict[str, Any] = {"interactive": self._interactive}
        if spec.provide_cluster_info:
            told["cluster"] = msgspec.to_builtins(cluster)
            del told["cluster"]["certificate-authority"]  # a path; programs are told of contents alone
        self._information = json.dumps({"apiVersion": spec.api_version, "kind": "ExecCredential", "spec": told})
        self._tls = tls
        self._lock = asyncio.Lock()
        self._known: Mapping[str, str] | None = None
        self._expires: datetime | None = None

    async def headers(self, *, renew: bool = False) -> Mapping[str, str]:
        expired = self._expires is not None and datetime.now(UTC) > self._expires - _BEFORE_EXPIRY
        if self._known is not None and not renew and not expired:
            return self._known
        before = self._known
        async with self._lock:
            if self._known is None or self._known is before:  # else somebody else has just renewed them
                self._take(await self._run())
            assert self._known is not None
            return self._known

    def _take(self, output: bytes) -> None:
        try:
            credential = msgspec.json.decode(output, type=_Credential)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            template = Text("{command} did not answer with an ExecCredential: {why}")
            raise AccessError(Text(template, command=self._command, why=error)) from error
        status = credential.status
        given, asked = credential.api_version, self._spec.api_version
        if given != asked or status is None:
            template = Text("{command} answered {given}, asked for {asked}")
            raise AccessError(Text(template, command=self._command, given=given, asked=asked))
        if status.client_certificate_data and self._tls:
            present_certificate(self._tls, status.client_certificate_data.encode(), status.client_key_data.encode())
        self._known = bearer(status.token) if status.token else {}
        self._expires = status.expiration_timestamp

    async def _run(self) -> bytes:
        environment = os.environ | {one.name: one.value for one in self._spec.env or ()}
        try:
            process = await asyncio.create_subprocess_exec(
                self._command,
                *(self._spec.args or ()),
                env=environment | {"KUBERNETES_EXEC_INFO": self._information},
                stdin=None if self._interactive else asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=None if self._interactive else asyncio.subprocess.PIPE,
            )
        except OSError as error:
            way_out = Text("install it, or correct the user's exec.command in the kubeconfig")
            template = Text("cannot run the credential program {command}: {why}")
            message = Text(template, command=self._command, why=error.strerror)
            raise AccessError(message, hint=self._spec.install_hint.strip() or way_out) from error
        try:
            async with asyncio.timeout(None if self._interactive else _PATIENCE):
                output, complaint = await process.communicate()
        except TimeoutError as error:
            template = Text("{command} gave no credentials within {seconds} s")
            raise AccessError(Text(template, command=self._command, seconds=f"{_PATIENCE:.0f}")) from error
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode:
            last = (complaint or b"").decode(errors="replace").strip()[-500:]
            template = Text("{command} failed with exit code {code}: {why}")
            raise AccessError(Text(template, command=self._command, code=process.returncode, why=last))
        return output


@dataclass(frozen=True, slots=True)
class Impersonating:
    """Acts as someone else, where the server allows it."""

    inner: Credentials
    user: str
    uid: str
    groups: Sequence[str]

    async def headers(self, *, renew: bool = False) -> Mapping[str, str]:
        headers = CIMultiDict(await self.inner.headers(renew=renew))
        headers.add("Impersonate-User", self.user)
        if self.uid:
            headers.add("Impersonate-Uid", self.uid)
        for group in self.groups:
            headers.add("Impersonate-Group", group)
        return headers


def proxy_for(server: str, environ: Mapping[str, str]) -> str | None:
    """$HTTPS_PROXY or $HTTP_PROXY by the server's scheme, unless $NO_PROXY or the loopback speaks against it."""
    parts = urlsplit(server)
    host = (parts.hostname or "").rstrip(".")
    proxy = _either(environ, f"{parts.scheme}_proxy")
    exceptions = (one.strip().lower() for one in _either(environ, "no_proxy").split(","))
    if not proxy or is_loopback(host) or any(_matches(host, parts.port, one) for one in exceptions if one):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def is_loopback(host: str) -> bool:
    address = _address(host)
    return host == "localhost" or (address is not None and address.is_loopback)


def _either(environ: Mapping[str, str], name: str) -> str:
    return environ.get(name.upper()) or environ.get(name) or ""


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


def tls_context(authority: bytes | None, *, verify: bool = True) -> ssl.SSLContext:
    """Trusts the given authority, or else those of the machine."""
    try:
        # PEM as text, DER as it is: that is how the ssl module tells them apart.
        trusted = authority.decode() if authority and b"-----BEGIN" in authority else authority
        made = ssl.create_default_context(cadata=trusted or None)
    except (ssl.SSLError, ValueError) as error:
        raise AccessError(Text("the certificate authority of the cluster cannot be read: {why}", why=error)) from error
    # Many a cluster's own authority does not follow RFC 5280 to the letter.
    made.verify_flags &= ~ssl.VERIFY_X509_STRICT
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


def _no_password() -> str:
    """Instead of a question on the terminal, which is what OpenSSL would do with an encrypted key."""
    raise ValueError(Text("the key is encrypted"))
