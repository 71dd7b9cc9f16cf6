"""The command, with every process it starts and every named file it touches written down.

    python watched.py FILE FOLDER serve ...

FILE gets a line of JSON for each process, and for each file that is opened below FOLDER. What these processes do
themselves is not seen: whoever started them is to blame.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

_STARTS = ("subprocess.Popen", "os.posix_spawn", "os.fork", "os.forkpty", "os.exec", "os.system", "os.startfile")
_TOLD, _FOLDER = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600), sys.argv[2]


def _told(event: str, arguments: tuple[Any, ...]) -> None:
    if event in _STARTS:
        said = {"started": f"{event}{arguments[:2]!r}", "by": _callers()}
    elif event in ("open", "os.listdir", "os.scandir", "os.chdir", "sqlite3.connect") and _named(arguments):
        said = {"opened": repr(arguments[0]), "by": _callers()}
    else:
        return
    os.write(_TOLD, json.dumps(said).encode() + b"\n")


def _callers() -> list[str]:
    """The last functions of ours that it came from."""
    found, frame = [], sys._getframe(2)
    while frame is not None and len(found) < 6:
        if "oarsman" in frame.f_code.co_filename:
            found.append(f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno} {frame.f_code.co_name}")
        frame = frame.f_back
    return found


def _named(arguments: tuple[Any, ...]) -> bool:
    try:
        return _FOLDER in os.fsdecode(arguments[0])
    except TypeError:  # a descriptor
        return False


if __name__ == "__main__":
    from oarsman.cli.__main__ import main

    sys.argv = ["oarsman", *sys.argv[3:]]
    sys.modules["uvloop"] = None  # type: ignore[assignment]  # of processes that it starts Python hears nothing
    sys.addaudithook(_told)
    sys.exit(main())
