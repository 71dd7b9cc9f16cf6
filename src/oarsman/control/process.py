"""What long-lived processes need: log records as one line each, and an orderly end when told to stop."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
from collections.abc import Coroutine
from datetime import UTC, datetime
from typing import Any, TextIO

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


log = logging.getLogger("oarsman")

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_NOT_IN_TIME = 1


def run_until_told(work: Coroutine[Any, Any, None], *, patience: float) -> None:
    """Run `work` on the quickest loop there is. The first signal cancels it, which is how it is asked to put things in
    order; the second one, or the end of `patience` seconds, ends the process at once."""
    with asyncio.Runner(loop_factory=_quickest_loop) as runner:
        runner.run(_until_told(work, patience))


def _quickest_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


async def _until_told(work: Coroutine[Any, Any, None], patience: float) -> None:
    loop = asyncio.get_running_loop()
    task = loop.create_task(work, name="work")
    last_call: list[asyncio.TimerHandle] = []

    def give_up() -> None:
        log.error("did not stop within %.0f s", patience)
        os._exit(_NOT_IN_TIME)

    def tell(number: signal.Signals) -> None:
        if last_call:
            log.warning("%s again: leaving at once", number.name)
            os._exit(128 + number)
        log.info("%s: stopping", number.name)
        last_call.append(loop.call_later(patience, give_up))
        task.cancel()

    for number in _SIGNALS:
        loop.add_signal_handler(number, tell, number)
    try:
        await task
    except asyncio.CancelledError:
        if not last_call:
            raise
        log.info("stopped")
    finally:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)
        for timer in last_call:
            timer.cancel()
