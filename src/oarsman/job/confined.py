"""What a job is kept to that somebody hands in through a server: said by the server, kept with the job's variables.

Whoever may run jobs through a server with accounts is not the owner of the machine, whose user the server has. So of
the server's variables only those pass that say where things are and which language is spoken.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from oarsman import names

_PASSED = re.compile(r"PATH|LD_LIBRARY_PATH|HOME|USER|LOGNAME|SHELL|LANG|LANGUAGE|LC_\w+|TZ")
_OURS = "OARSMAN_"


class Confined(NamedTuple):
    folder: str  # where its owner's jobs run; without a user of their own they write nowhere else
    hidden: Sequence[str]  # folders that are the server's own
    user: str = ""  # the Unix user that it runs as; empty: the server's

    def kept(self, servers: Mapping[str, str], asked: Mapping[str, str]) -> dict[str, str]:
        """The variables that it has, and this. Those that are between our own parts nobody can ask for."""
        own = {name: value for name, value in asked.items() if not name.startswith(_OURS)}
        return {**passed(servers), **own, names.ENV_CONFINED: json.dumps(self._asdict())}


def passed(servers: Mapping[str, str]) -> dict[str, str]:
    """Of the server's variables those that may be seen by others."""
    return {name: value for name, value in servers.items() if _PASSED.fullmatch(name)}


def confined_by(environment: Mapping[str, str]) -> Confined | None:
    """None: a job of the machine's owner."""
    text = environment.get(names.ENV_CONFINED)
    return Confined(**json.loads(text)) if text else None
