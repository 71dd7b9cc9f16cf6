"""What the text amounts to: its mistakes at their lines, how many ranks there are and why, whether it fits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from nicegui import ui

from oarsman.console.pages.create import controls
from oarsman.console.parts.fields import YamlEditor
from oarsman.console.parts.widgets import fact, facts, note, said
from oarsman.console.parts.words import Words
from oarsman.service.models import FitView, PreviewView, ProblemView
from oarsman.text import units


class Outlook:
    """`mend` is called with the mistake that somebody chose."""

    def __init__(self, say: Words, editor: YamlEditor, engine: str, mend: Callable[[ProblemView], None]) -> None:
        self.say = say
        self.mend = mend
        self.engine = engine
        self.editor = editor
        self.arithmetic = ""
        self.free = ""
        self.place = ui.column().classes("w-full items-stretch oarsman-outlook").props("role=status aria-live=polite")

    def trouble(self, message: str) -> None:
        self.place.clear()
        with self.place:
            ui.label(message).classes("is-bad")

    def show(self, found: PreviewView, values: Mapping[str, Any]) -> None:
        self.editor.complain(found.problems, self.say.of)
        self.arithmetic = "" if found.problems else self._arithmetic(found, values)
        self.free = self._free(found.fit) if found.fit is not None else ""
        self.place.clear()
        with self.place:
            self.problems(found)
            if found.fit is not None:
                self._fits(found.fit)
            if self.arithmetic:
                ui.label(self.arithmetic)
            for warning in found.warnings:
                _line("warning", "is-wait", self.say.of(warning), warning)

    def problems(self, found: PreviewView) -> None:
        for problem in found.problems:
            self._problem(problem)

    def _problem(self, problem: ProblemView) -> None:
        message = self.say.of(problem.message)
        where = [self.say("line {line}", line=problem.line)] if problem.line else []
        where += [problem.field] if problem.field else []
        shown = self.say("{what}: {why}", what=self.say(", ").join(where), why=message) if where else message
        with ui.column().classes("gap-0"):
            jump(shown, lambda: self.mend(problem)).props["title"] = problem.message
            if problem.hint:
                said(self.say, controls.hint(problem)).classes("oarsman-note")

    def _fits(self, fit: FitView) -> None:
        reason = self.say.of(fit.reason)
        if fit.now:
            _line("check_circle", "is-good", self.say("Fits: it can start now."))
        elif fit.ever:
            _line("schedule", "is-wait", self.say("Does not fit now: {reason}", reason=reason), fit.reason)
        else:
            _line("block", "is-bad", self.say("Does not fit, ever: {reason}", reason=reason), fit.reason)

    def _free(self, fit: FitView) -> str:
        free, say = fit.free, self.say
        found = {"cpus": f"{free.cpus:g}", "total": f"{fit.total.cpus:g}", "gpus": free.gpus}
        found["memory"] = units.size(free.memory_bytes)
        if self.engine == "ssh":
            return say("free: {cpus} of {total} slots, {memory} memory, {gpus} GPUs", **found)
        return say("free: {cpus} of {total} CPUs, {memory} memory, {gpus} GPUs", **found)

    def _arithmetic(self, found: PreviewView, values: Mapping[str, Any]) -> str:
        """In the reader's language; what it cannot say in numbers is said in the words of the preview."""
        say, slots, ranks = self.say, found.slots, found.ranks
        workers, each = values.get("workers"), values.get("slots") or 1
        if slots is None or ranks is None or not workers or workers * each != slots:
            return say.of(found.arithmetic)
        start = say(
            "{workers} × {each} = {slots}; {replicas} replicas with the launcher; -np {ranks}: ",
            workers=say.of(units.workers(workers)),
            each=say.of(units.slots(each)),
            slots=say.of(units.slots(slots)),
            replicas=found.total_replicas,
            ranks=ranks,
        )
        if ranks == slots:
            return start + say("every slot is used")
        if ranks < slots:
            return start + say("{slots} free", slots=say.of(units.slots(slots - ranks)))
        return start + say("{count} more than there are slots", count=ranks - slots)

    def review(self, found: PreviewView) -> None:
        """All that will happen, before it does."""
        say = self.say
        plain = [
            (say("Total replicas"), str(found.total_replicas)),
            (say("Slots"), str(found.slots)),
            (say("Ranks"), str(found.ranks) if found.ranks is not None else ""),
        ]
        with facts(plain):
            fact(say("Launch command"), found.launch_line, "oarsman-code")
        note(self.arithmetic)
        if found.placement:
            machines = found.fit.machines if found.fit is not None else {}
            with ui.expansion(say("Ranks on each host")).classes("w-full"):
                for host, ranks in list(found.placement.items())[:_MOST_HOSTS]:
                    where = f"{host} ({machines[host]})" if host in machines else host
                    ui.label(f"{where}: {', '.join(map(str, ranks[:_MOST_RANKS]))}{' …' * (len(ranks) > _MOST_RANKS)}")
        if found.completed:
            with ui.expansion(say("With every default")).classes("w-full"):
                ui.label(found.completed).classes("oarsman-lines")


_MOST_HOSTS = 64
_MOST_RANKS = 32


def jump(text: str, act: Callable[[], None]) -> ui.button:
    """A mistake that leads to where it is mended."""
    made = ui.button(text, icon="error", on_click=act).props("flat dense no-caps align=left color=negative")
    return made.classes("oarsman-jump")


def _line(icon: str, colour: str, text: str, english: str = "") -> ui.row:
    """`english`: what the engine said, where the text is a translation of it."""
    with ui.row().classes(f"items-start no-wrap {colour}") as row:
        ui.icon(icon).props('aria-hidden="true"')
        label = ui.label(text)
        if english not in text:
            label.props["title"] = english
    return row
