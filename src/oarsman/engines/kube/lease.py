"""One leader at a time, by a Lease.

The rules that make it safe, whatever clocks say on other machines and however long an answer is under way:

- A leader counts from the moment its last successful renewal was *sent*, on its own clock, and gives up after
  `renew_deadline`. A pause of the whole process counts: `leading` looks at the clock each time it is asked.
- A follower counts from the moment it *received* a record that it had not seen before, on its own clock, and takes over
  after `duration`, which is longer. No time that stands in the record is ever compared with a clock.
- Every write names the version it replaces, so of two that try at once one is refused.
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
import socket
import time
import uuid
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import KW_ONLY, dataclass, field
from datetime import UTC, datetime
from typing import Any

from oarsman.engines.kube.client import Kube
from oarsman.engines.kube.client.errors import AlreadyExists, Conflict, NotFound
from oarsman.engines.kube.client.resources import LEASES
from oarsman.errors import ClusterError, OarsmanError

log = logging.getLogger("oarsman.lease")

_TROUBLE = (OarsmanError, OSError, TimeoutError)
_OVERTAKEN = (Conflict, NotFound, AlreadyExists)
_INSISTENCE = 0.5  # seconds between one request to stop and the next


class LeadershipLost(ClusterError):
    """Somebody else may lead now. Nothing more may be done; the process should end and start afresh."""

    code = "leadership-lost"


def steady_clock() -> float:
    """Seconds that never go back and, where the system can tell, go on while the machine sleeps."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


