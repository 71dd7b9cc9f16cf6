"""Small things several pages show: sentences, states, logs, questions, tables that refresh, durations that count up."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib import resources
from typing import Any
from urllib.parse import quote, urlencode

from nicegui import ui
from nicegui.element import Element
from nicegui.elements.mixins.validation_element import ValidationElement

from oarsman.console.parts import mistakes, words
from oarsman.console.parts.words import LOST_HOSTS, Words
from oarsman.console.security import accounts, gate, throttle
from oarsman.service.models import HostView
from oarsman.text import units
from oarsman.text.catalogue import N_

PRIMARY = "#0b6e99"

# state -> (icon, class of its colour); the words say it too, nobody has to know the colours
STATES = {
    N_("Pending"): ("schedule", "is-idle"),
    N_("Queued"): ("hourglass_empty", "is-wait"),
    N_("Running"): ("play_circle", "is-busy"),
    N_("Restarting"): ("restart_alt", "is-wait"),
    N_("Suspended"): ("pause_circle", "is-idle"),
    N_("Stopping"): ("stop_circle", "is-wait"),
    N_("Deleting"): ("delete", "is-idle"),
    N_("Succeeded"): ("check_circle", "is-good"),
    N_("Failed"): ("error", "is-bad"),
    N_("Stopped"): ("stop_circle", "is-idle"),
}

CSS, SCRIPT, ICON = (
    resources.files(__package__).joinpath(name).read_text("utf-8") for name in ("style.css", "pages.js", "icon.svg")
)


_AT_THE_DOOR = (
    gate.WRONG_PASSWORD,
    gate.NOT_THE_PASSWORD,
    gate.NO_PASSWORD,
    gate.TOKEN_REFUSED,
    gate.NOBODY,
    gate.STRANGE_PAGE,
    accounts.TOO_MANY,
    accounts.LENGTH,
    throttle.TOO_MANY,
)


def said(say: Words, sentence: str) -> ui.label:
    label = ui.label(say.of(sentence))
    if say.of(sentence) != sentence:
        label.props["title"] = sentence
    return label


def at_the_door(say: Words) -> str:
    """What the API may answer to somebody's password, as a table for scripts: that answer goes past the pages."""
    said = {text: say.of(text) for text in _AT_THE_DOOR if say.of(text) != text}
    return f"({json.dumps({**said, mistakes.TOO_SHORT: mistakes.too_short(say)})})"


Badges = Mapping[str, tuple[str, str]]  # state -> icon and class of its colour


def badge(say: Words, state: str, known: Badges = STATES, other: tuple[str, str] = ("help", "is-idle")) -> None:
    icon, colour = known.get(state, other)
    with ui.element("span").classes(f"oarsman-state {colour}"):
        ui.icon(icon).props('aria-hidden="true"')
        ui.label(say(state))


def heading(text: str, level: int = 2) -> ui.label:
    return ui.label(text).classes(f"oarsman-h{level}").props(f'role="heading" aria-level="{level}"')


def page_head(title: str, about: str = "") -> ui.row:
    """What a page begins with. What is put into it stands at the right."""
    with ui.row().classes("oarsman-head") as head:
        heading(title, 1)
        if about:
            note(about)
        ui.space()
    return head


def crumbs(say: Words, *places: tuple[str, str]) -> None:
    """The way to a page that is about one thing: what each place is called, and its address."""
    with ui.element("nav").classes("oarsman-crumbs") as made:
        for name, address in places:
            ui.link(name, address)
    made.props["aria-label"] = say("Where this is")


def logo() -> None:
    """Says nothing: the name stands beside it."""
    ui.element("img").classes("oarsman-logo").props('alt=""').props["src"] = f"data:image/svg+xml,{quote(ICON)}"


@contextmanager
def popup(name: str) -> Iterator[None]:
    """Below a button: a list of things to choose."""
    with ui.menu().props("role=dialog") as menu, ui.list():
        menu.props["aria-label"] = name
        yield


def note(text: str) -> ui.label:
    return ui.label(text).classes("oarsman-note")


MOMENT = "{}"  # stands for a moment in a sentence


def moment(*times: datetime, said: str = "") -> Element:
    """Where the reader is, and in UTC at the pointer. `said`: a sentence with a MOMENT in place of each."""
    made = ui.element("oarsman-time")
    made.props.update({"at": ",".join(str(milliseconds(time)) for time in times), "said": said})
    return made


def facts(found: Iterable[tuple[str, str | datetime]], classes: str = "oarsman-facts", of_value: str = "") -> Element:
    """Names and what they stand for; what is not known is left out."""
    with ui.element("dl").classes(classes) as made:
        for name, value in found:
            fact(name, value, of_value)
    return made


def fact(name: str, value: str | datetime, classes: str = "") -> None:
    if value:
        with ui.element("dt"):
            ui.label(name)
        with ui.element("dd"):
            (moment(value) if isinstance(value, datetime) else ui.label(value)).classes(classes)


