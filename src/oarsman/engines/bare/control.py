"""Orders to a job's keeper, and news from it, without ever blocking the loop."""

from __future__ import annotations

import asyncio
import contextlib
import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

from oarsman.engines.bare import wire
from oarsman.errors import RetryableError

_ANSWER_WITHIN = 60.0


class Control:
    def __init__(self, path: Path) -> None:
        self._path = path

    async def order(self, message: dict[str, Any]) -> None:
        """Have it done, or RetryableError with the keeper's words."""
        try:
            async with asyncio.timeout(_ANSWER_WITHIN):
                reader, writer = await asyncio.open_unix_connection(self._path)
                try:
                    writer.write(wire.encode(message))
                    await writer.drain()
                    answer = await _receive(reader)
                finally:
                    writer.close()
        except (OSError, asyncio.IncompleteReadError, TimeoutError) as error:
            raise RetryableError(f"the keeper does not answer ({error!r})") from error
        if "error" in answer:
            raise RetryableError(f"the keeper could not {message['do']}: {answer['error']}")


async def listen_to(path: Path, changed: Callable[[], None]) -> None:
    """Call `changed` after every fact the keeper noted, and once more when it is gone."""
    with contextlib.suppress(OSError, asyncio.IncompleteReadError):
        reader, writer = await asyncio.open_unix_connection(path)
        try:
            writer.write(wire.encode({"do": "listen"}))
            while True:
                await _receive(reader)
                changed()
        finally:
            writer.close()
    changed()


async def _receive(reader: asyncio.StreamReader) -> dict[str, Any]:
    (size,) = struct.unpack("!I", await reader.readexactly(4))
    message: dict[str, Any] = json.loads(await reader.readexactly(size))
    return message
