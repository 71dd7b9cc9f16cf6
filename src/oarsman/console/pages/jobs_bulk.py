"""What can be done to the marked jobs together: asked first, and told afterwards what was done and what was not."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from nicegui import ui

from oarsman.console.pages.page import PageContext, Shown
from oarsman.console.parts.widgets import answered, facts, note, submit_or_cancel
from oarsman.errors import OarsmanError

_NAMED = 10  # in the question; the rest is a number


class _Act(NamedTuple):
    word: str
    icon: str
    what: str  # as the audit log calls it
    do: Callable[[str], Awaitable[object]]


class Bulk(Shown):
    """Buttons that appear when jobs are marked. Marks stay when rows change and when pages are turned."""

    def __init__(
        self, context: PageContext, firm: ui.element, table: ui.table, refresh: Callable[[], Awaitable[Any]]
    ) -> None:
        super().__init__(context)
        self.firm = firm
        self._table = table
        self._refresh = refresh
        say, service = context.say, context.service
        with ui.row().classes("items-center") as self._buttons:
            self._count = note("")
            for act in (
                _Act(say("Stop"), "stop", "stop", service.stop),
                _Act(say("Suspend"), "pause", "suspend", service.suspend),
                _Act(say("Resume"), "play_arrow", "resume", service.resume),
                _Act(say("Run again"), "replay", "rerun", service.rerun),
                _Act(say("Delete"), "delete", "delete", service.delete),
            ):
                ui.button(act.word, icon=act.icon, on_click=partial(self._ask, act)).props("outline dense no-caps")
        table.on_select(lambda _: self._draw())
        self._draw()

    def clear(self) -> None:
        self._table.selected = []
        self._draw()

    def forget_the_gone(self) -> None:
        job_index = self.context.backend.job_index
        left = [row for row in self._table.selected if job_index.get(row["key"]) is not None]
        if len(left) != len(self._table.selected):
            self._table.selected = left
            self._draw()

    def _draw(self) -> None:
        count = len(self._table.selected)
        self._buttons.set_visibility(bool(count))
        self._count.set_text(self.say("{count} marked", count=count))

    async def _ask(self, act: _Act) -> None:
        keys = [row["key"] for row in self._table.selected]
        with self.firm, ui.dialog() as dialog, ui.card().classes("oarsman-dialog"):
            ui.label(self.say("{word}: {count} jobs?", word=act.word, count=len(keys))).classes("text-subtitle1")
            for key in keys[:_NAMED]:
                note(key)
            if len(keys) > _NAMED:
                note(self.say("and {count} more", count=len(keys) - _NAMED))
            if act.what in ("delete", "rerun"):
                ui.label(self.say("Their logs are deleted."))
            submit_or_cancel(self.say, dialog, act.word, grave=act.what == "delete")
        if await answered(dialog):
            await self._do(act, keys)

    async def _do(self, act: _Act, keys: Sequence[str]) -> None:
        refused = []
        with self.firm:
            working = ui.notification(timeout=None, spinner=True)
        for number, key in enumerate(keys, 1):
            working.message = self.say("{word}: {number} of {count}", word=act.word, number=number, count=len(keys))
            try:
                await self.context.ask(act.do, key)
                await self.context.note(act.what, key)
            except OarsmanError as error:
                await self.context.note(act.what, key, error.code)
                refused.append((key, self.say.of(error.message)))
        working.dismiss()
        self.clear()
        self._tell(act, len(keys) - len(refused), refused)
        await self._refresh()

    def _tell(self, act: _Act, done: int, refused: Sequence[tuple[str, str]]) -> None:
        summary = self.say("{word}: {done} done, {refused} refused", word=act.word, done=done, refused=len(refused))
        with self.firm:
            if not refused:
                ui.notify(summary, type="positive")
                return
            with ui.dialog(value=True) as dialog, ui.card().classes("oarsman-dialog"):
                ui.label(summary).classes("text-subtitle1")
                facts(refused, "oarsman-refused", of_value="oarsman-note")
                ui.button(self.say("Close"), on_click=dialog.close).props("flat no-caps")
            dialog.on("hide", dialog.delete)