class Part:
    """A part of a page, drawn anew only if what it shows has changed: links keep the focus of the keyboard."""

    def __init__(self, place: Element, draw: Callable[[Any], None]) -> None:
        self._place = place
        self._draw = draw
        self._seen: object = None

    def show(self, found: object) -> None:
        if found != self._seen:
            self._seen = found
            self._place.clear()
            with self._place:
                self._draw(found)


def _words_of(element: Element) -> str:
    return str(getattr(element, "text", "") or element.props.get("label", ""))


_NAMED_HOSTS = 5


class HostAlarm(Part):
    """Hosts that do not respond; nothing where all do."""

    def __init__(self, say: Words) -> None:
        super().__init__(ui.element("div").classes("oarsman-nothing"), lambda found: self._draw_lost(*found))
        self._say = say

    def of(self, hosts: Sequence[HostView]) -> None:
        lost = [(host.name, host.message) for host in hosts if host.state in LOST_HOSTS]
        self.show((lost, len(hosts)))

    def _draw_lost(self, lost: Sequence[tuple[str, str]], total: int) -> None:
        if not lost:
            return
        names = ", ".join(name for name, _ in lost[:_NAMED_HOSTS]) + (" …" if len(lost) > _NAMED_HOSTS else "")
        told = self._say("{count} of {total} hosts do not respond: {names}", count=len(lost), total=total, names=names)
        with ui.row().classes("oarsman-card oarsman-alarm items-center no-wrap").props("role=alert"):
            ui.icon("error").classes("is-bad text-h5").props('aria-hidden="true"')
            with ui.column().classes("gap-0"):
                ui.link(told, "/hosts").classes("text-weight-bold")
                if lost[0][1]:
                    said(self._say, lost[0][1]).classes("oarsman-note")


async def answered(dialog: ui.dialog) -> Any:
    """What was chosen. A dialog is called by its first words. The keyboard begins in the first field, and returns to
    what opened the dialog: the browser does that after hiding it, so only then it goes."""
    inside = list(dialog.descendants())
    dialog.props["aria-label"] = next((text for text in map(_words_of, inside) if text), "")
    fields = [
        one for one in inside if isinstance(one, ValidationElement) and one.visible and not one.props.get("disable")
    ]
    for one in (fields or [one for one in inside if isinstance(one, ui.button)][-1:])[:1]:
        one.props("autofocus")
    dialog.on("hide", dialog.delete)
    return await dialog


# In a field of one line. What chooses among words of an input method, or in a list of choices, is no answer.
_ENTER = """(event) => {
    const field = event.target;
    if (field.tagName === 'INPUT' && field.role !== 'combobox' && !event.isComposing && !event.repeat) emit();
}"""


def submit_or_cancel(
    say: Words,
    dialog: ui.dialog,
    word: str,
    submit: Callable[[], Any] | None = None,
    *,
    grave: bool = False,
    otherwise: Callable[[], object] = lambda: None,
) -> ui.button:
    """The last row of a dialog; `submit` is for one that does something before it closes, `otherwise` draws what else
    can be done. Enter in a field does what the last button does."""
    busy = False

    async def accept() -> None:
        nonlocal busy
        if busy or not made.enabled:
            return
        busy = True
        try:
            if submit is None:
                dialog.submit(True)
            elif isinstance(done := submit(), Awaitable):
                await done
        finally:
            busy = False

    with ui.row():
        ui.button(say("Cancel"), on_click=lambda: dialog.submit(False)).props("flat no-caps")
        otherwise()
        made = ui.button(word, on_click=accept)
    dialog.on("keydown.enter", accept, js_handler=_ENTER)
    return made.props("unelevated no-caps" + (" color=negative" if grave else ""))


async def sure(say: Words, question: str, word: str, *, grave: bool = False) -> bool:
    with ui.dialog() as dialog, ui.card():
        ui.label(question)
        submit_or_cancel(say, dialog, word, grave=grave)
    return bool(await answered(dialog))


_ROWS = 25
ROWS_TOLD = N_("{first}–{last} of {total}")  # in this order: of tables, the browser fills it in


def columns(titles: Mapping[str, str], **more: Any) -> list[dict[str, Any]]:
    """`titles`: field -> what it is called."""
    return [{"name": name, "label": title, "field": name, "align": "left", **more} for name, title in titles.items()]


# The keyboard reaches what a click sorts by, and a screen reader says which column that is.
_HEADER = """
<q-th :props="props" :aria-sort="!props.col.__thClass.includes(' sorted') ? undefined
    : props.col.__thClass.includes('sort-desc') ? 'descending' : 'ascending'">
  <button v-if="props.col.sortable" type="button" class="oarsman-sort">{{ props.col.label }}</button>
  <template v-else>{{ props.col.label }}</template>
</q-th>"""
CARDS_IF_NARROW = ':grid="Quasar.Screen.width < 700"'
# The cell of a column whose values are milliseconds
TIME = '<q-td :props="props"><oarsman-time :at="props.value" /></q-td>'
_VALUE = """<oarsman-time v-if="['time', 'last', 'created'].includes(col.name)" :at="col.value" />
  <template v-else>{{ col.value }}</template>"""
