"""Inventory files: which one is meant, which form it has, and what is wrong with it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from oarsman.engines.hosts.ssh.inventory import Inventory, SshHost
from oarsman.engines.hosts.ssh.inventory_hostfile import read_hostfile
from oarsman.engines.hosts.ssh.inventory_yaml import read_yaml
from oarsman.errors import ManifestError, Problem, UsageError, UserError
from oarsman.manifest.source import MAX_BYTES
from oarsman.text.sentence import Text

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
    return read(text, path)


def read(text: str, file: Path) -> Inventory:
    source = str(file)
    if _is_yaml(text):
        found = read_yaml(text, source, file.parent)
        hosts = [SshHost(**fields) for fields in found.hosts]
        return _sound(Inventory(file=file, hosts=tuple(hosts), ssh_config=found.ssh_config), found.problems)
    named, problems = read_hostfile(text.removeprefix("\ufeff"), source)
    hosts = [SshHost(name=name, slots=h.slots, user=h.user, line=h.line) for name, h in named.items()]
    return _sound(Inventory(file=file, hosts=tuple(hosts)), problems)


def _is_yaml(text: str) -> bool:
    lines = (line.strip() for line in text.removeprefix("\ufeff").splitlines())
    telling = next((line for line in lines if line and not line.startswith("#")), "")
    return _YAML.match(telling) is not None


def _sound(inventory: Inventory, problems: Sequence[Problem]) -> Inventory:
    if not inventory.hosts and not problems:
        nothing = Problem(source=str(inventory.file), line=1, column=1, field="", message=Text("there is no host here"))
        problems = [replace(nothing, hint=_EXAMPLE)]
    if problems:
        raise ManifestError(sorted(problems, key=lambda problem: (problem.line, problem.column)))
    return inventory


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
    raise UsageError(
        Text(
            "no hosts are known: there is no {file}, and neither --hosts nor {name} names a file",
            file=folder / _NAMES[0],
            name=VARIABLE,
        ),
        hint=Text("write a file with two lines, 'node1 slots=8' and 'node2 slots=8', and say --hosts FILE"),
    )
