"""Every rank and every worker: how it is, where, how far, and which are behind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from nicegui import ui

from oarsman.console.pages.job.tabs import Tab
from oarsman.console.parts import widgets
from oarsman.console.parts.charts import CONDITIONS, RankGrid, condition
from oarsman.console.parts.widgets import note
from oarsman.service.models import RankProgress, UsagePoint
from oarsman.text import units
from oarsman.text.catalogue import N_

Row = dict[str, Any]
_NOW = timedelta(minutes=1)  # what was measured before that says nothing of now
_NAMED = 5  # stragglers that are told one by one


class RanksTab(Tab):
    name = N_("Ranks")
    follows = True
    on_pick: Callable[[int], None]

    def build(self) -> None:
        self.nothing = note(self.say("Where the ranks run is not known yet."))
        self.known = ui.column().classes("w-full items-stretch")
        with self.known:
            with ui.column().classes("oarsman-card w-full items-stretch"):
                self._legend()
                self.grid = RankGrid(self.say, self.on_pick)
                self.stragglers = ui.label().classes("is-wait")
            titles = {
                "host": self.say("Host"),
                "state": self.say("State"),
                "ranks": self.say("Ranks"),
                "cpu": self.say("CPU"),
                "memory": self.say("Memory"),
                "exit": self.say("Exit code"),
            }
            self.workers = widgets.table(self.say, "host", titles, title=self.say("Workers"))
            titles = {
                "rank": self.say("Rank"),
                "host": self.say("Host"),
                "state": self.say("State"),
                "exit": self.say("Exit code"),
                "step": self.say("Step"),
                "lines": self.say("Lines"),
                "last": self.say("Last output"),
                "behind": self.say("Behind"),
            }
            self.each = widgets.table(self.say, "rank", titles, title=self.say("Ranks"))
            self.each.add_slot("body-cell-last", widgets.TIME)

    def _legend(self) -> None:
        with ui.row().classes("items-center oarsman-note"):
            shown = {
                f"is-{name}": self.say(CONDITIONS[name]) for name in ("running", "done", "failed", "exited", "unknown")
            }
            for colour, text in {**shown, "is-running is-behind": self.say("behind")}.items():
                with ui.row().classes("items-center no-wrap gap-1"):
                    ui.element("span").classes(f"oarsman-cell oarsman-cell-small {colour}").props('aria-hidden="true"')
                    ui.label(text)
            ui.space()
            ui.label(self.say("A click on a rank shows its log."))

    async def refresh(self) -> None:
        progress = await self.context.ask(self.service.progress, self.key, run=self.run)
        # where no line of them was read, what the job itself says of its ranks
        ranks = progress.ranks or [
            RankProgress(rank=r.rank, host=r.host, state=r.state, exit_code=r.exit_code) for r in self.job.ranks
        ]
        lately = datetime.now(UTC) - _NOW
        usage = {} if self.ended else newest(await self.context.ask(self.service.usage, self.key, since=lately))
        self.nothing.set_visibility(not ranks and not usage)
        self.known.set_visibility(bool(ranks or usage))
        self.grid.show(ranks, self._placed)
        behind = [f"{one.rank} ({self.say.of(one.behind)})" for one in ranks if one.behind]
        named = ", ".join(behind[:_NAMED]) + (" …" if len(behind) > _NAMED else "")
        self.stragglers.set_visibility(bool(behind))
        self.stragglers.set_text(self.say("{count} behind: {named}", count=len(behind), named=named))
        widgets.fill(self.workers, self._worker_rows(ranks, usage))
        widgets.fill(self.each, [self._rank_row(one) for one in ranks])

    def _rank_row(self, one: RankProgress) -> Row:
        return {
            "rank": one.rank,
            "host": self._placed(one.host),
            "state": self.say(CONDITIONS[condition(one)]),
            "exit": "" if one.exit_code is None else str(one.exit_code),
            "step": "" if one.step is None else f"{one.step:g}",
            "lines": one.lines,
            "last": widgets.milliseconds(one.last_output) if one.last_output is not None else None,
            "behind": self.say.of(one.behind),
        }

    def _worker_rows(self, ranks: Sequence[RankProgress], usage: dict[str, UsagePoint]) -> list[Row]:
        on: dict[str, list[RankProgress]] = {host: [] for host in sorted(usage, key=_by_number)}
        for one in ranks:
            on.setdefault(one.host, []).append(one)
        return [self._worker_row(host, there, usage.get(host)) for host, there in on.items() if host]

    def _worker_row(self, host: str, ranks: Sequence[RankProgress], used: UsagePoint | None) -> Row:
        states = {condition(one) for one in ranks}
        state = next((found for found in ("failed", "running", "exited", "done") if found in states), "unknown")
        exits = [one.exit_code for one in ranks if one.exit_code is not None]
        return {
            "host": self._placed(host),
            "state": self.say(CONDITIONS["running" if state == "unknown" and used is not None else state]),
            "ranks": units.ranges(one.rank for one in ranks),
            "cpu": f"{used.cpu_percent:.0f} %" if used is not None else "",
            "memory": units.size(used.memory_bytes) if used is not None else "",
            "exit": str(max(exits)) if exits else "",
        }

    def _placed(self, host: str) -> str:
        """With the machine it is on, where that has another name."""
        machine = self.job.machines.get(host)
        return f"{host} ({machine})" if machine else host


def newest(points: Iterable[UsagePoint]) -> dict[str, UsagePoint]:
    """Per host; not every engine measures all of them at the same moment."""
    return {point.host: point for point in sorted(points, key=lambda point: point.time)}


def _by_number(host: str) -> tuple[str, int, str]:
    """worker-10 comes after worker-9."""
    stem, _, number = host.rpartition("-")
    return (stem, int(number), host) if number.isdecimal() else (host, -1, host)
