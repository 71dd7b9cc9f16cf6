"""The REST API, as somebody reads it."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.console.api.running import Served

from .conftest import Opened


def test_whoever_may_read_the_description_reads_it_as_a_page(server: Served, opened: Opened) -> None:
    page = opened(None)
    elsewhere: list[str] = []
    page.on("request", lambda request: elsewhere.append(request.url))
    page.goto(f"{server.address}/docs")
    expect(page.get_by_role("heading", name="REST API")).to_be_visible()
    page.get_by_text("/api/v1/jobs/{namespace}/{name}/scale").click()
    operation = page.locator("#api-scaleJob")
    expect(operation.locator("pre")).to_contain_text(f"{server.address}/api/v1/jobs/default/pi/scale")
    operation.get_by_role("link", name="Scale", exact=True).click()
    expect(page).to_have_url(re.compile("#api-Scale$"))
    expect(page.locator("#api-Scale").get_by_text("workers")).to_be_visible()
    assert all(url.startswith((server.address, "data:")) for url in elsewhere), elsewhere
    with page.expect_request("**/openapi.json"):
        page.get_by_role("link", name="openapi.json").click()


def test_it_is_chinese_for_chinese_readers_and_stands_among_the_other_pages(opened: Opened) -> None:
    page = opened("/docs", "zh-CN")
    expect(page.get_by_role("navigation", name="页面")).to_be_visible()
    expect(page.get_by_role("heading", name="环境", exact=True)).to_be_visible()
    page.get_by_text("/api/v1/preview", exact=True).click()
    expect(page.locator("#api-previewJob").get_by_text("请求体")).to_be_visible()
