"""Oneself and others: password, tokens, accounts, and what everybody did."""

from __future__ import annotations

import time

import httpx
import pytest
from playwright.sync_api import Page, Route, expect

from tests.console.api.running import Served

from .conftest import Opened, make_account

pytestmark = pytest.mark.mpi


def test_a_password_is_changed_by_whoever_knows_it(server: Served, opened: Opened) -> None:
    make_account(server, "grace", "user")
    page = logged_in(server, opened(None), "grace", "correct horse", to="/account")
    page.get_by_label("Current password").fill("not this one")
    page.get_by_label("New password").fill("battery staple")
    page.get_by_role("button", name="Change").click()
    expect(page.get_by_role("alert")).to_have_text("this is not the password so far")
    page.get_by_label("Current password").fill("correct horse")
    page.get_by_role("button", name="Change").click()
    expect(page.get_by_role("alert")).to_contain_text("Changed.")
    page.route("**/login", come_late)
    page.get_by_role("button", name="Log out").click()
    expect(page).to_have_url(server.address + "/login")
    logged_in(server, page, "grace", "battery staple", to="/account")
    expect(page.get_by_text("grace").first).to_be_visible()


def test_a_token_is_shown_once_works_and_can_be_revoked(server: Served, opened: Opened) -> None:
    page = opened("/account")
    page.get_by_label("What it is for").fill("night runs")
    page.get_by_role("button", name="New token").click()
    secret = page.locator(".oarsman-secret").inner_text().strip()
    page.get_by_role("dialog").get_by_role("button", name="Close").click()
    assert asked(server, secret) == 200
    expect(page.get_by_text("night runs")).to_be_visible()
    page.get_by_role("button", name="Revoke").click()
    expect(page.get_by_text("There are none.")).to_be_visible()
    assert asked(server, secret) == 401


def test_an_admin_makes_changes_and_removes_accounts_and_sees_it_in_the_audit_log(
    server: Served, opened: Opened
) -> None:
    page = opened("/people")
    page.get_by_role("button", name="New account").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("hopper")
    dialog.get_by_label("Password").fill("short")
    dialog.get_by_role("button", name="New account").click()
    expect(dialog.get_by_role("alert")).to_contain_text("Password: at least 8 characters")
    dialog.get_by_label("Password").fill("long enough")
    dialog.get_by_role("button", name="New account").click()
    row = page.get_by_role("group", name="hopper")
    expect(row).to_be_visible()
    row.get_by_role("button", name="Disable").click()
    expect(row.get_by_text("disabled", exact=True)).to_be_visible()
    row.get_by_role("button", name="Remove").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    expect(row).to_have_count(0)
    page.reload()
    for words in ("add account", "change account", "remove account"):
        expect(page.get_by_role("row").filter(has_text=words).first).to_contain_text("hopper")


def test_a_user_is_no_admin(server: Served, opened: Opened) -> None:
    make_account(server, "mary", "user")
    page = logged_in(server, opened(None), "mary", "correct horse", to="/people")
    expect(page.get_by_text("This page is for admins.")).to_be_visible()


def come_late(route: Route) -> None:
    """Long after open pages of the session were told to be asked for anew."""
    time.sleep(2.5)
    route.continue_()


def logged_in(server: Served, page: Page, name: str, password: str, *, to: str) -> Page:
    page.goto(f"{server.address}/login?to={to}")
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Log in").click()
    expect(page).to_have_url(server.address + to)
    return page


def asked(server: Served, token: str) -> int:
    with httpx.Client(trust_env=False) as client:
        return client.get(f"{server.address}/api/v1/me", headers={"Authorization": f"Bearer {token}"}).status_code
