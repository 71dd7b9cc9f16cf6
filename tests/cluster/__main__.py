"""The cluster from the command line.

python -m cluster prepare         makes what is missing in the cache: programs and images
python -m cluster up [NAME]       starts a cluster that stays, called dev if no name is given
python -m cluster down [NAME]     removes it
"""

from __future__ import annotations

import sys
import time

from cluster import build, cleaning, containers
from cluster.cluster import refresh, start
from cluster.places import locked, running, say


def prepare() -> None:
    build.build()
    containers.fill(build.programs())
    containers.drop_old()


def up(name: str) -> None:
    kubeconfig = running() / name / "control-plane" / "kubeconfig"
    with locked(running() / f"{name}.up"):
        if cleaning.alive(name):
            prepare()
            say(f"{name} is up already; it gets the images as they are now")
            names = refresh(name)
        else:
            prepare()
            began = time.monotonic()
            cluster = start(name, detached=True)
            say(f"{name} is ready after {time.monotonic() - began:.0f} s, with {len(cluster.nodes)} nodes")
            names = list(cluster.images.values())
        for image in names:
            say(f"image {image}")
    kubectl = build.programs()["kubectl"]
    print(f"\n    export KUBECONFIG={kubeconfig}\n    {kubectl} get nodes\n\nmake cluster-down removes it.")


def down(name: str) -> None:
    with locked(running() / f"{name}.up"):
        cleaning.remove(name)
        cleaning.sweep()
    say(f"{name} is gone")


def main(command: str = "", name: str = "dev") -> None:
    match command:
        case "prepare":
            prepare()
        case "up":
            up(name)
        case "down":
            down(name)
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(*sys.argv[1:])
