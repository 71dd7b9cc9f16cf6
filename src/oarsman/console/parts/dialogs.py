"""Questions to the reader."""

from __future__ import annotations

from typing import Any

from nicegui import ui

from oarsman.console.words import Words


async def answered(dialog: ui.dialog) -> Any:
    """What was chosen. The dialog is gone afterwards, unless the reader left the page and all of it went first."""
    try:
        return await dialog
    finally:
        if not (dialog.is_deleted or dialog.client.is_deleted):
            dialog.delete()


async def sure(say: Words, question: str, word: str, *, grave: bool = False) -> bool:
    with ui.dialog() as dialog, ui.card():
        ui.label(question)
        with ui.row():
            ui.button(say("Cancel"), on_click=lambda: dialog.submit(False)).props("flat no-caps")
            ui.button(word, on_click=lambda: dialog.submit(True)).props(
                "unelevated no-caps" + (" color=negative" if grave else "")
            )
    return bool(await answered(dialog))
