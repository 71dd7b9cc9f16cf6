"""A token is verified by the cluster before it counts, and again a minute later."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
from cluster.cluster import Cluster
from cluster.kubectl import until
from cluster.people import full_name, person, token
from starlette.requests import HTTPConnection
from waiting import waiting

from oarsman.backends.kube.identity import Reviewer, claims
from oarsman.console.security.credentials import GOOD_SECONDS
from oarsman.console.security.database import moment
from oarsman.engines.kube.client import load_access
from oarsman.errors import UnauthenticatedError
from oarsman.portal import shared

from .conftest import Office


def forged(token: str, subject: str) -> str:
    """The same token saying that it is somebody else's."""
    head, _, signature = token.split(".")
    body = json.dumps({**claims(token), "sub": subject}).encode()
    return ".".join((head, base64.urlsafe_b64encode(body).decode().rstrip("="), signature))


@pytest.mark.parametrize("bad", ["forged", "cut short", "nonsense", "an odd character"])
def test_what_the_cluster_does_not_accept_opens_nothing(people: Office, bad: str) -> None:
    good = people.tokens["edith"]
    wrong = {
        "forged": forged(good, full_name("kube-system", "root")),
        "cut short": good[:-8],
        "nonsense": "x.y.z",
        "an odd character": f"{good}\\u00e9",
    }[bad]
    answer = people.ask("GET", "/jobs", token=wrong.encode("ascii", "backslashreplace").decode())
    assert answer.status_code == 401, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert people.ask("POST", "/session/cluster", json={"token": wrong}).status_code == 401
    assert len(people.console.backends) == 0


def test_many_different_wrong_tokens_are_slowed_and_one_that_is_repeated_is_not(people: Office) -> None:
    same = [people.ask("GET", "/jobs", token="a.b.c").status_code for _ in range(8)]
    assert same == [401] * 8
    different = [people.ask("GET", "/jobs", token=f"a.b.{number}").status_code for number in range(103)]
    assert different == [401] * 99 + [429] * 4
    assert people.ask("GET", "/jobs", "edith").status_code == 429  # a new one from the same address waits too
    people.clock.passed += 60
    assert people.ask("GET", "/jobs", "edith").status_code == 200
    people.ask("GET", "/jobs", token="a.b.last")
    assert people.ask("GET", "/jobs", "edith").status_code == 200  # one that was good before does not wait


def test_the_cluster_is_asked_once_a_minute_for_each_token(people: Office) -> None:
    asked: list[str] = []
    tokens = people.console.gate.cluster
    assert tokens is not None
    tokens._ask = lambda token: asked.append(token) or shared().run(people.reviewer.known(token))  # type: ignore[func-returns-value]
    for _ in range(3):
        assert people.ask("GET", "/me", "vera").status_code == 200
    assert asked == [people.tokens["vera"]]
    people.clock.passed += GOOD_SECONDS
    assert people.ask("GET", "/me", "vera").status_code == 200
    assert asked == [people.tokens["vera"]] * 2


def test_a_token_ends_with_its_service_account(people: Office) -> None:
    cookies = people.log_in("vera")
    assert people.ask("GET", "/me", cookies=cookies).status_code == 200
    people.cluster.kubectl(f"--namespace={people.namespace}", "delete", "serviceaccount", "vera")

    def refused() -> bool:
        people.clock.passed += GOOD_SECONDS
        return people.ask("GET", "/me", "vera").status_code == 401

    until(refused, "the API server, which remembers tokens for some seconds, has forgotten it")
    assert people.ask("GET", "/jobs", cookies=cookies).status_code == 401
    assert people.ask("GET", "/jobs", cookies=cookies).json()["detail"] == "this session is not known, or no longer"


def test_a_token_that_the_cluster_refuses_meanwhile_is_looked_at_again_at_once(people: Office) -> None:
    gate = people.console.gate
    cookies = people.log_in("vera")
    request = HTTPConnection(
        {
            "type": "http",
            "method": "GET",
            "path": "/jobs",
            "headers": [
                (b"cookie", "; ".join(f"{name}={value}" for name, value in cookies.items()).encode()),
            ],
        }
    )
    caller = gate.caller(request)
    assert gate.cluster is not None
    gate.cluster._ask = lambda _: None
    assert gate.still_holds(caller)
    gate.doubt(caller)
    assert not gate.still_holds(caller)
    with pytest.raises(UnauthenticatedError):
        gate.caller(request)


