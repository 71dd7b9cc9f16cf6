"""What is being written: the text is the truth, the form reads it and edits it.

It starts from a template, an earlier job or a file.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from nicegui import ui

from oarsman.console.pages.page import PageContext
from oarsman.errors import ManifestError, NotFoundError, OarsmanError, UserError
from oarsman.manifest import documents, form, to_yaml
from oarsman.service import JobService
from oarsman.service.documents import for_another_run
from oarsman.service.models import JobQuery
from oarsman.service.preview import copies
from oarsman.text.sentence import Text

UNREADABLE = Text("the YAML cannot be read; mend it first")
_LONGEST_READ = 1 << 16  # letters: it is read for the form after every key, for everybody in the same event loop


class Draft:
    """While the text cannot be read, the values are those of the last text that could."""

    def __init__(self, text: str) -> None:
        self.text = ""
        self.readable = False
        self.values: dict[str, Any] = form.values({})
        self.take(text)

    def take(self, text: str) -> None:
        self.text, self.readable = text, False
        if len(text) <= _LONGEST_READ:
            with suppress(ManifestError):
                self.values = form.values(form.document(text))
                self.readable = True

    def change(self, field: str, value: Any) -> UserError | None:
        """Edit the text; what is wrong with the value, if the text cannot say it."""
        if len(self.text) > _LONGEST_READ:
            return UserError(UNREADABLE)
        try:
            edited = form.with_value(self.text, field, value)
        except ManifestError:
            return UserError(UNREADABLE)
        except UserError as error:
            return error
        self.take(edited)
        return None


def with_change(text: str, field: str, value: Any) -> str:
    """The text with that value; the text as it is, if it cannot say so."""
    draft = Draft(text)
    draft.change(field, value)
    return draft.text


_OFFERED = 200  # earlier jobs, the newest
LARGEST = 1 << 18  # letters of a manifest, as the service takes it


async def template(service: JobService, name: str, home: str) -> str:
    """Under a name that no job in `home` has."""
    found = next((one for one in await service.templates() if one.name == name), None)
    if found is None:
        raise NotFoundError(Text("there is no template '{name}'", name=name))
    key = f"{home}/{form.values(form.document(found.manifest))['name']}"
    if await service.taken(key) is None:
        return found.manifest
    return form.with_value(found.manifest, "name", await free_name(service, key))


async def like(service: JobService, key: str, name: str | None = None, run: int | None = None) -> str:
    """The manifest of an earlier job, or of a run of it, under that name or one that is free."""
    document = for_another_run(documents((await service.job(key, run=run)).manifest, key)[0])
    metadata = document["metadata"]
    metadata["name"] = name or await free_name(service, key)
    return to_yaml([document])


async def free_name(service: JobService, key: str) -> str:
    """For a copy of that job; nothing where there are too many."""
    namespace, _, name = key.partition("/")
    for copy in copies(name):
        if await service.taken(f"{namespace}/{copy}") is None:
            return copy
    return ""


async def show(context: PageContext, begin_with: Callable[[str], None]) -> None:
    say, service = context.say, context.service
    templates = {one.name: one for one in await context.ask(service.templates)}
    jobs = await context.ask(service.jobs, JobQuery(limit=_OFFERED))

    async def from_template(name: str | None) -> None:
        if name in templates:
            begin_with(await context.ask(template, service, name, context.home))

    async def from_job(key: str | None) -> None:
        if key:
            try:
                begin_with(await context.ask(like, service, key))
            except OarsmanError as error:
                ui.notify(say.of(error.message), type="negative")

    def from_file(text: str) -> None:
        if text:
            begin_with(text)
        else:
            ui.notify(say("The file is empty, or too large for a manifest."), type="warning")

    with ui.row().classes("items-center w-full q-gutter-sm"):
        ui.label(say("Start from"))
        ui.select(
            {name: say(one.title) for name, one in templates.items()},
            label=say("Template"),
            on_change=lambda event: from_template(event.value),
        ).props("outlined dense options-dense").classes("w-64")
        ui.select(
            [one.key for one in jobs.items],
            label=say("Earlier job"),
            with_input=True,
            clearable=True,
            on_change=lambda event: from_job(event.value),
        ).props("outlined dense options-dense").classes("w-64")
        choose = f"() => oarsman.chooseFile({LARGEST})"
        ui.button(say("File"), icon="upload_file").props("outline no-caps").on("click", js_handler=choose)
        ui.on("oarsman-file", lambda event: from_file(str(event.args or "")))
