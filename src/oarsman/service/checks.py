"""What admins ask of the place itself: whether jobs can run there, whether its hosts are well, and who logs in where.

A check of hosts takes a while: it goes on by itself, one at a time, and everybody who may look sees how far it is.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from oarsman.backends.base import Backend
from oarsman.errors import ConflictError, ForbiddenError, OarsmanError, UsageError
from oarsman.portal import in_background
from oarsman.service.models import (
    CheckFinding,
    DoctorFindingView,
    HostKeyView,
    HostsCheckView,
    HostsCheckWanted,
    HostTroubleView,
    Identity,
    LoginView,
    SpeedView,
    TrustChangeView,
    TrustOrder,
    TrustView,
    TrustWanted,
)
from oarsman.service.rights import Action, require
from oarsman.text.sentence import Text

if TYPE_CHECKING:
    from oarsman.backends.ssh.trusting import Trusting
    from oarsman.engines.hosts.ssh.diagnose import Finding

log = logging.getLogger("oarsman.hosts")


class Checking:
    """The newest check of a backend's hosts."""

    def __init__(self) -> None:
        self.view = HostsCheckView()
        self._task: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()  # another one after each change

    async def other_than(self, seen: HostsCheckView | None) -> HostsCheckView:
        """What there is, as soon as it is not that."""
        while self.view is seen:
            await self._changed.wait()
        return self.view

    @property
    def busy(self) -> bool:
        return self._task is not None and not self._task.done()

    def start(self, jobs: Backend, wanted: HostsCheckWanted) -> None:
        if self.busy:
            raise ConflictError(Text("the hosts are being checked already"), hint=Text("wait for its end"))
        self._become(HostsCheckView(state="running", stage="hosts", started=datetime.now(UTC)))
        self._task = in_background(self._check(jobs, wanted), "a check of hosts")

    async def _check(self, jobs: Backend, wanted: HostsCheckWanted) -> None:
        from oarsman.backends import checks  # late, here and below: most calls ask nothing of this

        try:
            found = await checks.check_hosts(
                jobs,
                wanted.hosts,
                leave_out=wanted.leave_out,
                network=wanted.network,
                tell=self._tell,
                stage=lambda name: self._is(stage=name),
            )
        except OarsmanError as error:
            self._is(state="failed", trouble=error.message)
        except Exception:
            log.exception("a check of hosts failed")
            self._is(state="failed", trouble=Text("something went wrong here; the server's log says what"))
        else:
            speeds = [SpeedView.of(one) for one in found.speeds]
            self._is(state="ended", speeds=speeds, unfit=list(found.unfit), left_out=list(found.left_out))
        finally:
            self._is(stage="", ended=datetime.now(UTC))

    def _tell(self, findings: Sequence[Finding]) -> None:
        self._is(findings=[*self.view.findings, *(CheckFinding.of(one) for one in findings)])

    def _is(self, **now: Any) -> None:
        self._become(self.view.model_copy(update=now))

    def _become(self, view: HostsCheckView) -> None:
        self.view = view
        told, self._changed = self._changed, asyncio.Event()
        told.set()

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})


class CheckService:
    _jobs: Backend
    identity: Identity
    _by_account: bool
    _checking: Checking

    async def doctor(self) -> Sequence[DoctorFindingView]:
        require(self.identity, Action.EXAMINE)
        from oarsman.backends import checks

        return [DoctorFindingView.of(finding) for finding in await checks.examine(self._jobs)]

    async def check_hosts(self, wanted: HostsCheckWanted) -> HostsCheckView:
        require(self.identity, Action.EXAMINE)
        if self._jobs.place != "ssh":
            raise UsageError(Text("only SSH hosts can be checked"))
        self._checking.start(self._jobs, wanted)
        return self._checking.view

    async def hosts_check(self) -> HostsCheckView:
        require(self.identity, Action.EXAMINE)
        return self._checking.view

    async def plan_trust(self, wanted: TrustWanted) -> TrustView:
        self._require_owner()
        from oarsman.backends import checks

        return told(await checks.trust_hosts(self._jobs, undo=wanted.undo))

    async def trust_hosts(self, wanted: TrustOrder) -> TrustView:
        """Whoever asks may go away meanwhile: what was begun is finished."""
        self._require_owner()
        from oarsman.backends import checks

        work = asyncio.ensure_future(checks.trust_hosts(self._jobs, undo=wanted.undo, seen=wanted.seen))
        return told(await asyncio.shield(work))

    def _require_owner(self) -> None:
        """It changes who may log in as the user that the server runs as: no account does, whatever its role."""
        require(self.identity, Action.EXAMINE)
        if self._by_account:
            raise ForbiddenError(
                Text("only the owner of this machine may change who logs in where"),
                hint=Text("`oarsman tokens link` there prints a link that opens the console once"),
            )


def told(found: Trusting) -> TrustView:
    def change(file: str, one: Any) -> TrustChangeView:
        return TrustChangeView(host=one.place, file=file, action=one.action, count=one.count)

    return TrustView(
        seen=found.seen,
        inventory=str(found.inventory),
        new_host_keys=[
            HostKeyView(host=name, kind=key.kind, fingerprint=key.fingerprint)
            for name, key in found.new_host_keys.items()
        ],
        changes=[change(*one) for one in found.changes],
        refused=[
            HostTroubleView(
                host=place or name,
                message=Text("its known_hosts has another key for {host}, which is left as it is", host=name),
                hint=f"ssh-keygen -R {name}",
            )
            for place, name in found.refused
        ],
        left_out=[HostTroubleView(host=name, message=one.message, hint=one.hint) for name, one in found.left_out],
        need_password=found.need_password,
        done=[change(*one) for one in found.done],
        logins=[
            LoginView(
                host=one.source,
                other=one.target,
                works=one.trouble is None,
                why=one.trouble.message if one.trouble is not None else "",
            )
            for one in found.logins
        ],
    )
