"""Sweeps: one manifest, many sets of parameters, each a job of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated

from pydantic import Field

from oarsman.service.models.base import Label, Sentence, Value

Parameter = str | int | float | bool


class SweepSpec(Value):
    """A grid (every combination) or a list of points. `{{name}}` in the manifest becomes the value."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?$", max_length=40)]
    namespace: Label | None = None
    manifest: Annotated[str, Field(max_length=100_000)]
    grid: Mapping[str, Sequence[Parameter]] = Field(default_factory=dict)
    points: Sequence[Mapping[str, Parameter]] = ()
    metric: Annotated[str | None, Field(max_length=500)] = None  # a regular expression; its first group is the number
    retries: Annotated[int, Field(ge=0, le=100)] = 0
    at_once: Annotated[int | None, Field(ge=1, le=10_000)] = None  # None: as many as fit


class SweepPoint(Value):
    index: int
    parameters: Mapping[str, Parameter]
    key: str  # of its job
    state: str  # of its job; NotSubmitted where there is none yet
    cause: Sentence = ""
    started: datetime | None = None
    ended: datetime | None = None
    attempts: int = 0
    metric: float | None = None


class SweepView(Value):
    key: str  # namespace/name
    name: str
    namespace: str
    owner: str = ""
    created: datetime
    state: str  # Running, Succeeded, Failed (some point did), Stopped
    total: int
    states: Mapping[str, int]
    parameters: Sequence[str]  # their names, in order
    metric: str | None = None
    points: Sequence[SweepPoint] = ()  # left out of lists
