"""What a word of an inventory may be: nothing in it may turn into an option of ssh or a command of somebody's shell."""

from __future__ import annotations

import ipaddress
import os
import re
from contextlib import suppress
from pathlib import Path, PurePosixPath

from oarsman.manifest.problems import quoted

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
        return _plain(text, "a host name", "write each host by itself" if re.search(r"[\[\]{}]", text) else None)
    with suppress(ValueError):
        if "%" not in text:
            return str(ipaddress.IPv6Address(text))
    hint = "slots and port have fields of their own" if text.count(":") == 1 else None
    raise Unfit(f"{quoted(text)} is neither a host name nor an IPv6 address", hint)


def user(text: str) -> str:
    return _plain(text, "a user name")


def jump(text: str) -> str:
    """What `ssh -J` takes: [user@]host[:port], several separated by commas; IPv6 in brackets."""
    return ",".join(_stop(stop) for stop in text.split(","))


def _stop(text: str) -> str:
    login, at, place = text.rpartition("@")
    name, port = host_and_number(place)
    shown = f"[{name}]" if ":" in name else name
    if port is not None:
        shown += f":{number(port, 'a port', 1, 65535)}"
    return f"{user(login)}@{shown}" if at else shown


def interface(text: str) -> str:
    """A name, or a range that ends up as its network: 10.0.0.7/24 means 10.0.0.0/24."""
    if "/" not in text:
        return _plain(text, "the name of a network interface")
    with suppress(ValueError):
        if "%" not in text:
            return str(ipaddress.ip_network(text, strict=False))
    raise Unfit(f"{quoted(text)} is not a range of addresses such as 10.0.0.0/24")


def folder_on_host(text: str) -> str:
    """A path of the host, from its root or, with ~/, from the user's home there."""
    bad = next((c for c in text if not _ON_HOST.match(c)), None)
    if bad is not None:
        raise Unfit(f"{quoted(text)} has {quoted(bad)}, which a shell on the host could take as its own")
    if not text.startswith(("/", "~/")) and text != "~":
        raise Unfit(f"must start with / or ~/, not {quoted(text)}")
    return str(PurePosixPath(text))


def shared_folder(text: str) -> str:
    """A path that means the same there and here, which a home need not."""
    if not text.startswith("/"):
        raise Unfit(f"must start with /, not {quoted(text)}: it is the same path on every machine")
    return folder_on_host(text)


def file_here(text: str, base: Path) -> str:
    """A file of this machine; where the path is not absolute, from the folder of the inventory."""
    if not text or not text.isprintable():
        raise Unfit(f"{quoted(text)} is not the path of a file")
    return os.path.normpath(base.absolute() / os.path.expanduser(text))


def number(text: str, what: str, least: int, most: int) -> int:
    if not text:
        raise Unfit(f"{what} is missing")
    value = int(text) if re.fullmatch(r"[0-9]{1,12}", text) else -1
    if not least <= value <= most:
        raise Unfit(f"{quoted(text)} is not {what}: a whole number from {least} to {most}")
    return value


def host_and_number(text: str) -> tuple[str, str | None]:
    """name:8, where the number can be slots or a port. With one, an IPv6 address is in brackets."""
    bracketed = _BRACKETED.fullmatch(text)
    if bracketed is not None:
        return host(bracketed["address"]), bracketed["number"]
    if text.count(":") > 1:
        return host(text), None
    name, colon, digits = text.partition(":")
    return host(name), digits if colon else None


def _plain(text: str, what: str, hint: str | None = None) -> str:
    if not text:
        raise Unfit(f"{what} is missing")
    bad = next((c for c in text if not _WORD.match(c)), None)
    if bad is not None:
        raise Unfit(f"{quoted(text)} is not {what}: it has {quoted(bad)}", hint)
    if text.startswith("-"):
        raise Unfit(f"{quoted(text)} is not {what}: ssh would take it as an option")
    if text.startswith("."):  # a name is also that of a folder
        raise Unfit(f"{quoted(text)} is not {what}: it starts with a dot")
    return text
