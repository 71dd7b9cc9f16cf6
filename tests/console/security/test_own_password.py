"""Somebody changes their own password."""

from __future__ import annotations

from .console import PASSWORD, Console

NEW = "another horse entirely"
PATH = "/api/v1/me/password"


def test_a_changed_password_ends_every_other_session_and_keeps_this_one(console: Console) -> None:
    here = console.logged_in("ann")
    elsewhere = console.browser()
    elsewhere.log_in("ann")
    assert here.ask("PUT", PATH, {"current": PASSWORD, "new": NEW}).status_code == 204
    assert here.me().json()["name"] == "ann"
    assert elsewhere.me().status_code == 401
    assert console.browser().log_in("ann").status_code == 401
    assert console.browser().log_in("ann", NEW).status_code == 200
    assert ("ann", "change password", "", "ok") in console.audited()


def test_whoever_does_not_know_the_password_cannot_change_it_and_is_slowed(console: Console) -> None:
    browser = console.logged_in("ann")
    answers = [browser.ask("PUT", PATH, {"current": f"guess {n}", "new": NEW}).status_code for n in range(30)]
    assert answers[0] == 403
    assert answers[-1] == 429
    assert ("ann", "change password", "", "refused") in console.audited()
    assert browser.me().status_code == 200


def test_a_short_password_is_refused_and_the_old_one_stays(console: Console) -> None:
    browser = console.logged_in("ann")
    assert browser.ask("PUT", PATH, {"current": PASSWORD, "new": "short"}).status_code == 422
    assert console.browser().log_in("ann").status_code == 200


def test_the_owner_of_the_machine_and_a_token_have_no_password_to_change(console: Console) -> None:
    assert console.owner().ask("PUT", PATH, {"current": PASSWORD, "new": NEW}).status_code == 403
    browser = console.logged_in("ann")
    secret = browser.ask("POST", "/api/v1/tokens", {}).json()["secret"]
    program = console.browser(headers={"Authorization": f"Bearer {secret}"})
    assert program.ask("PUT", PATH, {"current": PASSWORD, "new": NEW}).status_code == 403
