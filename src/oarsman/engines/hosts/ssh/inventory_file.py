"""Inventory files: which one is meant, which form it has, what is wrong with it; and the YAML form."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from oarsman.engines.hosts.ssh import inventory_hostfile as words
from oarsman.engines.hosts.ssh.inventory import Inventory, SshHost
from oarsman.engines.hosts.ssh.inventory_hostfile import MOST_SLOTS, Unfit, read_hostfile, read_line
from oarsman.errors import ManifestError, Problem, UsageError, UserError
from oarsman.manifest import quantity
from oarsman.manifest.problems import Path as FieldPath
from oarsman.manifest.problems import nearest, quoted
from oarsman.manifest.scalars import ScalarError, resolve
from oarsman.manifest.source import MAX_BYTES, Document, Node
from oarsman.manifest.source import read as read_documents
from oarsman.text.sentence import Text, all_of

_NUMBER = re.compile(r"[-+.\w]+")
_LABEL = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._/-]*[A-Za-z0-9])?")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class InventoryValue:
    """A value of the document, with what is needed to read it and to say what is wrong with it."""

    document: Document
    node: Node
    folder: Path  # of the inventory
    problems: list[Problem]
    path: FieldPath = ()

    @property
    def value(self) -> Any:
        return self.node.value

    def parts(self) -> Iterator[tuple[str | int, InventoryValue]]:
        """What a list or mapping holds; null is as good as absent."""
        for step, node in self.node.children.items():
            if node.value is not None:
                yield step, replace(self, node=node, path=(*self.path, step))

    def wrong(self, message: str, hint: str | None = None, *, on_key: bool = False) -> None:
        self.problems.append(self.document.problem(self.path, message, hint=hint, on_key=on_key))

    def stray(self, message: str, hint: str) -> None:
        self.problems.append(self.document.stray(self.path, message, hint=hint))

    def missing(self, name: str) -> None:
        """Says that a field is required, unless it is there with a slip in its name."""
        slips = [problem for problem in self.problems if problem.stray and problem.meant == name]
        if all(self.document.path(problem)[:-1] != self.path for problem in slips):
            self.problems.append(self.document.missing((*self.path, name), Text("is required")))


Reader = Callable[[InventoryValue], Any]  # raises Unfit


@dataclass(slots=True)
class InventoryText:
    """What the text says: the fields of each host, as SshHost takes them."""

    hosts: list[dict[str, Any]] = field(default_factory=list)
    ssh_config: str = ""
    problems: list[Problem] = field(default_factory=list)


def read_yaml(text: str, source: str, folder: Path) -> InventoryText:
    documents, problems = read_documents(text, source)
    noted = {(problem.line, problem.column) for problem in problems}
    found = InventoryText()
    for number, document in enumerate(documents):
        assert document.root is not None
        top = InventoryValue(document, document.root, folder, found.problems)
        if number:
            top.wrong(Text("an inventory is one document"), Text("leave out what starts with ---"))
        else:
            _read_top(top, found)
    found.problems = problems + [p for p in found.problems if (p.line, p.column) not in noted]
    return found


def _read_top(top: InventoryValue, found: InventoryText) -> None:
    if isinstance(top.value, list):
        _read_hosts(top, {}, found)
        return
    if not isinstance(top.value, dict):
        template = Text("an inventory is a mapping with hosts, or a list of hosts, not {given}")
        top.wrong(Text(template, given=quoted(top.value)))
        return
    places = {str(name): place for name, place in top.parts()}
    known = _known(places, {"hosts", "defaults", "sshConfig"}, Text("an inventory"))
    if "sshConfig" in known:
        found.ssh_config = _taken(known["sshConfig"], _file_here) or ""
    defaults = _read_fields(known["defaults"], _DEFAULTS, Text("defaults")) if "defaults" in known else {}
    if "hosts" in top.value and "hosts" not in known:
        top.problems.append(top.document.problem(("hosts",), Text("there is no host here"), on_key=True))
    elif "hosts" not in known:
        top.missing("hosts")
    elif not isinstance(hosts := known["hosts"].value, list):
        message = Text("must be a list, not {given}", given=quoted(hosts))
        known["hosts"].wrong(message, Text("start each host with '- '"))
    else:
        _read_hosts(known["hosts"], defaults, found)


def _read_hosts(listing: InventoryValue, defaults: Mapping[str, Any], found: InventoryText) -> None:
    if not listing.value:
        listing.wrong(Text("there is no host here"))
    lines: dict[str, int] = {}
    for _, place in listing.parts():
        host = _read_host(place)
        name, line = host.get("name"), place.node.line
        if name is None:
            continue
        if name in lines:
            of_name = dict(place.parts()).get("name", place)
            of_name.wrong(Text("another host is called {name}, on line {line}", name=quoted(name), line=lines[name]))
            continue
        lines[name] = line
        merged = {key: {**defaults.get(key, {}), **host.get(key, {})} for key in ("environment", "labels")}
        found.hosts.append({**defaults, **host, **merged, "line": line})


def _read_host(place: InventoryValue) -> dict[str, Any]:
    """A mapping, or a string that is a line of a hostfile."""
    if isinstance(place.value, dict):
        host = _read_fields(place, FIELDS, Text("a host"))
        if place.value.get("name") is None:
            place.missing("name")
        return host
    if not isinstance(place.value, str):
        message = Text("must be a name or a mapping, not {given}", given=quoted(place.value))
        place.wrong(message, _in_quotes(place.value))
        return {}
    if not place.value.strip():
        place.wrong(Text("{what} is missing", what=Text("a host name")))
    line = read_line(place.value, lambda _, __, what: place.wrong(str(what), what.hint))
    said = {"name": line.name, "slots": line.count, "user": line.user} if line is not None else {}
    return {key: value for key, value in said.items() if value not in (None, "")}


def _read_fields(holder: InventoryValue, fields: Mapping[str, Reader], what: str) -> dict[str, Any]:
    if not isinstance(holder.value, dict):
        holder.wrong(Text("must be a mapping, not {given}", given=quoted(holder.value)))
        return {}
    places = {str(name): place for name, place in holder.parts()}
    values = {name: _taken(place, fields[name]) for name, place in _known(places, fields, what).items()}
    return {name: value for name, value in values.items() if value is not None}


def _known(places: dict[str, InventoryValue], names: Collection[str], what: str) -> dict[str, InventoryValue]:
    for name in places.keys() - set(names):
        if name in FIELDS and what == "defaults":
            places[name].wrong(Text("is each host's own"), Text("write it with the host"), on_key=True)
        else:
            hint = nearest(name, names) or Text("{what} has {names}", what=what, names=all_of(sorted(names)))
            places[name].stray(Text("unknown field {name}", name=quoted(name)), hint)
    return {name: place for name, place in places.items() if name in names}


def _taken(place: InventoryValue, read: Reader) -> Any:
    """None where something is wrong with it, which is noted."""
    try:
        return read(place)
    except (Unfit, quantity.QuantityError) as what:
        place.wrong(str(what), what.hint)
    return None


def _in_quotes(value: object) -> str | None:
    text = str(value).lower() if isinstance(value, bool) else value
    return Text('quote it: "{text}"', text=text) if isinstance(value, int | float) else None


def _word(take: Callable[[str], str], place: InventoryValue) -> str:
    if not isinstance(place.value, str):
        raise Unfit(Text("must be a string, not {given}", given=quoted(place.value)), _in_quotes(place.value))
    return take(place.value)


def _whole(least: int, most: int, place: InventoryValue) -> int:
    value = place.value
    if isinstance(value, bool) or not isinstance(value, int):
        hint = Text("leave the quotes out") if isinstance(value, str) and value.isdecimal() else None
        raise Unfit(Text("must be a whole number, not {given}", given=quoted(value)), hint)
    if not least <= value <= most:
        raise Unfit(Text("must be from {least} to {most}, not {given}", least=least, most=most, given=value))
    return value


def _file_here(place: InventoryValue) -> str:
    return _word(lambda text: words.file_here(text, place.folder), place)


def _memory(place: InventoryValue) -> int:
    amount = math.ceil(quantity.parse(place.value))
    if amount <= 0:
        hint = Text("leave it out to have the host asked")
        raise Unfit(Text("must be more than nothing, not {given}", given=quoted(place.value)), hint)
    return amount


def _folders(place: InventoryValue) -> tuple[str, ...]:
    read = partial(_word, words.shared_folder)
    if not isinstance(place.value, list):
        return (read(place),)
    return tuple(found for _, part in place.parts() if (found := _taken(part, read)) is not None)


def _texts(names: re.Pattern[str], what: str, place: InventoryValue) -> dict[str, str]:
    """A mapping to texts. Numbers and truths are meant as they are written."""
    if not isinstance(place.value, dict):
        raise Unfit(Text("must be a mapping, not {given}", given=quoted(place.value)))
    found = {}
    for name, part in place.parts():
        if not names.fullmatch(str(name)):
            part.wrong(Text("{given} is not {what}", given=quoted(name), what=what), on_key=True)
        elif isinstance(part.value, list | dict):
            part.wrong(Text("must be a string, not {given}", given=quoted(part.value)))
        elif "\0" in (text := _as_written(part)):
            part.wrong(Text("must not have a NUL character"))
        else:
            found[str(name)] = text
    return found


def _as_written(place: InventoryValue) -> str:
    """1.10 stays 1.10, which as a number it is not."""
    value, node = place.value, place.node
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    written = _NUMBER.match(place.document.lines[node.line - 1], node.column - 1)
    with suppress(ScalarError):
        if written is not None and resolve(written.group()) == value:
            return written.group()
    return str(value)


FIELDS: Mapping[str, Reader] = {
    "name": partial(_word, words.host),
    "slots": partial(_whole, 0, MOST_SLOTS),
    "address": partial(_word, words.host),
    "user": partial(_word, words.user),
    "port": partial(_whole, 1, 65535),
    "jump": partial(_word, words.jump),
    "key": _file_here,
    "interface": partial(_word, words.interface),
    "memory": _memory,
    "gpus": partial(_whole, 0, 1000),
    "labels": partial(_texts, _LABEL, Text("the name of a label")),
    "shared": _folders,
    "folder": partial(_word, words.folder_on_host),
    "environment": partial(_texts, _VARIABLE, Text("the name of an environment variable")),
    "mpi": partial(_word, words.folder_on_host),
}
_DEFAULTS = {name: reader for name, reader in FIELDS.items() if name not in ("name", "address")}


_EXAMPLE = Text("a hostfile with lines such as 'node1 slots=8' will do")
# What the first line that says something looks like in YAML, whatever is wrong further down; [::1] is an address.
_YAML = re.compile(r"""---|%|-(\s|$)|\{|\[(?![0-9A-Fa-f.]*:[0-9A-Fa-f.:]*\])|("[^"]*"|'[^']*'|[^\s:#]+)\s*:(\s|$)""")


