"""Environments that exist only in memory, for tests of whoever asks for them: a test says how far each build is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from oarsman.errors import ConflictError, NotFoundError
from oarsman.job.confined import Confined
from oarsman.job.environment import BuildLog, EnvironmentRecord, EnvironmentWanted, State, digest_of, without_secrets

T0 = datetime(2026, 1, 1, 8, tzinfo=UTC)


class MemoryEnvironments:
    def __init__(self) -> None:
        self.records: dict[str, EnvironmentRecord] = {}
        self.logs: dict[str, str] = {}
        self.confined: Confined | None = None  # the newest
        self.piece = 7  # letters of a log that are handed out at a time
        self.next: State = "Building"  # what a build that is asked for becomes
        self.then: tuple[State, str] | None = None  # and what it is for whoever asks again

    def become(self, name: str, state: State, message: str = "", **given: object) -> EnvironmentRecord:
        changed = replace(self.records[name], state=state, message=message, **given)  # type: ignore[arg-type]
        self.records[name] = changed
        return changed

    async def list(self) -> Sequence[EnvironmentRecord]:
        return [self.records[name] for name in sorted(self.records)]

    async def get(self, name: str) -> EnvironmentRecord:
        if name not in self.records:
            raise NotFoundError(f"there is no environment {name}", hint="there are none yet")
        if self.then is not None and self.records[name].state == "Building":
            return self.become(name, *self.then)
        return self.records[name]

    async def put(
        self, wanted: EnvironmentWanted, *, owner: str | None = None, confined: Confined | None = None
    ) -> EnvironmentRecord:
        before, self.confined = self.records.get(wanted.name), confined
        self.records[wanted.name] = EnvironmentRecord(
            wanted=without_secrets(wanted),
            state=self.next,
            owner=before.owner if before else owner or "ada",
            created_at=T0,
            digest=digest_of(wanted),
        )
        return self.records[wanted.name]

    async def delete(self, name: str) -> None:
        if (await self.get(name)).used_by:
            raise ConflictError(f"environment {name} is used")
        del self.records[name]

    async def log(self, name: str, *, after: int = 0) -> BuildLog:
        """A few letters at a time unless a test says otherwise: whoever reads has to read on."""
        text = self.logs.get(name, "")
        piece = text[after : after + self.piece]
        done = (await self.get(name)).state in ("Ready", "Failed") and after + len(piece) >= len(text)
        return BuildLog(text=piece, after=after + len(piece), ended=done)
