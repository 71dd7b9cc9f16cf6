"""Lines of logs, and which of them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from oarsman.sdk.models.base import Value


class LogLineView(Value):
    after: str  # the place behind this line
    time: datetime
    rank: int | None = None
    host: str
    stream: Literal["out", "err"]
    text: str


class LogPageView(Value):
    lines: Sequence[LogLineView]
    before: str | None
    after: str
    attempt: int


class LogFilter(Value):
    ranks: Sequence[Annotated[int, Field(ge=0)]] = ()
    workers: Sequence[Annotated[int, Field(ge=0)]] = ()
    launcher: bool = False
    stream: Literal["out", "err"] | None = None
    search: Annotated[str | None, Field(max_length=1000)] = None
    attempt: Annotated[int | None, Field(ge=1)] = None
