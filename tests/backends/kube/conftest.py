"""A real API server, on which tests play the operator and the kubelet."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster.cluster import Cluster
from waiting import waiting

from oarsman.backends.kube.backend import KubeBackend
from oarsman.engines.kube.client import load_access

from .played import Played


@pytest.fixture
def jobs(served: Cluster, api_namespace: str) -> Iterator[KubeBackend]:
    found = waiting(KubeBackend(load_access(kubeconfig=Path(str(served.kubeconfig))), namespace=api_namespace))
    yield found
    found.close()


@pytest.fixture
def played(jobs: KubeBackend) -> Played:
    return Played(jobs)
