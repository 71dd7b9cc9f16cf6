"""`oarsman sweep`: one manifest, many sets of parameters, each a job of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from oarsman.cli import documents, options, render
from oarsman.cli.failures import note
from oarsman.cli.inputs import JobInput, WithCommand, job_asked_for
from oarsman.cli.session import Session, pass_session, short
from oarsman.cli.text import t
from oarsman.cli.verbs import family, verb
from oarsman.errors import OarsmanError, UsageError
from oarsman.text import units

if TYPE_CHECKING:
    from oarsman.service.models import SweepView

command = family(
    "sweep",
    help=t(
        "Run one job for many sets of parameters: a grid or a list of points, as many at a time as fit, each a job of "
        "its own. The results are a table. A sweep that was stopped or killed goes on where it was."
    ),
    examples=[
        (
            "oarsman sweep run --name rates --grid lr=0.1,0.01 --grid batch=32,64 -n 2 -- ./train --lr {{lr}}",
            t("four points; parameters are variables too, such as SWEEP_BATCH"),
        ),
        (
            "oarsman sweep run job.yaml --name sizes --points sizes.csv --metric 'loss: ([0-9.]+)'",
            t("a row of the file is a point, and the last loss of each log a result"),
        ),
        ("oarsman sweep show rates -o csv", t("the results, for a spreadsheet")),
    ],
)


def _complete(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    try:
        session = ctx.ensure_object(Session)
        found = session.run(session.service.sweeps(session.scope))
    except (OarsmanError, OSError, ImportError):
        return []
    known = [(short(view.key), view.state) for view in found]
    return [CompletionItem(name, help=state) for name, state in known if name.startswith(incomplete)]


_name = click.argument("name", metavar="NAME", shell_complete=_complete)
_names = click.argument("names", metavar="NAME...", nargs=-1, required=True, shell_complete=_complete)
_wait = click.option(
    "--wait/--no-wait",
    default=True,
    help=t("Whether to wait for the end; without, only what may start now is handed in."),
)


def _points_asked_for(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options that say which points there are."""

    for option in reversed(
        (
            click.option(
                "--grid",
                "grid",
                multiple=True,
                metavar="NAME=VALUE,...",
                help=t("A parameter and its values; repeatable: every combination is a point."),
            ),
            click.option(
                "--points", "file", metavar="FILE", help=t("A CSV, JSON or YAML file with a point in each row.")
            ),
            click.option(
                "--metric",
                metavar="PATTERN",
                help=t("A regular expression whose first group is a number of the log; the last one counts."),
            ),
            click.option(
                "--retries",
                type=click.IntRange(min=0, max=100),
                default=0,
                metavar="N",
                help=t("How often a point that fails is tried again; default 0."),
            ),
            click.option(
                "--at-once",
                type=click.IntRange(min=1, max=10_000),
                metavar="N",
                help=t("How many points run at a time; default: as many as fit."),
            ),
        )
    ):
        function = option(function)
    return function


@verb(
    "run",
    cls=WithCommand,
    help=t(
        "Run a sweep and wait for its end. {{name}} in the manifest or the command becomes the value of a parameter, "
        "which every rank also finds in the variable SWEEP_NAME. The same command again goes on with what is there. "
        "The exit code is 0 if every point succeeded.\n\n"
        "Ctrl-C stops what runs; `oarsman sweep resume` goes on."
    ),
    examples=[
        ("oarsman sweep run --name rates --grid lr=0.1,0.01 --grid batch=32,64 -n 2 -- ./train --lr {{lr}}", ""),
        ("oarsman sweep run job.yaml --name sizes --points sizes.csv --at-once 4 --retries 1", t("four at a time")),
    ],
)
@job_asked_for
@_points_asked_for
@_wait
@options.output("table", "json", "csv")
@options.place_long
@pass_session
def run(
    session: Session,
    asked: JobInput,
    grid: tuple[str, ...],
    file: str | None,
    metric: str | None,
    retries: int,
    at_once: int | None,
    wait: bool,
    output: str | None,
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
        points=sweep_run.points_of(file) if file else None,
        metric=metric,
        retries=retries,
        at_once=at_once,
    )
    return sweep_run.in_the_foreground(session, spec, wait=wait, output=output)


command.add_command(run)


@command.verb(
    "list",
    help=t("List the sweeps, each with how far it is."),
    examples=[("oarsman sweep list", ""), ("oarsman sweep list -o json", t("for programs"))],
)
@options.output("json", "yaml", "name")
@options.place
@pass_session
def list_(session: Session, output: str | None) -> None:
    found = session.run(session.service.sweeps(session.scope))
    if output == "name":
        for view in found:
            click.echo(short(view.key))
    elif output:
        documents.emit([view.model_dump(mode="json", by_alias=True, exclude={"points"}) for view in found], output)
    elif found:
        headers = [t("NAME"), t("STATE"), t("DONE"), t("FAILED"), t("PARAMETERS"), t("AGE"), t("OWNER")]
        render.table(headers, [_row(view, session) for view in found])
    elif not session.quiet:
        note(t("no sweeps"))


def _row(view: SweepView, session: Session) -> list[str]:
    ended = sum(view.states.get(state, 0) for state in ("Succeeded", "Failed"))
    return [
        short(view.key),
        view.state,
        f"{ended}/{view.total}",
        str(view.states.get("Failed", "")),
        ", ".join(view.parameters),
        units.age(view.created, session.now()),
        view.owner,
    ]


@command.verb(
    "show",
    help=t("Show the results of a sweep: parameters, state, duration, metric and cause of every point."),
    examples=[("oarsman sweep show rates", ""), ("oarsman sweep show rates -o csv", t("for a spreadsheet"))],
)
@_name
@options.output("table", "json", "csv")
@options.place
@pass_session
def show(session: Session, name: str, output: str | None) -> None:
    from oarsman.cli.sweep_run import show_results

    show_results(session.run(session.service.sweep(session.key(name))), output)


@command.verb(
    "stop",
    help=t("Stop sweeps: what runs is ended, nothing more is handed in, and results stay."),
    examples=[("oarsman sweep stop rates", "")],
)
@_names
@options.place
@pass_session
def stop(session: Session, names: tuple[str, ...]) -> None:
    for name in names:
        view = session.run(session.service.stop_sweep(session.key(name)))
        if not session.quiet:
            note(t("{name} is being stopped; `oarsman sweep resume {name}` goes on with it", name=short(view.key)))


@command.verb(
    "resume",
    help=t(
        "Go on with a sweep: points that have no job, or were stopped, are run. "
        "Points that ended are not repeated, whatever their outcome."
    ),
    examples=[("oarsman sweep resume rates", "")],
)
@_name
@_wait
@options.output("table", "json", "csv")
@options.place
@pass_session
def resume(session: Session, name: str, wait: bool, output: str | None) -> int:
    from oarsman.cli import sweep_run

    return sweep_run.in_the_foreground(session, session.key(name), wait=wait, output=output)


@command.verb(
    "delete",
    help=t("Delete sweeps: all their jobs, with their logs and results."),
    examples=[("oarsman sweep delete rates", "")],
)
@_names
@options.place
@pass_session
def delete(session: Session, names: tuple[str, ...]) -> None:
    for name in names:
        session.run(session.service.delete_sweep(session.key(name)))
        if not session.quiet:
            click.echo(t("{name} deleted", name=name))
