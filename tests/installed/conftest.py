"""Another cluster that runs pods, on one node and without an operator: tests install one, or kill what others need."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from cluster.cluster import Cluster, start
from cluster.excluded import insist_on_pods
from cluster.warm import Warm


@pytest.fixture(scope="package")
def cluster() -> Iterator[Cluster]:
    insist_on_pods()
    found = start("spare", nodes=1)
    yield found
    found.stop()


@pytest.fixture(scope="package")
def warm() -> Iterator[Warm]:
    with Warm() as found:
        yield found


@pytest.fixture
def namespace(cluster: Cluster) -> Iterator[str]:
    with cluster.fresh_namespace() as name:
        yield name
