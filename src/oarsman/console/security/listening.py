"""Whether a server may listen where it was told to, and with which certificate."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path

from oarsman.console.security.site import is_loopback
from oarsman.errors import UsageError
from oarsman.text.sentence import Text


@dataclass(frozen=True, slots=True, kw_only=True)
class Listening:
    """What was asked for, and how many accounts could log in; `tokens`: everybody brings a token for the cluster."""

    host: str = "127.0.0.1"
    cert: Path | None = None
    key: Path | None = None
    insecure: bool = False
    accounts: int = 0
    tokens: bool = False


def refusal(asked: Listening) -> str | None:
    """Why the server must not start like this, in a sentence; None if it may.

    Jobs are commands: whoever comes in runs what they like. On this machine alone a link on the terminal is
    enough; where others can reach it, passwords must not be readable on the way, and there must be some.
    """
    if asked.key is not None and asked.cert is None:
        return Text("a key for TLS needs its certificate: --tls-cert FILE")
    if is_loopback(asked.host):
        return None
    if asked.cert is None and not asked.insecure:
        return Text(
            "{host} can be reached by others, who could read passwords on the way: give --tls-cert "
            "and --tls-key, or say --insecure if something else encrypts the way",
            host=asked.host or Text("every address"),
        )
    if asked.accounts == 0 and not asked.tokens:
        return Text(
            "{host} can be reached by others, and nobody could log in: make an account first, with "
            "`oarsman users add NAME --role admin`",
            host=asked.host or Text("every address"),
        )
    return None


def tls_context(cert: Path, key: Path | None = None) -> ssl.SSLContext:
    """For a server. Without a key, it is in the certificate's file."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    _readable(cert, "certificate", "--tls-cert")
    if key is not None:
        _readable(key, "key", "--tls-key")
    try:
        context.load_cert_chain(cert, key, password=_no_password)
    except _Encrypted:
        raise UsageError(
            Text("the key {key} is encrypted", key=key or cert),
            field="--tls-key",
            hint=Text("give one without a passphrase"),
        ) from None
    except ssl.SSLError as error:
        raise UsageError(_explained(error, cert, key), field="--tls-cert", hint=_HINT) from error
    return context


_HINT = "both are PEM: -----BEGIN CERTIFICATE----- (the server's own first) and -----BEGIN PRIVATE KEY-----"


class _Encrypted(Exception):
    pass


def _no_password() -> str:
    """Instead of a question on the terminal, which is what OpenSSL would do with an encrypted key."""
    raise _Encrypted


def _readable(path: Path, what: str, option: str) -> None:
    try:
        path.read_bytes()
    except OSError as error:
        raise UsageError(
            Text("the {what} {path} cannot be read: {why}", what=what, path=path, why=error.strerror), field=option
        ) from error


def _explained(error: ssl.SSLError, cert: Path, key: Path | None) -> str:
    if error.reason == "KEY_VALUES_MISMATCH":
        return Text("the key {key} does not belong to the certificate {cert}", key=key or cert, cert=cert)
    return Text(
        "the certificate {cert} and its key {key} cannot be used: {reason}",
        cert=cert,
        key=key or cert,
        reason=error.reason or error,
    )
