"""The reconciler: read everything again, plan, act, write the status once.

A request is only a key. Whatever was lost on the way (an event, a turn, the whole process), the next
turn finds out from the world itself. Where jobs are kept, in the store of one user or by an API server,
is the business of `Records`; where they run, that of an `EngineSite`.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Hashable, Iterator, Mapping
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import UTC, datetime
from itertools import groupby, islice
from typing import Any, Final, Generic, Literal, Protocol, TypeVar

from oarsman import names
from oarsman.control.form import Form, as_it_runs, is_theirs, obeying, still_ours
from oarsman.control.queue import WorkQueue
from oarsman.engines.contract import Assignment, Engine
from oarsman.errors import ManifestError, OarsmanError, PlaceLostError, Problem, RetryableError
from oarsman.job.job import Job
from oarsman.job.observed import Observed
from oarsman.job.state import Status
from oarsman.manifest import job_from_document
from oarsman.plan.actions import Action, CreateWorker, DeleteJob, DeleteWorker, Event, Plan, Severity
from oarsman.plan.reconcile import not_before, reconcile, reject, what_is_wrong
from oarsman.status import conditions
from oarsman.text.sentence import Text

log = logging.getLogger("oarsman")
_BUILD_SECONDS: Final = 1.0  # between two looks at an environment that is being built
_ENDED_KEPT: Final = 128  # jobs whose last news may still come

Stored = TypeVar("Stored")
Result = Literal["ok", "retry", "error"]  # how a turn ended


def utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Record(Generic[Stored]):
    """A job as it was read at one moment."""

    key: str  # what the queue calls it
    uid: str
    generation: int
    version: Hashable  # of all that the job is built from
    status: Status
    stored: Stored  # what it was read from
    identity: Mapping[str, Any] = field(default_factory=dict)  # fields of its `Job` that its document does not say
    engine: str = ""  # the name of the one it was handed to
    mistaken: bool = False  # it is not valid; an earlier form is carried out
    valid: Stored | None = None  # what that was read from, if this process did
    deleting: bool = False  # to be removed as soon as nothing of it lives
    collected: bool = False  # it is being removed by others, with all it owns


class Records(Protocol[Stored]):
    """Where jobs are kept."""

    def read(self, key: str) -> Record[Stored] | None: ...

    def document(self, record: Record[Stored]) -> Mapping[str, Any]:
        """The manifest, as its author wrote it."""

    def last_valid(self, record: Record[Stored]) -> Mapping[str, Any] | None:
        """The manifest as it was when it was last valid, if that was kept."""

    def assignment(self, record: Record[Stored], job: Job) -> Assignment: ...

    async def write(self, record: Record[Stored], job: Job | None, plan: Plan, *, settled: bool) -> None:
        """The status, if it became another, and its events once it is accepted. Whoever wrote in between is never
        overwritten: RetryableError. `job`: None if it cannot be read. `settled`: nothing is left to do for it."""

    async def leave(self, record: Record[Stored]) -> None:
        """It is not ours to run."""

    async def remove(self, record: Record[Stored]) -> None: ...

    def keeps(self, uid: str) -> bool:
        """Whether it is an earlier run of a job: what it wrote stays."""

    def uid_of(self, key: str) -> str | None:
        """Of a job whose record is gone; None if it was never seen."""

    def forgotten(self, key: str) -> None:
        """Every trace of a job that is gone was removed."""


class AdmissionPolicy(Protocol):
    """Who may start at a place."""

    def hold(self, job: Job) -> None:
        """It runs already: found so at start-up."""

    async def admit(self, assignment: Assignment, now: datetime) -> Assignment:
        """With the answer, and all that was decided with it."""

    def release(self, uid: str) -> None: ...


@dataclass(frozen=True, slots=True)
class EngineSite:
    """Where jobs run: an engine, and who may start there."""

    engine: Engine
    admission: AdmissionPolicy


Tried = Callable[[str], Coroutine[Any, Any, Result]]


@dataclass(eq=False)
class Reconciler(Generic[Stored]):
    records: Records[Stored]
    home: EngineSite  # where jobs run that name its engine, or none
    queue: WorkQueue
    _: KW_ONLY
    others: Mapping[str, EngineSite] = field(default_factory=dict)
    now: Callable[[], datetime] = utc_now
    may_act: Callable[[], bool] = lambda: True  # whether this process is still the one to do it
    around: Callable[[str, Tried], Coroutine[Any, Any, object]] = lambda key, turn: turn(key)  # to measure every turn
    workers: int = 8  # turns at the same time
    rest: float = 0.0  # seconds between two turns of a job
    finish_within: float = 0.0  # seconds for the turns under way when cancelled

    def __post_init__(self) -> None:
        self._known: dict[str, Form[Stored]] = {}  # of the newest version looked at
        self._ended: OrderedDict[str, None] = OrderedDict()  # those of them that will hardly be asked for again

    def knows(self, key: str) -> bool:
        return key in self._known

    # -- turn after turn --------------------------------------------------------------------------------
    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(self.workers):
                group.create_task(self._work())

    async def _work(self) -> None:
        while True:
            key = await self.queue.take()
            turn = asyncio.create_task(self.around(key, self._tried))
            try:
                await asyncio.shield(turn)
            except asyncio.CancelledError:
                await asyncio.wait([turn], timeout=self.finish_within)
                turn.cancel()
                raise
            finally:
                self.queue.done(key, rest=self.rest)

    async def _tried(self, key: str) -> Result:
        try:
            await self.turn(key)
        except (RetryableError, OSError) as error:
            delay = self.queue.retry(key)
            log.log(logging.INFO if delay < 1 else logging.WARNING, "%s: %s; again in %.1f s", key, error, delay)
            return "retry"
        except Exception:
            log.exception("%s: a turn failed; again in %.1f s", key, self.queue.retry(key))
            return "error"
        self.queue.succeeded(key)
        return "ok"

    async def adopt(self, key: str) -> None:
        """Take up a job that an earlier process left running."""
        record = self.records.read(key)
        if record is None:
            return
        try:
            job = self._form_of(record).job
        except ManifestError:
            return
        site, assignment = self._site(record), self.records.assignment(record, job)
        if site is None:
            return
        if record.status.start_time is not None and not record.status.finished:
            site.admission.hold(job)
        await site.engine.adopt(assignment)
        if record.status.retry_at is not None and _nothing_left(await site.engine.observe(assignment)):
            site.admission.release(record.uid)  # it waits for its next attempt

    # -- one turn ---------------------------------------------------------------------------------------
    async def turn(self, key: str) -> None:
        record = self.records.read(key)
        if record is None:
            if (uid := self.records.uid_of(key)) is not None:
                await self._forget(key, uid, *self.others.values(), self.home)
            return
        if record.collected:
            return
        try:
            form = self._form_of(record)
        except ManifestError as error:
            if record.deleting:
                await self._remove(record)
            elif is_theirs(self.records.document(record)):
                await self.records.leave(record)
            else:
                plan = reject(record.status, error.problems, self.now(), generation=record.generation)
                await self._write(record, None, plan, settled=True)
            return
        job, taken_away = still_ours(form.job, record.status)
        if not job.is_ours:
            await (self._remove(record) if record.deleting else self.records.leave(record))
            return
        if (site := self._site(record)) is None:
            await self._refuse(record)
            return
        now = self.now()  # one for both: a delay that ends in between would let in whoever did not ask for room
        assignment = await site.admission.admit(self.records.assignment(record, job), now)
        observed = await site.engine.observe(assignment)
        if form.mistake:
            record = replace(record, mistaken=True, valid=form.source)
            observed = replace(observed, mistake=form.mistake)
        if taken_away:
            observed = replace(observed, outdated=(*observed.outdated, "spec.runPolicy.managedBy"))
        plan = reconcile(job, observed, now)
        trouble = await self._act(site.engine, assignment, plan)
        if assignment.admission.about == names.REASON_ENVIRONMENT and not plan.status.finished:
            self.queue.add_after(key, _BUILD_SECONDS)
        await self._conclude(record, job, site, observed, plan, trouble)

    async def _refuse(self, record: Record[Stored]) -> None:
        """A newer release handed it to an engine that is not known here. If that has begun, it is not ours to end."""
        begun = record.status.start_time is not None and not record.status.finished
        if begun:
            log.warning(
                "%s is left alone: it runs by the engine %s, which is not known here", record.key, record.engine
            )
        elif record.deleting:
            await self._remove(record)
        else:
            message = Text("there is no engine '{engine}'", engine=record.engine)
            problem = Problem(source="", line=1, column=1, field="engine", message=message)
            plan = reject(record.status, [problem], self.now(), generation=record.generation)
            await self._write(record, None, plan, settled=True)

    async def _act(self, engine: Engine, assignment: Assignment, plan: Plan) -> OarsmanError | None:
        """Carry the plan out as far as it goes. What is left undone is planned again."""
        for step in in_steps(plan.actions):
            self._check_office()
            outcomes = await asyncio.gather(
                *(engine.apply(assignment, action) for action in step), return_exceptions=True
            )
            for outcome in outcomes:
                if isinstance(outcome, RetryableError):
                    return outcome
                if isinstance(outcome, BaseException):
                    raise outcome
        return None

    async def _conclude(
        self,
        record: Record[Stored],
        job: Job,
        site: EngineSite,
        observed: Observed,
        plan: Plan,
        trouble: OarsmanError | None,
    ) -> None:
        ended, wake = over(observed, plan), plan.look_again_in
        due = any(isinstance(action, DeleteJob) for action in plan.actions)
        if due or (record.deleting and ended):
            if plan.events:  # why it goes
                await self._write(record, job, plan, settled=True)
            await self._remove(record)
            return
        if trouble is not None and not plan.status.finished:  # a verdict stands; what is left of it is tried again
            plan = so_far(record.status, plan, trouble, self.now())
        await self._write(record, job, plan, settled=ended and trouble is None)
        delayed = not_before(job, plan.status, self.now()) is not None
        if ended or ((delayed or plan.status.is_true(names.SUSPENDED)) and _nothing_left(observed)):
            site.admission.release(record.uid)
        self._ended.pop(record.key, None)
        if ended:
            self._ended[record.key] = None
        while len(self._ended) > _ENDED_KEPT:  # of the jobs that ended, only the last ones are remembered
            self._known.pop(self._ended.popitem(last=False)[0], None)
        if wake or (wake is not None and trouble is None):  # after trouble, too: a deadline does not wait for a try
            self.queue.add_after(record.key, wake.total_seconds())
        if trouble is not None:
            raise trouble

    async def _write(self, record: Record[Stored], job: Job | None, plan: Plan, *, settled: bool) -> None:
        self._check_office()
        await self.records.write(record, job, plan, settled=settled)

    def _check_office(self) -> None:
        """Who could not renew its lease must not act any more, whatever turn it is in."""
        if not self.may_act():
            raise RetryableError(Text("the lease was lost in the middle of a turn"))

    # -- the end ----------------------------------------------------------------------------------------
    async def _remove(self, record: Record[Stored]) -> None:
        """The record first: should we be killed before the rest, a key without a record says what to do."""
        self._check_office()
        await self.records.remove(record)
        await self._forget(record.key, record.uid, self._site(record) or self.home)

    async def _forget(self, key: str, uid: str, *sites: EngineSite) -> None:
        self._known.pop(key, None)
        self._ended.pop(key, None)
        keeps_log = self.records.keeps(uid)
        for site in sites:
            site.admission.release(uid)
            await site.engine.forget(uid, keeps_log=keeps_log)
        self.records.forgotten(key)

    # -- what is known of a job -------------------------------------------------------------------------
    def _site(self, record: Record[Stored]) -> EngineSite | None:
        """None if nobody here knows its engine."""
        name = names.PLACE_ALIASES.get(record.engine, record.engine)
        return self.home if name in ("", self.home.engine.name) else self.others.get(name)

    def _form_of(self, record: Record[Stored]) -> Form[Stored]:
        """Built once per version. A job that has begun is looked after although an edit, or a newer release, makes it
        invalid."""
        known = self._known.get(record.key)
        if known is not None and known.version == record.version:
            if not known.mistake:
                known.source = record.stored  # the newest one, which is kept by others anyway
            return known
        document = self.records.document(record)
        try:
            form = Form(record.version, job_from_document(document), record.stored)
        except ManifestError as error:
            last = self._last_valid(record, known, document)
            if last is None:
                raise
            form = Form(record.version, obeying(last.job, document), last.source, what_is_wrong(error.problems))
        form.job = replace(form.job, **record.identity)
        self._known[record.key] = form
        return form

    def _last_valid(
        self, record: Record[Stored], known: Form[Stored] | None, document: Mapping[str, Any]
    ) -> Form[Stored] | None:
        if known is not None and known.job.uid == record.uid:
            return known
        if (kept := self.records.last_valid(record)) is not None:
            with suppress(ManifestError):
                return Form(record.version, job_from_document(kept))
        begun = record.status.start_time is not None or bool(record.status.attempts)
        job = as_it_runs(document, record.status) if begun else None
        return Form(record.version, job) if job is not None else None


_NUMBERS = re.compile(r"[0-9]+")
_AT_ONCE = 64  # as many requests as the API server gets; a job agent lets no more than 512 wait


def so_far(before: Status, plan: Plan, trouble: OarsmanError, now: datetime) -> Plan:
    """What is true although an action failed: that it was begun, so that no wait is endless, and why it is not done."""
    begun = before if before.start_time is not None else replace(before, start_time=plan.status.start_time)
    message = _known_words(before, trouble.message)
    lost = isinstance(trouble, PlaceLostError)
    reason = names.REASON_NO_HOSTS if lost else names.REASON_TROUBLE
    event = Event(reason=reason, message=message, severity=Severity.WARNING)
    moves = lost and before.phase != names.RUNNING  # with the next turn, which says so itself
    events = () if moves else (event,)
    if before.phase != names.RUNNING and not moves:
        stuck = conditions.put(
            begun.conditions, names.QUEUED, True, reason=reason, message=message, at=now, refresh=True
        )
        begun = replace(begun, conditions=stuck)
    if before.condition(names.CREATED) is not None:
        return Plan(status=begun, events=events)
    created = tuple(c for c in plan.status.conditions if c.type == names.CREATED)
    told = tuple(e for e in plan.events if e.reason == names.REASON_CREATED)
    return Plan(status=replace(begun, conditions=(*created, *begun.conditions)), events=(*told, *events))


def _known_words(before: Status, message: str) -> str:
    """The words already said, if the new ones differ in numbers alone: a quota's count is no news."""
    said = before.condition(names.QUEUED)
    if said is not None and said.status and _NUMBERS.sub("#", said.message) == _NUMBERS.sub("#", message):
        return said.message
    return message


def in_steps(actions: tuple[Action, ...]) -> Iterator[tuple[Action, ...]]:
    """The engine's actions in order; neighbours that do the same to different workers may be carried out together.

    Workers are made one, two, four, ... at a time: where a quota lets no more in, that costs one request, not hundreds.
    """
    for kind, group in groupby(actions, key=type):
        at_once = _AT_ONCE if kind is DeleteWorker else 1
        while kind is not DeleteJob and (step := tuple(islice(group, at_once))):
            yield step
            if kind is CreateWorker:
                at_once = min(2 * at_once, _AT_ONCE)


def _nothing_left(observed: Observed) -> bool:
    return not observed.workers and observed.launcher is None


def over(observed: Observed, plan: Plan) -> bool:
    """Whether the job has ended and nothing of it is left to end or to take away."""
    if not plan.status.finished or observed.published_hosts is not None:
        return False
    return not plan.actions or _nothing_left(observed)
