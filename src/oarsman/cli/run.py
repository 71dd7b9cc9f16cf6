"""`oarsman run`: a job in the foreground, from the first word to the exit code; `oarsman submit`: jobs handed over;
`oarsman wait`: until jobs are as wished, or can no longer become so."""

from __future__ import annotations

import shlex
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

import click

from oarsman import names as words
from oarsman.cli import documents, options, render
from oarsman.cli.inputs import JobInput, WithCommand, hand_in, job_asked_for
from oarsman.cli.session import Session, short
from oarsman.cli.text import note, of, t
from oarsman.cli.verbs import option, verb
from oarsman.cli.waiting import ShownJob, StatusLine, controller, told_if_nothing_happens, watched
from oarsman.errors import NotFoundError, UserError
from oarsman.text import units
from oarsman.text.sentence import Text

if TYPE_CHECKING:
    from oarsman.cli.foreground import Foreground
    from oarsman.service.models import JobView

_DECIDED_SECONDS = 3.0  # for hosts to be asked
MET, IMPOSSIBLE, TIMED_OUT = 0, 1, 124
_GOALS = click.Choice(("succeeded", "failed", "finished", "running", "suspended", "deleted"), case_sensitive=False)


@verb(
    "run",
    t(
        "Run a job in the foreground. Prints its output as it is written, each line with its rank and host, "
        "and exits with the job's exit code. Rank 0 reads this command's standard input. Give a manifest, or "
        "-n and a command.\n\n"
        "Ctrl-C stops the job and waits until it has stopped; a second Ctrl-C leaves that to the supervisor "
        "or the operator."
    ),
    ("oarsman run job.yaml", t("the job of a manifest")),
    ("oarsman run -n 4 -- python3 -m mpi4py train.py --epochs 3", t("four ranks on two hosts, no manifest")),
    ("oarsman run -n 8 --workers 4 --cpus 2 --memory 4Gi --env SEED=7 ./solver", t("four hosts with limits")),
    ("oarsman run --rm --no-tags job.yaml > out.txt", t("only what the ranks wrote, and no record afterwards")),
    cls=WithCommand,
)
@job_asked_for
@option("--no-tags", t("Do not print rank and host before each line."))
@option("--timestamps", t("Begin every line with its time."))
@option("--replace", t("Replace a finished job of the same name, as its next run."))
@option("--rm", t("Delete the job, with its logs, after it has ended."), "remove")
@option("--wait-for-hosts", t("Also wait for SSH hosts that refuse the login until somebody sets it up."))
@options.place_long
def run_verb(
    session: Session,
    asked: JobInput,
    no_tags: bool,
    timestamps: bool,
    replace: bool,
    remove: bool,
    wait_for_hosts: bool,
) -> int:
    from oarsman.cli.foreground import Foreground
    from oarsman.cli.logview import Printer
    from oarsman.cli.standard_input import StandardInput

    document = asked.document(session, "run")
    printer = Printer(tags=not no_tags, split=True, timestamps=timestamps)
    progress = StatusLine(wanted=not session.quiet)
    job = Foreground(session=session, printer=printer, progress=progress, wait_for_hosts=wait_for_hosts)
    here = session.remote is None and session.engine != "kube" and session.factory is None
    unread = asked.shape is not None or "-" not in asked.words
    with job.signals() as signals, printer, StandardInput(wanted=here and unread):
        view = hand_in(session, document, replace=replace)
        signals.waiting = False
        job.follow(view.summary.key)
        if job.closed:
            _give_up(job, session)
    if remove and not job.left:
        with suppress(NotFoundError):
            session.run(session.service.delete(job.key))
    if job.lost_output is not None and job.signalled is None:  # the job was stopped, since nobody could read it
        raise job.lost_output
    return _conclude(job, session)


def _give_up(job: Foreground, session: Session) -> NoReturn:
    """As if it had been refused: nothing of it has run, and nothing stays."""
    file = job.shown.job.annotation(words.ANNOTATION_INVENTORY) if job.shown is not None else ""
    with suppress(NotFoundError):
        session.run(session.service.delete(job.key))
        for _ in session.iterate(session.service.watch(job.key)):
            pass
    trust = f"oarsman hosts trust --hosts {shlex.quote(file)}" if file else "oarsman hosts trust"
    raise UserError(
        t("{name} cannot start until this is fixed: {reason}", name=short(job.key), reason=of(job.closed)),
        hint=t("set up the login with `{command}`; --wait-for-hosts waits until that is done", command=trust),
    )


def _conclude(job: Foreground, session: Session) -> int:
    """The last line, the cause if there is one, and the exit code."""
    name, shown = short(job.key), job.shown
    if job.unheard:
        note(t("no answer, so {name} may still be running; `oarsman stop {name}` tries again", name=name))
    elif job.left:
        note(of(Text("{controller} continues to stop {name}", name=name, controller=controller(session))))
    elif job.gone or shown is None:
        note(t("{name} was deleted", name=name))
    elif job.unattended:
        note(t("no operator is running, so nobody stops {name}; `oarsman delete {name}` removes it", name=name))
    else:
        _say_outcome(name, shown, session, stopped=job.signalled is not None or shown.stopped)
        if job.signalled is None and not session.quiet:
            with suppress(NotFoundError):
                if count := session.run(session.service.attention(job.key)).workers_left:
                    note(render.kept_workers(count, name))
    if job.signalled is not None:
        return 128 + job.signalled
    return exit_code(shown) if shown is not None and not job.gone else 1


