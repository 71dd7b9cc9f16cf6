"""Reading manifests that users name on the command line: a file, or `-` for what is piped in."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from oarsman.cli.messages import t
from oarsman.cli.session import Session
from oarsman.errors import UsageError, UserError

if TYPE_CHECKING:
    from oarsman.job.job import Job

LARGEST = 16 * 1024 * 1024  # no manifest is this long; a device or a mistaken data file is


def read(path: str) -> tuple[bytes, str]:
    """The bytes, and the name to call them by in messages. What they mean is for `manifest` to find out."""
    source = "<stdin>" if path == "-" else path
    try:
        if path == "-":
            raw = sys.stdin.buffer.read(LARGEST + 1)
        else:
            with open(path, "rb") as stream:
                raw = stream.read(LARGEST + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(t("cannot read {source}: {reason}", source=source, reason=reason)) from error
    if len(raw) > LARGEST:
        raise UserError(t("{source} is too large to be a manifest", source=source))
    if raw.startswith((b"\x7fELF", b"#!")):
        raise UsageError(
            t("{source} is a program, not a manifest", source=source),
            hint=t("to run it in four ranks: oarsman run -n 4 -- {source}", source=source),
        )
    return raw, source


def load(path: str) -> list[Job]:
    """The jobs of a manifest, all valid; otherwise ManifestError with every problem."""
    from oarsman import manifest

    return manifest.load(*read(path))


def placed(document: dict[str, Any], session: Session) -> dict[str, Any]:
    """The document in the namespace that was asked for."""
    wanted = session.namespace
    metadata = dict(document.get("metadata") or {})
    if wanted is None or metadata.get("namespace") == wanted:
        return document
    if metadata.get("namespace"):
        raise UsageError(
            t(
                "the manifest says namespace '{theirs}', --namespace says '{ours}'",
                theirs=metadata["namespace"],
                ours=wanted,
            ),
            field="metadata.namespace",
        )
    return {**document, "metadata": {**metadata, "namespace": wanted}}
