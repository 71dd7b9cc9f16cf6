"""What the job is, the steps of its life, and its attempts."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from nicegui import ui

from oarsman.console.pages.job.tabs import Tab
from oarsman.console.parts import amounts
from oarsman.console.parts.charts import timeline
from oarsman.console.parts.style import STATES
from oarsman.console.parts.widgets import said, state_badge
from oarsman.errors import ManifestError
from oarsman.manifest import form
from oarsman.service.models import AttemptView
from oarsman.text.catalogue import N_


class SummaryTab(Tab):
    name = N_("Summary")

    def build(self) -> None:
        self.place = ui.column().classes("w-full items-stretch")
        self.shown: object = None

    async def refresh(self) -> None:
        found = (list(self._facts()), self.job.timeline, self.job.attempts, self.job.summary.state)
        if found == self.shown:
            return
        self.shown = found
        self.place.clear()
        with self.place:
            ending = STATES.get(self.job.summary.state, ("", ""))[1] if self.ended else "is-reached"
            timeline(self.context.say, self.job.timeline, ending=ending)
            self._draw_facts()
            if len(self.job.attempts) > 1:
                self._attempts()

    def _facts(self) -> Iterator[tuple[str, str]]:
        job, say = self.job.summary, self.context.say
        yield say("Description"), job.description
        yield say("Owner"), job.owner
        yield say("Where"), say.engine(job.engine)
        yield say("Machines"), ", ".join(dict.fromkeys(self.job.machines.values()))
        yield say("Type"), f"{job.implementation}, {job.api_version}"
        yield say("Workers"), self._workers()
        command, environment = self._launch()
        yield say("Launch command"), command
        yield say("Environment"), environment
        yield say("Slots per worker"), str(job.slots_per_worker)
        yield say("Ranks"), str(job.ranks) if job.ranks is not None else ""
        yield say("Resources"), amounts.resources(say, job)
        yield say("Priority"), str(job.priority) if job.priority else ""
        yield say("Place in the queue"), str(job.queue_position or "")
        yield say("Created"), amounts.moment(job.created)
        yield say("Folder"), self.job.folder or ""

    def _workers(self) -> str:
        job = self.job.summary
        if self.ended:
            return str(job.workers)
        return self.context.say("{ready} of {count} ready", ready=job.workers_ready, count=job.workers)

    def _launch(self) -> tuple[str, str]:
        """The launch command and the environment, as the manifest says them."""
        try:
            values = form.values(form.document(self.job.manifest))
        except ManifestError:
            return "", ""
        return shlex.join([*values["command"], *values["args"]]), values["environment"]

    def _draw_facts(self) -> None:
        with ui.element("dl").classes("oarsman-card oarsman-facts"):
            for name, value in self._facts():
                if value:
                    with ui.element("dt"):
                        ui.label(name)
                    with ui.element("dd"):
                        ui.label(value)

    def _attempts(self) -> None:
        with ui.column().classes("oarsman-card w-full"):
            ui.label(self.context.say("Attempts")).classes("text-subtitle1")
            with ui.element("ol").classes("oarsman-attempts"):
                for attempt in self.job.attempts:
                    with ui.element("li"), ui.row().classes("items-baseline"):
                        self._attempt(attempt)

    def _attempt(self, attempt: AttemptView) -> None:
        say = self.context.say
        state_badge(say, attempt.outcome or "Running")
        ui.label(amounts.moment(attempt.started)).classes("oarsman-note")
        ui.label(amounts.duration(attempt.started, attempt.ended)).classes("oarsman-note")
        if attempt.workers is not None:
            ui.label(say("{count} workers", count=attempt.workers)).classes("oarsman-note")
        if attempt.cause is not None:
            said(say, attempt.cause.summary)
