"""A cluster that somebody else runs: the one whose kubeconfig OARSMAN_TEST_KUBECONFIG names."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NoReturn

from cluster.build import programs
from cluster.images import NAMES
from cluster.kubectl import Kubectl


class Provided(Kubectl):
    """Used as it is. It must have the images of the tests under their names, and cannot be killed."""

    def __init__(self, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig
        self.runs_pods = True
        self._kubectl_program = programs()["kubectl"]
        operator = os.environ.get("OARSMAN_TEST_OPERATOR_IMAGE", "oarsman.test/operator:1")
        self.images = NAMES | {"operator": operator}

    @property
    def etcd(self) -> NoReturn:
        raise RuntimeError(f"this test kills parts of its cluster, and {self.kubeconfig} is not its own")

    apiserver = nodes = etcd

    def stop(self) -> None:
        """It is not ours."""


def provided() -> Provided | None:
    named = os.environ.get("OARSMAN_TEST_KUBECONFIG")
    return Provided(Path(named)) if named else None
