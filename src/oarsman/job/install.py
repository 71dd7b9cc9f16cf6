"""Commands that prepare a host before the launcher starts (names.ANNOTATION_INSTALL), on every engine the same way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

FAILED: Final = "oarsman: the install commands failed with code"  # what the cause of the failure is known by
_SCRIPT: Final = f'/bin/sh -e -c "$1" || {{ code=$?; echo "{FAILED} $code" >&2; exit "$code"; }}; shift; exec "$@"'


def with_install(commands: str, argv: Sequence[str]) -> list[str]:
    """The launcher's words, with the commands run before them; the first that fails ends it all."""
    if not commands.strip():
        return list(argv)
    return ["/bin/sh", "-c", _SCRIPT, "install", commands, *argv]
