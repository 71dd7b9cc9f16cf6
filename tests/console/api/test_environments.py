"""Environments over REST: who sees them, who builds them, and how it is said no."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from .asking import Asking

PATH = "/environments/torch"


def wanted(name: str = "torch", **given: Any) -> dict[str, Any]:
    return {"name": name, "requirements": "numpy\n", **given}


def test_one_is_built_seen_by_everybody_and_deleted(ask: Asking) -> None:
    made = ask("PUT", PATH, json=wanted(python="3.11", mpi="openmpi"))
    assert (made.status_code, made.json()["state"], made.json()["owner"]) == (200, "Building", "ada")
    ask.jobs.environments.become("torch", "Ready", packages=("numpy==2.1.0",), python="3.11.4")
    for reader in ("ada", "bob", "vera", "root"):
        found = ask("GET", PATH, by=reader).json()
        assert (found["state"], found["packages"]) == ("Ready", ["numpy==2.1.0"])
        assert [one["spec"]["name"] for one in ask("GET", "/environments", by=reader).json()] == ["torch"]
    assert ask("DELETE", PATH).status_code == 204
    assert ask("GET", PATH).status_code == 404
    assert [entry.what for entry in ask.store.audit.page().items] == ["delete environment", "build environment"]


def test_the_build_log_is_read_piece_by_piece(ask: Asking) -> None:
    ask("PUT", PATH, json=wanted())
    ask.jobs.environments.become("torch", "Ready")
    ask.jobs.environments.logs["torch"] = text = "Collecting numpy\nSuccessfully installed\n"
    read, after, ended = "", 0, False
    while not ended:
        piece = ask("GET", f"{PATH}/log", by="vera", params={"after": after}).json()
        read, after, ended = read + piece["text"], piece["after"], piece["ended"]
    assert read == text


SECRET = "--index-url https://me:s3cret@packages.example/simple\nnumpy\n"


def test_credentials_are_shown_to_nobody(ask: Asking) -> None:
    made = ask("PUT", PATH, json=wanted(requirements=SECRET))
    ask.jobs.environments.become("torch", "Failed", message="cannot read https://me:s3cret@packages.example/simple")
    ask.jobs.environments.logs["torch"] = "fatal: https://me:s3cret@packages.example/simple\n"
    ask.jobs.environments.piece = 1000
    said = [made.text, *(ask("GET", path, by=by).text for by in ("ada", "vera") for path in (PATH, "/environments"))]
    said += [ask("GET", f"{PATH}/log", by="vera").text, str(ask.store.audit.page().items)]
    assert [text for text in said if "s3cret" in text] == []
    assert ["https://****@packages.example" in text for text in said] == [True] * 6 + [False]


def test_what_is_shown_in_place_of_credentials_is_not_taken_for_them(ask: Asking) -> None:
    ask("PUT", PATH, json=wanted(requirements=SECRET))
    ask.jobs.environments.become("torch", "Ready")
    shown = ask("GET", PATH).json()["spec"]
    assert ask("PUT", PATH, json={**shown, "description": "new"}).status_code == 200
    refused = ask("PUT", PATH, json={**shown, "requirements": shown["requirements"] + "scipy\n"})
    assert (refused.status_code, "write them again" in refused.text) == (400, True)


@pytest.mark.parametrize(("by", "status"), [("vera", 403), ("bob", 403), ("", 401), ("ada", 200), ("root", 200)])
def test_only_its_owner_or_an_admin_changes_one(ask: Asking, by: str, status: int) -> None:
    ask("PUT", PATH, json=wanted())
    assert ask("PUT", PATH, by=by, json=wanted(requirements="scipy")).status_code == status
    assert ask("DELETE", PATH, by=by).status_code == (204 if status == 200 else status)


def test_a_viewer_builds_none_because_a_build_runs_code(ask: Asking) -> None:
    assert ask("PUT", PATH, by="vera", json=wanted()).status_code == 403
    assert ask("GET", "/environments").json() == []


def test_one_that_is_used_is_not_deleted(ask: Asking) -> None:
    ask("PUT", PATH, json=wanted())
    ask.jobs.environments.become("torch", "Ready", used_by=("default/pi",))
    assert (ask("DELETE", PATH).status_code, ask("DELETE", PATH).json()["code"]) == (409, "conflict")


def test_jobs_of_others_are_not_told_as_its_users(ask: Asking) -> None:
    ask.jobs.add("mine")
    ask.jobs.add("theirs", owner="bob")
    ask("PUT", PATH, json=wanted())
    record = ask.jobs.environments.records["torch"]
    ask.jobs.environments.records["torch"] = replace(record, used_by=("default/mine", "default/theirs"))
    assert ask("GET", PATH).json()["usedBy"] == ["default/mine"]
    assert ask("GET", PATH, by="vera").json()["usedBy"] == ["default/mine", "default/theirs"]


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        (PATH, wanted("scipy"), "name"),
        (PATH, wanted(python="2.7"), "python"),
        (PATH, wanted(mpi="lam"), "mpi"),
        (PATH, wanted(more=1), "more"),
    ],
)
def test_what_is_wrong_is_named(ask: Asking, path: str, body: dict[str, Any], field: str) -> None:
    refused = ask("PUT", path, json=body)
    assert refused.status_code in (400, 422)
    assert field in refused.text
    assert ask.jobs.environments.records == {}
