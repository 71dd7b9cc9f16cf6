"""A real API server, on which tests play the operator and the kubelet."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from cluster.cluster import Cluster
from cluster.conftest import api, api_namespace

from oarsman.engines.kube.client import load_access
from oarsman.runtime.cluster import ClusterJobs

from .played import Played

__all__ = ["api", "api_namespace"]
CRD = Path(__file__).parents[3] / "deploy" / "crd" / "mpijobs.kubeflow.org.yaml"


@pytest.fixture(scope="session")
def served(api: Cluster) -> Cluster:
    """The server, knowing MPIJobs."""
    api.apply(yaml.safe_load(CRD.read_text()))
    api.kubectl("wait", "--for=condition=Established", f"crd/{CRD.stem}", "--timeout=60s")
    return api


@pytest.fixture
def jobs(served: Cluster, api_namespace: str) -> Iterator[ClusterJobs]:
    found = ClusterJobs(load_access(kubeconfig=Path(str(served.kubeconfig))), namespace=api_namespace)
    yield found
    found.close()


@pytest.fixture
def played(jobs: ClusterJobs) -> Played:
    return Played(jobs)
