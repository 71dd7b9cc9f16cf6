"""Times and durations, as people write and read them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from oarsman.cli.messages import t
from oarsman.errors import UsageError

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
