"""A job as the service tells of it, read back into the values that pages are made of."""

from __future__ import annotations

from dataclasses import dataclass

from oarsman.errors import ManifestError
from oarsman.job.job import Job
from oarsman.job.state import Status
from oarsman.manifest import job_checked_before, sketch
from oarsman.service.models import JobSummary, JobView
from oarsman.status import words
from oarsman.status.codec import from_wire


@dataclass(frozen=True, slots=True)
class ShownJob:
    summary: JobSummary
    job: Job
    status: Status
    folder: str

    @property
    def key(self) -> str:
        return self.summary.key

    @property
    def stopping(self) -> bool:
        return self.summary.state == words.STOPPING

    @property
    def stopped(self) -> bool:
        return self.summary.state == words.STOPPED

    @staticmethod
    def of(view: JobView) -> ShownJob:
        return ShownJob(view.summary, _job(view), from_wire(view.document["status"]), view.folder or "")


def _job(view: JobView) -> Job:
    try:
        return job_checked_before(view.document)
    except ManifestError:
        return sketch(view.document)
