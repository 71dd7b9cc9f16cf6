"""What can be done to a job, each with the question it deserves."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any
from urllib.parse import urlencode

from nicegui import ui

from oarsman.console.pages.create.draft import free_name
from oarsman.console.pages.page import PageContext, PagePart
from oarsman.console.parts.widgets import answered, submit_or_cancel
from oarsman.errors import ManifestError
from oarsman.manifest import load
from oarsman.service.models import Clone, JobView
from oarsman.status.words import ENDED

_NAME = r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?"


class Actions(PagePart):
    """`changed` is called after something was done."""

    def __init__(
        self, context: PageContext, key: str, firm: ui.element, changed: Callable[[], Awaitable[None]]
    ) -> None:
        super().__init__(context)
        self.key = key
        self.firm = firm
        self.changed = changed
        self.busy = False  # while something is done to the job, it may be gone for a moment: it runs again
        self.job: JobView
        self._drawn: dict[str, ui.button] = {}

    def draw(self, row: ui.element) -> None:
        """Buttons that stay are left alone: a click on one that is just being drawn anew is lost."""
        wanted = dict(self._wanted())
        for word in self._drawn.keys() - wanted.keys():
            self._drawn.pop(word).delete()
        for at, (word, make) in enumerate(wanted.items()):
            if word not in self._drawn:
                with row:
                    self._drawn[word] = make()
                self._drawn[word].move(target_index=at)

    def _wanted(self) -> Iterator[tuple[str, Callable[[], ui.button]]]:
        """What can be done now, and how its button is made."""
        say, service, name, state = self.say, self.service, self.job.summary.name, self.job.summary.state

        def offer(word: str, icon: str, what: str, act: Callable[[str], Any], question: str = "", **more: Any) -> Any:
            return word, partial(self.offer, word, icon, partial(self._do, what, act), question, **more)

        if state == "Deleting":
            return
        if state in ENDED:
            if self.job.summary.engine == "kube":
                question = say(
                    "Run {name} again? Logs and events of this run are deleted; a clone keeps them.", name=name
                )
            else:
                question = say("Run {name} again? What it wrote stays as an earlier run.", name=name)
            yield offer(say("Run again"), "replay", "rerun", service.rerun, question)
        else:
            if state == "Suspended":
                yield offer(say("Resume"), "play_arrow", "resume", service.resume)
            elif state != "Stopping":
                question = say(
                    "Suspend {name}? Its ranks end, and start from the beginning when it is resumed.", name=name
                )
                yield offer(say("Suspend"), "pause", "suspend", service.suspend, question)
            if self.job.summary.workers and state != "Stopping":
                yield say("Scale"), partial(self.button, say("Scale"), "open_in_full", self._scale)
            question = say("Stop {name} for good? Its log stays.", name=name)
            yield offer(say("Stop"), "stop", "stop", service.stop, question, grave=True)
        yield say("Clone"), partial(self.button, say("Clone"), "content_copy", self._clone)
        yield say("Delete"), partial(self.button, say("Delete"), "delete", self._delete, "color=negative")

    def of_earlier(self, run: int) -> None:
        """What was asked then, in the form."""
        clone = ui.button(self.say("Clone"), icon="content_copy").props("outline dense no-caps")
        clone.props["href"] = f"/create?{urlencode({'from': self.key, 'run': run}, safe='/')}"

    async def _do(self, what: str, act: Callable[[str], Any], detail: str = "") -> bool:
        self.busy = True
        try:
            done = bool(await self.context.attempt(what, f"{self.key}{detail}", act, self.key))
        finally:
            self.busy = False
        if done:
            await self.changed()
        return done

    async def _delete(self) -> None:
        name = self.job.summary.name
        with ui.dialog() as dialog, ui.card():
            ui.label(
                self.say("Type the name of the job to delete it with its logs and earlier runs: {name}", name=name)
            )
            typed = ui.input(self.say("Name")).props("outlined dense")
            delete = submit_or_cancel(self.say, dialog, self.say("Delete"), grave=True)
            delete.bind_enabled_from(typed, "value", lambda value: value == name)
        if await answered(dialog) and await self.context.attempt("delete", self.key, self.service.delete, self.key):
            ui.navigate.to("/jobs")

    async def _scale(self) -> None:
        async def scale() -> None:
            workers = int(number.value)
            if await self._do("scale", lambda key: self.service.scale(key, workers), f" to {workers}"):
                dialog.submit(True)

        with ui.dialog() as dialog, ui.card():
            now = self.job.summary.workers
            number = ui.number(self.say("Number of workers"), value=now, min=1, max=100_000, precision=0)
            number.props("outlined dense").classes("w-full")
            ui.label(self._what_scaling_does()).classes("oarsman-note oarsman-explained")
            submit_or_cancel(self.say, dialog, self.say("Scale"), scale).bind_enabled_from(number, "value", bool)
        await answered(dialog)

    def _what_scaling_does(self) -> str:
        if self.job.summary.state == "Suspended":
            return self.say("The job starts with this number when it is resumed.")
        with suppress(ManifestError):  # taken when rules were laxer; then nobody can say
            if any(found.elastic for found in load(self.job.manifest)):
                return self.say("The job is elastic: its launcher is told of workers that come and go.")
        return self.say(
            "The launcher of this job reads its hosts only when it starts: new workers are used by the next attempt, "
            "and taking away workers that carry ranks ends this one."
        )

    async def _clone(self) -> None:
        async def clone() -> None:
            wanted = Clone(name=name.value or None)
            about = f"{self.key} as {wanted.name}" if wanted.name else self.key
            for made in await self.context.attempt("clone", about, self.service.clone, self.key, wanted):
                dialog.submit(made)

        async def wrong(typed: str | None) -> str | None:
            found = await self._wrong_name(typed)
            if typed == name.value:
                run.set_enabled(found is None)
            return found

        def edit() -> None:
            asked = {"from": self.key, **({"name": name.value} if name.value else {})}
            ui.navigate.to(f"/create?{urlencode(asked, safe='/')}")

        free = await self.context.ask(free_name, self.service, self.key)
        with ui.dialog() as dialog, ui.card():
            name = ui.input(self.say("New name"), value=free, validation=wrong)
            name.props("outlined dense").classes("w-full")

            def edit_first() -> None:
                ui.button(self.say("Edit before it runs"), on_click=edit).props("outline no-caps")

            run = submit_or_cancel(self.say, dialog, self.say("Run"), clone, otherwise=edit_first)
        if made := await answered(dialog):
            ui.navigate.to(f"/jobs/{made.summary.key}")

    async def _wrong_name(self, typed: str | None) -> str | None:
        """None: it can be a name; nothing at all lets the server choose one."""
        if not typed:
            return None
        if not re.fullmatch(_NAME, typed):
            return self.say("Small letters, digits, - and . between them.")
        taken = await self.context.ask(self.service.taken, f"{self.key.partition('/')[0]}/{typed}")
        return self.say.of(taken.message) if taken is not None else None
