"""The manifest, as it was given and with every default filled in."""

from __future__ import annotations

import json

from nicegui import ui

from oarsman.console.pages.job.tab import Tab

_GIVEN, _COMPLETED = "given", "completed"


class Manifest(Tab):
    name = "YAML"

    def build(self) -> None:
        say = self.guest.say
        with ui.row().classes("items-center w-full"):
            self.which = ui.toggle({_GIVEN: say("As given"), _COMPLETED: say("As completed")}, value=_GIVEN)
            self.which.props("no-caps dense").on_value_change(self.refresh)
            ui.space()
            ui.button(say("Copy"), icon="content_copy", on_click=self._copy).props("outline dense no-caps")
            ui.button(say("Download"), icon="download", on_click=self._download).props("outline dense no-caps")
        self.text = ui.codemirror("", language="YAML", theme="githubLight", line_wrapping=True)
        self.text.classes("oarsman-card oarsman-yaml w-full").disable()

    @property
    def chosen(self) -> str:
        return self.job.completed if self.which.value == _COMPLETED else self.job.manifest

    async def refresh(self) -> None:
        if self.text.value != self.chosen:
            self.text.set_value(self.chosen)

    async def _copy(self) -> None:
        """A browser refuses on an address that is neither this machine's nor protected; then nothing was copied."""
        say = self.guest.say
        text = json.dumps(self.chosen)
        copied = await ui.run_javascript(
            f"try {{ await navigator.clipboard.writeText({text}); return true }} catch {{ return false }}"
        )
        if copied:
            ui.notify(say("Copied."), type="positive")
        else:
            ui.notify(say("The browser does not allow copying here; download it instead."), type="warning")

    def _download(self) -> None:
        ending = "completed.yaml" if self.which.value == _COMPLETED else "yaml"
        ui.download.content(self.chosen, f"{self.job.summary.name}.{ending}", "application/yaml")
