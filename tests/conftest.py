"""What every test can rely on, however the suite was started."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster.cluster import Cluster, start
from cluster.provided import provided

# A suite started in the background of a script inherits these ignored, and so would every command it tests.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)

CRD = Path(__file__).parents[1] / "deploy" / "crd" / "mpijobs.kubeflow.org.yaml"


CLUSTERS = ("spare", "cluster", "api")  # the fixtures that start one


def pytest_itemcollected(item: pytest.Item) -> None:
    """Where several processes share the tests, all that need a cluster run in the one that started it."""
    wanted = [name for name in CLUSTERS if name in getattr(item, "fixturenames", ())]
    if wanted:
        item.add_marker(pytest.mark.xdist_group(wanted[0]))


@pytest.fixture(scope="session")
def api() -> Iterator[Cluster]:
    """A control plane alone, one for all tests: no pod ever runs, and each test works in a namespace of its own."""
    found = provided() or start("api", pods=False)
    yield found  # type: ignore[misc]
    found.stop()


@pytest.fixture
def api_namespace(api: Cluster) -> Iterator[str]:
    with api.fresh_namespace() as name:
        yield name


@pytest.fixture(scope="session")
def served(api: Cluster) -> Cluster:
    """The same, knowing MPIJobs."""
    api.kubectl("apply", "-f", str(CRD))
    api.kubectl("wait", "--for=condition=Established", "--timeout=60s", "-f", str(CRD))
    return api