def _say_outcome(name: str, shown: ShownJob, session: Session, *, stopped: bool) -> None:
    took = units.took(shown.summary.started, shown.summary.ended, session.now()) or "0s"
    if shown.status.is_true(words.SUCCEEDED):
        session.note(click.style(t("{name} succeeded after {took}", name=name, took=took), fg="green"))
    elif stopped and session.place == "kube":
        note(t("{name} was stopped after {took}; its pods are going away", name=name, took=took))
    elif stopped:
        note(t("{name} was stopped after {took}; none of its processes is left", name=name, took=took))
    else:
        note(click.style(t("{name} failed after {took}", name=name, took=took), fg="red"))
        show_failure(shown)


def show_failure(shown: ShownJob) -> None:
    with suppress(OSError):
        if shown.status.cause is not None:
            render.cause_card(shown.status.cause, err=True)
        elif text := render.message(shown.summary):
            note(f"{t('cause: ')}{render.shown(text, sys.stderr)}")


def exit_code(shown: ShownJob) -> int:
    """The failing rank's own code; a signal as shells count it."""
    if shown.status.is_true(words.SUCCEEDED):
        return 0
    cause = shown.status.cause
    if cause is not None and cause.exit_code:
        return cause.exit_code if 0 < cause.exit_code < 256 else 1
    if cause is not None and cause.signal:
        return 128 + cause.signal
    return 1


@verb(
    "submit",
    t(
        "Submit jobs and return at once. Prints their names. The supervisor runs them even after this "
        "terminal is closed. Give manifests, - for standard input, or -n and a command."
    ),
    ("oarsman submit job.yaml other.yaml", t("every job of both files, or none if one has a mistake")),
    ("oarsman submit -n 4 --name night-run -- python3 -m mpi4py train.py", t("a command, without a manifest")),
    ("sed s/SEED/7/ job.yaml | oarsman submit -", t("a manifest from a pipe")),
    ("oarsman submit --wait job.yaml", t("return when it has ended, with its exit code")),
    cls=WithCommand,
)
@job_asked_for
@option("--wait", t("Return when the jobs have ended; the exit code is the first failure's."))
@option("--replace", t("Replace a finished job of the same name, as its next run."))
@options.output("json", "yaml", "name")
@options.place_long
def submit_verb(session: Session, asked: JobInput, wait: bool, replace: bool, output: str | None) -> int:
    wanted = asked.documents(session)  # all are read and checked before the first is submitted
    views = []
    for document in wanted:
        view = hand_in(session, document, replace=replace)
        views.append(view)
        if output in (None, "name"):
            click.echo(documents.reference(view.summary.key) if output else short(view.summary.key))
    if views and session.place == "ssh" and not wait and not session.quiet:
        _say_what_is_away(session, views[-1].summary.key)
    if wait:
        views = [_ended(session, view) for view in views]
    if output in ("json", "yaml"):
        documents.emit_views(views, output)
    return next(filter(None, (exit_code(ShownJob.of(view)) for view in views)), 0) if wait else 0


def _say_what_is_away(session: Session, key: str) -> None:
    """If its hosts are not well it waits, and nobody is here to see that: it is worth a moment."""
    from oarsman.client.handle import within

    with suppress(TimeoutError, NotFoundError):
        for shown in watched(session, within(session.service.watch(key), _DECIDED_SECONDS)):
            queue = shown.status.queue
            if shown.status.finished or shown.status.start_time or (queue is not None and queue.position):
                return


def _ended(session: Session, view: JobView) -> JobView:
    key = view.summary.key
    with told_if_nothing_happens(session, key, note):
        for shown in watched(session, session.service.watch(key)):
            view = shown.view
            if shown.status.finished:
                if exit_code(shown):
                    name = short(key)
                    note(t("{name} was stopped", name=name) if shown.stopped else t("{name} failed", name=name))
                    show_failure(shown)
                break
    return view


@verb(
    "wait",
    t(
        "Wait until jobs have reached a state. The exit code is 0 when they have, 1 when one no longer can "
        "(it ended otherwise or is gone), 124 when the time is up."
    ),
    "oarsman wait pi --for succeeded --timeout 10m",
    ("oarsman submit job.yaml | xargs oarsman wait", t("whatever the outcome")),
    ("oarsman delete pi && oarsman wait pi --for deleted", t("until nothing of it is left")),
)
@options.jobs
@option("--for", t("The state to wait for; default: finished."), "goal", default="finished", type=_GOALS)
@option("--timeout TIME", t("Give up after: 60s, 10m; default: never."), callback=options.seconds)
@options.place
def wait_verb(session: Session, names: tuple[str, ...], goal: str, timeout: float | None) -> int:
    deadline = None if timeout is None else time.monotonic() + timeout
    for key in map(session.key, names):
        left = None if deadline is None else max(deadline - time.monotonic(), 0.0)
        try:
            if verdict := _wait(session, key, goal, left):
                return verdict
        except TimeoutError:
            note(t("{name} is not {goal} yet; the time is up", name=short(key), goal=goal))
            return TIMED_OUT
    return MET


def _wait(session: Session, key: str, goal: str, timeout: float | None) -> int:
    from oarsman.client.handle import within

    name, changes = short(key), within(session.service.watch(key), timeout)
    if goal == "deleted":
        with suppress(NotFoundError):
            for _ in session.iterate(changes):
                pass
        session.say(t("{name} is gone", name=name))
        return MET
    with told_if_nothing_happens(session, key, note):
        for shown in watched(session, changes):
            status = shown.status
            if status.finished if goal == "finished" else status.is_true(goal.capitalize()):
                session.say(t("{name} is {state}", name=name, state=shown.summary.state))
                return MET
            if status.finished:
                note(t("{name} cannot become {goal}: it is {state}", name=name, goal=goal, state=shown.summary.state))
                return IMPOSSIBLE
    note(t("{name} was deleted", name=name))
    return IMPOSSIBLE
