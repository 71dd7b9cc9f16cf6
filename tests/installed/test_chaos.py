"""kill -9 of the operator, of the API server and of etcd, while thirty jobs with real pods come and go.

The moments are random but repeatable: each is a number of jobs that have ended, and a short pause after that. Eight
jobs are under way at a time; more would only wait for the two cores of a small machine.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from cluster.cluster import Cluster
from cluster.crowd import Crowd, nothing_is_left, nothing_was_made_twice
from cluster.jobs import mpijob
from cluster.kubectl import until
from cluster.ledger import Ledger
from cluster.releases import Release, released

JOBS, AT_ONCE = 30, 8
SEED = 20
BAD = {"job-7", "job-22"}  # those that are meant to fail
KILLS = ("operator", "operator", "apiserver", "apiserver", "apiserver", "etcd", "etcd")


@pytest.fixture(scope="module")
def release(cluster: Cluster) -> Iterator[Release]:
    with released(cluster) as found:
        yield found


def some_job(number: int, image: str) -> dict[str, Any]:
    """Mostly launchers alone; every third has a worker, every tenth two; two fail, each in its own way."""
    workers = 2 if number % 10 == 5 else 1 if number % 3 == 1 else 0
    policy = {"cleanPodPolicy": "Running", "backoffLimit": 0}
    name = f"job-{number}"
    if number == 7:
        return mpijob(name, image, ["sh", "-c", "echo no luck; exit 3"], workers=0, policy=policy)
    if number == 22:
        return mpijob(name, image, workers=1, program=("sh", "-c", "exit 5"), policy=policy)
    return mpijob(name, image, workers=workers, program=("true",), policy=policy)


@pytest.mark.timeout(1500)
def test_whatever_is_killed_every_job_ends_right_once_and_leaves_nothing(
    cluster: Cluster, namespace: str, release: Release
) -> None:
    chance = random.Random(SEED)
    manifests = [some_job(number, cluster.images["openmpi4"]) for number in range(JOBS)]
    crowd = Crowd(cluster, namespace, manifests, AT_ONCE)
    kills: dict[str, Callable[[], None]] = {
        "operator": lambda: kill_the_leader(release),
        "apiserver": lambda: kill_and_start(cluster, "apiserver"),
        "etcd": lambda: kill_and_start(cluster, "etcd"),
    }
    order = chance.sample(KILLS, len(KILLS))
    moments = sorted(chance.sample(range(2, JOBS - AT_ONCE), len(KILLS)))
    with Ledger(cluster, namespace) as ledger:
        for victim, moment in zip(order, moments, strict=True):
            crowd.until(lambda moment=moment: crowd.ended >= moment, patience=300)  # type: ignore[misc]
            time.sleep(chance.uniform(0, 1.5))  # into the middle of whatever is going on
            kills[victim]()
        crowd.until_ended(patience=400)
        failed = {name for name, phase in crowd.phases.items() if phase != "Succeeded"}
        assert failed == BAD, crowd.story(*failed - BAD)
        causes = {name: crowd.statuses[name].get("cause", {}) for name in sorted(failed)}
        assert [cause.get("exitCode") for cause in causes.values()] == [5, 3], causes
        assert all(len(status["attempts"]) == 1 for status in crowd.statuses.values()), crowd.statuses
        nothing_was_made_twice(ledger, manifests, server_killed=True)
        nothing_is_left(cluster, namespace)


def kill_the_leader(release: Release) -> None:
    def killed() -> bool:
        with suppress(ProcessLookupError):  # it was killed a moment ago, and its lease has not ended yet
            release.kill(release.until_led())
            return True
        return False

    until(killed, "the leader to be killed")


def kill_and_start(cluster: Cluster, name: str) -> None:
    program = getattr(cluster, name)
    program.kill()
    program.start()
    cluster.apiserver.wait()
    until(lambda: all(cluster.is_ready(node) for node in cluster.nodes), "the nodes are heard of again")