def load(path: Path) -> Inventory:
    try:
        path = path.expanduser()
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
        text = raw.decode("utf-8-sig")
    except FileNotFoundError:
        raise UserError(Text("there is no file {file}", file=path), hint=_EXAMPLE) from None
    except UnicodeDecodeError:
        raise UserError(Text("{file} is not text in UTF-8", file=path), hint=_EXAMPLE) from None
    except (OSError, ValueError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(Text("{file} cannot be read: {why}", file=path, why=reason), hint=_EXAMPLE) from None
    if len(raw) > MAX_BYTES:
        raise UserError(Text("{file} is larger than {n} MiB", file=path, n=MAX_BYTES // 1024 // 1024), hint=_EXAMPLE)
    inventory = read(text, path)
    # ssh connects to nothing without it; a `key` that is not there it passes over, for an agent may have that key.
    if inventory.ssh_config and not os.path.exists(inventory.ssh_config):
        template = Text("inventory {file}: sshConfig {config} does not exist")
        hint = Text("correct the path, which starts in the inventory's folder, or leave sshConfig out to use your own")
        raise UserError(Text(template, file=path, config=inventory.ssh_config), hint=hint)
    return inventory


def read(text: str, file: Path) -> Inventory:
    source, ssh_config = str(file), ""
    lines = (line.strip() for line in text.removeprefix("\ufeff").splitlines())
    if _YAML.match(next((line for line in lines if line and not line.startswith("#")), "")):
        found = read_yaml(text, source, file.parent)
        hosts = tuple(SshHost(**fields) for fields in found.hosts)
        ssh_config, problems = found.ssh_config, found.problems
    else:
        named, problems = read_hostfile(text.removeprefix("\ufeff"), source)
        hosts = tuple(SshHost(name=name, slots=h.slots, user=h.user, line=h.line) for name, h in named.items())
    if not hosts and not problems:
        nothing = Problem(source=source, line=1, column=1, field="", message=Text("there is no host here"))
        problems = [replace(nothing, hint=_EXAMPLE)]
    if problems:
        raise ManifestError(sorted(problems, key=lambda problem: (problem.line, problem.column)))
    return Inventory(file=file, hosts=hosts, ssh_config=ssh_config)


VARIABLE = "OARSMAN_HOSTS"
_NAMES = ("hosts.yaml", "hosts", "hostfile")


def find(given: str | None, environment: Mapping[str, str] = os.environ) -> Path:
    """The file that was given, that of the variable, or the first that is in the user's configuration."""
    chosen = given or environment.get(VARIABLE)
    if chosen:
        return Path(chosen).expanduser().absolute()
    folder = Path(environment.get("XDG_CONFIG_HOME") or Path("~/.config").expanduser()) / "oarsman"
    for name in _NAMES:
        if (folder / name).is_file():
            return folder / name
    template = Text("no hosts are known: there is no {file}, and neither --hosts nor {name} names a file")
    hint = Text("write a file with two lines, 'node1 slots=8' and 'node2 slots=8', and say --hosts FILE")
    raise UsageError(Text(template, file=folder / _NAMES[0], name=VARIABLE), hint=hint)
