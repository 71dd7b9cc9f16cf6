"""What happened to the job, newest first."""

from __future__ import annotations

from oarsman.console.pages.job.tab import Tab
from oarsman.console.parts import amounts, tables

_REASON = """
<q-td :props="props">
  <span :class="props.row.warning ? 'is-bad' : ''" :title="props.row.reason_said">{{ props.row.reason }}</span>
</q-td>"""
_MESSAGE = '<q-td :props="props"><span :title="props.row.message_said">{{ props.row.message }}</span></q-td>'


class Events(Tab):
    name = "Events"

    def build(self) -> None:
        say = self.guest.say
        titles = {"time": say("Time"), "reason": say("Reason"), "count": say("Count"), "message": say("Message")}
        self.table = tables.table("id", titles, sortable=False)
        self.table.add_slot("body-cell-reason", _REASON)
        self.table.add_slot("body-cell-message", _MESSAGE)

    async def refresh(self) -> None:
        say = self.guest.say
        found = await self.guest.ask(self.guest.visit.desk.events, self.key)
        rows = [
            {"id": number, "time": amounts.moment(event.time), "reason": say.of(event.reason), "count": event.count,
             "message": say.of(event.message), "reason_said": event.reason, "message_said": event.message,
             "warning": event.severity == "Warning"}
            for number, event in enumerate(found)
        ][::-1]  # fmt: skip
        tables.fill(self.table, rows)
