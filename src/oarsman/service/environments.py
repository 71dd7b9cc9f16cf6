"""The part of the service that is about environments. Everybody sees them; a build runs code, which not all may do."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from oarsman.backends.base import Backend
from oarsman.errors import NotFoundError, UsageError
from oarsman.job.confined import confined_by
from oarsman.job.environment import EnvironmentRecord, EnvironmentWanted, digest_of
from oarsman.service.job_index import if_there
from oarsman.service.models import BuildLogView, EnvironmentSpec, EnvironmentView, Identity
from oarsman.service.rights import Action, may, require
from oarsman.text.secrets import MASK, masked
from oarsman.text.sentence import Text


class EnvironmentService:
    _jobs: Backend
    identity: Identity

    if TYPE_CHECKING:  # what the rest of the service has

        def _surroundings(self, owner: str | None = None) -> Mapping[str, str]: ...

    async def environments(self) -> Sequence[EnvironmentView]:
        require(self.identity, Action.LOOK)
        return [await self._view(record) for record in await self._jobs.environments.list()]

    async def environment(self, name: str) -> EnvironmentView:
        require(self.identity, Action.LOOK)
        return await self._view(await self._jobs.environments.get(name))

    async def put_environment(self, wanted: EnvironmentSpec) -> EnvironmentView:
        """What is there already belongs to whoever made it."""
        require(self.identity, Action.CREATE)
        environments, given = self._jobs.environments, EnvironmentWanted(**wanted.model_dump())
        built, owner = None, self.identity.name
        with suppress(NotFoundError):
            before = await environments.get(wanted.name)
            owner = before.owner
            require(self.identity, Action.CHANGE, owner)
            built = digest_of(before.wanted) if before.state == "Ready" else None
        starred = f"{MASK}@" in given.requirements or f"={MASK}" in given.requirements
        if starred and built != await asyncio.to_thread(digest_of, given):
            raise UsageError(
                Text("credentials are not stored and shown as {mask}, which is not a credential", mask=MASK),
                field="requirements",
                hint=Text("write them again, or put them where pip finds them (pip.conf, netrc)"),
            )
        confined = confined_by(self._surroundings(owner))  # what is built runs code of whoever wrote it
        made = await environments.put(given, owner=owner, confined=confined)
        return await self._view(made)

    async def delete_environment(self, name: str) -> None:
        require(self.identity, Action.LOOK)
        require(self.identity, Action.CHANGE, (await self._jobs.environments.get(name)).owner)
        await self._jobs.environments.delete(name)

    async def environment_log(self, name: str, after: int = 0) -> BuildLogView:
        require(self.identity, Action.LOOK)
        log = await self._jobs.environments.log(name, after=after)
        return BuildLogView.of(replace(log, text=await asyncio.to_thread(masked, log.text)))

    async def _view(self, record: EnvironmentRecord) -> EnvironmentView:
        return EnvironmentView(
            spec=EnvironmentSpec(**asdict(record.wanted)),
            state=record.state,
            message=record.message if isinstance(record.message, Text) else masked(record.message),
            owner=record.owner,
            created=record.created_at,
            built=record.built_at,
            digest=record.digest,
            python=record.python,
            packages=record.packages,
            size_bytes=record.size_bytes,
            used_by=[key for key in record.used_by if await self._knows(key)],
        )

    async def _knows(self, key: str) -> bool:
        """Jobs that the caller may not see do not exist for it, here as elsewhere."""
        if may(self.identity, Action.SEE):
            return True
        job = await if_there(self._jobs.get(key))
        return job is not None and may(self.identity, Action.SEE, job.owner)
