"""A sweep as somebody looks at it: its table, its chart, its file, and what can be done."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.console.api.running import Served

from .conftest import Opened, oarsman

MARKUP = '<img src=x onerror="document.title=1">'
pytestmark = pytest.mark.mpi


def test_results_are_looked_at_sorted_and_downloaded(server: Served, opened: Opened) -> None:
    page = opened("/sweeps")
    expect(page.get_by_text("There are no sweeps yet.")).to_be_visible()
    body = 'echo "loss: {{lr}}"; [ {{lr}} != 0.3 ] || { echo "$SWEEP_WORD" >&2; exit 3; }'
    oarsman(
        server,
        "sweep",
        "run",
        "--name",
        "rates",
        "--grid",
        "lr=0.2,0.3,0.1,none",
        "--grid",
        f"word={MARKUP}",
        "--metric",
        "loss: ([0-9.]+)",
        "-n",
        "1",
        "--",
        "sh",
        "-c",
        body,
        code=1,
    )
    card = page.get_by_role("article", name="rates")
    expect(card.get_by_role("progressbar")).to_have_attribute("aria-label", "4 of 4 ended, 1 failed")
    card.get_by_role("link", name="rates").click()
    expect(page.get_by_role("row", name=re.compile("exited with code 3"))).to_contain_text(MARKUP)
    expect(page.get_by_role("img", name="Metric by parameter").locator("canvas")).to_be_visible()
    expect(page.locator("img[src=x]")).to_have_count(0)
    page.get_by_role("columnheader", name="Metric").click()
    expect(page.locator("tbody tr td:nth-child(1)")).to_have_text(["2", "0", "1", "3"])
    page.get_by_role("columnheader", name="Metric").click()
    expect(page.locator("tbody tr td:nth-child(1)")).to_have_text(["1", "0", "2", "3"])
    with page.expect_download() as download:
        page.get_by_role("link", name="Results as CSV").click()
    assert download.value.suggested_filename == "rates.csv"
    assert download.value.path().read_text().count("default/rates-") == 4
    page.get_by_role("link", name="1", exact=True).click()
    expect(page).to_have_url(re.compile("/jobs/default/rates-0001$"))


def test_a_sweep_is_stopped_resumed_and_deleted(server: Served, opened: Opened) -> None:
    oarsman(server, "sweep", "run", "--name", "long", "--grid", "n=1,2", "--no-wait", "-n", "1", "--", "sleep", "60")
    page = opened("/sweeps/default/long", language="zh-CN")
    page.get_by_role("button", name="停止").click()
    page.get_by_role("dialog").get_by_role("button", name="停止").click()
    expect(page.get_by_role("cell", name="已停止")).to_have_count(2)
    page.get_by_role("button", name="恢复").click()
    expect(page.get_by_role("cell", name="已停止")).to_have_count(0)
    page.get_by_role("button", name="删除").click()
    page.get_by_role("dialog").get_by_role("button", name="删除").click()
    expect(page).to_have_url(server.address + "/sweeps")
    expect(page.get_by_text("还没有参数扫描。")).to_be_visible()
