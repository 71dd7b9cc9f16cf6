"""Who has room on racks of SSH hosts, and on which of them, kept up to date job by job."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime

from oarsman import names
from oarsman.engines.bare.over_ssh.survey import Survey, Surveys
from oarsman.errors import OarsmanError
from oarsman.job.job import Job
from oarsman.job.observed import Admission, Place
from oarsman.plan.policies.racks import Placed, admit, extend, gang_of

log = logging.getLogger("oarsman")
_AGAIN_SECONDS = 10.0  # between two looks at hosts that a job waits for


class RackLedger:
    """Like the ledger of one machine; but hosts have to be asked before anybody can be let in, and may not answer."""

    def __init__(
        self, surveys: Surveys, concerned: Callable[[str], None], placed: Callable[[str], Mapping[str, str]]
    ) -> None:
        """placed: where the members of a job were, when it was last prepared."""
        self._surveys = surveys
        self._concerned = concerned
        self._placed = placed
        self._waiting: dict[str, Job] = {}
        self._running: dict[str, tuple[Job, tuple[Place, ...]]] = {}
        self._looking: dict[str, asyncio.Task[None]] = {}  # by inventory

    def hold(self, job: Job) -> None:
        """It runs already: found so at start-up."""
        self._waiting.pop(job.uid, None)
        places = tuple(Place(member=member, machine=machine) for member, machine in self._placed(job.uid).items())
        self._running[job.uid] = job, places

    @property
    def holders(self) -> tuple[str, ...]:
        return tuple(self._running)

    def release(self, uid: str) -> None:
        if self._running.pop(uid, None) is not None or self._waiting.pop(uid, None) is not None:
            for waiting in self._waiting:
                self._concerned(waiting)

    def ask(self, job: Job, now: datetime) -> Admission:
        try:
            survey = self._surveys.of(_inventory(job))
            if job.uid in self._running:
                return self._again(job, survey, now)
            self._waiting[job.uid] = job
            if not survey.fresh:
                self._look(job, survey)
                return Admission(admitted=False, reason="its hosts are being asked")
            return self._decide(job, survey, now)
        except OarsmanError as error:
            return Admission(admitted=False, reason=error.message)

    def _again(self, job: Job, survey: Survey, now: datetime) -> Admission:
        """A job that runs keeps its places; one that was scaled gets more, or gives some back."""
        before, places = self._running[job.uid]
        if before == job:
            return Admission(placement=places)
        others = [Placed(gang=gang_of(other, now), placement=held) for other, held in self._running.values()
                  if other.uid != job.uid]  # fmt: skip
        answer = extend(places, gang_of(job, now), others, survey.machines())
        if answer.admitted:
            self._running[job.uid] = job, answer.placement
            for waiting in self._waiting:
                self._concerned(waiting)
            return answer
        return replace(answer, admitted=True, placement=places)

    def _decide(self, job: Job, survey: Survey, now: datetime) -> Admission:
        """All who wait for the same rack are looked at: whoever comes before this one takes what it would have."""
        rivals = {other.key: other for other in self._waiting.values() if _inventory(other) == _inventory(job)}
        running = [Placed(gang=gang_of(other, now), placement=places) for other, places in self._running.values()]
        answer = Admission(admitted=False)
        for decision in admit([gang_of(other, now) for other in rivals.values()], running, survey.machines()):
            other = rivals[decision.key]
            if other.uid == job.uid:
                answer = decision.admission
            elif decision.admission.admitted:
                self._concerned(other.uid)
        if answer.admitted:
            self._running[job.uid] = self._waiting.pop(job.uid), answer.placement
        elif survey.troubles:
            self._look(job, survey, after=_AGAIN_SECONDS)
        return answer

    def _look(self, job: Job, survey: Survey, after: float = 0.0) -> None:
        """Have the hosts asked, once for all who wait for them."""
        file = _inventory(job)
        if file not in self._looking or self._looking[file].done():
            self._looking[file] = asyncio.create_task(self._ask_hosts(file, survey, after))

    async def _ask_hosts(self, file: str, survey: Survey, after: float) -> None:
        await asyncio.sleep(after)
        try:
            await survey.look()
        except Exception:
            log.exception("the hosts of %s could not be asked", file)
            await asyncio.sleep(_AGAIN_SECONDS)
        self._looking.pop(file, None)
        for uid, job in list(self._waiting.items()):
            if _inventory(job) == file:
                self._concerned(uid)


def _inventory(job: Job) -> str:
    return job.annotation(names.ANNOTATION_INVENTORY)
