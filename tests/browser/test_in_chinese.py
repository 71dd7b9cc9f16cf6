"""What engines say, as a Chinese reader sees it."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.console.api.running import Served, served

from .conftest import Opened, make_account, oarsman

pytestmark = pytest.mark.mpi


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Of its own: what other tests name, and leave in the audit log, is on no page here."""
    with served(tmp_path_factory.mktemp("chinese") / "state") as found:
        yield found


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


# Names of programs, products and formats, and words of MPI that are the same in both languages.
NAMES = """
Oarsman oarsman MPI mpirun MPIJob Open OpenMPI MPICH Intel Kubernetes Python YAML CSV API REST CPU CPUs GPU GPUs RFC UTC
GiB MiB KiB WebSocket SSH ssh Authorization Bearer Cookie TOKEN camelCase ProblemDetails GET POST PUT PATCH DELETE
Tab Esc English curl openapi.json worker Worker launcher Launcher rank Rank np nice cgroup ExitCode pip doctor
horovodrun requirements.txt default root out err
"""
# What is no sentence: jobs and accounts of this test, names with digits, addresses, and what stands between backticks.
APART = re.compile(r"`[^`]*`|sh -c '[^']*'|{{.*?}}|\S*[/_]\S*|\b(broken|held|swept|walk)[-\w]*|\b\w*\d[-.\w]*")
WORD = re.compile(r"[A-Za-z][A-Za-z]+(?:\.[a-z]+)*")
DURATION = re.compile(r"\b\d+(\.\d+)?[dhms]\b")
# What is read: texts, and what those hear who see none. Not what programs wrote, code, and what is said to be English.
READ = """() => {
    const apart = '.cm-editor, .oarsman-lines, .oarsman-code, .oarsman-log, [lang=en], pre, code, small,'
        + ' script, style, .q-icon';
    const found = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        const parent = walker.currentNode.parentElement;
        if (!parent.closest(apart) && parent.checkVisibility()) found.push(walker.currentNode.textContent);
    }
    for (const one of document.querySelectorAll('[aria-label], [placeholder], [alt]')) {
        if (!one.closest(apart)) found.push(one.ariaLabel || one.placeholder || one.alt || '');
    }
    return found.map((text) => text.trim()).filter((text) => /[A-Za-z]/.test(text));
}"""
PAGES = (
    "/",
    "/jobs",
    "/jobs/default/broken?tab=Summary",
    "/jobs/default/broken?tab=Ranks",
    "/jobs/default/broken?tab=Logs",
    "/jobs/default/broken?tab=Usage",
    "/jobs/default/broken?tab=Metrics",
    "/jobs/default/broken?tab=Events",
    "/jobs/default/broken?tab=YAML",
    "/jobs/default/held",
    "/jobs/default/broken-9",
    "/create",
    "/sweeps",
    "/sweeps/new",
    "/sweeps/default/swept",
    "/hosts",
    "/checks",
    "/environments",
    "/account",
    "/people",
    "/docs",
    "/nothing/of/the/kind",
)


def test_no_page_says_in_english_what_has_a_chinese_word(server: Served, opened: Opened) -> None:
    oarsman(server, "run", "-n", "1", "--name", "broken", "--", "sh", "-c", "exit 3", code=None)
    oarsman(server, "submit", "-n", "1", "--name", "held", "--cpus", "1000", "--", "true", code=None)
    oarsman(server, "sweep", "run", "--name", "swept", "--grid", "x1=1", "-n", "1", "--", "true")
    oarsman(server, "env", "build", "walk-env")
    make_account(server, "ada", "user")
    accounts = {"ada"}
    page = opened("/", "zh-CN")
    found: dict[str, set[str]] = {}
    for path in PAGES:
        page.goto(server.address + path)
        expect(page.locator(".oarsman-page")).to_contain_text(re.compile("[一-鿿]"))
        found[path] = english(page, accounts)
    page.goto(f"{server.address}/environments")
    page.get_by_role("button", name="新建环境").click()
    page.get_by_role("dialog").get_by_label("名称").fill("Not A Name")
    page.get_by_role("dialog").get_by_role("button", name="构建").click()
    expect(page.get_by_role("dialog").get_by_role("alert").last).not_to_be_empty()
    found["a wrong environment"] = english(page, accounts)
    page.goto(f"{server.address}/people")
    page.get_by_role("button", name="新建账号").click()
    page.get_by_role("dialog").get_by_label("密码").fill("short")
    page.get_by_role("dialog").get_by_role("button", name="新建账号").click()
    expect(page.get_by_role("dialog").get_by_role("alert").last).not_to_be_empty()
    found["a wrong account"] = english(page, accounts)
    oarsman(server, "env", "delete", "walk-env")
    told = "\n".join(f"{where}: {text}" for where, texts in found.items() for text in sorted(texts))
    assert not told, told


def english(page: Page, accounts: set[str]) -> set[str]:
    known = {*NAMES.split(), *accounts, platform.node()}
    read = {text: APART.sub(" ", text) for text in page.evaluate(READ)}
    return {text for text, rest in read.items() if {*WORD.findall(rest)} - known or DURATION.search(text)}
