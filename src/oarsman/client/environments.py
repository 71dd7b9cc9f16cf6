"""What a client of either kind can do with environments: the sets of packages that jobs run in."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from oarsman.client import notebook
from oarsman.client.face import Face, waits
from oarsman.errors import UsageError, UserError
from oarsman.service.contract import Service
from oarsman.service.models import EnvironmentSpec, EnvironmentView

_LOOK_EVERY = 0.5
_UNDER_WAY = ("Waiting", "Building")


class AsyncEnvironments:
    """`client.environments`: iterate over it, ask for one by name, build and delete."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def list(self) -> Sequence[EnvironmentView]:
        found = await self._service.environments()
        return notebook.Table(found)

    async def get(self, name: str) -> EnvironmentView:
        """Raises NotFoundError."""
        return await self._service.environment(name)

    async def build(
        self,
        /,
        name: str,
        requirements: str | Path | Sequence[str] = "",
        *,
        wait: bool = True,
        timeout: float | None = None,  # noqa: ASYNC109
        **more: Any,
    ) -> EnvironmentView:
        """Make it or change it, and wait for the build; raises UserError with its last words if that fails.

        requirements: text as pip reads it, a list of it, or a Path. more: python="3.12", mpi="openmpi", description=.
        """
        found = await self._service.put_environment(spec(name, requirements, more))
        deadline = None if timeout is None else time.monotonic() + timeout
        while wait and found.state in _UNDER_WAY:
            _still_time(name, deadline)
            await asyncio.sleep(_LOOK_EVERY)
            found = await self.get(name)
        return _checked(found) if wait else found

    async def log(self, name: str) -> str:
        """All that its newest build has written so far."""
        text, after = "", 0
        while piece := (page := await self._service.environment_log(name, after)).text:
            text, after = text + piece, page.after
        return text

    async def delete(self, name: str) -> None:
        """Raises ConflictError while a job that has not ended uses it."""
        await self._service.delete_environment(name)


class Environments(Face[AsyncEnvironments]):
    """`client.environments`: iterate over it, ask for one by name, build and delete."""

    list = waits(AsyncEnvironments.list)
    get = waits(AsyncEnvironments.get)
    build = waits(AsyncEnvironments.build)
    log = waits(AsyncEnvironments.log)
    delete = waits(AsyncEnvironments.delete)


def spec(name: str, requirements: str | Path | Sequence[str], more: dict[str, Any]) -> EnvironmentSpec:
    """Raises UsageError that names what is wrong."""
    if isinstance(requirements, Path):
        requirements = text_of(requirements)
    text = requirements if isinstance(requirements, str) else "\n".join(requirements)
    try:
        return EnvironmentSpec(name=name, requirements=text, **more)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise UsageError(f"{where}: {first['msg']}", field=where) from error


def text_of(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path} cannot be read: {error}", field="requirements") from error


def _still_time(name: str, deadline: float | None) -> None:
    if deadline is not None and time.monotonic() > deadline:
        raise TimeoutError(f"environment {name} is still being built")


def _checked(found: EnvironmentView) -> EnvironmentView:
    if found.state == "Failed":
        raise UserError(
            f"environment {found.spec.name} could not be built: {found.message}",
            hint=f"client.environments.log({found.spec.name!r}) tells more",
        )
    return found
