"""Clusters that run pods. They go with the last test of this folder: the rest of the suite has the machine."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from cluster.cluster import Cluster, start, why_no_pods
from cluster.operator import Operator, installed
from cluster.places import HERE
from cluster.provided import provided
from cluster.together import bodies

__all__ = ["bodies"]  # the fixtures that are written elsewhere

WITHOUT = "OARSMAN_WITHOUT"  # what a machine cannot do and shall not be asked to, by name: pods


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of this folder come one after another, in whatever order: between them their clusters would end."""
    for item in items:
        if {"cluster", "spare"} & set(getattr(item, "fixturenames", ())):
            item.add_marker("cluster")
    items.sort(key=lambda item: HERE not in item.path.parents)


def _insist_on_pods() -> None:
    """A machine that cannot run pods is said so by a failure, never by a test that quietly did not run."""
    if "pods" in os.environ.get(WITHOUT, "").replace(",", " ").split():
        pytest.skip(f"{WITHOUT} names pods: tests that need a node were not run")
    if reason := why_no_pods():
        pytest.fail(f"{reason}\n({WITHOUT}=pods leaves out the tests that need them)", pytrace=False)


@pytest.fixture(scope="package")
def cluster() -> Iterator[Cluster]:
    """Two nodes that run pods. Shared by all tests: each works in a namespace of its own."""
    ours = provided()
    if not ours:
        _insist_on_pods()
    found = ours or start("test")
    yield found  # type: ignore[misc]  # what only our own cluster can do is refused by the other in its own words
    found.stop()


@pytest.fixture(scope="package")
def operator(cluster: Cluster) -> Iterator[Operator]:
    """The operator of this source, running in `cluster` as its chart installs it."""
    with installed(cluster) as found:
        yield found


@pytest.fixture(scope="package")
def spare() -> Iterator[Cluster]:
    """Another one that runs pods, without an operator: for tests that install one, or kill what others need."""
    _insist_on_pods()
    found = start("spare")
    yield found
    found.stop()


@pytest.fixture
def spare_namespace(spare: Cluster) -> Iterator[str]:
    with spare.fresh_namespace() as name:
        yield name


@pytest.fixture
def namespace(cluster: Cluster) -> Iterator[str]:
    """A fresh one, with its service account, so that pods can be created at once."""
    with cluster.fresh_namespace() as name:
        yield name
