"""The client and its informers against a real API server, which is also killed and started again."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from cluster.cluster import Cluster
from cluster.people import full_name, person
from kube_objects import delete

from oarsman.engines.kube.client import (
    AlreadyExists,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    Kube,
    Meta,
    NotFound,
    PartialObject,
    load_access,
)
from oarsman.engines.kube.client.credentials import Impersonating
from oarsman.engines.kube.client.resources import (
    CONFIG_MAPS,
    LEASES,
    MPIJOBS,
    NAMESPACES,
    PODS,
    ROLE_BINDINGS,
    ROLES,
)
from oarsman.engines.kube.client.reviews import may_get, owner_of

from .fakes import QUICK, Told, following, until


class Data(msgspec.Struct):
    metadata: Meta
    data: dict[str, str] = {}


READER_IS_NOBODY = {
    "metadata": {"name": "reader"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
    "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "nobody"}],
}


def config_map(name: str, labels: dict[str, str] | None = None, **data: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "labels": labels or {"test": "yes"}},
        "data": data,
    }


def kube_of(api: Cluster, **options: Any) -> Kube:
    return Kube(load_access(kubeconfig=api.kubeconfig), **options)


async def test_every_verb_does_what_it_says(api: Cluster, api_namespace: str) -> None:
    async with kube_of(api) as kube:
        made = await kube.create(CONFIG_MAPS, config_map("a", x="1"), api_namespace, view=Data)
        assert made.data == {"x": "1"}
        assert abs(datetime.now(UTC) - (made.metadata.creation_timestamp or datetime.min)) < timedelta(minutes=5)
        with pytest.raises(AlreadyExists):
            await kube.create(CONFIG_MAPS, config_map("a"), api_namespace)

        merged = await kube.patch(CONFIG_MAPS, "a", {"data": {"y": "2"}}, api_namespace, view=Data)
        assert merged.data == {"x": "1", "y": "2"}
        assert (await kube.patch(CONFIG_MAPS, "a", {"data": {"x": None}}, api_namespace, view=Data)).data == {"y": "2"}

        stale = config_map("a") | {"metadata": {"name": "a", "resourceVersion": made.metadata.resource_version}}
        with pytest.raises(Conflict):
            await kube.replace(CONFIG_MAPS, "a", stale, api_namespace)
        assert (await kube.replace(CONFIG_MAPS, "a", config_map("a", z="3"), api_namespace, view=Data)).data == {
            "z": "3"
        }

        assert not await kube.delete(CONFIG_MAPS, "a", api_namespace, uid="somebody-else")
        assert await kube.delete(CONFIG_MAPS, "a", api_namespace, uid=made.metadata.uid)
        assert not await kube.delete(CONFIG_MAPS, "a", api_namespace, uid=made.metadata.uid)
        with pytest.raises(NotFound, match=f"get configmaps {api_namespace}/a"):
            await kube.get(CONFIG_MAPS, "a", api_namespace)


async def test_what_is_applied_belongs_to_its_manager(api: Cluster, api_namespace: str) -> None:
    async with kube_of(api) as kube:
        for manager, value in (("one", "1"), ("one", "2")):
            await kube.patch(
                CONFIG_MAPS, "a", config_map("a", x=value), api_namespace, kind="apply", field_manager=manager
            )
        with pytest.raises(Conflict, match="conflict"):
            await kube.patch(
                CONFIG_MAPS, "a", config_map("a", x="3"), api_namespace, kind="apply", field_manager="other"
            )
        forced = await kube.patch(
            CONFIG_MAPS, "a", config_map("a", x="3"), api_namespace, kind="apply", field_manager="other", force=True
        )
        assert forced["data"] == {"x": "3"}


async def test_what_is_invalid_is_refused_with_the_field_that_is_wrong(api: Cluster, api_namespace: str) -> None:
    async with kube_of(api) as kube:
        with pytest.raises(Invalid) as caught:
            await kube.create(CONFIG_MAPS, config_map("NOT A NAME"), api_namespace)
        assert caught.value.field == "metadata.name"
        assert await kube.list(CONFIG_MAPS, api_namespace, labels="test=yes") == []


async def test_collections_are_listed_in_pages_and_by_label(
    api: Cluster, api_namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("oarsman.engines.kube.client.kube.PAGE_SIZE", 3)
    async with kube_of(api) as kube:
        for number in range(7):
            labels = {"test": "yes", "parity": "odd" if number % 2 else "even"}
            await kube.create(CONFIG_MAPS, config_map(f"a{number}", labels), api_namespace)
        sizes = [len(page.items) async for page in kube.pages(CONFIG_MAPS, api_namespace, labels="test=yes")]
        assert sizes == [3, 3, 1]
        assert len(await kube.list(CONFIG_MAPS, api_namespace, labels="test,parity=even", view=PartialObject)) == 4


async def test_discovery_knows_what_the_server_has(api: Cluster) -> None:
    async with kube_of(api) as kube:
        assert await kube.has(PODS)
        assert await kube.has(LEASES)
        assert not await kube.has(replace(MPIJOBS, version="v0"))
        assert await kube.server_version() >= (1, 16)


async def test_a_watch_tells_what_happens(api: Cluster, api_namespace: str) -> None:
    async with kube_of(api) as kube:
        (page,) = [one async for one in kube.pages(CONFIG_MAPS, api_namespace, labels="test=yes")]
        await kube.create(CONFIG_MAPS, config_map("a", x="1"), api_namespace)
        await kube.patch(CONFIG_MAPS, "a", {"metadata": {"labels": {"test": "no"}}}, api_namespace)
        changes = kube.watch(CONFIG_MAPS, api_namespace, labels="test=yes", since=page.version, view=Data)
        seen = [(change.type, change.object and change.object.data) for change in [await anext(changes) for _ in "12"]]
        assert seen == [("ADDED", {"x": "1"}), ("DELETED", {"x": "1"})]
        await changes.aclose()


async def test_an_informer_sees_a_thousand_objects_come_and_go(api: Cluster, api_namespace: str) -> None:
    async with kube_of(api) as kube:
        told = Told()
        options: dict[str, Any] = {"labels": "test", "index": _parity, "changed": told}
        async with following(kube, CONFIG_MAPS, PartialObject, namespaces=[api_namespace], **options) as informer:
            await informer.synced.wait()
            bodies = (config_map(f"a{n}", {"test": "yes", "parity": "odd" if n % 2 else "even"}) for n in range(1000))
            await asyncio.gather(
                *(kube.create(CONFIG_MAPS, body, api_namespace, view=PartialObject) for body in bodies)
            )
            await until(lambda: len(informer.all()) == 1000)
            assert len(informer.of("odd")) == 500
            odd = [item.metadata for item in informer.of("odd")]
            await asyncio.gather(*(kube.delete(CONFIG_MAPS, one.name, api_namespace, uid=one.uid) for one in odd))
            await until(lambda: len(informer.all()) == 500)
            assert not informer.of("odd")
            assert len(told) == 1500


async def test_a_list_is_streamed_where_the_server_can(api: Cluster, api_namespace: str) -> None:
    asked: list[str] = []

    def observe(verb: str, plural: str, status: int, seconds: float) -> None:
        asked.append(f"{verb} {plural} {status}")

    async with kube_of(api, observe=observe) as kube:
        for number in range(5):
            await kube.create(CONFIG_MAPS, config_map(f"a{number}"), api_namespace)
        streams = await kube.streams_lists()
        asked.clear()
        async with following(
            kube, CONFIG_MAPS, PartialObject, stream=True, namespaces=[api_namespace], labels="test=yes"
        ) as informer:
            await informer.synced.wait()
            assert len(informer.all()) == 5
            assert asked[0].startswith("watch configmaps" if streams else "list configmaps")
            await kube.create(CONFIG_MAPS, config_map("late"), api_namespace)
            await until(lambda: informer.get(api_namespace, "late"))
        assert streams == (await kube.server_version() >= (1, 32))


def _parity(item: PartialObject) -> str | None:
    return item.metadata.labels.get("parity")


async def test_the_cluster_says_whose_a_token_is_and_what_its_owner_may_read(api: Cluster, api_namespace: str) -> None:
    shown = person(api, api_namespace, "scraper")
    async with kube_of(api) as kube:
        assert await owner_of(kube, "nobodys") is None
        user = await owner_of(kube, shown)
        assert user is not None
        assert user["username"] == full_name(api_namespace, "scraper")
        assert not await may_get(kube, user, "/metrics")
        assert await may_get(kube, user, "/version")  # which everybody may
        boss = {"username": "boss", "groups": ["system:masters"]}
        assert await may_get(kube, boss, "/metrics")


async def test_an_informer_outlives_the_server(api: Cluster, api_namespace: str) -> None:
    async with kube_of(api) as kube:
        told = Told()
        async with following(
            kube, CONFIG_MAPS, PartialObject, namespaces=[api_namespace], labels="test=yes", changed=told
        ) as informer:
            await kube.create(CONFIG_MAPS, config_map("before"), api_namespace)
            await until(lambda: informer.get(api_namespace, "before"))
            api.apiserver.kill()
            await until(lambda: informer.trouble)
            assert informer.get(api_namespace, "before")
            api.apiserver.start()
            await asyncio.to_thread(api.apiserver.wait)
            await kube.create(CONFIG_MAPS, config_map("after"), api_namespace)
            assert await delete(kube, CONFIG_MAPS, "before", api_namespace)
            await until(lambda: informer.get(api_namespace, "after") and not informer.get(api_namespace, "before"))
            assert informer.trouble is None
            with pytest.raises(Gone):  # it remembers nothing from before it was killed
                await anext(kube.watch(CONFIG_MAPS, api_namespace, since="1"))
            assert [(bool(old), bool(new)) for old, new in told].count((False, True)) == 2
            assert [(bool(old), bool(new)) for old, new in told].count((True, False)) == 1


async def test_a_missing_right_is_trouble_until_it_is_given(api: Cluster, api_namespace: str) -> None:
    ours = load_access(kubeconfig=api.kubeconfig)
    nobody = replace(ours, credentials=Impersonating(ours.credentials, "nobody", "", ()))
    async with kube_of(api) as kube, Kube(nobody) as refused:
        with pytest.raises(Forbidden):
            await refused.get(CONFIG_MAPS, "a", api_namespace)
        async with following(refused, CONFIG_MAPS, PartialObject, namespaces=[api_namespace], pauses=QUICK) as informer:
            await until(lambda: informer.trouble)
            assert '"nobody" cannot list resource "configmaps"' in str(informer.trouble)
            rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list", "watch"]}]
            await kube.create(ROLES, {"metadata": {"name": "reader"}, "rules": rules}, api_namespace)
            await kube.create(ROLE_BINDINGS, READER_IS_NOBODY, api_namespace)
            await informer.synced.wait()
            await until(lambda: informer.trouble is None)


async def test_a_megabyte_is_stored_and_read_back(api: Cluster, api_namespace: str) -> None:
    async with kube_of(api) as kube:
        made = await kube.create(CONFIG_MAPS, config_map("a", x="y" * 1_040_000), api_namespace, view=Data)
        assert len(made.data["x"]) == 1_040_000
        assert await kube.get(NAMESPACES, api_namespace, view=PartialObject)
