"""Tests that run at the same time: nearly all of a test with jobs in a cluster is waiting.

`@together` marks a test whose body runs in a thread beside those of the folder's other tests, a few at a time, in the
order in which they are asked for. The test itself waits for its body, and fails as it did. A test that must be alone
asks for the fixture `alone`: when it begins, all of them have ended.
"""

from __future__ import annotations

import inspect
import tempfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import pytest

from cluster.cluster import Cluster
from cluster.face import Face, a_face
from cluster.jobs import Submitted, submit
from cluster.operator import Operator
from cluster.warm import Warm

AT_ONCE = 8  # each starts three pods or four; more at a time than that only start later

Body = Callable[..., None]


class Place:
    """A namespace of its own for each body."""

    def __init__(self, cluster: Cluster, namespace: str, folder: Path, warm: Warm) -> None:
        self.cluster = cluster
        self.namespace = namespace
        self.folder = folder
        self.jobs: list[Submitted] = []
        self._warm = warm

    @property
    def face(self) -> Face:
        """With a kubeconfig whose context names the namespace, as users have one."""
        return a_face(self.cluster, self.namespace, self.folder, self._warm)

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
    """Those of all tests that were chosen to run."""

    def __init__(self, session: pytest.Session, cluster: Cluster, warm: Warm) -> None:
        self._cluster = cluster
        self._warm = warm
        self._pool = ThreadPoolExecutor(AT_ONCE)
        self._started: dict[str, Future[None]] = {}
        self._bodies: dict[str, tuple[Body, Mapping[str, Any]]] = {}
        for item in session.items:
            body = getattr(getattr(item, "obj", None), "body", None)
            if body is not None:
                given = item.callspec.params if hasattr(item, "callspec") else {}
                self._bodies[item.nodeid] = body, given
                self._started[item.nodeid] = self._start(item.nodeid)

    def _start(self, test: str) -> Future[None]:
        return self._pool.submit(self._run, *self._bodies[test])

    def _run(self, body: Body, given: Mapping[str, Any]) -> None:
        with (
            self._cluster.fresh_namespace() as namespace,
            tempfile.TemporaryDirectory(prefix="oarsman-place-", ignore_cleanup_errors=True) as folder,
        ):
            place = Place(self._cluster, namespace, Path(folder), self._warm)
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

    def wait(self) -> None:
        """Until none runs, however they end."""
        wait(self._started.values())

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)


@pytest.fixture(scope="package")
def bodies(request: pytest.FixtureRequest, cluster: Cluster, operator: Operator, warm: Warm) -> Iterator[Bodies]:
    """What a module shares ends when one of its tests is tried again; the bodies of its other tests must not."""
    found = Bodies(request.session, cluster, warm)
    yield found
    found.close()


@pytest.fixture
def alone(bodies: Bodies) -> None:
    """For tests that kill what all others need."""
    bodies.wait()
