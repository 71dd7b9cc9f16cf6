"""What every test can rely on, however the suite was started."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cluster.cluster import Cluster, start
from cluster.provided import provided
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling

# A suite started in the background of a script inherits these ignored, and so would every command it tests.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

pytest_plugins = ["leftovers", "second_tries"]

# A machine that does everything at once is slow: no test may fail for that.
# Every run draws other examples: fifty at a time find the same, a few runs later, in half the time.
settings.register_profile("house", max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("house")

CRD = Path(__file__).parents[1] / "deploy" / "crd" / "mpijobs.kubeflow.org.yaml"


# Tests of one of these folders share a cluster that runs pods, which ends with the last of them.
PODS = ("tests/installed/", "tests/cluster/")
# Those of all of these share a control plane alone: each process that starts another takes half a minute of CPU more.
ALONE = ("tests/backends/kube/", "tests/cli/test_operator_for_real.py", "tests/console/on_kube/", "tests/engines/kube/")
BROWSER = "tests/browser/"  # whose files share a server and the windows in front of it
STARTING = 600  # seconds: whichever of them is the first also waits for that cluster


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that share a cluster come one after another, in whatever order: between them it would end."""
    items.sort(key=lambda item: _turn(item.nodeid))
    for item in items:
        fixtures, sharing = getattr(item, "fixturenames", ()), _sharing(item.nodeid)
        if "api" in fixtures and sharing != "api":
            raise pytest.UsageError(f"{item.nodeid} uses `api` and is in no folder that ALONE names")
        if sharing in PODS and "cluster" in fixtures:
            item.add_marker("cluster")
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(STARTING))


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    return OneProcessForEachCluster(config, log)


class OneProcessForEachCluster(LoadScopeScheduling):
    """Tests that share a cluster run in the process that started it, and so do those that share a browser; others
    wherever there is time, file by file."""

    def _split_scope(self, nodeid: str) -> str:
        return _sharing(nodeid) or nodeid.partition("::")[0]


def _sharing(nodeid: str) -> str:
    """What a test shares with others: a folder's cluster or browser, or `api`; empty if nothing."""
    if nodeid.startswith(ALONE):
        return "api"
    return next((folder for folder in (*PODS, BROWSER) if nodeid.startswith(folder)), "")


def _turn(nodeid: str) -> int:
    """The longest first: files that share nothing fill the time that is left, short ones at the very end."""
    sharing = _sharing(nodeid)
    return (*PODS, "api", BROWSER).index(sharing) if sharing else 9 - nodeid.startswith("tests/engines/hosts/")


@pytest.fixture(scope="session")
def api() -> Iterator[Cluster]:
    """A control plane alone, one for the tests of ALONE: no pod ever runs, and each works in a namespace of its own."""
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
    api.apply_file(CRD)
    api.kubectl("wait", "--for=condition=Established", "--timeout=180s", "-f", str(CRD))
    return api
