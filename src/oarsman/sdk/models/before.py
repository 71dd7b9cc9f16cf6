"""Before a job runs: mistakes, plans, whether it fits, what to start from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field

from oarsman.sdk.models.base import Value
from oarsman.sdk.models.place import AmountsView


class ProblemView(Value):
    """A mistake in a manifest. Line and column count from 1; 0: not at one place of the text."""

    line: int = 0
    column: int = 0
    field: str = ""
    message: str
    hint: str | None = None


class FitView(Value):
    now: bool
    ever: bool
    reason: str = ""
    wanted: AmountsView
    free: AmountsView
    total: AmountsView
    machines: Mapping[str, str] = Field(default_factory=dict)  # host -> machine of a rack, if it fits now


class PreviewView(Value):
    """What a manifest would become; with problems, nothing else is filled in."""

    problems: Sequence[ProblemView] = ()
    warnings: Sequence[str] = ()  # what this engine will not honour
    document: Mapping[str, Any] | None = None  # as read from the text
    completed: str = ""  # YAML with every default
    total_replicas: int | None = None
    slots: int | None = None
    ranks: int | None = None
    arithmetic: str = ""  # "2 workers x 4 slots = 8; mpirun -np 8 fills them"
    placement: Mapping[str, Sequence[int]] = Field(default_factory=dict)  # host -> ranks
    hostfile: str = ""
    launch_line: str = ""
    fit: FitView | None = None


class Template(Value):
    name: str
    title: str
    description: str = ""
    manifest: str
