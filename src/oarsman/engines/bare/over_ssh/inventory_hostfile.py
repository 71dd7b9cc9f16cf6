"""The hosts of an Open MPI hostfile, of an MPICH machinefile, and of the lists that batch systems leave."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from oarsman.engines.bare.over_ssh.inventory_words import MOST_SLOTS, Unfit, host_and_number, number, user
from oarsman.manifest.problems import Problem, nearest, quoted

_SPELLINGS = {
    **dict.fromkeys(("slots", "slot", "cpu", "cpus", "count"), "slots"),
    **dict.fromkeys(("max_slots", "max-slots", "slots_max", "slots-max"), "most"),
    **dict.fromkeys(("username", "user_name", "user-name"), "user"),
}
_PART = re.compile(r"(?P<word>[^\s=]+)(?:\s*(?P<equals>=)\s*(?P<value>[^\s=]*))?|=")
_BREAK = re.compile("\r\n|\n|\r")
_USUAL = ("slots", "max_slots", "username")
_ELSE = "a hostfile has slots, max_slots and username; port, key, jump and more are fields of the YAML form"

Wrong = Callable[[int, str, Unfit], None]  # takes the column, the field and what is wrong


@dataclass(slots=True)
class Line:
    """One mention of a host."""

    name: str = ""
    slots: int | None = None
    most: int | None = None  # what slots are where they are not given; they are never exceeded in any case
    user: str = ""

    @property
    def count(self) -> int | None:
        return self.most if self.slots is None else self.slots


@dataclass(slots=True)
class Mentions:
    """A host with all its lines. Slots add up, and of several lines one without a number is one more slot."""

    line: int  # of the first
    lines: list[Line] = field(default_factory=list)

    @property
    def user(self) -> str:
        return next((line.user for line in self.lines if line.user), "")

    @property
    def slots(self) -> int | None:
        counts = [line.count for line in self.lines]
        return counts[0] if len(counts) == 1 else sum(1 if count is None else count for count in counts)


def read_hostfile(text: str, source: str) -> tuple[dict[str, Mentions], list[Problem]]:
    """Hosts by name in the order of the text, and everything that is wrong with it."""
    hosts: dict[str, Mentions] = {}
    problems: list[Problem] = []
    for at, written in enumerate(_BREAK.split(text), 1):

        def wrong(column: int, field: str, what: Unfit, at: int = at, snippet: str = written) -> None:
            found = Problem(source=source, line=at, column=column, field=field, message=str(what), snippet=snippet)
            problems.append(replace(found, hint=what.hint))

        line = read_line(written.partition("#")[0], wrong)
        if line is None:
            continue
        host = hosts.setdefault(line.name, Mentions(at))
        if line.user and host.user not in ("", line.user):
            start = len(written) - len(written.lstrip()) + 1
            wrong(start, "", Unfit(f"{quoted(line.name)} has the user {quoted(host.user)} on line {host.line}"))
        host.lines.append(line)
    return hosts, problems


def read_line(text: str, wrong: Wrong) -> Line | None:
    """The host of a line without its comment; nothing where there is none, or where its name is no name."""
    parts = list(_PART.finditer(text))
    if not parts:
        return None
    line = Line()
    try:
        _take_host(line, parts[0])
    except Unfit as what:
        wrong(parts[0].start() + 1, "", what)
    for part in parts[1:]:
        try:
            _take_setting(line, part)
        except Unfit as what:
            wrong(part.start() + 1, part["word"] if part["equals"] else "", what)
    if line.slots is not None and line.most is not None and line.slots > line.most:
        wrong(parts[0].start() + 1, "", Unfit(f"slots={line.slots} is more than max_slots={line.most}"))
    return line if line.name else None


def _take_host(line: Line, part: re.Match[str]) -> None:
    """user@name:8, the first word of a line."""
    word = part["word"]
    if word is None or part["equals"]:
        raise Unfit("a line starts with the name of a host", "write name slots=8")
    if word.startswith("^"):
        raise Unfit("leaving a host out with ^ is not understood here", "leave out its line")
    if word.startswith("+"):
        raise Unfit("hosts counted with + are not understood here", "write the name of the host")
    login, at, place = word.rpartition("@")
    if at:
        line.user = user(login)
    line.name, count = host_and_number(place)
    if count is not None:
        line.slots = _slots(count)


def _take_setting(line: Line, part: re.Match[str]) -> None:
    word, value = part["word"], part["value"]
    if word is None or value is None:
        raise Unfit(f"{quoted(part.group())} is not understood after the name of a host", "write one host per line")
    match _SPELLINGS.get(word.lower()):
        case "slots" if line.slots is None:
            line.slots = _slots(value)
        case "most" if line.most is None:
            line.most = _slots(value)
        case "user" if not line.user:
            line.user = user(value)
        case None:
            raise Unfit(f"{quoted(word)} is not understood in a hostfile", nearest(word, _USUAL) or _ELSE)
        case _:
            raise Unfit("is given twice")


def _slots(text: str) -> int:
    return number(text, "a number of slots", 0, MOST_SLOTS)
