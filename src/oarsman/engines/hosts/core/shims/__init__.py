"""Small programs that take the place of ssh, mpirun and the rank's program inside a job.

Each is started as a script by a bare interpreter (`python -I -S`), many times per job, so they import as little as they
can and nothing that is not in the standard library.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


def starter() -> list[str]:
    """How they are started: isolated, without site-packages, because it happens once per rank."""
    return [sys.executable, "-I", "-S", os.path.join(os.path.dirname(os.path.abspath(__file__)), "start.py")]


def shell_of(environment: Iterable[str]) -> str:
    """The shell between mpirun and the ranks. A plain one drops functions that a bash has exported."""
    functions = any(name.startswith("BASH_FUNC_") for name in environment)
    return "/bin/bash" if functions and os.access("/bin/bash", os.X_OK) else "/bin/sh"


def exit_of(wait_status: int) -> tuple[int, int | None]:
    """The shell's exit number and the signal, if one ended it."""
    code = os.waitstatus_to_exitcode(wait_status)
    return (code, None) if code >= 0 else (128 - code, -code)
