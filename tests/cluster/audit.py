"""What was asked of the API server, and by whom: its audit log, in which nobody counts himself."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec

OPERATORS = ("oarsman", "mpi-operator")  # users whose requests are written down

_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived", "ResponseStarted"],
    "rules": [{"level": "Metadata", "users": OPERATORS}, {"level": "None"}],
}


class _About(msgspec.Struct, frozen=True):
    resource: str = ""
    subresource: str = ""


class _User(msgspec.Struct, frozen=True):
    username: str


class _Entry(msgspec.Struct, frozen=True, rename="camel"):
    verb: str
    user: _User
    object_ref: _About = _About()


class Audit:
    def __init__(self, folder: Path) -> None:
        self._policy = folder / "audit-policy.json"
        self._log = folder / "audit.log"

    def flags(self) -> list[str]:
        """Of the API server, which reads the policy that this writes."""
        self._policy.write_text(json.dumps(_POLICY))  # JSON is YAML
        return [
            f"--audit-policy-file={self._policy}",
            f"--audit-log-path={self._log}",
            "--audit-log-maxsize=100000",  # MB: one file, however long
        ]

    def now(self) -> int:
        """To be handed to `asked` later."""
        return self._log.stat().st_size if self._log.exists() else 0

    def asked(self, user: str, since: int) -> Counter[str]:
        """How often, by verb and resource: "update mpijobs/status". A watch counts when it ends."""
        found: Counter[str] = Counter()
        decode: Any = msgspec.json.Decoder(_Entry).decode
        with self._log.open("rb") as log:
            log.seek(since)
            for line in log:
                if not line.endswith(b"\n"):
                    break  # is being written
                entry = decode(line)
                if entry.user.username == user:
                    about = entry.object_ref
                    found[f"{entry.verb} {about.resource}{'/' if about.subresource else ''}{about.subresource}"] += 1
        return found
