"""Hosts to try things on by hand.

python -m tests.ssh_hosts up [N]    starts N hosts that stay, four if no number is given, and says how to reach them
python -m tests.ssh_hosts down      removes them
"""

from __future__ import annotations

import shutil
import sys

from cluster.world import end, started

from .host import PASSWORD
from .rack import MEMORY, Rack, why_no_racks

FOLDER = MEMORY / "oarsman-rack-dev"
NEXT = """
    ssh -F {config} {first}
    ssh -F {config} root@{first}

{hosts} admit the key of that file, and the password {password}. On them and here, {shared} is the same folder.
{command} down removes them.
"""
COMMAND = "python -m tests.ssh_hosts"


def up(count: int) -> None:
    if reason := why_no_racks():
        sys.exit(reason)
    if alive():
        sys.exit(f"hosts are up already; {COMMAND} down removes them")
    down()  # what a machine that lost its power has left
    FOLDER.mkdir(mode=0o700)
    hosts = Rack(FOLDER, count, owner=None)
    try:
        hosts.start()
        hosts.trust()
    except BaseException:
        hosts.stop()
        raise
    names = f"{hosts[0].name} to {hosts[-1].name}"
    print(NEXT.format(config=hosts.ssh_config, first=hosts[0].name, hosts=names, password=PASSWORD,
                      shared=hosts.shared, command=COMMAND), end="")  # fmt: skip


def alive() -> list[int]:
    """The first process of the switch and of each host, as they were noted when they were started."""
    noted = [file.read_text().split() for file in FOLDER.glob("*/init")]
    return [int(pid) for pid, birth in noted if started(int(pid)) == birth]


def down() -> None:
    for pid in alive():
        end(pid)
    shutil.rmtree(Rack(FOLDER, 0, owner=None).shared, ignore_errors=True)
    shutil.rmtree(FOLDER, ignore_errors=True)


def main(command: str = "", count: str = "4") -> None:
    match command:
        case "up" if count.isdigit() and int(count):
            up(int(count))
        case "down":
            down()
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(*sys.argv[1:])
