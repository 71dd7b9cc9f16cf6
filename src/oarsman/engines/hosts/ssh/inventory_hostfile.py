"""Hostfiles of Open MPI, machinefiles of MPICH, and lists that batch systems leave.

No word of an inventory may turn into an option of ssh or a command of somebody's shell.
"""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from oarsman.errors import Problem
from oarsman.manifest.problems import nearest, quoted
from oarsman.text.sentence import Text

MOST_SLOTS = 100_000  # more on one machine is a slip of the keyboard

_WORD = re.compile(r"[A-Za-z0-9._-]")
_ON_HOST = re.compile(r"[\w./+@,=:~-]")
_BRACKETED = re.compile(r"\[(?P<address>[^\]]*:[^\]]*)\](:(?P<number>.*))?", re.DOTALL)


class Unfit(ValueError):
    """The word cannot be taken; the text says why, the hint what to write."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


def host(text: str) -> str:
    """A name or an address. Colons are those of IPv6."""
    if ":" not in text:
        hint = Text("write each host by itself") if re.search(r"[\[\]{}]", text) else None
        return _plain(text, Text("a host name"), hint)
    with suppress(ValueError):
        if "%" not in text:
            return str(ipaddress.IPv6Address(text))
    hint = Text("slots and port have fields of their own") if text.count(":") == 1 else None
    raise Unfit(Text("{given} is neither a host name nor an IPv6 address", given=quoted(text)), hint)


def address(text: str) -> str:
    """One that a machine can have. A scope (%eth0) may be any text, and means nothing to others."""
    with suppress(ValueError):
        found = ipaddress.ip_address(text if "%" not in text else "")
        found = getattr(found, "ipv4_mapped", None) or found
        if not (found.is_unspecified or found.is_multicast):
            return str(found)
    raise Unfit(Text("{given} is not an IP address", given=quoted(text)))


def user(text: str) -> str:
    return _plain(text, Text("a user name"))


def jump(text: str) -> str:
    """What `ssh -J` takes: [user@]host[:port], several separated by commas; IPv6 in brackets."""
    return ",".join(_stop(stop) for stop in text.split(","))


def _stop(text: str) -> str:
    login, at, place = text.rpartition("@")
    name, port = host_and_number(place)
    shown = f"[{name}]" if ":" in name else name
    if port is not None:
        shown += f":{number(port, Text('a port'), 1, 65535)}"
    return f"{user(login)}@{shown}" if at else shown


def interface(text: str) -> str:
    """A name, or a range that ends up as its network: 10.0.0.7/24 means 10.0.0.0/24."""
    if "/" not in text:
        return _plain(text, Text("the name of a network interface"))
    with suppress(ValueError):
        if "%" not in text:
            return str(ipaddress.ip_network(text, strict=False))
    raise Unfit(Text("{given} is not a range of addresses such as 10.0.0.0/24", given=quoted(text)))


def folder_on_host(text: str) -> str:
    """A path of the host, from its root or, with ~/, from the user's home there."""
    bad = next((c for c in text if not _ON_HOST.match(c)), None)
    if bad is not None:
        template = Text("{given} has {bad}, which a shell on the host could take as its own")
        raise Unfit(Text(template, given=quoted(text), bad=quoted(bad)))
    if not text.startswith(("/", "~/")) and text != "~":
        raise Unfit(Text("must start with / or ~/, not {given}", given=quoted(text)))
    return str(PurePosixPath(text))


def shared_folder(text: str) -> str:
    """A path that means the same there and here, which a home need not."""
    if not text.startswith("/"):
        raise Unfit(Text("must start with /, not {given}: it is the same path on every machine", given=quoted(text)))
    return folder_on_host(text)


def file_here(text: str, base: Path) -> str:
    """A file of this machine; where the path is not absolute, from the folder of the inventory."""
    if not text or not text.isprintable():
        raise Unfit(Text("{given} is not the path of a file", given=quoted(text)))
    return os.path.normpath(base.absolute() / os.path.expanduser(text))


