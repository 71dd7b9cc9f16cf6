"""One line per record on stderr, as text or as JSON, whatever a message or a traceback contains."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import TextIO

LEVELS = ("debug", "info", "warning", "error")

# What could end a line, or do something to a terminal, is shown instead.
_SHOWN = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0))}
_SHOWN |= {0x09: "\\t", 0x0A: "\\n", 0x0D: "\\r", 0x2028: "\\u2028", 0x2029: "\\u2029"}


def set_up(level: str, *, as_json: bool = False, stream: TextIO | None = None) -> None:
    """Oarsman's own records from `level` on; of libraries only what is worth a warning."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines() if as_json else TextLines())
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    logging.getLogger("oarsman").setLevel(level.upper())


class TextLines(logging.Formatter):
    """2026-01-31T08:00:00.123Z info oarsman.lease: text"""

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)  # with the traceback, if there is one
        return f"{_time(record)} {record.levelname.lower()} {record.name}: {text.translate(_SHOWN)}"


class JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if (job := getattr(record, "job", None)) is not None:  # log.info(..., extra={"job": key})
            line["job"] = str(job)
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=True)


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
