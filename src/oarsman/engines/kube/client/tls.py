"""TLS contexts out of what kubeconfigs hold."""

from __future__ import annotations

import ssl
import tempfile
from pathlib import Path

from oarsman.errors import AccessError


def context(authority: bytes | None, *, verify: bool = True) -> ssl.SSLContext:
    """Trusts the given authority, or else those of the machine."""
    try:
        made = ssl.create_default_context(cadata=_certificates(authority) if authority else None)
    except (ssl.SSLError, ValueError) as error:
        raise AccessError(f"the certificate authority of the cluster cannot be read: {error}") from error
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
            raise AccessError(f"the client certificate and its key cannot be used: {error}") from error


def _certificates(authority: bytes) -> str | bytes:
    """PEM as text, DER as it is: that is how the ssl module tells them apart."""
    return authority.decode() if b"-----BEGIN" in authority else authority


def _no_password() -> str:
    """Instead of a question on the terminal, which is what OpenSSL would do with an encrypted key."""
    raise ValueError("the key is encrypted")
