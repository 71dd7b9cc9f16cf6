"""What the command says, in the reader's language: `t("text {x}", x=1)`; and text that meets a terminal.

What jobs write and what users name things is data. On a terminal, a control character in it could move the
cursor, retitle the window or rewrite a line already read, so there it is shown, not obeyed. Into a file or
a pipe the bytes go as they are.
"""

from __future__ import annotations

import re
import unicodedata
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import click

from oarsman.errors import UsageError
from oarsman.text.catalogue import N_, Translator, of_environment

t = Translator(of_environment())

of = t.of  # for what somebody else said: an engine, a backend, a manifest's reader


# What systems say most often of a file that is asked for.
_WHY_NOT = (N_("No such file or directory"), N_("Permission denied"), N_("Is a directory"), N_("Not a directory"))


def why(error: Exception) -> str:
    """Of one that has to do with a file."""
    return of(str(getattr(error, "strerror", None) or error))


def note(text: str) -> None:
    """A line on stderr. A terminal that has gone away is no reason to fail."""
    with suppress(OSError):
        click.echo(text, err=True)


# -- on a terminal -------------------------------------------------------------------------------------
# Plain decoration is dropped, since tags have colours of their own; so is what clears the rest of a line.
_COLOUR = re.compile(r"\x1b\[[0-9;:]*[mK]")
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


def clipped(text: str, columns: int) -> str:
    """At most so many columns, with an ellipsis where something is left out."""
    if width(text) <= columns:
        return text
    while width(text) >= columns:
        text = text[: columns - 1] if len(text) >= columns else text[:-1]
    return f"{text.rstrip()}…"


def wrap(text: str, columns: int) -> list[str]:
    """Lines of at most `columns`, broken at spaces and between Chinese characters."""
    lines, line = [], ""
    for piece in re.findall(r"\s+|(?:[\x21-\x7e]+|[^\x00-\x7f])[，。；：、）」』！？”]*", text):
        if width(line) + width(piece.rstrip()) > columns and line.strip():
            lines.append(line.rstrip())
            line = piece.lstrip()
        else:
            line += piece
    return [*lines, line.rstrip()] if line.strip() else lines


# -- times and durations, as people write and read them ------------------------------------------------
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|[smhd])")
_LONGEST = 100 * 366 * 86400.0  # beyond this, date arithmetic would overflow before anybody cared


def parse_duration(text: str) -> float:
    """Seconds: "90", "90s", "1m30s", "2h", "1.5d", "500ms"."""
    plain = text.strip().lower()
    if re.fullmatch(r"\d+(\.\d+)?", plain):
        seconds = float(plain)
    elif re.fullmatch(f"(?:{_PART.pattern})+", plain):
        seconds = sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(plain))
    else:
        raise UsageError(t("'{text}' is not a duration", text=text), hint=t("write 30s, 5m, 2h or 1m30s"))
    if seconds > _LONGEST:
        raise UsageError(t("'{text}' is too long a time", text=text))
    return seconds


def parse_moment(text: str, now: datetime) -> datetime:
    """A moment: how long ago ("5m"), or RFC 3339. A time without a zone is local."""
    if re.match(r"\d{4}-\d\d-\d\d", text.strip()):
        try:
            return datetime.fromisoformat(text.strip()).astimezone(UTC)
        except (ValueError, OverflowError) as error:
            raise UsageError(
                t("'{text}' is not a time", text=text), hint=t("write 5m (ago) or 2026-01-31T08:00:00Z")
            ) from error
    return now - timedelta(seconds=parse_duration(text))


def local(moment: datetime | None) -> str:
    """For people: their own zone, to the second."""
    return "-" if moment is None else moment.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def rfc3339(moment: datetime) -> str:
    """For programs."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