# -- sessions of browsers ------------------------------------------------------------------------------
def test_a_session_acts_with_its_token_and_outlives_the_server(people: Office) -> None:
    cookies = people.log_in("vera")
    assert people.ask("GET", "/jobs", cookies=cookies).status_code == 200
    assert people.ask("DELETE", f"/jobs/{people.namespace}/pi", cookies=cookies).status_code in (403, 404)
    people.again()
    assert people.ask("GET", "/jobs", cookies=cookies).status_code == 200
    assert people.ask("DELETE", "/session", cookies=cookies).status_code == 204
    assert people.ask("GET", "/jobs", cookies=cookies).status_code == 401


def test_the_file_of_the_console_holds_no_token(people: Office) -> None:
    cookies = people.log_in("vera")
    people.close()
    kept = b"".join(path.read_bytes() for path in people.folder.rglob("console.db*"))
    assert kept
    secrets = [part.encode() for part in people.tokens["vera"].split(".")] + [next(iter(cookies.values())).encode()]
    assert [part for part in secrets if part in kept] == []
    people.open()


def test_a_sealed_token_cannot_be_moved_to_the_session_of_somebody_else(people: Office) -> None:
    mine, hers = people.log_in("vera"), people.log_in("edith")
    assert mine != hers
    database = people.console.gate.store.cluster_sessions._database
    with database.transaction() as db:
        sealed = db.execute("SELECT sealed FROM cluster_sessions WHERE name LIKE '%:edith'").fetchone()[0]
        db.execute("UPDATE cluster_sessions SET sealed = ? WHERE name LIKE '%:vera'", (sealed,))
    assert people.ask("GET", "/me", cookies=mine).status_code == 401


def test_no_session_lasts_longer_than_its_token(people: Office) -> None:
    people.tokens["soon"] = token(people.cluster, people.namespace, "vera", seconds=600)
    people.log_in("soon")
    row = people.console.gate.store.cluster_sessions._database.row("SELECT expires FROM cluster_sessions")
    assert row is not None
    assert moment(row["expires"]).timestamp() == claims(people.tokens["soon"])["exp"]


def test_a_login_must_come_from_our_own_page(people: Office) -> None:
    foreign = {"Origin": "http://elsewhere.example", "Sec-Fetch-Site": "cross-site"}
    answer = people.ask("POST", "/session/cluster", json={"token": people.tokens["vera"]}, headers=foreign)
    assert answer.status_code == 403


def test_a_console_without_a_token_of_the_caller_shows_nothing(people: Office) -> None:
    """Whoever started the server has rights on the cluster; nobody else gets them."""
    gate = people.console.gate
    _, secret = gate.store.tokens.make("owner", None)
    answer = people.ask("GET", "/jobs", token=secret)
    assert answer.status_code == 401
    assert "has no token of yours" in answer.json()["detail"]


# -- how the cluster is asked ------------------------------------------------------------------------------
def test_one_who_may_review_tokens_also_knows_those_that_say_nothing_of_themselves(
    served: Cluster, api_namespace: str
) -> None:
    """Opaque tokens, as a cluster's static file has them: by TokenReview they get their name."""
    access = load_access(kubeconfig=Path(str(served.kubeconfig)))
    opaque = str(access.credentials.known["Authorization"]).removeprefix("Bearer ")  # type: ignore[attr-defined]
    alone, helped = waiting(Reviewer(access)), waiting(Reviewer(access, access))
    try:
        nameless, named = alone.known(opaque), helped.known(opaque)
        assert nameless is not None
        assert named is not None
        told = served.version >= (1, 28)  # by SelfSubjectReview
        assert (nameless.name, named.name) == ("admin" if told else "a token without a name", "admin")
        assert helped.known("nonsense") is None
        known = helped.known(person(served, api_namespace, "ada"))
        assert known is not None
        assert known.name == full_name(api_namespace, "ada")
    finally:
        alone.close()
        helped.close()
