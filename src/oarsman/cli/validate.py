"""`oarsman validate`: every mistake of a manifest at once, and never a traceback, whatever it is fed.

`oarsman convert`: the same manifest in the other version.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

import click

from oarsman.cli import documents, inputs, options, render
from oarsman.cli.failures import explained
from oarsman.cli.session import Session, short
from oarsman.cli.text import note, of, safe, t
from oarsman.cli.verbs import option, verb
from oarsman.errors import ManifestError, OarsmanError, Problem
from oarsman.job.remarks import remarks
from oarsman.manifest.problems import cannot_start
from oarsman.text.sentence import Text

if TYPE_CHECKING:
    from oarsman.job.job import Job

INVALID = 2


@dataclass(frozen=True, slots=True)
class Verdict:
    source: str
    jobs: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()  # and warnings that have a place in the file

    @property
    def errors(self) -> int:
        return sum(not problem.warning for problem in self.problems)

    @property
    def valid(self) -> bool:
        return not self.errors


@verb(
    "validate",
    t(
        "Check manifests without running anything. Every problem is shown with its file, line, column and field. "
        "A field of a pod template that Oarsman does not know is a warning. "
        "The exit code is 0 if all are valid, otherwise 2."
    ),
    "oarsman validate job.yaml other.yaml",
    ("oarsman validate -o json job.yaml", t("problems as data, for an editor")),
    ("helm template chart | oarsman validate -", t("from a pipe")),
)
@options.files
@option("--strict", t("Treat warnings as errors."))
@options.output("json", "yaml")
def validate_verb(session: Session, files: tuple[str, ...], output: str | None, strict: bool) -> int:
    verdicts = [examine(path, strict=strict) for path in files]
    valid = all(verdict.valid for verdict in verdicts)
    if output:
        documents.emit({"valid": valid, "files": [asdict(verdict) for verdict in verdicts]}, output)
    else:
        for verdict in verdicts:
            _show(verdict, session)
    return 0 if valid else INVALID


def examine(path: str, *, strict: bool = False) -> Verdict:
    """The verdict on one file. What cannot even be read is a problem like any other."""
    source = "<stdin>" if path == "-" else path
    try:
        jobs = inputs.load(path)
        warned = [problem for job in jobs for problem in job.warnings]
        found = tuple(replace(problem, warning=not (strict or cannot_start([problem]))) for problem in warned)
        return Verdict(source, jobs=tuple(job.key for job in jobs), warnings=tuple(_warnings(jobs)), problems=found)
    except ManifestError as error:
        return Verdict(source, problems=error.problems)
    except OarsmanError as error:
        message, hint = error.message, error.hint
    except (Exception, RecursionError) as error:
        message, hint = t("cannot be understood: {error}", error=f"{type(error).__name__}: {error}"[:200]), None
    return Verdict(source, problems=(Problem(source=source, line=0, column=0, field="", message=message, hint=hint),))


def _warnings(jobs: Sequence[Job]) -> Iterator[str]:
    for job in jobs:
        for remark in remarks(job):
            yield remark if len(jobs) == 1 else Text("{what}: {why}", what=short(job.key), why=remark)


def _show(verdict: Verdict, session: Session) -> None:
    for problem in verdict.problems:
        click.echo(explained(problem))
    if not verdict.valid:
        click.echo(t("{source}: problems: {count}", source=render.shown(verdict.source), count=verdict.errors))
    else:
        jobs = ", ".join(map(short, verdict.jobs))
        session.say(t("{source}: valid ({jobs})", source=render.shown(verdict.source), jobs=render.shown(jobs)))
        for warning in verdict.warnings:
            session.say(render.warning(warning))


@verb(
    "convert",
    t(
        "Convert a manifest to another version of the MPIJob API. The result goes to standard output and keeps "
        "comments; fields that the other version does not have are listed on standard error."
    ),
    "oarsman convert old.yaml > new.yaml",
    ("cat new.yaml | oarsman convert - --to v1", t("the other way, from a pipe")),
)
@options.file
@option(
    "--to",
    t("The version to write; default v2beta1."),
    "target",
    default="v2beta1",
    type=click.Choice(["v1", "v2beta1"]),
)
def convert_verb(_: Session, file: str, target: str) -> None:
    from oarsman import manifest
    from oarsman.job.job import ApiVersion

    raw, source = inputs.read(file)
    converted = manifest.convert(raw, source, ApiVersion[target.upper()])
    click.echo(converted.text.rstrip("\n"))
    for loss in converted.losses:
        note(t("not kept: {loss}", loss=safe(of(loss))))