@dataclass(eq=False)
class Election:
    """Give it a client of its own: a renewal must not queue behind a thousand pods."""

    kube: Kube
    _: KW_ONLY
    namespace: str
    name: str = "mpi-operator"
    identity: str = field(default_factory=lambda: f"{socket.gethostname()}_{uuid.uuid4()}")
    annotations: Mapping[str, str] = field(default_factory=dict)
    duration: float = 15.0
    renew_deadline: float = 10.0
    retry: float = 2.0
    clock: Callable[[], float] = steady_clock
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    def __post_init__(self) -> None:
        if not self.duration > self.renew_deadline > self.retry > 0:
            raise ValueError("a lease lasts longer than its renewal may take, which lasts longer than a pause")
        self.last_renewed: float | None = None  # when the last renewal that succeeded was sent, on `clock`
        self._document: dict[str, Any] | None = None  # the lease as last written by us; None: to be read again
        self._tried = False  # the lease may be in our name
        self._taken = False  # and is known to be in another's
        self._seen: dict[str, Any] = {}  # of another: what the record said, and when we first received it
        self._seen_at = 0.0
        self._office: asyncio.Task[None] | None = None
        self._complaint = ""

    # -- what others may ask ---------------------------------------------------------------------------
    @property
    def leading(self) -> bool:
        """Whether this process may act as the leader at this very moment."""
        seconds = self.unrenewed_for
        return seconds is not None and seconds < self.renew_deadline and not self._taken

    @property
    def unrenewed_for(self) -> float | None:
        """Seconds since the last renewal while the leader's task runs, may it or not; None if it does not run."""
        if self._office is None or self._office.done() or self.last_renewed is None:
            return None
        return self.clock() - self.last_renewed

    # -- the term --------------------------------------------------------------------------------------
    async def run(self, lead: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Wait for the lease, lead, and give it back when `lead` has ended. LeadershipLost if it cannot be kept.

        When this is cancelled, `lead` is cancelled and may take its time to put things in order: the lease is renewed
        meanwhile. When the lease is lost it has no time: `leading` is false, and it is told to stop again and again.
        """
        self._taken, self._office = False, None
        try:
            await self._acquire()
        except asyncio.CancelledError:
            await self._release()  # the request that was under way may have succeeded
            raise
        log.info("%s leads", self.identity)
        self._office = office = asyncio.create_task(lead(), name="lead")
        keeping = asyncio.create_task(self._keep(), name="keep the lease")
        try:
            await self._until_over(office, keeping)
        finally:
            await _end(office, within=self.duration - self.renew_deadline)
            lost = keeping.done()  # then it is left to expire: what was sent in its name may still be under way
            await _end(keeping, within=self.retry)
            if not office.done():
                log.critical("what the leader did does not end; the lease is left to expire")
            elif not lost:
                await self._release()
        _raise_loss(office, keeping)
        await office

    async def _until_over(self, office: asyncio.Task[None], keeping: asyncio.Task[None]) -> None:
        either = {office, keeping}
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            office.cancel()
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if office.done() and not office.cancelled() and (error := office.exception()):
                log.error("the leader failed while it stopped", exc_info=error)
            raise

    # -- to get it -------------------------------------------------------------------------------------
    async def _acquire(self) -> None:
        while True:
            try:
                async with asyncio.timeout(self._patience):
                    if await self._try():
                        self._complaint = ""
                        return
            except _TROUBLE as error:
                self._complain("cannot get the lease: %s", error)
            await asyncio.sleep(self.retry * random.uniform(0.8, 1.0))

    async def _try(self) -> bool:
        found = await self._read()
        if found is not None and found["spec"] != self._seen:
            if _holder(found["spec"]) not in ("", _holder(self._seen), self.identity):
                log.info("%s leads, %s follows", _holder(found["spec"]), self.identity)
            self._seen, self._seen_at = found["spec"], self.clock()
        # A lease that somebody deleted is still the last holder's, until that one must have noticed.
        if self._in_force():
            return False
        await self._take(found)
        return self._left() > 0

    def _in_force(self) -> bool:
        """Whether another may be leading."""
        if _holder(self._seen) in ("", self.identity):
            return False
        theirs = self._seen.get("leaseDurationSeconds") or 0
        return self.clock() - self._seen_at < max(self.duration, theirs)

    # -- to keep it ------------------------------------------------------------------------------------
    async def _keep(self) -> None:
        while True:  # counted from the sending too: a slow server must not make the pauses longer
            assert self.last_renewed is not None
            await asyncio.sleep(max(self.last_renewed + self.retry - self.clock(), 0))
            await self._renew()

    async def _renew(self) -> None:
        """Try until it works or the time is over."""
        trouble = "the process was held up"
        while (left := self._left()) > 0:
            try:
                async with asyncio.timeout(min(left, self._patience)):
                    await self._renew_once()
                if self._left() > 0:
                    self._complaint = ""
                    return
                break  # the answer came, but too late to rely on it
            except LeadershipLost:
                self._taken = True
                raise
            except _TROUBLE as error:
                trouble = str(error) or "no answer"
                self._complain("cannot renew the lease: %s", trouble)
            await asyncio.sleep(min(self.retry, max(self._left(), 0)))
        raise LeadershipLost(f"the lease was not renewed within {self.renew_deadline:.0f} s: {trouble}")

    async def _renew_once(self) -> None:
        try:
            await self._write_mine()
        except _OVERTAKEN:  # changed by hand, or by a request of ours whose answer was lost
            self._document = None
            await self._write_mine()

    async def _write_mine(self) -> None:
        document = self._document
        if document is None:
            document = await self._read()
            if document is not None and _holder(document["spec"]) not in ("", self.identity):
                raise LeadershipLost(f"{_holder(document['spec'])} has taken the lease")
        await self._take(document)

    async def _take(self, found: dict[str, Any] | None) -> None:
        before: dict[str, Any] = (found or {}).get("spec") or {}
        now = micro_time(self.now())
        ours = _holder(before) == self.identity
        transitions = int(before.get("leaseTransitions") or 0)
        spec = {
            **before,
            "holderIdentity": self.identity,
            "leaseDurationSeconds": max(math.ceil(self.duration), 1),
            "acquireTime": before.get("acquireTime") or now if ours else now,
            "renewTime": now,
            "leaseTransitions": transitions if ours or not before else transitions + 1,
        }
        self._tried = True
        self._document = None
        sent = self.clock()
        self._document = await self._write(found, spec)
        self.last_renewed = sent

    def _left(self) -> float:
        assert self.last_renewed is not None
        return self.last_renewed + self.renew_deadline - self.clock()

    @property
    def _patience(self) -> float:
        """For one attempt: a connection that swallows everything must leave time for another."""
        return max(self.renew_deadline / 2, self.retry)

    # -- to give it back -------------------------------------------------------------------------------
    async def _release(self) -> None:
        """So that another need not wait until it expires. Harmless if it is not ours."""
        if not self._tried:
            return
        try:
            async with asyncio.timeout(self.retry):
                found = await self._read()
                if found is not None and _holder(found["spec"]) == self.identity:
                    now = micro_time(self.now())
                    empty = {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": now}
                    await self._write(found, {**found["spec"], **empty})
                    log.info("%s has given the lease back", self.identity)
        except _TROUBLE as error:
            log.warning("the lease could not be given back and is left to expire: %s", str(error) or "no answer")
        self._tried = False
        self._document = None

    def _complain(self, message: str, trouble: object) -> None:
        """The same complaint every two seconds helps nobody."""
        text = message % (str(trouble) or "no answer")
        log.log(logging.DEBUG if text == self._complaint else logging.WARNING, "%s", text)
        self._complaint = text

    # -- the object itself -----------------------------------------------------------------------------
    async def _read(self) -> dict[str, Any] | None:
        try:
            found = await self.kube.get(LEASES, self.name, self.namespace)
        except NotFound:
            return None
        return found | {"spec": found.get("spec") or {}}

    async def _write(self, before: dict[str, Any] | None, spec: dict[str, Any]) -> dict[str, Any]:
        """Whatever others wrote into it besides is kept."""
        if before is None:
            metadata = {"name": self.name, "namespace": self.namespace, "annotations": self.annotations}
            document = {"apiVersion": LEASES.api_version, "kind": LEASES.kind, "metadata": metadata, "spec": spec}
            return await self.kube.create(LEASES, document, self.namespace)
        metadata = before["metadata"]
        metadata = {**metadata, "annotations": {**(metadata.get("annotations") or {}), **self.annotations}}
        document = {**before, "metadata": metadata, "spec": spec}
        return await self.kube.replace(LEASES, self.name, document, self.namespace)


def micro_time(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _holder(spec: Mapping[str, Any]) -> str:
    return str(spec.get("holderIdentity") or "")


async def _end(task: asyncio.Task[None], *, within: float) -> None:
    """Tell it to stop until it has, or the time is over."""
    deadline = asyncio.get_running_loop().time() + within
    while not task.done() and (left := deadline - asyncio.get_running_loop().time()) > 0:
        task.cancel()
        await asyncio.wait({task}, timeout=min(left, _INSISTENCE))


def _raise_loss(office: asyncio.Task[None], keeping: asyncio.Task[None]) -> None:
    if keeping.cancelled() or not keeping.done():
        return
    error = keeping.exception()
    if office.done() and not office.cancelled() and (failure := office.exception()):
        log.error("the leader failed while it stopped", exc_info=failure)
    if isinstance(error, LeadershipLost):
        raise error
    raise LeadershipLost(f"the lease could not be kept: {error!r}") from error
