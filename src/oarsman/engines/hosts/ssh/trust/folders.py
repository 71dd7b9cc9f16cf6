"""An ssh folder that trust is set up in, on a host or here: how it is looked at and changed."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from oarsman.engines.hosts.ssh import inventory_hostfile as words
from oarsman.engines.hosts.ssh import scripts
from oarsman.engines.hosts.ssh.client import Answer
from oarsman.engines.hosts.ssh.interfaces import Address
from oarsman.engines.hosts.ssh.inventory_hostfile import Unfit
from oarsman.engines.hosts.ssh.trouble import Trouble, last_line
from oarsman.engines.hosts.ssh.trust.files import PREFIX, PublicKey
from oarsman.manifest.problems import quoted
from oarsman.text.sentence import Text

KEY = "id_oarsman"
ON_HOST = {name: f".ssh/{name}" for name in ("authorized_keys", "known_hosts", "config")}
_PIECE = 2000  # bytes of a file in one word of a script
_VISITS_AT_ONCE = 4
_PROGRAMS = ("ssh", "ssh-keygen", "od", "cksum")
_MODES = (".", ".ssh", ".ssh/authorized_keys")
_USER = re.compile(r"\w[\w.@+-]*(\\\w[\w.@+-]*)?", re.ASCII)  # directories have their own kinds of names
_SENSELESS = Text("its shell did not run the command")
_PLAIN = frozenset(b'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789 \n+/=@.,:;_-#<>[]()|*?!"$&~')

Run = Callable[[str, float], Awaitable[Answer]]


@dataclass(frozen=True, slots=True)
class File:
    text: bytes | None  # None: there is none
    sum: str  # what cksum said about it


@dataclass(frozen=True, slots=True)
class FolderSeen:
    user: str
    node: str  # what the machine calls itself
    address: str  # its own, at which the connection came in; empty: unknown
    addresses: tuple[str, ...]  # from which it may come to others: those of docker0 are nobody's own
    port: int
    key: str  # the public half of our key pair; empty: there is none
    number: str  # of the file that the home is
    files: Mapping[str, File]  # by label
    missing: tuple[str, ...] = ()  # programs
    open_to_others: tuple[str, ...] = ()  # what others may write, for which sshd ignores authorized_keys

    @property
    def home(self) -> str:
        """The same for two hosts that share it; empty: nobody knows. Copies of a disk have the same numbers, too."""
        return f"{self.number} {self.key}" if self.number and self.key else ""


@dataclass(frozen=True, slots=True)
class Edit:
    label: str
    before: File
    after: bytes | None  # None: the file goes


@dataclass(slots=True)
class SshFolder:
    name: str  # of the host; empty: here
    run: Run
    files: Mapping[str, str] = field(default_factory=lambda: ON_HOST)  # where they are, by label

    async def look(self) -> FolderSeen | Trouble:
        calls = ["describe", *(f"tell {label} {shlex.quote(path)}" for label, path in self.files.items())]
        rows = await self._ask(calls)
        try:
            return rows if isinstance(rows, Trouble) else _seen(self.name, rows, self.files)
        except Unfit as error:
            return _failed(self.name, Text("it cannot be called what it calls itself: {why}", why=error.args[0]))
        except (LookupError, ValueError):
            return _failed(self.name, _SENSELESS)

    async def make_key(self, mark: str) -> str | Trouble:
        """The public half of the pair that is there afterwards."""
        rows = await self._ask([f"make_key {shlex.quote(PREFIX + mark)}"])
        if isinstance(rows, Trouble):
            return rows
        made = next((row[1] for row in rows if row[0] == "key"), "")
        return made if PublicKey.read(made) else _failed(self.name, Text("no key could be made: ssh-keygen failed"))

    async def change(self, edits: Sequence[Edit], *, delete_key: bool = False) -> set[str] | Trouble:
        """The labels of what was not changed because somebody else did so since it was seen."""
        calls = [call for number, edit in enumerate(edits) for call in _edit(number, self.files[edit.label], edit)]
        rows = await self._ask(calls + ["delete_key"] * delete_key)
        if isinstance(rows, Trouble):
            return rows
        answered = {row[1] for row in rows if row[0] in ("changed", "moved")}
        if failed := [edit.label for edit in edits if edit.label not in answered]:
            return _failed(self.name, Text("{files} could not be written", files=", ".join(failed)))
        return {row[1] for row in rows if row[0] == "moved"} & self.files.keys()

    async def visit(self, names: Sequence[str]) -> dict[str, tuple[int, str]] | Trouble:
        """Log in from there to others, a few at a time: sshd turns away those who come in crowds."""
        waits = {True: " wait", False: ""}
        calls = [f"visit {shlex.quote(name)} &{waits[n % _VISITS_AT_ONCE == 0]}" for n, name in enumerate(names, 1)]
        rows = await self._ask([*calls, "wait"], timeout=60 + 15 * len(names) / _VISITS_AT_ONCE)
        if isinstance(rows, Trouble):
            return rows
        try:
            return {
                row[1]: (int(row[2]), bytes.fromhex(row[3]).decode(errors="replace"))
                for row in rows
                if row[0] == "visit" and len(row) == 4
            }
        except ValueError:
            return _failed(self.name, _SENSELESS)

    async def _ask(self, calls: Sequence[str], *, timeout: float = 60) -> list[list[str]] | Trouble:  # noqa: ASYNC109
        answer = await self.run("\n".join([scripts.script("trust/trust"), *calls, "say end", ""]), timeout)
        if answer.trouble is not None:
            return answer.trouble
        rows = [line.split("\t") for line in answer.out.splitlines()]
        if ["oarsman-trust"] not in rows or ["end"] not in rows:
            return _failed(self.name, last_line(answer.err) or _SENSELESS)
        rows = [row for row in rows[rows.index(["oarsman-trust"]) + 1 :] if len(row) > 1]
        if any(row[0] == "failed" for row in rows) and (why := last_line(answer.err)):
            return _failed(self.name, why)
        return rows


def here(home: Path, files: Mapping[str, str]) -> SshFolder:
    """The folder of the user who asks, through the same words."""

    async def run(script: str, _: float) -> Answer:
        process = await asyncio.create_subprocess_exec(
            "/bin/sh",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, "HOME": str(home)},
        )
        out, err = await process.communicate(script.encode())
        return Answer(process.returncode or 0, out.decode(errors="replace"), err.decode(errors="replace"))

    return SshFolder("", run, files)


def _failed(name: str, what: str) -> Trouble:
    return Trouble("other", Text("{host}: {why}", host=name, why=what) if name else what)


def _edit(number: int, path: str, edit: Edit) -> list[str]:
    words = f"{edit.label} {shlex.quote(path)} {shlex.quote(edit.before.sum)}"
    if edit.after is None:
        return [f"delete {words}"]
    return [f"text{number}() {{\n{printing(edit.after)}\n}}", f"replace {words} text{number}"]


def printing(content: bytes) -> str:
    """Commands that print it, byte for byte, in every POSIX shell."""
    escaped = [chr(byte) if byte in _PLAIN else f"\\0{byte:03o}" for byte in content]
    pieces = ("".join(escaped[start : start + _PIECE]) for start in range(0, len(content), _PIECE))
    return " &&\n".join(f"printf %b '{piece}'" for piece in pieces) or ":"


def _user(text: str) -> str:
    if _USER.fullmatch(text):
        return text
    raise Unfit(Text("{given} is not {what}", given=quoted(text), what=Text("a user name")))


def _seen(name: str, rows: Sequence[Sequence[str]], labels: Iterable[str]) -> FolderSeen | Trouble:
    """What it calls itself gets into the files of others, where nothing in it may mean more than itself. This machine,
    which has no name here, may lack the programs that tell."""
    said = {row[0]: list(row[1:]) for row in rows}
    if unreadable := [label for label in labels if ["unreadable", label] in rows]:
        return _failed(name, Text("it does not let us read {files}", files=", ".join(unreadable)))
    files = {
        row[1]: File(None if row[2] == "none" else bytes.fromhex("".join(row[3:4])), row[2])
        for row in rows
        if row[0] == "file"
    }
    reached, port = said["reached"][2:4] if len(said.get("reached", ())) == 4 else ("", "22")
    address = words.address(reached) if reached and "%" not in reached else ""
    there = [row[1:3] for row in rows if row[0] == "address" and len(row) == 3] + [["", address]] * bool(address)
    addresses = [Address(interface=name, address=words.address(own), prefix=0) for name, own in there]
    key = said.get("key", [""])[0]
    if key and PublicKey.read(key) is None:
        raise Unfit(Text("{given} is no public key of OpenSSH", given=quoted(key)))
    modes = {row[1]: row[2] for row in rows if row[0] == "mode"}
    return FolderSeen(
        user=_user(said["user"][0]) if name else "",
        node=words.host(said["node"][0]) if name else "",
        address=address,
        addresses=tuple(own.address for own in addresses if own.usable and (own.address == address or not own.virtual)),
        port=words.number(port, Text("a port"), 1, 65535),
        key=key,
        number=said.get("home", [""])[0].split(".")[0].strip(),
        files={label: files[label] for label in labels},
        missing=tuple(program for program in _PROGRAMS if ["missing", program] in rows),
        open_to_others=tuple(f for f in _MODES if re.match(r".....w|........w", modes.get(f, ""))),
    )
