"""A set of packages is built in the browser, looked at, attached to a job and deleted."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.console.api.running import Served

from .conftest import Opened, oarsman

pytestmark = pytest.mark.mpi


def test_an_environment_is_built_attached_to_a_job_and_deleted(server: Served, opened: Opened, tmp_path: Path) -> None:
    page = opened("/environments")
    page.get_by_role("button", name="New environment").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("Not A Name")
    dialog.get_by_role("button", name="Build").click()
    expect(dialog.get_by_role("alert").last).to_contain_text("Name: lower-case")
    dialog.get_by_label("Name").fill("tools")
    dialog.get_by_label("Description").fill("what everybody needs")
    dialog.get_by_role("button", name="Build").click()
    card = page.get_by_role("article", name="tools")
    expect(card).to_contain_text("Ready")
    expect(card).to_contain_text("what everybody needs")

    page.goto(server.address + "/create")
    page.get_by_label("Name", exact=True).fill("in-tools")
    step(page, "Run")
    page.get_by_label("Environment", exact=True).click()
    page.get_by_role("option", name="tools").click()
    page.get_by_label("Launch command").fill("mpirun -n 2 sh -c 'echo runs in $VIRTUAL_ENV'")
    expect(page.locator(".cm-content")).to_contain_text("oarsman.dev/environment: tools")
    expect(page.get_by_text("can start now")).to_be_visible()
    step(page, "Review")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page).to_have_url(server.address + "/jobs/default/in-tools")
    expect(page.get_by_role("log")).to_contain_text(re.compile(r"runs in /\S+"))
    expect(page.get_by_text("Succeeded").first).to_be_visible()

    page.goto(server.address + "/environments")
    card.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(card).to_have_count(0)


def test_a_build_that_fails_says_why_and_shows_its_log(server: Served, opened: Opened, tmp_path: Path) -> None:
    wanted = tmp_path / "requirements.txt"
    wanted.write_text(f"--no-index\n--find-links {tmp_path}\nnot-a-package-of-anybody==1\n")
    oarsman(server, "env", "build", "broken", "-r", str(wanted), code=None)
    page = opened("/environments")
    card = page.get_by_role("article", name="broken")
    expect(card).to_contain_text("Failed")
    expect(card).to_contain_text("not-a-package-of-anybody")
    card.get_by_role("button", name="Build log").click()
    expect(page.get_by_role("dialog")).to_contain_text("No matching distribution found")


def step(page: Page, name: str) -> None:
    page.locator(".q-stepper__tab").filter(has_text=name).click()
