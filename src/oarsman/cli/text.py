"""Text that meets a terminal: harmless, measured in columns.

What jobs write and what users name things is data. On a terminal, a control character in it could move the
cursor, retitle the window or rewrite a line already read, so there it is shown, not obeyed. Into a file or
a pipe the bytes go as they are.
"""

from __future__ import annotations

import re
import unicodedata

_COLOUR = re.compile(r"\x1b\[[0-9;:]*m")  # plain decoration: dropped, since tags have colours of their own
_CONTROL = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def safe(text: str) -> str:
    """The text with every control character but tab made visible."""
    if _CONTROL.search(text) is None:
        return text
    return _CONTROL.sub(_visible, _COLOUR.sub("", text.removesuffix("\r")))


def _visible(match: re.Match[str]) -> str:
    code = ord(match[0])
    if 0xDC80 <= code <= 0xDCFF:  # a byte that was not UTF-8
        code -= 0xDC00
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def width(text: str) -> int:
    """Columns on a terminal: Chinese characters take two, combining marks none."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def pad(text: str, columns: int) -> str:
    return text + " " * (columns - width(text))


def wrap(text: str, columns: int) -> list[str]:
    """Lines of at most `columns`, broken at spaces and between Chinese characters."""
    lines, line = [], ""
    for piece in re.findall(r"\s+|[\x21-\x7e]+|[^\x00-\x7f][，。；：、）」』！？]*", text):
        if width(line) + width(piece.rstrip()) > columns and line.strip():
            lines.append(line.rstrip())
            line = piece.lstrip()
        else:
            line += piece
    return [*lines, line.rstrip()] if line.strip() else lines


def ranges(numbers: list[int]) -> str:
    """Numbers as people write them: 0-3, 7."""
    groups: list[list[int]] = []
    for number in sorted(numbers):
        if groups and number == groups[-1][-1] + 1:
            groups[-1].append(number)
        else:
            groups.append([number])
    return ", ".join(str(g[0]) if len(g) == 1 else f"{g[0]}-{g[-1]}" for g in groups)
