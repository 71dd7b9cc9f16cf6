"""The Pythons of this machine, for environments that want another one than ours."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from oarsman.errors import UserError

_ASK = "import platform; print(platform.python_version())"
_NAME = re.compile(r"python3(\.\d+)?")


def find(wanted: str | None) -> str:
    """The program of that version ("3.11", "3.11.4"); None: ours. Raises UserError that tells which there are."""
    if wanted is None or _fits(platform.python_version(), wanted):
        return sys.executable
    found: dict[str, str] = {platform.python_version(): sys.executable}
    for program in _candidates(wanted):
        version = _version(program)
        if version is not None:
            found.setdefault(version, program)
            if _fits(version, wanted):
                return program
    here = ", ".join(sorted(found, key=_order))
    raise UserError(
        f"there is no Python {wanted} on this machine", field="python", hint=f"there is {here}; put another on PATH"
    )


def _candidates(wanted: str) -> Iterator[str]:
    """The likely ones first, because each is started to ask it."""
    minor = ".".join(wanted.split(".")[:2])
    likely = shutil.which(f"python{minor}")
    if likely:
        yield likely
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        if os.path.isabs(folder) and os.path.isdir(folder):
            yield from (f"{folder}/{name}" for name in sorted(os.listdir(folder)) if _NAME.fullmatch(name))
    for versions, pattern in _managed():
        yield from (str(found) for found in sorted(versions.glob(f"{pattern}{minor}*/bin/python3")))


def _managed() -> Iterator[tuple[Path, str]]:
    """Where version managers keep theirs."""
    home = Path(os.path.expanduser("~"))
    yield Path(os.environ.get("PYENV_ROOT", home / ".pyenv")) / "versions", ""
    yield Path(os.environ.get("UV_PYTHON_INSTALL_DIR", home / ".local/share/uv/python")), "cpython-"


def _version(program: str) -> str | None:
    try:
        answer = subprocess.run([program, "-I", "-c", _ASK], capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return answer.stdout.strip() or None


def _fits(version: str, wanted: str) -> bool:
    return version == wanted or version.startswith(f"{wanted}.")


def _order(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)]
