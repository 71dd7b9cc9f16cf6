"""A cluster that runs pods, with the operator in it. It goes with the last test of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cluster.cluster import Cluster, start
from cluster.excluded import insist_on_pods
from cluster.operator import Operator, installed
from cluster.provided import provided
from cluster.together import bodies, bodies_of

__all__ = ["bodies", "bodies_of"]  # the fixtures that are written elsewhere


@pytest.fixture(scope="package")
def cluster() -> Iterator[Cluster]:
    """Two nodes that run pods. Shared by all tests: each works in a namespace of its own."""
    ours = provided()
    if not ours:
        insist_on_pods()
    found = ours or start("test")
    yield found  # type: ignore[misc]  # what only our own cluster can do is refused by the other in its own words
    found.stop()


@pytest.fixture(scope="package")
def operator(cluster: Cluster) -> Iterator[Operator]:
    """The operator of this source, running in `cluster` as its chart installs it."""
    with installed(cluster) as found:
        yield found


@pytest.fixture
def namespace(cluster: Cluster) -> Iterator[str]:
    """A fresh one, with its service account, so that pods can be created at once."""
    with cluster.fresh_namespace() as name:
        yield name
