"""Doctor, the check of hosts and the trust between them: what the command does, for those who may."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from fastapi import Request
from nicegui import ui

from oarsman.backends.base import STAGES
from oarsman.console.pages.page import Page
from oarsman.console.parts import widgets
from oarsman.console.parts.widgets import MOMENT, Part, badge, heading, moment, note, said
from oarsman.service.models import (
    DoctorFindingView,
    HostsCheckView,
    HostsCheckWanted,
    TrustChangeView,
    TrustOrder,
    TrustView,
    TrustWanted,
)
from oarsman.service.rights import Action, may
from oarsman.text import units
from oarsman.text.catalogue import N_

PATH = "/checks"
_BADGES = {
    N_("ok"): ("check_circle", "is-good"),
    N_("warn"): ("warning", "is-wait"),
    N_("fail"): ("error", "is-bad"),
    N_("missing"): ("error", "is-bad"),
    N_("skipped"): ("remove", "is-idle"),
}
_DONE = {
    "make": N_("a key pair is made"),
    "delete": N_("the key pair is deleted"),
    "add": N_("{count} lines are added"),
    "replace": N_("{count} lines of ours are replaced"),
    "remove": N_("{count} lines are removed"),
    "addblock": N_("a block of ours: {count} hosts"),
    "removeblock": N_("our block removed"),
}


class ChecksPage(Page):
    path, title = PATH, N_("Checks")

    async def show(self, _: Request) -> None:
        if not may(self.service.identity, Action.EXAMINE):
            ui.label(self.say("This page is for admins.")).classes("oarsman-card")
            return
        self.firm = ui.element("div").classes("oarsman-nothing")
        widgets.page_head(self.say(self.title))
        self._doctor()
        if self.context.backend.jobs.place == "ssh":
            await self._hosts()
            if self.context.caller.account is None:
                self._trust()
            else:
                self._by_hand(self.say("Only the owner of this machine sets up logins between the hosts:"))
            self.context.on_check(self._look)

    def _card(self, title: str, about: str) -> ui.column:
        card = ui.column().classes("oarsman-card w-full items-stretch").props("role=region")
        card.props["aria-label"] = title
        with card:
            heading(title)
            note(about)
        return card

    # -- doctor --------------------------------------------------------------------------------------
    def _doctor(self) -> None:
        say = self.say
        with self._card("doctor", say("What is here to run jobs with, what is missing, and what would help.")):
            run = ui.button(say("Examine"), icon="troubleshoot").props("outline no-caps").classes("self-start")
            place = ui.column().classes("w-full items-stretch").props("role=status aria-live=polite")

            async def examine() -> None:
                run.props("loading")
                with self.firm:
                    found = await self.context.tried(self.service.doctor)
                run.props(remove="loading")
                place.clear()
                with place:
                    if found is not None:
                        self._found(found)

            run.on_click(examine)

    def _found(self, found: Sequence[DoctorFindingView]) -> None:
        hopeless = any(one.blocking and one.level == "missing" for one in found)
        verdict = self.say("No job can run before that.") if hopeless else self.say("Jobs can run.")
        ui.label(verdict).classes("is-bad" if hopeless else "is-good")
        for one in found:
            self._line(one.level, self.say.of(one.subject), one.message, one.advice or "")

    def _line(self, level: str, what: str, message: str, hint: str = "") -> None:
        with ui.row().classes("items-start no-wrap w-full oarsman-finding"):
            badge(self.say, level, _BADGES)
            with ui.column().classes("gap-0 col"):
                with ui.row().classes("gap-2"):
                    if what:
                        ui.label(what).classes("text-weight-medium")
                    said(self.say, message)
                if hint:
                    said(self.say, hint).classes("oarsman-note")

    # -- hosts check ---------------------------------------------------------------------------------
    async def _hosts(self) -> None:
        say = self.say
        names = [host.name for host in await self.context.tried(self.service.hosts) or ()]
        about = say("Every host, and every way from one to another; then a real mpirun over all of them.")
        with self._card("hosts check", about):
            with ui.row().classes("items-center w-full"):
                hosts = ui.select(names, multiple=True, label=say("Hosts")).props("outlined dense use-chips")
                hosts.classes("w-64").props["hint"] = say("none: all of them")
                leave_out = ui.checkbox(say("Give hosts that fail no jobs"))
                network = ui.checkbox(say("Measure the network"))
            self.check = ui.button(say("Check"), icon="checklist").props("outline no-caps").classes("self-start")
            self.progress = ui.row().classes("items-center").props("role=status aria-live=polite")
            self.steps = Part(ui.column().classes("w-full items-stretch"), self._draw_check)

            async def start() -> None:
                wanted = HostsCheckWanted(hosts=hosts.value or [], leave_out=leave_out.value, network=network.value)
                with self.firm:
                    await self.context.attempt("check hosts", wanted.named, self.service.check_hosts, wanted)

            self.check.on_click(start)
        await self._look()

    async def _look(self) -> None:
        found = await self.context.ask(self.service.hosts_check)
        self.check.set_enabled(found.state != "running")
        self.progress.clear()
        with self.progress:
            if found.state == "running":
                ui.spinner(size="sm")
                ui.label(self.say(STAGES.get(found.stage, found.stage)))
        self.steps.show(found)

    def _draw_check(self, found: HostsCheckView) -> None:
        say = self.say
        if found.state == "failed":
            said(say, found.trouble).classes("is-bad")
        if found.state == "ended" and found.ended is not None:
            failed, warned = (sum(one.level == level for one in found.findings) for level in ("fail", "warn"))
            told = say(
                "Checked {when}; failures: {failed}, warnings: {warned}", when=MOMENT, failed=failed, warned=warned
            )
            moment(found.ended, said=told).classes("is-bad" if failed else "is-good")
            if found.left_out:
                ui.label(say("These get no jobs until they pass: {names}", names=", ".join(found.left_out)))
        for one in found.findings:
            if one.level != "ok":
                self._line(one.level, "", one.message, one.hint)  # which names its hosts
        good = [one for one in found.findings if one.level == "ok"]
        if good:
            with ui.expansion(say("{count} steps are well", count=len(good))).classes("w-full").props("dense"):
                for one in good:
                    self._line(
                        one.level,
                        _ends(one.host, one.other),
                        say("{what}: {why}", what=say(one.step), why=say.of(one.message)),
                    )
        if found.speeds:
            titles = {"ends": say("Hosts"), "latency": say("Latency"), "bandwidth": say("Bandwidth"), "why": ""}
            widgets.fill(widgets.table(say, "ends", titles, sortable=False), [self._speed(one) for one in found.speeds])

    def _speed(self, one: Any) -> dict[str, str]:
        return {
            "ends": _ends(one.host, one.other),
            "latency": "" if one.latency is None else f"{one.latency * 1000:.3f} ms",
            "bandwidth": "" if one.bandwidth is None else f"{units.size(one.bandwidth)}/s",
            "why": self.say.of(one.why),
        }

    # -- hosts trust ---------------------------------------------------------------------------------
    def _trust(self) -> None:
        say = self.say
        about = say("Lets all hosts log in to each other by ssh, which plain mpirun needs and jobs of oarsman do not.")
        with self._card("hosts trust", about):
            with ui.row().classes("items-center"):
                for undo, word in (
                    (False, say("Show what would be changed")),
                    (True, say("Show what undoing removes")),
                ):
                    show = ui.button(word, on_click=lambda undo=undo: self._plan(undo)).props("outline no-caps")
                    show.props["icon"] = "undo" if undo else "visibility"
            self.plan = ui.column().classes("w-full items-stretch").props("role=status aria-live=polite")
            self._command()

    def _by_hand(self, why: str) -> None:
        with self._card("hosts trust", why):
            self._command()

    def _command(self) -> None:
        """A password is typed where nobody else sees it, and goes through no browser and no server."""
        note(self.say("Hosts that want a password are for a terminal on the server's machine:"))
        inventory = getattr(self.context.backend.jobs, "inventory", "FILE")
        ui.label(f"oarsman hosts trust --hosts {inventory}").classes("oarsman-lines")

    async def _plan(self, undo: bool) -> None:
        self.plan.clear()
        with self.plan:
            ui.spinner(size="sm")
        with self.firm:
            found = await self.context.tried(self.service.plan_trust, TrustWanted(undo=undo))
        self.plan.clear()
        if found is not None:
            with self.plan:
                self._draw_plan(found, undo=undo)

    def _draw_plan(self, found: TrustView, *, undo: bool) -> None:
        say = self.say
        if found.new_host_keys:
            ui.label(say("Host keys that are not known here yet; are these the keys of these hosts?"))
            for key in found.new_host_keys:
                ui.label(f"{key.host}  {key.kind}  {key.fingerprint}").classes("oarsman-lines")
        self._changes(found.changes)
        if not found.changes and not found.need_password:
            ui.label(say("There is nothing to change."))
        for one in found.left_out:
            self._line("fail", "", one.message, one.hint)
        for one in found.refused:
            self._line("warn", one.host, one.message, one.hint)
        for name in found.need_password:
            self._line("skipped", name, say("wants a password: only in a terminal"))
        if found.changes or (found.new_host_keys and not undo):
            word = say("Remove this") if undo else say("Change this")
            order = TrustOrder(undo=undo, seen=found.seen)
            do = ui.button(word, icon="done", on_click=lambda: self._do(order)).props("unelevated no-caps")
            do.classes("self-start")

    def _changes(self, found: Iterable[TrustChangeView]) -> None:
        with ui.column().classes("gap-1"):
            for one in found:
                kind = "block" if one.file.endswith("config") and one.action in ("add", "remove") else ""
                with ui.row().classes("gap-2 items-baseline"):
                    ui.label(one.host or self.say("this machine")).classes("text-weight-medium")
                    ui.label(one.file).classes("oarsman-code")
                    ui.label(self.say(_DONE[f"{one.action}{kind}"], count=one.count))

    async def _do(self, order: TrustOrder) -> None:
        self.plan.clear()
        with self.plan:
            ui.spinner(size="sm")
        with self.firm:
            inventory = str(getattr(self.context.backend.jobs, "inventory", ""))
            done = await self.context.attempt(
                "trust hosts", f"{inventory}, undo: {order.undo}", self.service.trust_hosts, order
            )
        self.plan.clear()
        with self.plan:
            for found in done:
                ui.label(self.say("Done:") if found.done else self.say("There is nothing to change."))
                self._changes(found.done)
                self._logins(found)

    def _logins(self, found: TrustView) -> None:
        if found.logins:
            works = sum(one.works for one in found.logins)
            told = self.say("{works} of {count} logins work", works=works, count=len(found.logins))
            ui.label(told).classes("is-good" if works == len(found.logins) else "is-bad")
        for one in found.logins:
            if not one.works:
                self._line("fail", _ends(one.host or self.say("this machine"), one.other), one.why)


def _ends(host: str, other: str) -> str:
    return f"{host} → {other}" if other else host
