"""The server that `oarsman server set` remembers: a small file of this user's, with an address and a token."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from oarsman.cli.text import t
from oarsman.errors import UserError


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedServer:
    url: str
    token: str | None = field(default=None, repr=False)
    ca_file: str | None = None  # the certificate of its issuer, where that is not one everybody trusts


def file() -> Path:
    folder = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return Path(folder) / "oarsman" / "server.json"


def load() -> SavedServer | None:
    import json

    path = file()
    try:
        return SavedServer(**json.loads(path.read_text("utf-8")))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError) as error:
        raise UserError(
            t("{file} cannot be read: {error}", file=path, error=error), hint=t("`oarsman server unset` removes it")
        ) from error


def save(server: SavedServer) -> None:
    """Nobody else may read it, at no moment; and it is there whole or not at all."""
    import json

    path = file()
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(f".{os.getpid()}")
    with suppress(FileNotFoundError):
        fresh.unlink()
    with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as stream:
        json.dump({name: value for name, value in asdict(server).items() if value is not None}, stream)
    fresh.replace(path)


def forget() -> None:
    with suppress(FileNotFoundError):
        file().unlink()


def token_in(path: str) -> str:
    """The token in a file; `-`: from standard input."""
    import sys

    try:
        text = sys.stdin.readline() if path == "-" else Path(path).read_text("utf-8")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(t("cannot read {source}: {reason}", source=path, reason=reason)) from error
    token = text.strip()
    if not token or not token.isascii() or len(token.split()) != 1:
        raise UserError(t("{source} does not hold a token", source=path), hint=t("`oarsman tokens add` makes one"))
    return token
