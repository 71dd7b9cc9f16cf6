"""How much each question about a cluster's jobs asks of the API server. Counted, not timed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from oarsman.backends.kube import backend
from oarsman.backends.kube.backend import KubeBackend
from oarsman.engines.kube.client import Kube

from .played import Played, a_document
from .test_backend import submit

Asked = Counter[tuple[str, str]]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    found: Asked = Counter()

    def count(verb: str, plural: str, status: int, seconds: float) -> None:
        found[verb, plural] += 1

    monkeypatch.setattr(backend, "Kube", partial(Kube, observe=count))
    return found


@pytest.fixture
def key(asked: Asked, jobs: KubeBackend, played: Played) -> str:
    found = submit(jobs).job.key
    played.launcher(found)
    asked.clear()
    return found


DISCOVERY = ("get", "")  # whether there is a metrics server; once a minute for all questions


@pytest.mark.parametrize(
    ("question", "cost"),
    [
        (lambda jobs, key: jobs.log_page(key), {("get", "mpijobs"): 1, ("list", "pods"): 1, ("get", "pods"): 1}),
        (lambda jobs, key: jobs.usage_series(key), {("get", "mpijobs"): 1, DISCOVERY: 1}),
        (lambda jobs, key: jobs.hosts(), {("list", "nodes"): 1, ("list", "pods"): 1, DISCOVERY: 1}),
        (
            lambda jobs, key: jobs.fit(a_document()),
            {("list", "nodes"): 1, ("list", "pods"): 1, ("list", "resourcequotas"): 1},
        ),
    ],
)
def test_a_question_costs_few_requests(
    jobs: KubeBackend, key: str, asked: Asked, question: Callable[[KubeBackend, str], Any], cost: dict[Any, int]
) -> None:
    question(jobs, key)
    assert asked == cost


def test_following_costs_one_list_and_one_watch_however_many_changes(jobs: KubeBackend, key: str, asked: Asked) -> None:
    followed = jobs.follow(jobs.home)
    next(followed)
    for workers in (3, 4, 5):
        jobs.scale(key, workers)
        assert [record.job.workers for record in next(followed).records] == [workers]
    followed.close()  # type: ignore[attr-defined]
    assert (asked["list", "mpijobs"], asked["watch", "mpijobs"]) == (1, 1)
