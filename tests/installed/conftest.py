"""Another cluster that runs pods, without an operator: for tests that install one, or kill what others need."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from cluster.cluster import Cluster, start
from cluster.excluded import insist_on_pods


@pytest.fixture(scope="package")
def cluster() -> Iterator[Cluster]:
    insist_on_pods()
    found = start("spare")
    yield found
    found.stop()


@pytest.fixture
def namespace(cluster: Cluster) -> Iterator[str]:
    with cluster.fresh_namespace() as name:
        yield name
