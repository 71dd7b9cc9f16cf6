"""`oarsman sweep`: one manifest, many sets of parameters, each a job of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from oarsman.cli import options, render
from oarsman.cli.inputs import JobInput, WithCommand, job_asked_for
from oarsman.cli.session import Session, short
from oarsman.cli.text import t
from oarsman.cli.verbs import family, option, together
from oarsman.errors import UsageError
from oarsman.text import units

if TYPE_CHECKING:
    from oarsman.service.models import SweepView

command = family(
    "sweep",
    t(
        "Run one job for many sets of parameters: a grid or a list of points. Each point is a separate job, "
        "and as many run at a time as fit. The results are a table. A sweep that was stopped or killed can "
        "be resumed."
    ),
    (
        "oarsman sweep run --name rates --grid lr=0.1,0.01 --grid batch=32,64 -n 2 -- ./train --lr {{lr}}",
        t("four points; parameters are variables too, such as SWEEP_BATCH"),
    ),
    (
        "oarsman sweep run job.yaml --name sizes --points sizes.csv --metric 'loss: ([0-9.]+)'",
        t("a row of the file is a point, and the last loss of each log a result"),
    ),
    ("oarsman sweep show rates -o csv", t("the results, for a spreadsheet")),
)


_complete = options.completing(
    lambda session: [(short(view.key), view.state) for view in session.run(session.service.sweeps(session.scope))]
)
_name = click.argument("name", metavar="NAME", shell_complete=_complete)
_names = click.argument("names", metavar="NAME...", nargs=-1, required=True, shell_complete=_complete)
_WAIT = t("Wait for the end (default), or submit what can start now and return.")
_wait = option("--wait/--no-wait", _WAIT, default=True)
_points = together(
    option(
        "--grid NAME=VALUE,...",
        t("A parameter and its values, such as 0.1,0.01 or 1..4; repeatable: every combination is a point."),
        multiple=True,
    ),
    option("--points FILE", t("A CSV, JSON or YAML file with a point in each row.")),
    option(
        "--metric PATTERN", t("A regular expression whose first group is a number in the log; the last match counts.")
    ),
    option(
        "--retries N",
        t("How often a point that fails is tried again; default 0."),
        type=click.IntRange(0, 100),
        default=0,
    ),
    option("--at-once N", t("How many points run at a time; default: as many as fit."), type=click.IntRange(1, 10_000)),
)


@command.verb(
    "run",
    t(
        "Run a sweep and wait for its end. {{name}} in the manifest or the command is replaced by the value "
        "of a parameter, which every rank also has in the variable SWEEP_NAME. Running the same command "
        "again resumes the sweep. The exit code is 0 if every point succeeded.\n\n"
        "Ctrl-C stops the running points; `oarsman sweep resume` continues."
    ),
    "oarsman sweep run --name rates --grid lr=0.1,0.01 --grid batch=32,64 -n 2 -- ./train --lr {{lr}}",
    ("oarsman sweep run job.yaml --name sizes --points sizes.csv --at-once 4 --retries 1", t("four at a time")),
    cls=WithCommand,
)
@job_asked_for
@_points
@_wait
@options.output("table", "json", "csv")
@options.place_long
def run(
    session: Session,
    asked: JobInput,
    grid: tuple[str, ...],
    points: str | None,
    wait: bool,
    output: str | None,
    **more: Any,
) -> int:
    from oarsman.cli import sweep_run
    from oarsman.client.inputs import sweep_spec

    if not asked.settings.name:
        raise UsageError(t("{what} is missing", what="--name"), hint="oarsman sweep run --name rates ...")
    spec = sweep_spec(
        name=asked.settings.name,
        namespace=session.namespace,
        manifest=sweep_run.manifest_of(asked, session),
        grid=sweep_run.grid_of(grid) or None,
        points=sweep_run.points_of(points) if points else None,
        **more,
    )
    for warning in sweep_run.unused_parameters(spec):
        session.note(render.warning(warning))
    return sweep_run.in_the_foreground(session, spec, wait=wait, output=output)


@command.verb(
    "list",
    t("List the sweeps and their progress."),
    "oarsman sweep list",
    ("oarsman sweep list -o json", t("for programs")),
)
@options.output("json", "yaml", "name")
@options.place
def list_(session: Session, output: str | None) -> None:
    found = session.run(session.service.sweeps(session.scope))
    data = [view.model_dump(mode="json", by_alias=True, exclude={"points"}) for view in found]
    headers = [t("NAME"), t("STATE"), t("DONE"), t("FAILED"), t("PARAMETERS"), t("AGE"), t("OWNER")]
    render.listing(session, output, data, headers, [_row(view, session) for view in found], t("no sweeps"))


def _row(view: SweepView, session: Session) -> list[str]:
    ended = sum(view.states.get(state, 0) for state in ("Succeeded", "Failed"))
    done, failed, parameters = f"{ended}/{view.total}", str(view.states.get("Failed", "")), ", ".join(view.parameters)
    return [short(view.key), view.state, done, failed, parameters, units.age(view.created, session.now()), view.owner]


@command.verb(
    "show",
    t("Show the results of a sweep: parameters, state, duration, metric and cause of every point."),
    "oarsman sweep show rates",
    ("oarsman sweep show rates --sort metric", t("the lowest first, as for a loss; -metric: the highest first")),
    ("oarsman sweep show rates -o csv", t("for a spreadsheet")),
)
@_name
@option(
    "--sort WHAT",
    t("Sort by metric or took, the lowest first, and mark the best of the points that succeeded. -WHAT: the highest."),
)
@options.output("table", "json", "csv")
@options.place
def show(session: Session, name: str, sort: str | None, output: str | None) -> None:
    from oarsman.cli.sweep_run import show_results

    show_results(session.run(session.service.sweep(session.key(name))), output, sort)


@command.verb(
    "stop",
    t("Stop sweeps: running points end, no more are submitted, and results stay."),
    "oarsman sweep stop rates",
)
@_names
@options.place
def stop(session: Session, names: tuple[str, ...]) -> None:
    for name in names:
        view = session.run(session.service.stop_sweep(session.key(name)))
        session.note(t("stopping {name}; `oarsman sweep resume {name}` continues it", name=short(view.key)))


@command.verb(
    "resume",
    t(
        "Resume a sweep: run the points that were stopped or have no job yet. Points that finished are not "
        "repeated, whether they succeeded or failed."
    ),
    "oarsman sweep resume rates",
)
@_name
@_wait
@options.output("table", "json", "csv")
@options.place
def resume(session: Session, name: str, wait: bool, output: str | None) -> int:
    from oarsman.cli import sweep_run

    return sweep_run.in_the_foreground(session, session.key(name), wait=wait, output=output)


@command.verb("delete", t("Delete sweeps: all their jobs, with their logs and results."), "oarsman sweep delete rates")
@_names
@options.place
def delete(session: Session, names: tuple[str, ...]) -> None:
    for name in names:
        session.run(session.service.delete_sweep(session.key(name)))
        session.say(t("{name} deleted", name=name))
