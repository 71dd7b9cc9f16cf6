"""The job's keys. One Secret holds them all; each pod mounts only the entries it needs.

The launcher gets the key it logs in with and the workers' public host keys. A worker gets its own host
key and the launcher's public key. Secrets hold one mebibyte, so host keys beyond the first thousand go
into further ones.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Final

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519

from oarsman.engines.kube.client.resources import SECRETS
from oarsman.engines.kube.objects.common import Object, owned
from oarsman.job.job import Job

PRIVATE: Final = "ssh-privatekey"
PUBLIC: Final = "ssh-publickey"
KNOWN_HOSTS: Final = "known_hosts"
_PER_SECRET: Final = 1000


def name(job: Job, index: int = 0) -> str:
    """Where the host key of that worker is."""
    shard = index // _PER_SECRET
    return f"{job.name}-ssh" if shard == 0 else f"{job.name}-ssh-{shard}"


def host_key(index: int) -> str:
    return f"host-key-{index}"


def shards(job: Job) -> range:
    return range(max(0, job.workers - 1) // _PER_SECRET + 1)


def shard_name(job: Job, shard: int) -> str:
    return name(job, shard * _PER_SECRET)


def missing(job: Job, shard: int, data: Mapping[str, str]) -> dict[str, str]:
    """What a Secret with these data lacks for the workers asked for, ready to be added."""
    added: dict[str, str] = {}
    if shard == 0 and PRIVATE not in data:
        private, public = _new_pair()
        added |= {PRIVATE: _wire(private), PUBLIC: _wire(public + b"\n")}
    lines = [base64.b64decode(data.get(KNOWN_HOSTS, ""))]
    for index in range(shard * _PER_SECRET, min((shard + 1) * _PER_SECRET, job.workers)):
        if host_key(index) not in data:
            private, public = _new_pair()
            added[host_key(index)] = _wire(private)
            host = job.worker_host(index)
            lines.append(f"{host},{host}.* ".encode() + public + b"\n")
    if KNOWN_HOSTS not in data or len(lines) > 1:
        added[KNOWN_HOSTS] = _wire(b"".join(lines))
    return added


def secret(job: Job, shard: int, data: Mapping[str, str]) -> Object:
    kind = "kubernetes.io/ssh-auth" if shard == 0 else "Opaque"
    return owned(job, SECRETS, shard_name(job, shard), type=kind, data=dict(data))


def _wire(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _new_pair() -> tuple[bytes, bytes]:
    """(private in OpenSSH's own format, public as "ssh-ed25519 AAAA...")"""
    key = ed25519.Ed25519PrivateKey.generate()
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
    )
    return private, key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
