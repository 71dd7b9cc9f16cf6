"""Whoever comes with a token of the cluster may do what the cluster lets them do, and nothing of the console's own."""

from __future__ import annotations

from typing import Any

import pytest
from cluster.people import full_name
from waiting import waiting

from oarsman.console.api import accounts
from oarsman.service.models import Role

from .conftest import Office


def a_job(office: Office, name: str = "pi") -> dict[str, Any]:
    pod = {"spec": {"containers": [{"name": "main", "image": "pi", "command": ["mpirun", "pi"]}]}}
    roles = {role: {"replicas": 1, "template": pod} for role in ("Launcher", "Worker")}
    return {
        "document": {
            "apiVersion": "kubeflow.org/v2beta1",
            "kind": "MPIJob",
            "metadata": {"name": name, "namespace": office.namespace},
            "spec": {"mpiReplicaSpecs": roles},
        }
    }


def names_seen(office: Office, **who: Any) -> list[str]:
    answer = office.ask("GET", "/jobs", **who)
    assert answer.status_code == 200, answer.text
    return [one["name"] for one in answer.json()["items"]]


def test_one_edits_another_looks_on_and_a_third_sees_nothing(people: Office) -> None:
    made = people.ask("POST", "/jobs", "edith", json=a_job(people))
    assert made.status_code == 201, made.text
    assert made.json()["summary"]["owner"] == full_name(people.namespace, "edith")
    assert names_seen(people, by="edith") == ["pi"]
    assert names_seen(people, by="vera") == ["pi"]
    key = f"/jobs/{people.namespace}/pi"
    assert people.ask("GET", key, "vera").status_code == 200

    refused = people.ask("POST", "/jobs", "vera", json=a_job(people, "mine"))
    assert refused.status_code == 403
    assert refused.headers["content-type"] == "application/problem+json"
    assert 'cannot create resource "mpijobs"' in refused.json()["detail"]
    assert people.ask("POST", f"{key}/stop", "vera").status_code == 403
    assert people.ask("DELETE", key, "vera").status_code == 403

    nothing = people.ask("GET", "/jobs", "nils")
    assert nothing.status_code == 403
    assert "in no namespace" in nothing.json()["detail"]
    assert people.ask("GET", key, "nils").status_code == 403
    assert people.ask("POST", f"{key}/suspend", "edith").status_code == 200


def test_somebody_else_may_change_what_the_owner_made_if_the_cluster_says_so(people: Office) -> None:
    assert people.ask("POST", "/jobs", "edith", json=a_job(people)).status_code == 201
    people.person("erik", verbs=("get", "list", "watch", "delete"))
    assert people.ask("DELETE", f"/jobs/{people.namespace}/pi", "erik").status_code == 204


def test_everything_done_is_noted_under_the_name_that_the_cluster_said(people: Office) -> None:
    people.ask("POST", "/jobs", "edith", json=a_job(people))
    entries = people.console.gate.store.audit.page().items
    assert [(entry.who, entry.what) for entry in entries] == [(full_name(people.namespace, "edith"), "submit")]


@pytest.mark.parametrize("way", ["bearer", "session"])
def test_nobody_from_the_cluster_administers_the_console(people: Office, way: str) -> None:
    """Not even a cluster admin: tokens, accounts and the audit log are those of the server's owner."""
    store = people.console.gate.store
    store.accounts.add("root", Role.ADMIN, store.accounts.hash("correct horse battery"))
    token, secret = store.tokens.make("owner", None)
    who: dict[str, Any] = {"by": "edith"} if way == "bearer" else {"cookies": people.log_in("edith")}
    bodies = {
        ("POST", "/accounts"): {"name": "me", "password": "correct horse", "role": "admin"},
        ("PATCH", "/accounts/{name}"): {"role": "admin"},
        ("POST", "/tokens"): {"note": "mine"},
        ("PUT", "/me/password"): {"current": "x", "new": "correct horse"},
    }
    asked = [
        (method, route.path.removeprefix("/api/v1"))  # type: ignore[attr-defined]
        for route in accounts.router.routes
        if "session" not in route.tags  # type: ignore[attr-defined]
        for method in route.methods  # type: ignore[attr-defined]
    ]
    assert len(asked) >= 8
    for method, path in [*asked, ("PUT", "/me/password")]:
        place = path.replace("{name}", "root").replace("{id}", token.id)
        answer = people.ask(method, place, json=bodies.get((method, path)), **who)
        assert answer.status_code == 403, (method, path, answer.text)
    assert [account.name for account in store.accounts.all()] == ["root"]
    assert people.ask("GET", "/jobs", token=secret).status_code == 401  # ours, and the cluster does not know it
    assert store.tokens.get(token.id).id == token.id


def test_whoever_asks_is_told_who_they_are(people: Office) -> None:
    me = {"name": full_name(people.namespace, "vera"), "role": "cluster"}
    assert people.ask("GET", "/me", "vera").json() == me
    assert people.ask("GET", "/me", cookies=people.log_in("vera")).json() == me


def test_buttons_are_offered_where_the_cluster_allows_a_change(people: Office) -> None:
    backends = people.console.backends
    rights = {name: waiting(backends.backend(token).rights, people.portal) for name, token in people.tokens.items()}
    assert {name: found.look(people.namespace) for name, found in rights.items()} == {
        "edith": True,
        "vera": False,
        "nils": False,
    }
    assert {name: found.look() for name, found in rights.items()} == {"edith": True, "vera": False, "nils": False}
    assert not rights["edith"].look("kube-system")
