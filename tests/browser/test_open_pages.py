"""Pages that stay open while those who look at them lose their rights."""

from __future__ import annotations

from contextlib import suppress

import pytest
from playwright.sync_api import Locator, Page, TimeoutError, expect

from tests.console.api.running import Served

from .conftest import Opened, make_account, oarsman

pytestmark = pytest.mark.mpi


def press(button: Locator) -> None:
    """If it is still there: a page leaves within a second."""
    with suppress(TimeoutError):
        button.click(timeout=5000)


def test_whoever_is_disabled_does_nothing_more_through_a_page_that_is_open(server: Served, opened: Opened) -> None:
    make_account(server, "edsger", "user")
    page = logged_in(server, opened(None), "edsger", "/account")
    page.get_by_label("What it is for").fill("a way back")
    oarsman(server, "users", "disable", "edsger")
    press(page.get_by_role("button", name="New token"))
    expect(page).to_have_url(server.address + "/login?to=/account")
    assert "a way back" not in oarsman(server, "tokens", "list").stdout


def test_an_admin_who_is_one_no_longer_makes_no_accounts_through_a_page_that_is_open(
    server: Served, opened: Opened
) -> None:
    make_account(server, "barbara", "admin")
    make_account(server, "another", "admin")  # there is always one
    page = logged_in(server, opened(None), "barbara", "/people")
    page.get_by_role("button", name="New account").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("accomplice")
    dialog.get_by_label("Password").fill("long enough")
    oarsman(server, "users", "role", "barbara", "viewer")
    press(dialog.get_by_role("button", name="New account"))
    expect(page.get_by_text("This page is for admins.")).to_be_visible()
    assert "accomplice" not in oarsman(server, "users", "list").stdout


def test_a_page_that_only_shows_something_leaves_with_the_session(server: Served, opened: Opened) -> None:
    make_account(server, "niklaus", "viewer")
    page = logged_in(server, opened(None), "niklaus", "/hosts")
    oarsman(server, "users", "remove", "niklaus")
    expect(page).to_have_url(server.address + "/login?to=/hosts")


@pytest.mark.parametrize(
    "to", ["//evil.example/", "/\\evil.example/", "/%09/evil.example/", "http://[", "javascript:0"]
)
def test_the_login_page_leads_to_no_other_server(server: Served, opened: Opened, to: str) -> None:
    name = f"kay-{to.encode().hex()}"
    make_account(server, name, "viewer")
    logged_in(server, opened(None), name, to, arrives_at="/")


def logged_in(server: Served, page: Page, name: str, to: str, *, arrives_at: str | None = None) -> Page:
    page.goto(f"{server.address}/login?to={to}")
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password").fill("correct horse")
    page.get_by_role("button", name="Log in").click()
    expect(page).to_have_url(server.address + (arrives_at or to))
    return page
