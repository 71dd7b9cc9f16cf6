"""Questions that the console asks: with the keyboard alone, and with a name that somebody else has."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.console.api.running import Served

from .conftest import Opened, oarsman

pytestmark = pytest.mark.mpi


@pytest.fixture
def job(server: Served) -> str:
    oarsman(server, "run", "-n", "1", "--name", "asked", "--", "true")
    return "/jobs/default/asked"


def test_the_keyboard_begins_in_the_first_field_and_returns_to_what_opened_the_dialog(opened: Opened, job: str) -> None:
    page = opened(job)
    for opener, field in (("Delete", "Name"), ("Clone", "New name")):
        page.get_by_role("button", name=opener, exact=True).press("Enter")
        expect(page.get_by_role("dialog").get_by_label(field)).to_be_focused()
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)
        expect(page.get_by_role("button", name=opener, exact=True)).to_be_focused()
    page.get_by_role("button", name="Run again").press("Enter")
    expect(page.get_by_role("dialog").get_by_role("button", name="Run again")).to_be_focused()


def test_the_keyboard_stays_at_the_buttons_when_what_it_did_draws_others(server: Served, opened: Opened) -> None:
    oarsman(server, "submit", "-n", "1", "--cpus", "50m", "--name", "halted", "--", "sleep", "600")
    page = opened("/jobs/default/halted")
    for pressed, next_one in (("Suspend", "Resume"), ("Resume", "Suspend")):
        page.get_by_role("button", name=pressed, exact=True).press("Enter")
        if pressed == "Suspend":
            page.get_by_role("dialog").get_by_role("button", name=pressed).press("Enter")
        expect(page.get_by_role("button", name=next_one, exact=True)).to_be_focused()
    page.get_by_role("button", name="Stop", exact=True).press("Enter")
    page.get_by_role("dialog").get_by_role("button", name="Stop").press("Enter")
    expect(page.get_by_role("button", name="Run again")).to_be_visible()
    expect(page.get_by_role("button", name="Delete")).not_to_be_focused()
    assert page.evaluate("document.activeElement.closest('.oarsman-actions') !== null")


def test_buttons_that_stay_are_not_drawn_anew_so_no_click_on_one_is_lost(server: Served, opened: Opened) -> None:
    oarsman(server, "submit", "-n", "1", "--cpus", "50m", "--name", "steady", "--", "sleep", "600")
    page = opened("/jobs/default/steady")
    names = ("Suspend", "Scale", "Stop", "Clone", "Delete")
    expect(page.locator(".oarsman-actions button")).to_have_text([re.compile(f"{name}$") for name in names])
    stay = {name: page.get_by_role("button", name=name, exact=True).element_handle() for name in names}
    oarsman(server, "suspend", "steady")
    after = [re.compile(f"{name}$") for name in ("Resume", *names[1:])]
    expect(page.locator(".oarsman-actions button")).to_have_text(after)
    oarsman(server, "stop", "steady")
    expect(page.locator(".oarsman-actions button")).to_have_text([re.compile("Run again$"), *after[-2:]])
    there = [name for name, handle in stay.items() if handle is not None and handle.evaluate("one => one.isConnected")]
    assert there == ["Clone", "Delete"]
    stay["Clone"].click()  # type: ignore[union-attr]
    expect(page.get_by_role("dialog").get_by_label("New name")).to_be_focused()


def test_enter_does_what_the_dialog_is_for(server: Served, opened: Opened, job: str) -> None:
    page = opened(job)
    page.get_by_role("button", name="Clone").click()
    page.get_by_role("dialog").get_by_label("New name").fill("answered")
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{server.address}/jobs/default/answered")
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("dialog").get_by_label("Name")).to_be_focused()
    page.keyboard.type("answere")
    page.keyboard.press("Enter")  # not the name yet: nothing is deleted
    page.keyboard.type("d")
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{server.address}/jobs")
    page.goto(f"{server.address}/people")
    page.get_by_role("button", name="New account").click()
    expect(page.get_by_role("dialog").get_by_label("Name")).to_be_focused()
    page.keyboard.type("by-keyboard")
    page.get_by_role("dialog").get_by_label("Password").fill("long enough")
    page.keyboard.press("Enter")
    expect(page.get_by_role("group", name="by-keyboard")).to_be_visible()
    page.get_by_role("group", name="by-keyboard").get_by_role("button", name="Remove").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove").press("Enter")
    expect(page.get_by_role("group", name="by-keyboard")).to_have_count(0)


def test_a_new_token_is_copied_with_one_click(opened: Opened) -> None:
    page = opened("/account")
    page.get_by_label("What it is for").fill("copied")
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("shown this once")
    secret = dialog.locator(".oarsman-secret").inner_text().strip()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    dialog.get_by_role("button", name="Copy").click()
    expect(dialog.get_by_text("Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == secret
    page.context.clear_permissions()
    dialog.get_by_role("status").evaluate("(told) => told.textContent = ''")
    dialog.get_by_role("button", name="Copy").click()  # without the clipboard, what is selected is copied
    expect(dialog.get_by_text("Copied")).to_be_visible()
    dialog.get_by_role("button", name="Close").click()
    page.get_by_role("button", name="Revoke").click()


def test_a_name_that_is_taken_is_told_while_it_is_typed(server: Served, opened: Opened, job: str) -> None:
    page = opened(job)
    page.get_by_role("button", name="Clone").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("New name")).to_have_value("asked-2")
    dialog.get_by_label("New name").fill("asked")
    expect(dialog.get_by_text("there is a job default/asked already")).to_be_visible()
    expect(dialog.get_by_role("button", name="Run", exact=True)).to_be_disabled()
    dialog.get_by_label("New name").fill("asked-3")
    expect(dialog.get_by_role("button", name="Run", exact=True)).to_be_enabled()

    page.goto(f"{server.address}/create")
    name = page.get_by_label("Name", exact=True)
    name.fill("asked")
    expect(field_of(page, "there is a job default/asked already")).to_be_visible()
    name.fill("asked-4")
    expect(field_of(page, "there is a job default/asked already")).to_have_count(0)


def test_the_name_of_a_new_environment_that_there_is_is_told_while_it_is_typed(server: Served, opened: Opened) -> None:
    oarsman(server, "env", "build", "there")
    page = opened("/environments")
    page.get_by_role("button", name="New environment").click()
    expect(page.get_by_role("dialog").get_by_label("Name")).to_be_focused()
    page.keyboard.type("there")
    expect(page.get_by_role("dialog").get_by_text("there is an environment there already")).to_be_visible()
    expect(page.get_by_role("dialog").get_by_role("button", name="Build")).to_be_disabled()
    page.keyboard.type("-2")
    expect(page.get_by_role("dialog").get_by_role("button", name="Build")).to_be_enabled()
    page.keyboard.press("Escape")
    oarsman(server, "env", "delete", "there")


def field_of(page: Page, complaint: str) -> object:
    return page.locator(".q-field__messages").filter(has_text=re.compile(complaint))
