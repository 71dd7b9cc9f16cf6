"""A sweep is made in the form: mistakes stand at their fields, and what comes of it is seen before it is begun."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.console.api.running import Served

from .conftest import Opened, make_account
from .test_account import logged_in

pytestmark = pytest.mark.mpi


def test_a_sweep_is_made_looked_at_and_begun(server: Served, opened: Opened) -> None:
    page = opened("/sweeps")
    page.get_by_role("link", name="New sweep").click()
    expect(page.get_by_role("navigation", name="Pages").locator("[aria-current=page]")).to_contain_text("Sweeps")
    name = page.get_by_label("Name", exact=True)
    values(page, 0, "lr", "0.1, ")
    expect(page.get_by_role("button", name="Begin")).to_be_disabled()
    expect(page.locator(".q-field--error").filter(has=name)).to_have_count(0)  # nobody has come to it yet
    name.fill("B")
    expect(page.locator(".q-field--error").filter(has=name)).to_have_count(1)
    name.fill("by-form")
    values(page, 0, "lr", "0.1, 0.2")
    page.get_by_role("button", name="Another parameter").click()
    values(page, 1, "seed", "1..3")
    page.get_by_label("Metric").fill("loss: ([0-9.]+)")
    expect(page.get_by_text("6 points")).to_be_visible()
    expect(page.locator(".oarsman-card .q-table tbody tr")).to_have_count(5)
    expect(page.locator(".oarsman-card .q-table tbody tr").first).to_contain_text("0.1")
    expect(page.get_by_text("and 1 more")).to_be_visible()
    page.get_by_role("button", name="Begin").click()
    expect(page).to_have_url(f"{server.address}/sweeps/default/by-form")
    expect(page.get_by_text("6 of 6 ended, 0 failed")).to_be_visible()
    expect(page.get_by_role("row").filter(has_text="0.2").first).to_contain_text("0.2")

    page.goto(f"{server.address}/sweeps/new")
    page.get_by_label("Name", exact=True).fill("by-form")
    values(page, 0, "lr", "7")
    expect(page.get_by_text("there is another sweep default/by-form already")).to_be_visible()


def test_mistakes_stand_at_their_fields(opened: Opened) -> None:
    page = opened("/sweeps/new", "zh-CN")
    begin = page.get_by_role("button", name="开始")
    name = page.get_by_label("名称", exact=True)
    name.fill("Not A Name")
    expect(page.locator(".q-field", has=name).get_by_role("alert")).to_contain_text("小写字母")
    expect(begin).to_be_disabled()
    name.fill("right")
    metric = page.get_by_label("指标")
    metric.fill("loss: (")
    expect(page.locator(".q-field", has=metric).get_by_role("alert")).to_be_visible()
    metric.fill("")
    page.get_by_label("参数").first.fill("other")
    expect(page.get_by_text("{{lr}}").last).to_be_visible()  # which no parameter is called
    expect(begin).to_be_disabled()
    page.get_by_label("参数").first.fill("lr")
    expect(begin).to_be_enabled()


def test_whoever_may_only_look_begins_none(server: Served, opened: Opened) -> None:
    make_account(server, "looker", "viewer")
    page = logged_in(server, opened(None), "looker", "correct horse", to="/sweeps/new")
    expect(page.get_by_text("You may look, and not start jobs.")).to_be_visible()


def values(page: Page, row: int, name: str, text: str) -> None:
    page.get_by_label("Parameter", exact=True).nth(row).fill(name)
    page.get_by_label("Values").nth(row).fill(text)
