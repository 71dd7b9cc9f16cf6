"""Says what it did, and what it found; ends with 1 if that is anything."""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
import tempfile
import time
from pathlib import Path

from ssh_hosts import rack

from .crowd import Crowd, world


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.kills", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=200)
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--on", default="local,ssh", help="local, ssh, or both")
    parser.add_argument("--no-disk", action="store_true", help="no disk that is full, for which root mounts one")
    parser.add_argument("--findings", type=Path, help="a file for what was found, beside the screen")
    asked = parser.parse_args()
    places = asked.on.split(",")
    began = time.monotonic()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that all is cleared away
    with contextlib.ExitStack() as ending:
        folder = Path(ending.enter_context(tempfile.TemporaryDirectory(prefix="kills-", dir="/tmp")))
        hosts = ending.enter_context(rack(3)) if "ssh" in places else None
        made = ending.enter_context(world(folder, hosts, disk=not asked.no_disk))
        crowd = Crowd(made, seed=asked.seed, jobs=asked.jobs, kills=asked.kills, places=places)
        crowd.file = asked.findings
        try:
            crowd.run()
        finally:
            print("\n\n".join(crowd.findings))
            for what, number in sorted({**crowd.ended, **crowd.troubles.done}.items()):
                print(f"{number:6}  {what}")
            print(
                f"seed {asked.seed}: {crowd.troubles.killed} kills, {crowd.handed_in} jobs, "
                f"{len(crowd.findings)} findings, {time.monotonic() - began:.0f} s"
            )
    return int(bool(crowd.findings))


if __name__ == "__main__":
    sys.exit(main())
