"""What engines say, as a Chinese reader sees it."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.console.api.running import Served

from .conftest import Opened, make_account, oarsman

pytestmark = pytest.mark.mpi


def test_a_cause_is_chinese_its_original_is_at_the_pointer_and_lines_are_left_alone(
    server: Served, opened: Opened
) -> None:
    script = "echo 'it vanished' >&2; exit 3"
    oarsman(server, "run", "-n", "1", "--name", "broken", "--", "sh", "-c", script, code=None)
    page = opened("/jobs/default/broken?tab=Events", language="zh-CN")
    cause = page.get_by_text("broken-worker-0 上的 rank 0 以退出码 3 结束", exact=True)
    expect(cause).to_have_attribute("title", "rank 0 on broken-worker-0 exited with code 3: it vanished")
    event = page.get_by_text("MPIJob default/broken 正在运行。", exact=True)
    expect(event).to_have_attribute("title", "MPIJob default/broken is running.")
    page.goto(server.address + "/jobs")
    expect(page.get_by_role("row").filter(has_text="broken")).to_contain_text("以退出码 3 结束")


def test_a_wrong_password_is_told_in_chinese(server: Served, opened: Opened) -> None:
    make_account(server, "ada", "user")
    page = opened(None, "zh-CN")
    page.goto(server.address + "/login")
    page.get_by_label("名称").fill("ada")
    page.get_by_label("密码").fill("not this one")
    page.get_by_label("密码").press("Enter")
    expect(page.get_by_role("alert")).to_have_text("名称或密码错误")


def test_mistakes_and_warnings_of_a_new_job_are_chinese(opened: Opened) -> None:
    page = opened("/create?template=failure", language="zh-CN")
    outlook = page.get_by_role("status").filter(has_text="不拉取镜像")
    expect(outlook).to_be_visible()
    page.get_by_role("textbox").filter(has_text="MPIJob").press("Control+Home")
    page.keyboard.type("nonsense: 1\n")
    expect(page.get_by_text("未知的字段“nonsense”").first).to_be_visible()
