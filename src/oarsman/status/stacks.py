"""The stack that a crashing process prints: Open MPI's, UCX's, Fortran's, or Python's with `-X faulthandler`.

The innermost function comes first. What is kept of a log is its end, where a stack has only `main`: so the middle of
one that is too long is left out instead.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

_FRAME: Final = re.compile(
    r"^(?:\[[^\]]+:\d+\] )?\s*(?:\[\s*\d+\]|#?\d+)\s+(?P<native>0x[0-9a-f]+ .+|\S.*\[0x[0-9a-f]+\])$|"
    r"^\s+(?P<python>File \".+\", line \d+ in \S+)$"
)
_ADDRESS: Final = re.compile(r"\s*\[0x[0-9a-f]+\]$|^0x[0-9a-f]+ (?:in )?")
# What handles the signal, and libraries that only hand on what the program does.
_HANDLER: Final = re.compile(
    r"/(?:libc|libpthread|ld-linux|libuc[sptm]|libmpi|libopen-|libpmix|libgfortran)\b[^/]*\.so"
)
_OTHERS: Final = re.compile(
    r"^/(?:usr/)?lib(?:32|64)?/.*\.so|(?:^|/)(?:lib)?python[\d.]*(?:\.so[\d.]*)?(?:\(|\[|$)|"
    r"^File \".*/(?:lib/python[\d.]+|site-packages|dist-packages)/|^File \"<frozen|^\?\?\?"
)
_HEAD: Final = 5  # lines before a stack, which name the signal and the address
_MARK: Final = "  ..."


def shortened(lines: Sequence[str], count: int) -> tuple[str, ...]:
    """At most `count` lines: the last ones, and of a stack that would be cut off, its first frames."""
    cut = len(lines) - count
    first = next((at for at, line in enumerate(lines) if _FRAME.match(line)), None)
    if cut <= 0 or first is None or first - _HEAD >= cut:
        return tuple(lines[max(cut, 0) :])
    begin = max(0, first - _HEAD)
    kept = count * 4 // 5
    return (*lines[begin : begin + kept], _MARK, *lines[len(lines) - (count - kept - 1) :])


def first_frame(lines: Sequence[str]) -> str | None:
    """Where in the program it happened, as the stack says it; else in which library."""
    frames = [_shown(found) for line in lines if (found := _FRAME.match(line))]
    within = [frame for frame in frames if not _HANDLER.search(frame)]
    return next((frame for frame in within if not _OTHERS.search(frame)), next(iter(within), None))


def _shown(found: re.Match[str]) -> str:
    return found["python"] or _ADDRESS.sub("", found["native"]).strip()
