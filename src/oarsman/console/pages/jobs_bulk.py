"""What can be done to the marked jobs together: asked first, and told afterwards what was done and what was not."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from nicegui import ui

from oarsman.console.pages.context import PageContext
from oarsman.console.parts.widgets import answered
from oarsman.errors import OarsmanError

_NAMED = 10  # in the question; the rest is a number


class _Act(NamedTuple):
    word: str
    icon: str
    what: str  # as the audit log calls it
    do: Callable[[str], Awaitable[object]]


class Bulk:
    """Buttons that appear when jobs are marked. Marks stay when rows change and when pages are turned."""

    def __init__(
        self, context: PageContext, firm: ui.element, table: ui.table, refresh: Callable[[], Awaitable[Any]]
    ) -> None:
        self._context = context
        self._firm = firm
        self._table = table
        self._refresh = refresh
        say, service = context.say, context.request_context.service
        with ui.row().classes("items-center") as self._buttons:
            self._count = ui.label("").classes("oarsman-note")
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
        job_index = self._context.request_context.backend.job_index
        left = [row for row in self._table.selected if job_index.get(row["key"]) is not None]
        if len(left) != len(self._table.selected):
            self._table.selected = left
            self._draw()

    def _draw(self) -> None:
        count = len(self._table.selected)
        self._buttons.set_visibility(bool(count))
        self._count.set_text(self._context.say("{count} marked", count=count))

    async def _ask(self, act: _Act) -> None:
        say = self._context.say
        keys = [row["key"] for row in self._table.selected]
        with self._firm, ui.dialog() as dialog, ui.card().classes("oarsman-dialog"):
            ui.label(say("{word}: {count} jobs?", word=act.word, count=len(keys))).classes("text-subtitle1")
            for key in keys[:_NAMED]:
                ui.label(key).classes("oarsman-note")
            if len(keys) > _NAMED:
                ui.label(say("and {count} more", count=len(keys) - _NAMED)).classes("oarsman-note")
            if act.what in ("delete", "rerun"):
                ui.label(say("Their logs are deleted."))
            with ui.row():
                ui.button(say("Cancel"), on_click=lambda: dialog.submit(False)).props("flat no-caps")
                ui.button(act.word, on_click=lambda: dialog.submit(True)).props(
                    "unelevated no-caps" + (" color=negative" if act.what == "delete" else "")
                )
        sure = await answered(dialog)
        if sure:
            await self._do(act, keys)

    async def _do(self, act: _Act, keys: Sequence[str]) -> None:
        say, refused = self._context.say, []
        with self._firm:
            working = ui.notification(timeout=None, spinner=True)
        for number, key in enumerate(keys, 1):
            working.message = say("{word}: {number} of {count}", word=act.word, number=number, count=len(keys))
            try:
                await self._context.ask(act.do, key)
                await self._context.request_context.note(act.what, key)
            except OarsmanError as error:
                await self._context.request_context.note(act.what, key, error.code)
                refused.append((key, say.of(error.message)))
        working.dismiss()
        self.clear()
        self._tell(act, len(keys) - len(refused), refused)
        await self._refresh()

    def _tell(self, act: _Act, done: int, refused: Sequence[tuple[str, str]]) -> None:
        say = self._context.say
        summary = say("{word}: {done} done, {refused} refused", word=act.word, done=done, refused=len(refused))
        with self._firm:
            if not refused:
                ui.notify(summary, type="positive")
                return
            with ui.dialog(value=True) as dialog, ui.card().classes("oarsman-dialog"):
                ui.label(summary).classes("text-subtitle1")
                with ui.element("dl").classes("oarsman-refused"):
                    for key, why in refused:
                        with ui.element("dt"):
                            ui.label(key)
                        with ui.element("dd"):
                            ui.label(why).classes("oarsman-note")
                ui.button(say("Close"), on_click=dialog.close).props("flat no-caps")
            dialog.on("hide", dialog.delete)
