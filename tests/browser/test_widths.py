"""Long names, lines, causes, commands and values: no page is wider than its window."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.console.api.running import Served
from tests.engines.hosts.machine import mpijob

from .conftest import Opened, delete, make_account, make_token, oarsman

pytestmark = [pytest.mark.mpi, pytest.mark.timeout(300)]

WIDTHS = (390, 1024, 1440)
LINE = "w" * 900  # no blank in it
NAME = "n" * 50
JOB = f"/jobs/default/{NAME}"
SWEPT = "s" * 40


def text(found: str) -> str:
    return f"text={found}"


# Address, and what is there when the page is.
PAGES = (
    ("/", text(NAME)),
    ("/jobs", text(NAME)),
    *((f"{JOB}?tab={tab}", text(LINE)) for tab in ("Logs", "Summary", "Metrics", "YAML")),
    (f"{JOB}?tab=Events", "tbody td"),
    (f"{JOB}?tab=Ranks", ".oarsman-grid button"),
    (f"{JOB}?tab=Usage", ".oarsman-charts"),
    *((f"/create?from=default/{NAME}", f".q-stepper__tab >> nth={step}") for step in range(5)),
    ("/sweeps", text(SWEPT)),
    (f"/sweeps/default/{SWEPT}", text(LINE[:200])),
    ("/hosts", text("default/waits")),
    ("/environments", text(LINE[:400])),
    ("/account", text(LINE[:200])),
    ("/people", text("p" * 60)),
    (f"/login?to={LINE}", ".oarsman-login"),
    ("/jobs/default/is-not-there", text("is-not-there")),
)


@pytest.fixture(scope="module")
def long_things(server: Served, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = tmp_path_factory.mktemp("long")
    command = ["mpirun", "-n", "1", "sh", "-c", f"echo {LINE}; echo '{LINE[:200]}: 0.25'; echo {LINE} >&2; exit 3"]
    failing = mpijob(NAME, command, workers=1)
    failing["metadata"]["annotations"] = {"oarsman.dev/description": LINE[:500]}
    (folder / "job.yaml").write_text(json.dumps(failing))
    oarsman(server, "submit", str(folder / "job.yaml"))
    oarsman(server, "submit", "-n", "1", "--workers", "1", "--cpus", "1", "--name", "holder", "--", "sleep", "600")
    oarsman(server, "submit", "-n", "512", "--workers", "1", "--name", "waits", "--", "sleep", LINE)
    parameter = "a" * 60
    grid = ["--grid", f"{parameter}={LINE[:200]},{LINE[:201]}", "--metric", "loss: ([0-9.]+)"]
    fails = f"echo loss: 0.5 {{{{{parameter}}}}}; echo {LINE} >&2; exit 3"
    oarsman(server, "sweep", "run", "--name", SWEPT, *grid, "-n", "1", "--", "sh", "-c", fails, code=1)
    oarsman(server, "env", "build", "tools", "--description", LINE[:500])
    token = make_token(server, "--note", LINE[:200])
    make_account(server, "p" * 60, "user")
    oarsman(server, "wait", NAME, code=None)
    yield
    oarsman(server, "sweep", "delete", SWEPT)
    oarsman(server, "env", "delete", "tools")
    oarsman(server, "tokens", "revoke", token)
    oarsman(server, "users", "remove", "p" * 60)
    delete(server, f"default/{NAME}", "default/waits", "default/holder")


def test_no_page_is_wider_than_its_window(server: Served, opened: Opened, long_things: None) -> None:
    page = opened("/account")
    wide = []
    for path, there in PAGES:
        page.goto(server.address + path)
        expect(page.locator(there).first).to_be_attached()
        if "stepper" in there:
            page.locator(there).click()
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 800})
            if more := page.evaluate(TOO_WIDE):
                wide.append(f"{path} at {width}: {more}")
    assert not wide, "\n".join(wide)


# What of a page is too wide, once it has been drawn at its new width.
TOO_WIDE = """async () => {
    for (let frames = 0; frames < 3; frames++) await new Promise(requestAnimationFrame);
    const room = document.documentElement.clientWidth, over = document.documentElement.scrollWidth - room;
    const scrolls = (one) => one && (getComputedStyle(one).overflowX !== "visible" || scrolls(one.parentElement));
    const wide = (one) => one.getBoundingClientRect().right > room + 1 && !scrolls(one.parentElement);
    const guilty = [...document.querySelectorAll("body *")].filter(wide).map((one) => one.className || one.tagName);
    return over > 0 ? `${over} px: ${guilty.slice(0, 6).join(" > ")}` : "";
}"""
