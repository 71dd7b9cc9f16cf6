"""Who may read the operator's metrics: whoever the cluster lets `get` the path `/metrics`.

A scraper shows a bearer token; the cluster says whose it is and what its owner may do. A right that was found is
believed for a minute. Of tokens that are nobody's nothing is kept, so that no number of them pushes out a good one, and
only a few questions are under way at a time, so that they do not become a flood at the API server.

Tokens are worth stealing, so they come through TLS. Its certificate is made at the start and nobody vouches for it: it
keeps readers of the network out, not somebody who can take the operator's place there.
"""

from __future__ import annotations

import asyncio
import hashlib
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from oarsman.engines.kube.client import ApiError, Forbidden, Kube
from oarsman.engines.kube.client.credentials import present_certificate
from oarsman.engines.kube.client.reviews import is_token, may_get, owner_of

PATH: Final = "/metrics"
_BELIEVED: Final = 60.0  # seconds
_MOST_KNOWN: Final = 64  # scrapers of one operator
_AT_ONCE: Final = 2
_WAITING: Final = 32
_NAME: Final = "oarsman-metrics"
_LASTS: Final = timedelta(days=3650)  # a new one is made with every start


@dataclass(frozen=True, slots=True)
class Verdict:
    status: int  # of HTTP; 200 is yes
    why: str = ""


_YES: Final = Verdict(200)
_NO_TOKEN: Final = Verdict(401, "a bearer token of this cluster is needed")
_NOBODY: Final = Verdict(401, "the cluster does not know this token")
_NO_RIGHT: Final = Verdict(403, f"the owner of this token may not get the path {PATH}: bind a role that allows it")
_BUSY: Final = Verdict(503, "too many tokens are being checked")
_MAY_NOT_ASK: Final = Verdict(
    503, "the operator may not check tokens: bind the cluster's role system:auth-delegator to its service account"
)


class MetricsReaders:
    def __init__(self, kube: Kube, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._kube = kube
        self._clock = clock
        self._until: dict[bytes, float] = {}  # hash of a token -> how long its right is believed
        self._few = asyncio.Semaphore(_AT_ONCE)
        self._asking = 0

    async def verdict(self, authorization: str) -> Verdict:
        """For the header of that name."""
        scheme, _, token = authorization.partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not is_token(token):
            return _NO_TOKEN
        key = hashlib.sha256(token.encode()).digest()
        if self._until.get(key, 0.0) > self._clock():
            return _YES
        if self._asking >= _WAITING:
            return _BUSY
        self._asking += 1
        try:
            async with self._few:
                found = await self._ask(token)
        finally:
            self._asking -= 1
        self._until.pop(key, None)
        if found is _YES:
            while len(self._until) >= _MOST_KNOWN:
                del self._until[next(iter(self._until))]
            self._until[key] = self._clock() + _BELIEVED
        return found

    async def _ask(self, token: str) -> Verdict:
        try:
            user = await owner_of(self._kube, token)
            if user is None:
                return _NOBODY
            return _YES if await may_get(self._kube, user, PATH) else _NO_RIGHT
        except Forbidden:
            return _MAY_NOT_ASK
        except ApiError:
            return Verdict(503, "the cluster does not answer")


def own_certificate() -> ssl.SSLContext:
    """Serves TLS with a certificate made now."""
    key = ec.generate_private_key(ec.SECP256R1())
    name, now = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, _NAME)]), datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))  # a scraper's clock may be slow
        .not_valid_after(now + _LASTS)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(_NAME)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    present_certificate(context, certificate.public_bytes(serialization.Encoding.PEM), private)
    return context