# A row where there is no room for one: its first column, and below it what else is known.
_CARD = f"""
<div class="col-12 oarsman-row-card">
  <a v-if="props.row.href" class="oarsman-link" :href="props.row.href">{{{{ props.cols[0].value }}}}</a>
  <div v-for="col in props.row.href ? [] : props.cols.slice(0, 1)" :key="col.name" class="oarsman-h3">{_VALUE}</div>
  <div class="oarsman-row-facts">
    <span v-for="col in props.cols.slice(1).filter((col) => col.value !== '' && col.value != null)" :key="col.name">{{{{
      col.label }}}}: {_VALUE}</span>
  </div>
</div>"""


def readable(table: ui.table) -> ui.table:
    """By the keyboard, by those who hear it, and on a phone."""
    table.add_slot("header-cell", _HEADER)
    table.add_slot("item", _CARD)
    return table.props(CARDS_IF_NARROW).classes("oarsman-table")


def rows_told(say: Words) -> str:
    """For a table's `:pagination-label`."""
    return f"(...rows) => {json.dumps(say(ROWS_TOLD))}.replace(/\\{{\\w+\\}}/g, () => rows.shift())"


def table(
    say: Words, key: str, titles: Mapping[str, str], *, title: str | None = None, sortable: bool = True
) -> ui.table:
    """Paged in the browser."""
    made = ui.table(columns=columns(titles, sortable=sortable), rows=[], row_key=key, title=title, pagination=_ROWS)
    made.props(f"flat dense wrap-cells :rows-per-page-options=[{_ROWS}]").classes("oarsman-card w-full")
    made.props[":pagination-label"] = rows_told(say)
    return readable(made)


def fill(shown: ui.table, rows: list[dict[str, Any]]) -> None:
    """Only what changed goes to the browser; page and order stay as the reader chose."""
    if rows != shown.rows:
        shown.rows = rows


class Ticking(Element, component="ticking.js"):
    """Once per page. It fills every element that has `data-since`, `data-until` or `data-ago`."""

    def __init__(self, say: Words) -> None:
        super().__init__()
        self._props["now"] = milliseconds(datetime.now(UTC))
        self._props["units"] = units.UNITS
        told = {"now": say("now"), "new": say("just now"), "ago": say("{time} ago")}
        self._props["words"] = {**words.duration_units(say), **told}


def milliseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


def ticking(kind: str, moment: datetime) -> ui.label:
    """`kind`: since or until."""
    return ui.label("").classes("oarsman-figures").props(f"data-{kind}={milliseconds(moment)}")


def ago(time: datetime) -> Element:
    """How long ago that was; at the pointer, when."""
    return moment(time).classes("oarsman-figures").props(f"data-ago={milliseconds(time)}")


class LogView(Element, component="log_view.js"):
    def __init__(self, say: Words, key: str, run: str = "", at: str = "") -> None:
        """`at`: the place of a line that is shown first."""
        super().__init__()
        self._say = say
        self._props.update({"url": f"/api/v1/jobs/{key}/log", "filter": {}, "run": run, "wrap": True, "stamps": False})
        self._props.update({"search": "", "only": False, "at": at})
        self._props["words"] = {
            "label": say("Log"),
            "older": say("Older lines…"),
            "empty": say("Nothing was written yet."),
            "none": say("No line matches."),
            "searching": say("Searching…"),
            "place": say("{number} of {count}"),
            "above": say("Match above"),
            "below": say("Match below"),
            "latest": say("To the newest line"),
            "reconnecting": say("The connection is lost; trying again…"),
        }

    def only(self, **filter_: Any) -> None:
        """Which lines to show: rank, worker, launcher, stream, attempt."""
        self._props["filter"] = {name: value for name, value in filter_.items() if value not in (None, "", [], False)}
        self.update()

    def find(self, text: str, *, only: bool) -> None:
        """What to mark and count. `only`: lines without it are left out."""
        self._props.update({"search": text, "only": only})
        self.update()

    @property
    def download(self) -> str:
        """The address of a file with the lines that are shown, and all those before them."""
        asked = {name: "true" if value is True else value for name, value in self._props["filter"].items()}
        if self._props["only"] and self._props["search"]:
            asked["search"] = self._props["search"]
        return f"{self._props['url']}/download" + (f"?{urlencode(asked, doseq=True)}" if asked else "")

    def look(self, **how: bool) -> None:
        """How lines are shown: `wrap`, `stamps`."""
        self._props.update(how)
        self.update()

    def reads(self, run: str, *, ended: bool) -> None:
        """Another run of the job, or another attempt: the newest lines are elsewhere now. `ended`: no more come."""
        empty = self._say("Nothing was written.") if ended else self._say("Nothing was written yet.")
        if (run, empty) != (self._props["run"], self._props["words"]["empty"]):
            self._props["run"] = run
            self._props["words"] = {**self._props["words"], "empty": empty}
            self.update()
