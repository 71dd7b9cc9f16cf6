"""Times are those of the reader's zone, and UTC at the pointer."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

import pytest
from playwright.sync_api import Page, expect

from tests.console.api.running import Served

from .conftest import Opened, make_account, make_token, oarsman

pytestmark = pytest.mark.mpi

ZONE, AHEAD = "Asia/Kolkata", timedelta(hours=5, minutes=30)
JOB = "/jobs/default/timed"
# Address, and how many moments it has at least.
PAGES = (
    ("/", 1),
    ("/jobs", 1),
    (f"{JOB}?tab=Summary", 4),
    (f"{JOB}?tab=Ranks", 1),
    (f"{JOB}?tab=Events", 3),
    (f"{JOB}?tab=Runs", 1),
    ("/sweeps", 1),
    ("/environments", 1),
    ("/account", 1),
    ("/people", 2),
)


def test_every_time_on_a_page_is_in_the_zone_of_the_reader_and_in_utc_at_the_pointer(
    server: Served, opened: Opened
) -> None:
    program = "for step in 1 2 3 4 5; do echo step $step loss: 0.$step; sleep 0.1; done; exit 3"
    oarsman(server, "run", "-n", "1", "--cpus", "50m", "--name", "timed", "--", "sh", "-c", program, code=3)
    oarsman(server, "sweep", "run", "--name", "swept", "--grid", "n=1", "-n", "1", "--", "true")
    oarsman(server, "env", "build", "tools")
    token = make_token(server, "--days", "3")
    make_account(server, "ada", "user")
    page = opened(timezone_id=ZONE)
    for path, least in PAGES:
        page.goto(server.address + path)
        expect(page.locator("oarsman-time").nth(least - 1)).to_be_visible()
        assert not wrong(page), path
    page.goto(f"{server.address}{JOB}?tab=Logs")
    page.get_by_role("checkbox", name="Times").click()
    line = page.locator(".oarsman-log-line", has_text="loss: 0.5").locator(".oarsman-log-tag")
    expect(line).to_have_count(2)
    in_utc = line.last.get_attribute("title") or ""
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} UTC", in_utc)
    assert moved(in_utc, "%Y-%m-%d %H:%M:%S.%f UTC").endswith(" " + line.first.inner_text())
    oarsman(server, "sweep", "delete", "swept")
    oarsman(server, "env", "delete", "tools")
    oarsman(server, "tokens", "revoke", token)


def wrong(page: Page) -> list[str]:
    """Times that are not what they are in UTC, moved; and those that stand there as bare text. How long ago something
    was has no zone."""
    found = []
    for told, in_utc in page.evaluate(
        "[...document.querySelectorAll('oarsman-time:not([data-ago])')].map((one) => [one.innerText, one.title])"
    ):
        wanted = [moved(one, "%Y-%m-%d %H:%M:%S UTC").partition(".")[0] for one in in_utc.split(", ") if one]
        if not all(one in told or one[5:16] == told for one in wanted):
            found.append(f"{told} is not {in_utc}")
    bare = page.evaluate(
        "() => { const copy = document.body.cloneNode(true);"
        " copy.querySelectorAll('oarsman-time, script').forEach((one) => one.remove()); return copy.textContent; }"
    )
    return [*found, *re.findall(r"\d\d-\d\d \d\d:\d\d", bare)]


def moved(in_utc: str, form: str) -> str:
    return (datetime.strptime(in_utc, form) + AHEAD).isoformat(" ", "milliseconds")
