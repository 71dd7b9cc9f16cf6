"""Where a server may listen, and the certificates it is given."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from for_every import for_every

from oarsman.console.settings import ConsoleSettings, refusal, tls_context
from oarsman.errors import UsageError

CERT = Path("cert.pem")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "localhost", "LOCALHOST", "::1", "[::1]"])
def test_on_this_machine_nothing_is_needed(host: str) -> None:
    assert refusal(ConsoleSettings(host=host), accounts=0) is None


@for_every(
    ["0.0.0.0", "::", "", "192.168.1.5", "fd00::1", "node7", "localhost.example"],
    [
        (None, False, 0, "--insecure"),
        (None, False, 1, "--insecure"),
        (None, True, 0, "users add"),
        (CERT, False, 0, "users add"),
        (CERT, True, 0, "users add"),
        (None, True, 1, None),
        (CERT, False, 1, None),
        (CERT, True, 3, None),
    ],
)
def test_on_a_network_tls_and_an_account_are_needed(
    host: str, given: tuple[Path | None, bool, int, str | None]
) -> None:
    cert, insecure, accounts, why = given
    found = refusal(ConsoleSettings(host=host, cert=cert, insecure=insecure), accounts)
    assert (found is None) if why is None else (found is not None and why in found)


def test_where_everybody_brings_a_token_for_the_cluster_no_account_is_needed() -> None:
    assert refusal(ConsoleSettings(host="0.0.0.0", cert=CERT, engine="kube"), accounts=0) is None
    assert "--insecure" in (refusal(ConsoleSettings(host="0.0.0.0", engine="kube"), accounts=0) or "")


def test_a_key_without_a_certificate_is_a_mistake_anywhere() -> None:
    assert "certificate" in (refusal(ConsoleSettings(key=CERT), accounts=0) or "")


def make_certificate(folder: Path, name: str, *, passphrase: bytes | None = None) -> tuple[Path, Path]:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    locked = serialization.BestAvailableEncryption(passphrase) if passphrase else serialization.NoEncryption()
    cert_file, key_file = folder / f"{name}.pem", folder / f"{name}.key"
    cert_file.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    key_file.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, locked))
    return cert_file, key_file


def test_a_certificate_and_its_key_make_a_context(tmp_path: Path) -> None:
    cert, key = make_certificate(tmp_path, "a")
    context = tls_context(cert, key)
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2
    both = tmp_path / "both.pem"
    both.write_bytes(cert.read_bytes() + key.read_bytes())
    assert tls_context(both).verify_mode is ssl.CERT_NONE  # of clients, none are asked for


def test_each_mistake_with_certificates_is_named(tmp_path: Path) -> None:
    cert, key = make_certificate(tmp_path, "a")
    _, foreign = make_certificate(tmp_path, "b")
    _, locked = make_certificate(tmp_path, "c", passphrase=b"secret")
    rubbish = tmp_path / "rubbish"
    rubbish.write_text("rubbish")
    for given, said in [
        ((tmp_path / "none", key), "No such file"),
        ((cert, tmp_path / "none"), "No such file"),
        ((tmp_path, key), "Is a directory"),
        ((cert, foreign), "does not belong to"),
        ((cert, locked), "is encrypted"),
        ((rubbish, key), "cannot be used"),
        ((cert, rubbish), "cannot be used"),
        ((cert, None), "cannot be used"),
    ]:
        with pytest.raises(UsageError, match=said):
            tls_context(*given)