def number(text: str, what: str, least: int, most: int) -> int:
    if not text:
        raise Unfit(Text("{what} is missing", what=what))
    value = int(text) if re.fullmatch(r"[0-9]{1,12}", text) else -1
    if not least <= value <= most:
        template = Text("{given} is not {what}: a whole number from {least} to {most}")
        raise Unfit(Text(template, given=quoted(text), what=what, least=least, most=most))
    return value


def host_and_number(text: str) -> tuple[str, str | None]:
    """name:8, where the number can be slots or a port. With one, an IPv6 address is in brackets."""
    if bracketed := _BRACKETED.fullmatch(text):
        return host(bracketed["address"]), bracketed["number"]
    if text.count(":") > 1:
        return host(text), None
    name, colon, digits = text.partition(":")
    return host(name), digits if colon else None


def _plain(text: str, what: str, hint: str | None = None) -> str:
    if not text:
        raise Unfit(Text("{what} is missing", what=what))
    bad = next((c for c in text if not _WORD.match(c)), None)
    if bad is not None:
        raise Unfit(Text("{given} is not {what}: it has {bad}", given=quoted(text), what=what, bad=quoted(bad)), hint)
    if text.startswith("-"):
        raise Unfit(Text("{given} is not {what}: ssh would take it as an option", given=quoted(text), what=what))
    if text.startswith("."):  # a name is also that of a folder
        raise Unfit(Text("{given} is not {what}: it starts with a dot", given=quoted(text), what=what))
    return text


_SPELLINGS = {
    **dict.fromkeys(("slots", "slot", "cpu", "cpus", "count"), "slots"),
    **dict.fromkeys(("max_slots", "max-slots", "slots_max", "slots-max"), "most"),
    **dict.fromkeys(("username", "user_name", "user-name"), "user"),
}
_PART = re.compile(r"(?P<word>[^\s=]+)(?:\s*(?P<equals>=)\s*(?P<value>[^\s=]*))?|=")
_BREAK = re.compile("\r\n|\n|\r")
_USUAL = ("slots", "max_slots", "username")
_ELSE = Text("a hostfile has slots, max_slots and username; port, key, jump and more are fields of the YAML form")

Wrong = Callable[[int, str, Unfit], None]  # takes the column, the field and what is wrong


@dataclass(slots=True)
class Line:
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
            template = Text("{name} has the user {user} on line {line}")
            message = Text(template, name=quoted(line.name), user=quoted(host.user), line=host.line)
            wrong(start, "", Unfit(message))
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
        message = Text("slots={slots} is more than max_slots={most}", slots=line.slots, most=line.most)
        wrong(parts[0].start() + 1, "", Unfit(message))
    return line if line.name else None


def _take_host(line: Line, part: re.Match[str]) -> None:
    """user@name:8, the first word of a line."""
    word = part["word"]
    if word is None or part["equals"]:
        raise Unfit(Text("a line starts with the name of a host"), Text("write name slots=8"))
    if word.startswith("^"):
        raise Unfit(Text("leaving a host out with ^ is not understood here"), Text("leave out its line"))
    if word.startswith("+"):
        raise Unfit(Text("hosts counted with + are not understood here"), Text("write the name of the host"))
    login, at, place = word.rpartition("@")
    if at:
        line.user = user(login)
    line.name, count = host_and_number(place)
    if count is not None:
        line.slots = _slots(count)


def _take_setting(line: Line, part: re.Match[str]) -> None:
    word, value = part["word"], part["value"]
    if word is None or value is None:
        message = Text("{given} is not understood after the name of a host", given=quoted(part.group()))
        raise Unfit(message, Text("write one host per line"))
    match _SPELLINGS.get(word.lower()):
        case "slots" if line.slots is None:
            line.slots = _slots(value)
        case "most" if line.most is None:
            line.most = _slots(value)
        case "user" if not line.user:
            line.user = user(value)
        case None:
            message = Text("{given} is not understood in a hostfile", given=quoted(word))
            raise Unfit(message, nearest(word, _USUAL) or _ELSE)
        case _:
            raise Unfit(Text("is given twice"))


def _slots(text: str) -> int:
    return number(text, Text("a number of slots"), 0, MOST_SLOTS)
