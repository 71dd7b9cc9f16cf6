"""Keys of a job: one pair the launcher logs in with, and a host key for every worker."""

from __future__ import annotations

from dataclasses import dataclass

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519


@dataclass(frozen=True, slots=True)
class KeyPair:
    private: bytes  # OpenSSH's own format
    public: bytes  # "ssh-ed25519 AAAA..."


def new_pair() -> KeyPair:
    key = ed25519.Ed25519PrivateKey.generate()
    return KeyPair(
        private=key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
        ),
        public=key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH),
    )
