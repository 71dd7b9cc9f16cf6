"""`oarsman wait`: until a job is as wished, or can no longer become so."""

from __future__ import annotations

import time
from contextlib import nullcontext
from typing import TYPE_CHECKING

import click

from oarsman import names as words
from oarsman.cli import options
from oarsman.cli.session import Session, short
from oarsman.cli.shown_job import ShownJob
from oarsman.cli.text import note, t
from oarsman.cli.verbs import option, verb
from oarsman.cli.waiting import Reasons, told_if_nothing_happens
from oarsman.errors import NotFoundError

if TYPE_CHECKING:
    from oarsman.job.state import Status

MET, IMPOSSIBLE, TIMED_OUT = 0, 1, 124
_CONDITIONS = {
    "succeeded": words.SUCCEEDED,
    "failed": words.FAILED,
    "running": words.RUNNING,
    "suspended": words.SUSPENDED,
}


@verb(
    "wait",
    t(
        "Wait until jobs have reached a state. The exit code is 0 when they have, 1 when one no longer can "
        "(it ended otherwise or is gone), 124 when the time is up."
    ),
    "oarsman wait pi --for succeeded --timeout 10m",
    ("oarsman submit job.yaml | xargs oarsman wait --for finished", t("whatever the outcome")),
    ("oarsman delete pi && oarsman wait pi --for deleted", t("until nothing of it is left")),
)
@options.jobs
@option(
    "--for",
    t("The state to wait for."),
    "goal",
    required=True,
    type=click.Choice(["succeeded", "failed", "finished", "running", "suspended", "deleted"], case_sensitive=False),
)
@option("--timeout TIME", t("Give up after: 60s, 10m; default: never."), callback=options.seconds)
@options.place
def command(session: Session, names: tuple[str, ...], goal: str, timeout: float | None) -> int:
    deadline = None if timeout is None else time.monotonic() + timeout
    for name in names:
        key = session.key(name)
        left = None if deadline is None else max(deadline - time.monotonic(), 0.0)
        try:
            with nullcontext() if goal == "deleted" else told_if_nothing_happens(session, key, note):
                verdict = _wait(session, key, goal, left)
        except TimeoutError:
            note(t("{name} is not {goal} yet; the time is up", name=short(key), goal=goal))
            return TIMED_OUT
        if verdict != MET:
            return verdict
    return MET


def _wait(session: Session, key: str, goal: str, timeout: float | None) -> int:
    from oarsman.client.handle import within

    reasons = Reasons()
    try:
        for view in session.iterate(within(session.service.watch(key), timeout)):
            if goal == "deleted":
                continue
            shown = ShownJob.of(view)
            for text in [] if session.quiet else reasons.news(shown):
                note(text)
            if reached(shown.status, goal):
                if not session.quiet:
                    click.echo(t("{name} is {state}", name=short(key), state=view.summary.state))
                return MET
            if shown.status.finished:
                note(
                    t(
                        "{name} cannot become {goal}: it is {state}",
                        name=short(key),
                        goal=goal,
                        state=shown.status.phase,
                    )
                )
                return IMPOSSIBLE
    except NotFoundError:
        if goal != "deleted":
            raise
    if goal == "deleted":
        if not session.quiet:
            click.echo(t("{name} is gone", name=short(key)))
        return MET
    note(t("{name} was deleted", name=short(key)))
    return IMPOSSIBLE


def reached(status: Status, goal: str) -> bool:
    return status.finished if goal == "finished" else status.is_true(_CONDITIONS[goal])
