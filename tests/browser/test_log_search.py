"""A search in a log: marked, counted, gone through, and in the address."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.console.api.running import Served

from .conftest import Opened, delete, oarsman

pytestmark = pytest.mark.mpi

LINES = 3000
JOB = "/jobs/default/wordy"
PROGRAM = f"""
for step in $(seq 1 {LINES}); do
  case $step in 7|1500|2990) echo "step $step: An ERROR here, error" ;; *) echo "step $step" ;; esac
done
"""


@pytest.fixture(scope="module")
def wordy(server: Served) -> Iterator[None]:
    oarsman(server, "run", "-n", "1", "--cpus", "50m", "--name", "wordy", "--", "sh", "-c", PROGRAM)
    oarsman(server, "run", "-n", "1", "--cpus", "50m", "--name", "silent", "--", "true")
    yield
    delete(server, "default/wordy", "default/silent")


def test_matches_are_counted_marked_and_gone_through_whatever_their_case(opened: Opened, wordy: None) -> None:
    page = opened(f"{JOB}?tab=Logs")
    expect(log(page)).to_contain_text(f"step {LINES}")
    page.get_by_label("Search").fill("Error")
    expect(count(page)).to_have_text("1 of 3")
    expect(current(page)).to_contain_text("step 2990: An ERROR here, error")
    expect(current(page).locator("mark")).to_have_text(["ERROR", "error"])
    expect(log(page)).to_contain_text("step 2991")  # what is around it
    page.get_by_role("button", name="Match above").click()
    expect(count(page)).to_have_text("2 of 3")
    expect(current(page)).to_contain_text("step 1500")
    expect(current(page)).to_be_in_viewport()
    page.get_by_label("Search").press("Enter")
    expect(current(page)).to_contain_text("step 7:")
    expect(log(page)).to_contain_text("step 1")
    page.get_by_label("Search").press("Enter")  # and from the beginning
    expect(current(page)).to_contain_text("step 2990")
    page.get_by_role("button", name="Match below").click()
    expect(current(page)).to_contain_text("step 7:")
    page.get_by_role("button", name="To the newest line").click()
    expect(log(page)).to_contain_text(f"step {LINES}")


def test_a_link_shows_the_same_search_and_the_same_line(opened: Opened, wordy: None) -> None:
    page = opened(f"{JOB}?tab=Logs")
    page.get_by_label("Rank", exact=True).fill("0")
    page.get_by_label("Search").fill("an error")
    page.get_by_role("button", name="Match above").click()
    expect(current(page)).to_contain_text("step 1500")
    expect(page).to_have_url(re.compile(r"[?&]rank=0&search=an\+error&at=\d"))
    other = opened(page.url.removeprefix(page.url.partition(JOB)[0]))  # a colleague
    expect(current(other)).to_contain_text("step 1500")
    expect(count(other)).to_have_text("2 of 3")
    expect(other.get_by_label("Rank", exact=True)).to_have_value("0")
    other.get_by_role("checkbox", name="Only matching lines").click()
    expect(log(other).locator(".oarsman-log-line")).to_have_count(3)
    expect(other.get_by_role("link", name="Download")).to_have_attribute("href", re.compile("search=an"))


def test_nothing_matches_is_not_nothing_was_written(server: Served, opened: Opened, wordy: None) -> None:
    page = opened(f"{JOB}?tab=Logs&search=not-there")
    expect(count(page)).to_have_text("No line matches.")
    expect(log(page)).to_contain_text(f"step {LINES}")
    page.get_by_role("checkbox", name="Only matching lines").click()
    expect(log(page)).to_have_text("No line matches.")
    page.goto(f"{server.address}/jobs/default/silent?tab=Logs")
    expect(log(page)).to_have_text("Nothing was written.")


def test_a_log_that_is_empty_says_whether_something_can_still_come_and_is_not_read_again_for_it(
    server: Served, opened: Opened, tmp_path: Path
) -> None:
    waits = f"until test -e {tmp_path}/go; do sleep 0.1; done"
    oarsman(server, "submit", "-n", "1", "--cpus", "50m", "--name", "mute", "--", "sh", "-c", waits)
    page = opened("/jobs/default/mute?tab=Logs")
    log = page.get_by_role("log")
    expect(log).to_contain_text("Nothing was written yet.")
    expect(page.locator(".oarsman-state").filter(has_text="Running").first).to_be_visible()
    read: list[str] = []
    page.on("request", lambda request: read.append(request.url) if "/log?" in request.url else None)
    page.get_by_role("checkbox", name="Wrap").click()
    expect(page.locator(".oarsman-log")).to_have_class(re.compile("is-unwrapped"))
    (tmp_path / "go").touch()
    expect(log).to_contain_text("Nothing was written.")
    assert read == []


def test_more_than_a_thousand_matches_are_counted_as_more(opened: Opened, wordy: None) -> None:
    page = opened(f"{JOB}?tab=Logs&search=step")
    expect(count(page)).to_have_text("1 of 1,000+")
    expect(current(page)).to_contain_text(f"step {LINES}")


def test_a_match_that_comes_while_the_job_runs_is_counted(server: Served, opened: Opened, tmp_path: Path) -> None:
    program = f"echo needle 1; until test -e {tmp_path}/go; do sleep 0.1; done; echo needle 2; sleep 600"
    oarsman(server, "submit", "-n", "1", "--cpus", "50m", "--name", "live", "--", "sh", "-c", program)
    page = opened("/jobs/default/live?tab=Logs")
    expect(log(page)).to_contain_text("needle 1")
    page.get_by_label("Search").fill("needle")
    expect(count(page)).to_have_text("1 of 1")
    (tmp_path / "go").touch()
    expect(count(page)).to_have_text("2 of 2")
    expect(current(page)).to_contain_text("needle 1")


def test_back_goes_from_tab_to_tab(opened: Opened, wordy: None) -> None:
    page = opened(JOB)
    for tab in ("Summary", "Events"):
        page.get_by_role("tab", name=tab).click()
        expect(page).to_have_url(re.compile(f"tab={tab}$"))
    page.go_back()
    expect(page.get_by_role("tab", name="Summary")).to_have_attribute("aria-selected", "true")
    page.go_back()
    expect(page.get_by_role("tab", name="Logs")).to_have_attribute("aria-selected", "true")
    expect(page).to_have_url(re.compile(f"{JOB}$"))
    page.go_forward()
    expect(page.get_by_role("tab", name="Summary")).to_have_attribute("aria-selected", "true")


# -- helpers ------------------------------------------------------------------------------------------
def log(page: Page) -> Locator:
    return page.get_by_role("log")


def count(page: Page) -> Locator:
    return page.locator(".oarsman-log-find").get_by_role("status")


def current(page: Page) -> Locator:
    return page.locator(".oarsman-log-line.is-current")
