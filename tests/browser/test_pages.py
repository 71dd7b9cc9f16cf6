"""What somebody sees and does in a browser."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.console.api.running import Served, served

from .conftest import Opened, make_account, oarsman

MARKUP = '<img src=x onerror="document.title=1">'
pytestmark = pytest.mark.mpi


def test_the_link_that_the_server_prints_opens_the_console(opened: Opened, tmp_path: Path) -> None:
    with served(tmp_path / "state") as fresh:  # a link is good for ten minutes
        page = opened(None)
        page.goto(fresh.link)
        expect(page).to_have_url(fresh.address + "/")
        expect(page.get_by_role("link", name="Jobs", exact=True).first).to_be_visible()


def test_whoever_is_not_in_is_led_to_the_login_page(server: Served, opened: Opened) -> None:
    page = opened(None)
    page.goto(server.address + "/jobs")
    expect(page).to_have_url(server.address + "/login?to=/jobs")
    expect(page.get_by_role("button", name="Log in")).to_be_visible()


def test_a_wrong_password_is_told_and_a_right_one_leads_to_the_page_that_was_wanted(
    server: Served, opened: Opened
) -> None:
    make_account(server, "ada", "user")
    page = opened(None)
    page.goto(server.address + "/jobs")
    page.get_by_label("Name").fill("ada")
    page.get_by_label("Password").fill("not this one")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("alert")).to_have_text("name or password is wrong")
    page.get_by_label("Password").fill("correct horse")
    page.get_by_label("Password").press("Enter")
    expect(page).to_have_url(server.address + "/jobs")
    expect(page.get_by_text("ada", exact=True)).to_be_visible()


def test_a_job_comes_up_runs_and_ends_without_a_reload(server: Served, opened: Opened) -> None:
    page = opened("/jobs")
    expect(page.get_by_role("link", name="Jobs")).to_be_visible()
    oarsman(server, "run", "-n", "2", "--name", "alive", "--", "echo", "hello from a rank")
    row = page.get_by_role("row").filter(has_text="alive")
    expect(row).to_contain_text("Succeeded")
    row.get_by_role("link", name="alive").click()
    expect(page.get_by_role("log")).to_contain_text("hello from a rank")
    oarsman(server, "delete", "alive")
    expect(page).to_have_url(server.address + "/jobs")


def test_lines_come_in_while_the_job_runs_and_can_be_filtered(server: Served, opened: Opened, tmp_path: Path) -> None:
    go = tmp_path / "go"
    script = f'echo first; until test -e {go}; do sleep 0.1; done; echo second; echo "bad luck" >&2'
    oarsman(server, "submit", "-n", "2", "--name", "talker", "--", "sh", "-c", script)
    page = opened("/jobs/default/talker")
    log = page.get_by_role("log")
    expect(log).to_contain_text("first")
    expect(log).not_to_contain_text("second")
    go.touch()
    expect(log).to_contain_text("second")
    page.get_by_label("Rank").fill("1")
    expect(log).not_to_contain_text("0 talker-worker-0")
    expect(log).to_contain_text("1 talker-worker-1")
    page.get_by_label("Rank").fill("")
    page.get_by_label("Search").fill("luck")
    page.get_by_role("checkbox", name="Only matching lines").click()
    expect(log).not_to_contain_text("second")
    expect(log).to_contain_text("bad luck")


def test_a_failed_job_shows_why(server: Served, opened: Opened) -> None:
    fail(server, "sad")
    page = opened("/jobs/default/sad")
    expect(page.locator(".oarsman-cause")).to_contain_text("part missing")
    expect(page.locator(".oarsman-cause")).to_contain_text("rank 1 on sad-worker-1 exited with code 3")
    page.goto(server.address + "/")
    expect(page.get_by_text("rank 1 on sad-worker-1 exited with code 3").first).to_be_visible()


def test_what_jobs_write_and_how_they_are_described_never_becomes_markup(server: Served, opened: Opened) -> None:
    oarsman(
        server,
        "run",
        "-n",
        "1",
        "--name",
        "markup",
        "--",
        "sh",
        "-c",
        f"echo '{MARKUP}'; echo '{MARKUP}' >&2; exit 4",
        code=4,
    )
    page = opened("/jobs/default/markup")
    expect(page.get_by_role("log")).to_contain_text(MARKUP)
    expect(page.locator(".oarsman-cause")).to_contain_text(MARKUP)
    for path in ("/jobs", "/"):
        page.goto(server.address + path)
        expect(page.get_by_text(MARKUP).first).to_be_visible()
    assert page.locator("img[src=x]").count() == 0
    assert page.title() != "1"


def test_deleting_asks_for_the_name(server: Served, opened: Opened) -> None:
    fail(server, "unwanted")
    page = opened("/jobs/default/unwanted")
    page.get_by_role("button", name="Delete").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("button", name="Delete")).to_be_disabled()
    dialog.get_by_label("Name").fill("unwanted")
    dialog.get_by_role("button", name="Delete").click()
    expect(page).to_have_url(server.address + "/jobs")
    expect(page.get_by_role("row").filter(has_text="unwanted")).to_have_count(0)


def test_marked_jobs_are_deleted_together(server: Served, opened: Opened) -> None:
    for name in ("spent-1", "spent-2"):
        fail(server, name)
    page = opened("/jobs")
    page.get_by_label("Search").fill("spent")
    expect(page.get_by_text("2 jobs")).to_be_visible()
    expect(page.get_by_role("button", name="Delete")).to_be_hidden()
    page.get_by_role("checkbox").first.click()
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_text("0 jobs")).to_be_visible()


def test_the_language_is_that_of_the_browser_and_can_be_switched(opened: Opened) -> None:
    page = opened("/jobs", language="zh-CN")
    expect(page.get_by_role("link", name="作业", exact=True)).to_be_visible()
    page.get_by_role("button", name="English").click()
    expect(page.get_by_role("link", name="Jobs")).to_be_visible()
    page.reload()
    expect(page.get_by_role("link", name="Jobs")).to_be_visible()


def test_the_theme_is_switched_and_remembered(opened: Opened) -> None:
    page = opened("/", color_scheme="light")
    assert not is_dark(page)
    page.get_by_role("button", name="Light or dark").click()
    expect(page.locator("body.body--dark")).to_have_count(1)
    page.reload()
    expect(page.locator("body.body--dark")).to_have_count(1)


def test_a_viewer_sees_all_and_can_change_nothing(server: Served, opened: Opened) -> None:
    fail(server, "of-others")
    make_account(server, "eve", "viewer")
    page = opened(None)
    page.goto(server.address + "/login?to=/jobs/default/of-others")
    page.get_by_label("Name").fill("eve")
    page.get_by_label("Password").fill("correct horse")
    page.get_by_role("button", name="Log in").click()
    expect(page.locator(".oarsman-cause")).to_be_visible()
    expect(page.get_by_role("button", name="Delete")).to_have_count(0)


def is_dark(page: Page) -> bool:
    return page.locator("body.body--dark").count() == 1


def fail(server: Served, name: str) -> None:
    program = 'if [ "$OMPI_COMM_WORLD_RANK" = 1 ]; then echo part missing >&2; exit 3; fi'
    oarsman(server, "run", "-n", "2", "--name", name, "--", "sh", "-c", program, code=3)
