"""Tests that run at the same time: nearly all of a test with jobs in a cluster is waiting.

`@together` marks a test whose body runs in a thread beside those of its module's other tests, a few at a time, in the
order in which they are asked for. The test itself waits for its body, and fails as it did.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from cluster.cluster import Cluster
from cluster.jobs import Submitted, submit
from cluster.operator import Operator

AT_ONCE = 8  # each starts three pods or four; more at a time than that only start later

Body = Callable[..., None]


class Place:
    """A namespace of its own for each body."""

    def __init__(self, cluster: Cluster, namespace: str, operator: Operator) -> None:
        self.cluster = cluster
        self.namespace = namespace
        self.operator = operator
        self.jobs: list[Submitted] = []

    def image(self, mpi: str = "openmpi4") -> str:
        return self.cluster.images[mpi]

    def submit(self, manifest: Mapping[str, Any]) -> Submitted:
        (job,) = submit(self.cluster, self.namespace, manifest)
        self.jobs.append(job)
        return job


def together(body: Body) -> Callable[..., None]:
    """The body's first argument is its Place, the others are those of pytest.mark.parametrize."""

    def test(bodies: Bodies, request: pytest.FixtureRequest, **_: Any) -> None:
        bodies.outcome(request.node.nodeid)

    own = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in ("bodies", "request")]
    others = [each.replace(kind=each.KEYWORD_ONLY) for each in list(inspect.signature(body).parameters.values())[1:]]
    for name in ("__name__", "__qualname__", "__module__", "__doc__"):
        setattr(test, name, getattr(body, name))
    test.__signature__ = inspect.Signature([*own, *others])  # type: ignore[attr-defined]
    test.body = body  # type: ignore[attr-defined]
    return test


class Bodies:
    """Those of the tests of one module that were chosen to run."""

    def __init__(self, module: pytest.Module, cluster: Cluster, operator: Operator) -> None:
        self._cluster = cluster
        self._operator = operator
        self._pool = ThreadPoolExecutor(AT_ONCE)
        self._started: dict[str, Future[None]] = {}
        self._bodies: dict[str, tuple[Body, Mapping[str, Any]]] = {}
        for item in module.session.items:
            body = getattr(getattr(item, "obj", None), "body", None)
            if body is not None and item.getparent(pytest.Module) is module:
                given = item.callspec.params if hasattr(item, "callspec") else {}
                self._bodies[item.nodeid] = body, given
                self._started[item.nodeid] = self._start(item.nodeid)

    def _start(self, test: str) -> Future[None]:
        return self._pool.submit(self._run, *self._bodies[test])

    def _run(self, body: Body, given: Mapping[str, Any]) -> None:
        with self._cluster.fresh_namespace() as namespace:
            place = Place(self._cluster, namespace, self._operator)
            try:
                body(place, **given)
            except Exception as error:
                if not getattr(error, "tells_all", False):
                    for job in place.jobs:
                        error.add_note(job.story())
                raise
            finally:
                # While the jobs are there, the operator would make anew what is taken away.
                place.cluster.delete_all("mpijobs.v2beta1.kubeflow.org", namespace)

    def outcome(self, test: str) -> None:
        """As it was; asked again, as another run is."""
        (self._started.pop(test, None) or self._start(test)).result()

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)


@pytest.fixture(scope="package")
def bodies_of(cluster: Cluster, operator: Operator) -> Iterator[Callable[[pytest.Module], Bodies]]:
    """What a module shares ends when one of its tests is tried again; the bodies of its other tests must not."""
    found: dict[pytest.Module, Bodies] = {}

    def of(module: pytest.Module) -> Bodies:
        if module not in found:
            found[module] = Bodies(module, cluster, operator)
        return found[module]

    yield of
    for bodies in found.values():
        bodies.close()


@pytest.fixture
def bodies(request: pytest.FixtureRequest, bodies_of: Callable[[pytest.Module], Bodies]) -> Bodies:
    return bodies_of(request.node.getparent(pytest.Module))
