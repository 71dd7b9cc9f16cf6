"""The cluster from the command line.

python -m cluster build [WHAT]    makes the programs of a Kubernetes, such as 1.33, or kwok if the cache lacks them
python -m cluster prepare         makes the images that are missing there
python -m cluster up [NAME]       starts a cluster that stays, called dev if no name is given
python -m cluster down [NAME]     removes it
"""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from cluster import build, cleaning, containers
from cluster.cluster import refresh, start
from cluster.images import NAMES
from cluster.places import locked, running, say

DEFAULT = "dev"  # the one that the Makefile speaks of
NEXT = """
Next, at the top of the repository:

    . .venv/bin/activate
    export KUBECONFIG={kubeconfig}
    alias kubectl={kubectl}
    kubectl get nodes
    oarsman install --image {operator} --kubectl-delivery-image {kubectl_delivery}
    oarsman --on kube run -n 4 --image {mpi} --name first -- hostname
    sed 's|oarsman/openmpi:.*|{mpi}|' examples/hello-cluster/hello-cluster.yaml | oarsman --on kube run -

{down} removes it.
"""


def prepare() -> None:
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
    print(next_steps(name, kubeconfig, build.programs()["kubectl"], names), end="")


def next_steps(name: str, kubeconfig: Path, kubectl: Path, images: Iterable[str]) -> str:
    """What to type to see a job run, with the names that are right for this cluster."""
    return NEXT.format(
        kubeconfig=shlex.quote(str(kubeconfig)),
        kubectl=shlex.quote(str(kubectl)),
        operator=next(image for image in images if "/operator:" in image),
        kubectl_delivery=NAMES["busy"],
        mpi=NAMES["openmpi5"],
        down="make cluster-down" if name == DEFAULT else f"PYTHONPATH=tests python -m cluster down {name}",
    )


def down(name: str) -> None:
    with locked(running() / f"{name}.up"):
        cleaning.remove(name)
        cleaning.sweep()
    say(f"{name} is gone")


def main(command: str = "", *names: str) -> None:
    name = names[0] if names else DEFAULT
    match command:
        case "build":
            build.build(*names)
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
