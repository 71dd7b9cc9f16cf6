"""Whoever may not see all namespaces follows the jobs of those they may, for as long as they may."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest
from aiohttp import web
from cluster.cluster import Cluster
from cluster.people import SEE, person
from kube_objects import delete

from oarsman.backends.base import Batch
from oarsman.backends.kube import follow, records
from oarsman.backends.kube.backend import KubeBackend
from oarsman.backends.kube.identity import Reviewer
from oarsman.engines.kube.client import Kube, load_access, resources
from oarsman.engines.kube.client.access import Access
from oarsman.errors import ForbiddenError

from .test_follow import a_document

T = TypeVar("T")
AGAIN = 0.2  # seconds until the cluster is asked once more


def as_somebody(cluster: Cluster, token: str) -> Access:
    return load_access(kubeconfig=Path(str(cluster.kubeconfig)), token=token)


def followed(
    access: Access, candidates: list[str], look: Callable[[AsyncIterator[Batch]], Coroutine[Any, Any, T]]
) -> T:
    async def whole() -> T:
        async with Kube(access) as kube:
            batches = follow.allowed_batches(kube, candidates, records.record, again=AGAIN)
            async with asyncio.timeout(60), aclosing(batches):
                return await look(batches)

    return asyncio.run(whole())


def submit(jobs: KubeBackend, name: str, namespace: str) -> None:
    document = a_document(name=name, namespace=namespace)
    jobs.submit(document, environment={}, folder=Path.cwd())


def test_jobs_of_two_namespaces_come_as_one_and_those_of_a_third_do_not(
    served: Cluster, jobs: KubeBackend, api_namespace: str
) -> None:
    with served.fresh_namespace() as second, served.fresh_namespace() as third:
        token = person(served, api_namespace, "ada", verbs=SEE)
        served.kubectl(
            f"--namespace={second}", "create", "role", "see", "--verb=get,list,watch", "--resource=mpijobs.kubeflow.org"
        )
        served.kubectl(
            f"--namespace={second}",
            "create",
            "rolebinding",
            "see",
            "--role=see",
            f"--serviceaccount={api_namespace}:ada",
        )
        for place in (api_namespace, second, third):
            submit(jobs, "first", place)

        async def look(batches: AsyncIterator[Batch]) -> None:
            first = await anext(batches)
            assert first.whole
            assert {record.job.key for record in first.records} == {f"{api_namespace}/first", f"{second}/first"}
            await asyncio.to_thread(submit, jobs, "later", second)
            later = await anext(batches)
            assert (later.whole, [record.job.key for record in later.records]) == (False, [f"{second}/later"])
            await asyncio.to_thread(jobs.ask, lambda kube: delete(kube, resources.MPIJOBS, "first", api_namespace))
            assert (await anext(batches)).gone == (f"{api_namespace}/first",)

        followed(as_somebody(served, token), [api_namespace, second, third, "not-there"], look)


def test_a_right_that_is_taken_away_ends_what_was_seen_by_it(
    served: Cluster, jobs: KubeBackend, api_namespace: str
) -> None:
    token = person(served, api_namespace, "ada", verbs=SEE)
    submit(jobs, "pi", api_namespace)

    async def look(batches: AsyncIterator[Batch]) -> None:
        assert [record.job.name for record in (await anext(batches)).records] == ["pi"]
        gone = (f"--namespace={api_namespace}", "delete", "rolebinding", "ada")
        await asyncio.to_thread(served.kubectl, *gone)
        with pytest.raises(ForbiddenError, match="in no namespace"):
            await anext(batches)

    followed(as_somebody(served, token), [api_namespace], look)


def test_whoever_may_list_namespaces_needs_not_be_told_their_names(
    served: Cluster, jobs: KubeBackend, api_namespace: str
) -> None:
    token = person(served, api_namespace, "ada", verbs=SEE)
    name = f"names-{api_namespace}"
    served.kubectl("create", "clusterrole", name, "--verb=list", "--resource=namespaces")
    served.kubectl(
        "create", "clusterrolebinding", name, f"--clusterrole={name}", f"--serviceaccount={api_namespace}:ada"
    )
    try:
        submit(jobs, "pi", api_namespace)

        async def look(batches: AsyncIterator[Batch]) -> list[str]:
            return [record.job.key for record in (await anext(batches)).records]

        assert followed(as_somebody(served, token), [], look) == [f"{api_namespace}/pi"]
    finally:
        served.kubectl("delete", "clusterrole,clusterrolebinding", name)


# -- a server that is newer than the one here -------------------------------------------------------------
@asynccontextmanager
async def newer_server(version: str, name: str) -> AsyncIterator[tuple[Access, list[str]]]:
    """What it answers to a SelfSubjectReview of that version; every other question is not known to it."""
    asked: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(f"{request.method} {request.path}")
        if request.headers.get("Authorization") != "Bearer good":
            return web.json_response({"message": "Unauthorized", "code": 401}, status=401)
        if request.path != f"/apis/authentication.k8s.io/{version}/selfsubjectreviews":
            return web.json_response({"message": "not found", "code": 404}, status=404)
        return web.json_response({"status": {"userInfo": {"username": name}}})

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    try:
        yield Access(server=f"http://127.0.0.1:{port}", ssl=None, source="here"), asked
    finally:
        await runner.cleanup()


@pytest.mark.parametrize("version", ["v1", "v1beta1", "v1alpha1"])
def test_a_newer_server_tells_whoever_asks_who_they_are(version: str) -> None:
    async def whole() -> None:
        async with newer_server(version, "ada@example.org") as (access, asked):
            reviewer = Reviewer(access)
            for _ in range(2):
                known = await reviewer.known("good")
                assert known is not None
                assert known.name == "ada@example.org"
            assert len(asked) == len(set(asked)) + 1  # what was not there is not asked for twice
            assert await reviewer.known("bad") is None
            await reviewer.close()

    asyncio.run(whole())


def test_a_server_that_lets_strangers_in_does_not_make_somebody_of_them() -> None:
    async def whole() -> None:
        async with newer_server("v1", "system:anonymous") as (access, _):
            reviewer = Reviewer(access)
            assert await reviewer.known("good") is None
            await reviewer.close()

    asyncio.run(whole())
