"""Which inventory is meant, where nobody says so."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from oarsman.errors import UsageError

VARIABLE = "OARSMAN_HOSTS"
_NAMES = ("hosts.yaml", "hosts", "hostfile")


def find(given: str | None, environment: Mapping[str, str] = os.environ) -> Path:
    """The file that was given, that of the variable, or the first that is in the user's configuration."""
    chosen = given or environment.get(VARIABLE)
    if chosen:
        return Path(chosen).expanduser().absolute()
    folder = Path(environment.get("XDG_CONFIG_HOME") or Path("~/.config").expanduser()) / "oarsman"
    for name in _NAMES:
        if (folder / name).is_file():
            return folder / name
    raise UsageError(
        f"no hosts are known: there is no {folder / _NAMES[0]}, and neither --hosts nor {VARIABLE} names a file",
        hint="write a file with two lines, 'node1 slots=8' and 'node2 slots=8', and say --hosts FILE",
    )
