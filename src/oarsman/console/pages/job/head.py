"""What stands above the tabs of a job: what it is, how far, what can be done, and what it waits for or ended with."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from functools import partial

from nicegui import ui

from oarsman.console.pages.job.actions import Actions
from oarsman.console.pages.job.runs import which
from oarsman.console.pages.page import PageContext, PagePart
from oarsman.console.parts import words
from oarsman.console.parts.charts import STEPS
from oarsman.console.parts.widgets import STATES, Part, ago, badge, crumbs, heading, note, said, ticking
from oarsman.errors import ManifestError
from oarsman.manifest import form
from oarsman.service.models import JobView
from oarsman.status.words import ENDED
from oarsman.text import units
from oarsman.text.catalogue import N_

_SAYS_NOTHING = ("Running", "Succeeded")  # states whose message is their name once more
# state -> what the card about it is called; the others have a line
_CARDS = {
    "Queued": N_("Waits for room"),
    "Suspended": N_("Suspended: nothing of it runs"),
    "Stopped": N_("Stopped on request"),
}


class Head(PagePart):
    """`show` draws what has changed."""

    def __init__(self, context: PageContext, job: JobView, actions: Actions, run: int | None) -> None:
        """`run`: an earlier one; that can be cloned. None: the newest."""
        super().__init__(context)
        self._actions = actions
        self.job, self.run = job, run
        one, say = job.summary, self.say
        crumbs(
            say,
            *(
                [(say("Sweeps"), "/sweeps"), (one.sweep, f"/sweeps/{one.namespace}/{one.sweep}")]
                if one.sweep
                else [(say("Jobs"), "/jobs")]
            ),
        )
        with ui.row().classes("oarsman-head"):
            heading(one.name, 1)
            self._state = Part(ui.row().classes("items-baseline"), lambda _: self._draw_state())
            draw_run = partial(which, self.say, one.key, chosen=run is not None)
            self._number = Part(ui.row().classes("items-center"), draw_run)
            ui.space()
            self._row = ui.row().classes("items-center oarsman-actions")
            self._of_earlier = Part(self._row, actions.of_earlier)
        self._about = Part(ui.row().classes("oarsman-about"), lambda found: self._draw_about(*found))
        self._outcome = Part(ui.column().classes("w-full items-stretch"), lambda _: self._draw_outcome())

    def show(self, job: JobView) -> None:
        self.job = self._actions.job = job
        one = job.summary
        self._state.show((one.state, one.started, one.ended))
        self._number.show(one.run)
        if self.context.may_change and self.run is None:
            self._actions.draw(self._row)
        elif self.context.may_change:
            self._of_earlier.show(self.run)
        self._about.show((tuple(self._facts()), self._reached()))
        self._outcome.show((one.state, one.message, one.retry_at, job.cause))

    def _draw_state(self) -> None:
        one = self.job.summary
        badge(self.say, one.state)
        if one.started is not None and one.state not in (*ENDED, "Suspended"):
            ticking("since", one.started).classes("oarsman-note")
        else:
            note(words.duration(self.say, one.started, one.ended) if one.ended is not None else "")

    # -- what it is and how far ----------------------------------------------------------------------
    def _facts(self) -> Iterator[str]:
        job, one, say = self.job, self.job.summary, self.say
        yield one.owner
        yield say.engine(one.engine)
        if one.state in ENDED:
            yield say.of(units.workers(one.workers))
        else:
            yield say("{ready} of {count} workers ready", ready=one.workers_ready, count=one.workers)
        running = sum(rank.state == "running" for rank in job.ranks)
        if running:
            yield say("{running} of {count} ranks run", running=running, count=len(job.ranks))
        elif one.ranks is not None:
            yield say.of(units.ranks(one.ranks))
        if one.attempt > 1:
            yield say("attempt {number}", number=one.attempt)

    def _reached(self) -> tuple[int, str]:
        """The steps that are done, and the last of them."""
        reached = [name for name in STEPS if any(step.name == name for step in self.job.timeline)]
        return (list(STEPS).index(reached[-1]) + 1, reached[-1]) if reached else (0, "submitted")

    def _draw_about(self, facts: tuple[str, ...], reached: tuple[int, str]) -> None:
        one, (count, last) = self.job.summary, reached
        note(" · ".join(fact for fact in facts if fact))
        ago(one.created).classes("oarsman-note")
        if one.state not in ENDED:
            self._draw_progress(count, self.say(STEPS[last]))
        if command := launch(self.job)[0]:
            ui.label(command).classes("oarsman-command").props["title"] = command

    def _draw_progress(self, count: int, word: str) -> None:
        with ui.element("div").classes("oarsman-progress").props("role=img") as bar:
            for step in range(len(STEPS)):
                ui.element("span").classes("is-done" if step < count else "")
        bar.props["aria-label"] = bar.props["title"] = self.say("Progress: {step}", step=word)

    # -- what it waits for, or ended with --------------------------------------------------------------
    def _draw_outcome(self) -> None:
        one, cause = self.job.summary, self.job.cause
        if one.state == "Failed" and cause is not None:
            self._draw_cause()
        elif one.state == "Restarting":
            with self._card("Restarting"):
                self._draw_countdown()
                if cause is not None:
                    self._draw_error(cause.summary)
        elif one.state in _CARDS:
            with self._card(one.state):
                heading(self.say(_CARDS[one.state]))
                if one.message:
                    said(self.say, one.message)
                if one.state == "Queued":
                    self._draw_place()
        elif one.message and one.state not in _SAYS_NOTHING:
            said(self.say, one.message).classes("oarsman-note")

    def _card(self, state: str) -> ui.column:
        return ui.column().classes(f"oarsman-card oarsman-cause w-full {STATES[state][1]}")

    def _draw_cause(self) -> None:
        cause = self.job.cause
        assert cause is not None
        with self._card("Failed"):
            self._draw_error(cause.summary, large=True)
            if cause.hint:
                said(self.say, cause.hint)
            if cause.last_lines:
                ui.label("\n".join(cause.last_lines)).classes("oarsman-lines")

    def _draw_error(self, cause: str, *, large: bool = False) -> None:
        """As it is in English, at the pointer."""
        first, rest = words.error_first(self.say, cause)
        shown = heading(first) if large else ui.label(first)
        shown.props["title"] = cause
        if rest:
            note(rest).props["title"] = cause

    def _draw_countdown(self) -> None:
        one = self.job.summary
        if one.queue_position is not None:
            heading(self.say("Attempt {number} failed. The next one waits for room.", number=one.attempt))
            said(self.say, one.message)
            self._draw_place()
            return
        with ui.row().classes("items-baseline oarsman-h2"):
            if one.retry_at is None:
                ui.label(self.say("Attempt {number} failed. The next one starts.", number=one.attempt))
                return
            ui.label(self.say("Attempt {number} failed. Next attempt:", number=one.attempt))
            ticking("until", one.retry_at)

    def _draw_place(self) -> None:
        place = self.job.summary.queue_position
        with ui.row().classes("items-baseline oarsman-note"):
            if place:
                ui.label(self.say("Number {number} in the queue", number=place))
            ui.link(self.say("Hosts and queue"), "/hosts")


def launch(job: JobView) -> tuple[str, str]:
    """The launch command and the environment, as the manifest says them."""
    try:
        values = form.values(form.document(job.manifest))
    except ManifestError:
        return "", ""
    return shlex.join([*values["command"], *values["args"]]), values["environment"]
