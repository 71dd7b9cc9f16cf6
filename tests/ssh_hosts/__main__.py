"""Hosts to try things on by hand.

python -m tests.ssh_hosts up [N] [NAME]    starts N hosts that stay, or four, and says how to reach them
python -m tests.ssh_hosts down [NAME]      removes them

A name, if not `dev`, is for those who want several racks at once.
"""

from __future__ import annotations

import sys
from pathlib import Path

from cluster.world import end, started

from .host import PASSWORD
from .rack import MEMORY, Rack, remove, why_no_racks

NEXT = """
    ssh -F {config} {first}
    ssh -F {config} root@{first}

{hosts} admit the key of that file, and the password {password}. On them and here, {shared} is the same folder.
{down} removes them.
"""
DEFAULT = "dev"


def up(count: int, name: str) -> None:
    if reason := why_no_racks():
        sys.exit(reason)
    if alive(name):
        sys.exit(f"{name} is up already; {down_command(name)} removes it")
    down(name)  # what a machine that lost its power has left
    hosts = Rack(folder_of(name), count, owner=None)
    try:
        hosts.start()
        hosts.trust()
    except BaseException:
        hosts.stop()
        raise
    names = f"{hosts[0].name} to {hosts[-1].name}"
    print(
        NEXT.format(
            config=hosts.ssh_config,
            first=hosts[0].name,
            hosts=names,
            password=PASSWORD,
            shared=hosts.shared,
            down=down_command(name),
        ),
        end="",
    )


def folder_of(name: str) -> Path:
    return MEMORY / f"oarsman-rack-{name}"


def down_command(name: str) -> str:
    return f"python -m tests.ssh_hosts down{'' if name == DEFAULT else f' {name}'}"


def alive(name: str) -> list[int]:
    """The first process of the switch and of each host, as they were noted when they were started."""
    noted = [file.read_text().split() for file in folder_of(name).glob("*/init")]
    return [int(pid) for pid, birth in noted if started(int(pid)) == birth]


def down(name: str) -> None:
    for pid in alive(name):
        end(pid)
    remove(folder_of(name))


def main(command: str = "", *words: str) -> None:
    match command, *words:
        case "up", *rest if len(rest) < 3 and (not rest or (rest[0].isdigit() and int(rest[0]))):
            up(int(rest[0]) if rest else 4, rest[1] if len(rest) > 1 else DEFAULT)
        case "down", *rest if len(rest) < 2:
            down(*rest or [DEFAULT])
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(*sys.argv[1:])
