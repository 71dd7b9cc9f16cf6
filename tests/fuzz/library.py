"""A manifest in this process: through the loader, what shows its problems, and what is made of it if it has none."""

from __future__ import annotations

import time
import traceback
from collections.abc import Iterator
from contextlib import suppress

from oarsman.cli.failures import explained
from oarsman.console.api import problems
from oarsman.errors import ManifestError, OarsmanError
from oarsman.job.job import ApiVersion, Job
from oarsman.manifest import convert, form, job_from_document, load, salvaged, to_yaml
from oarsman.service.documents import completed
from oarsman.service.models import ProblemView
from oarsman.text.catalogue import LANGUAGES, Translator

LIMIT_SECONDS = 60.0  # ends what hangs


def jobs_of(text: bytes) -> list[Job]:
    """None if there is anything wrong with it."""
    with suppress(Exception):
        return load(text)
    return []


def wrong_with(text: bytes) -> Iterator[str]:
    began = time.monotonic()
    try:
        _through(text)
    except Exception:
        yield f"the library: {traceback.format_exc(limit=-6)}"
    if (took := time.monotonic() - began) > LIMIT_SECONDS:
        yield f"the library took {took:.0f} s"


def _through(text: bytes) -> None:
    try:
        jobs = load(text, "fuzzed")
    except ManifestError as error:
        problems.answer_error(error)
        for problem in error.problems:
            explained(problem).encode()  # as a terminal is sent it
            ProblemView.of(problem).model_dump_json()
            for language in LANGUAGES:
                Translator(language).of(problem.message)
    else:
        for job in jobs:
            _made_of(job)
        for version in ApiVersion:
            with suppress(OarsmanError):  # no job has everything in both versions
                convert(text, "fuzzed", version)
    written = text.decode("utf-8", "replace")
    with suppress(OarsmanError):
        form.values(form.document(written))
    with suppress(OarsmanError):
        form.with_value(written, "name", "another")


def _made_of(job: Job) -> None:
    document = dict(job.document)
    again = load(to_yaml([document]))
    assert [one.name for one in again] == [job.name], "written and read again it is another job"
    assert job_from_document(document).name == job.name
    salvaged(document)
    to_yaml([completed(job)])
