"""Problems with positions, and how they are shown."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    source: str  # file name, or <stdin>
    line: int  # from 1
    column: int  # from 1
    field: str  # spec.mpiReplicaSpecs.Worker.replicas
    message: str
    hint: str | None = None  # "did you mean ...?"
    snippet: str = ""  # the source line
