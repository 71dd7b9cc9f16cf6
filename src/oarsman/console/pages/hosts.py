"""The machines and who holds what of them, and below them who waits for room, in order, and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from fastapi import Request
from nicegui import ui

from oarsman.console.pages.overview import LOOK_AGAIN_SECONDS
from oarsman.console.pages.page import Page
from oarsman.console.parts import job_rows, words
from oarsman.console.parts.charts import SlotHolder, Slots, colours
from oarsman.console.parts.widgets import (
    MOMENT,
    HostAlarm,
    Part,
    Ticking,
    badge,
    columns,
    heading,
    milliseconds,
    moment,
    note,
    page_head,
    readable,
    rows_told,
    said,
)
from oarsman.console.parts.words import Words
from oarsman.errors import OarsmanError
from oarsman.service import views
from oarsman.service.models import AmountsView, FindingView, HostView, QueueEntry, Role
from oarsman.service.rights import Action, may
from oarsman.text import units
from oarsman.text.catalogue import N_

_OTHERS = ""  # the key of what somebody else holds
_READY = "ready"
_MOST_FINDINGS = 12  # there may be one for every other host; `oarsman hosts check` tells them all


class HostsPage(Page):
    path, title = "/hosts", N_("Hosts and queue")

    async def show(self, _: Request) -> None:
        self.cards: dict[str, _HostCard] = {}
        with page_head(self.say(self.title)):
            if may(self.service.identity, Action.EXAMINE):
                ui.button(self.say("Checks"), icon="troubleshoot").props("outline no-caps href=/checks")
        heading(self.say("Hosts"))
        self.trouble = ui.label("").classes("text-negative oarsman-trouble").props('role="alert"')
        self.alarm = HostAlarm(self.say)
        self.hosts = ui.element("div").classes("oarsman-hosts")
        heading(self.say("Queue"))
        if self.service.identity.role is Role.USER:
            note(self.say("Only your own jobs are listed; those of others count in the places."))
        self._queue()
        Ticking(self.say)
        await self.refresh()
        self.context.on_changes(self.refresh)
        ui.timer(LOOK_AGAIN_SECONDS, self.refresh, immediate=False)

    def _queue(self) -> None:
        titles = {
            "position": self.say("Place"),
            "job": self.say("Job"),
            "owner": self.say("Owner"),
            "priority": self.say("Priority"),
            "wanted": self.say("Wants"),
            "waited": self.say("Waits for"),
            "why": self.say("Why it waits"),
        }
        self.nothing = note(self.say("Nothing waits."))
        self.queue = ui.table(columns=columns(titles), rows=[], row_key="job", pagination=50)
        self.queue.classes("oarsman-card oarsman-table w-full")
        readable(self.queue).props("flat dense wrap-cells").props["hide-pagination"] = True
        self.queue.props[":pagination-label"] = rows_told(self.say)
        for slot, template in (
            ("body-cell-job", _JOB),
            ("body-cell-waited", _WAITED),
            ("body-cell-why", _WHY),
            ("item", _CARD),
        ):
            self.queue.add_slot(slot, template)

    async def refresh(self) -> None:
        try:
            hosts, queue = await self.context.ask(self._look)
        except OarsmanError as error:
            self.trouble.set_text(self.say.of(error.message))
            return
        self.trouble.set_text("")
        self._show_hosts(hosts)
        self.nothing.set_visibility(not queue)
        self.queue.set_visibility(bool(queue))
        rows = [_row(self.say, one, self.context.backend.jobs.place) for one in queue]
        if rows != self.queue.rows:
            self.queue.rows = rows
            self.queue.props["hide-pagination"] = len(rows) <= 50

    async def _look(self) -> tuple[Sequence[HostView], Sequence[QueueEntry]]:
        return await self.service.hosts(), await self.service.queue()

    def _show_hosts(self, hosts: Sequence[HostView]) -> None:
        self.alarm.of(hosts)
        painted = colours([held.key for host in hosts for held in host.holdings if held.key != _OTHERS])
        if [host.name for host in hosts] != list(self.cards):
            self.hosts.clear()
            with self.hosts:
                self.cards = {host.name: _HostCard(self.say, self.context.backend.jobs.place) for host in hosts}
                if not hosts:
                    note(self.say("There are no hosts, or none that you may see."))
        for host in hosts:
            self.cards[host.name].show(host, painted)


class _HostCard:
    def __init__(self, say: Words, engine: str) -> None:
        self._say = say
        self._engine = engine
        with ui.column().classes("oarsman-card items-stretch"):
            self._head = Part(ui.row().classes("items-center w-full"), self._draw_head)
            drawing = ui.column().classes("items-stretch w-full oarsman-drawing")
            self._drawing = Part(drawing, lambda found: self._draw_room(*found))
            self._holders = Part(ui.element("ul").classes("oarsman-holders"), self._draw_holders)
            self._check = Part(ui.element("div"), self._draw_check)

    def show(self, host: HostView, painted: Mapping[str, str]) -> None:
        self._head.show(host)
        self._drawing.show((host, painted))
        self._holders.show([(key, held, painted.get(key, "job-others")) for key, held in _together(host).items()])
        self._check.show((host.checked, host.findings))

    def _draw_head(self, host: HostView) -> None:
        heading(host.name, 3)
        badge(self._say, host.state, {_READY: ("check_circle", "is-good")}, ("error", "is-bad"))
        if host.message:
            said(self._say, host.message).classes("oarsman-note")

    def _draw_room(self, host: HostView, painted: Mapping[str, str]) -> None:
        say = self._say
        shown: tuple[tuple[str, str, Callable[[float], str], bool], ...] = (
            (words.unit(say, self._engine), "cpus", units.number, False),
            (say("GPU"), "gpus", units.number, False),
            (say("Memory"), "memory_bytes", units.size, True),
        )
        for name, field, told, wide in shown:
            total = float(getattr(host.total, field))
            if not total:
                continue
            holders = _holders(say, host, painted, field)
            held, free = total - holders[-1].amount, holders[-1].amount
            used = float(getattr(host.used, field)) if host.used is not None else None
            text = say("{held} of {total} held", held=told(held), total=told(total))
            if host.state == _READY:
                text = say("{held} of {total} held, {free} free", held=told(held), total=told(total), free=told(free))
            if used is not None:
                text += words.really(say, self._engine, field, told(used))
            label = "; ".join(
                [say("{what}: {why}", what=name, why=text), *(f"{one.name} {told(one.amount)}" for one in holders[:-1])]
            )
            with ui.element("div").classes("oarsman-room"):
                ui.label(name)
                Slots(label, total, holders, used, wide=wide)
                note(text)

    def _draw_holders(self, found: Sequence[tuple[str, AmountsView, str]]) -> None:
        for key, held, colour in found:
            with ui.element("li"):
                ui.element("span").classes("oarsman-swatch").style(f"background: var(--{colour})")
                if key == _OTHERS:
                    ui.label(self._say("others"))
                else:
                    ui.link(key, job_rows.address(key))
                note(words.amounts(self._say, held, self._engine))

    def _draw_check(self, found: tuple[datetime | None, Sequence[FindingView]]) -> None:
        say, (checked, findings) = self._say, found
        if checked is None:
            return
        if not findings:
            moment(checked, said=say("Checked {when}: all is well", when=MOMENT)).classes("oarsman-note")
            return
        failed = sum(one.level == "fail" for one in findings)
        warned = len(findings) - failed
        told = say("Checked {when}; failures: {failed}, warnings: {warned}", when=MOMENT, failed=failed, warned=warned)
        worst_first = sorted(findings, key=lambda one: one.level != "fail")
        with ui.expansion().classes("oarsman-check w-full").props("dense") as expansion:
            with expansion.add_slot("header"):
                moment(checked, said=told).classes("col self-center")
            for one in worst_first[:_MOST_FINDINGS]:
                with ui.column().classes("gap-0"):
                    said(say, one.message).classes("is-bad" if one.level == "fail" else "is-wait")
                    if one.hint:
                        said(say, one.hint).classes("oarsman-note")
            if len(worst_first) > _MOST_FINDINGS:
                ui.label(say("and {count} more", count=len(worst_first) - _MOST_FINDINGS))


def _together(host: HostView) -> dict[str, AmountsView]:
    """What each job holds; those of others as one, the last."""
    found: dict[str, AmountsView] = {}
    for one in sorted(host.holdings, key=lambda held: (held.key == _OTHERS, held.key)):
        found[one.key] = views.summed([found.get(one.key, AmountsView()), one.amounts])
    return found


def _holders(say: Words, host: HostView, painted: Mapping[str, str], field: str) -> list[SlotHolder]:
    """The jobs, then what is held by no job of ours, and what is free."""
    found = [
        SlotHolder(key or say("others"), painted.get(key, "job-others"), float(getattr(held, field)))
        for key, held in _together(host).items()
        if getattr(held, field)
    ]
    by_jobs = sum(one.amount for one in found)
    if (rest := float(getattr(host.held, field)) - by_jobs) > 0:
        found.append(SlotHolder(say("not of jobs"), "job-others", rest))
    free = float(getattr(host.total, field)) - max(by_jobs, float(getattr(host.held, field)))
    return [*found, SlotHolder(say("free"), "slot-free", max(0.0, free))]


def _row(say: Words, one: QueueEntry, engine: str) -> dict[str, Any]:
    return {
        "position": one.position,
        "job": one.key,
        "href": job_rows.address(one.key),
        "owner": one.owner,
        "priority": one.priority,
        "wanted": words.amounts(say, one.wanted, engine),
        "since": milliseconds(one.since),
        "why": say.of(one.reason),
        "why_said": one.reason,
    }


# As in job_rows: values are only ever text, or bound as attributes.
_JOB = '<q-td :props="props"><a class="oarsman-link" :href="props.row.href">{{ props.row.job }}</a></q-td>'
_WAITED = '<q-td :props="props" class="oarsman-figures"><span :data-since="props.row.since"></span></q-td>'
_WHY = '<q-td :props="props"><span :title="props.row.why_said">{{ props.row.why }}</span></q-td>'
_CARD = """
<div class="col-12 oarsman-row-card">
  <div class="row items-center" style="gap: 8px">
    {{ props.row.position }}. <a class="oarsman-link" :href="props.row.href">{{ props.row.job }}</a>
    <q-space /><span class="oarsman-note" :data-since="props.row.since"></span>
  </div>
  <div :title="props.row.why_said">{{ props.row.why }}</div>
  <div class="oarsman-note">{{ [props.row.owner, props.row.wanted].filter(Boolean).join(' · ') }}</div>
</div>
"""
