"""A console in front of real SSH hosts: a job made in the form runs on them, and every page names them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from playwright.sync_api import Locator, Page, expect
from ssh_hosts import Rack

from tests.console.api.running import Served, served

from .conftest import Opened, oarsman

pytestmark = [pytest.mark.mpi, pytest.mark.timeout(300)]

FAILS = 'if [ "$RANK" = 3 ]; then echo "part-3.csv: no such file" >&2; exit 7; fi; sleep 600'


@pytest.fixture(scope="module")
def server(shared_rack: Rack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Three hosts with two slots each, and one that a check has found unfit."""
    folder = tmp_path_factory.mktemp("on-ssh")
    (folder / ".oarsmanignore").write_text("state\n")
    inventory = folder / "hosts.yaml"
    hosts = [{"name": host.name, "slots": 2} for host in shared_rack]
    inventory.write_text(yaml.safe_dump({"sshConfig": str(shared_rack.ssh_config), "hosts": hosts}))
    here = {"HOME": str(shared_rack.home), "OARSMAN_ON": "ssh", "OARSMAN_HOSTS": str(inventory)}
    *_, last = shared_rack
    with last.faults.closed_port(), served(folder / "state", **here) as found:
        oarsman(found, "hosts", "check", "--leave-out", last.name, code=1)
        yield found


@pytest.fixture
def done(shared_rack: Rack) -> Iterator[Path]:
    """A file that ranks wait for; whatever a test finds, they do not wait longer than it."""
    file = shared_rack.shared / "done"
    yield file
    file.touch()


def test_a_job_made_in_the_form_runs_and_its_hosts_are_shown(server: Served, opened: Opened, done: Path) -> None:
    page = opened("/create")
    expect(page.get_by_text("Where: SSH hosts")).to_be_visible()
    expect(page.get_by_text(re.compile(r"^free: 6 of 6 slots, "))).to_be_visible()
    page.get_by_label("Name", exact=True).fill("rowing")
    step(page, "Run")
    page.get_by_label("Launch command").fill(
        f"mpirun sh -c 'echo rank $RANK is on $OARSMAN_MACHINE; until test -e {done}; do sleep 0.1; done'"
    )
    step(page, "Resources")
    page.get_by_label("Slots per worker").fill("2")
    expect(page.get_by_text(re.compile("^2 workers × 2 slots = 4 slots")).first).to_be_visible()
    expect(page.get_by_text("Fits: it can start now.")).to_be_visible()
    step(page, "Review")
    page.get_by_text("Ranks on each host").click()
    expect(page.get_by_text("rowing-worker-1 (node2): 2, 3")).to_be_visible()
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page).to_have_url(f"{server.address}/jobs/default/rowing")
    expect(state(page, "Running")).to_be_visible()
    expect(page.get_by_role("log")).to_contain_text("rank 3 is on node2")

    page.get_by_role("tab", name="Ranks").click()
    cell = page.get_by_role("button", name=re.compile(r"^Rank 3 · rowing-worker-1 \(node2\) · running"))
    expect(cell).to_be_visible()
    expect(page.get_by_role("row").filter(has_text="rowing-worker-0 (node1)").first).to_contain_text("0-1")
    page.goto(f"{server.address}/hosts")
    expect(slots(page, r"2 of 2 held, 0 free; [\d.]+ CPU busy; default\/rowing 2")).to_have_count(2)
    expect(slots(page, r"0 of 2 held, 2 free; [\d.]+ CPU busy")).to_have_count(1)
    expect(card(page, "node1").get_by_text("2 slots")).to_be_visible()

    done.touch()
    page.goto(f"{server.address}/jobs/default/rowing?tab=Summary")
    expect(state(page, "Succeeded")).to_be_visible()
    expect(page.get_by_text("node1, node2")).to_be_visible()


def test_the_cause_of_a_failure_names_rank_and_host(server: Served, opened: Opened) -> None:
    oarsman(server, "run", "-n", "4", "--workers", "2", "--name", "fails", "--", "sh", "-c", FAILS, code=7)
    page = opened("/jobs/default/fails")
    cause = page.locator(".oarsman-cause")
    expect(cause).to_contain_text("rank 3 on fails-worker-1 (node2) exited with code 7")
    expect(cause.get_by_role("heading", name="part-3.csv: no such file")).to_be_visible()
    page.goto(f"{server.address}/")
    expect(page.get_by_role("img", name=re.compile(r"^Slots: 0 of 6 held, 6 free; "))).to_be_visible()
    expect(page.get_by_text("rank 3 on fails-worker-1 (node2)")).to_be_visible()


def test_a_host_that_a_check_left_out_says_why_in_the_readers_language(opened: Opened) -> None:
    for language, word, why, summary, hint in (
        ("en-US", "left out", "nothing listens on port 22", "failures: 1", "start sshd there, or correct the port"),
        ("zh-CN", "未使用", "端口 22 没有程序在监听", "失败：1", "请在那里启动 sshd，或更正端口"),
    ):
        unfit = card(opened("/hosts", language), "node4")
        expect(unfit.get_by_text(word)).to_be_visible()
        expect(unfit).to_contain_text(why)
        unfit.get_by_text(summary).click()
        expect(unfit).to_contain_text(hint)


def test_a_host_that_does_not_respond_is_an_alarm(server: Served, opened: Opened, shared_rack: Rack) -> None:
    first, *_ = shared_rack
    page = opened("/")
    expect(page.get_by_role("img", name=re.compile("^Slots: .* of 6 held"))).to_be_visible()
    expect(page.locator(".oarsman-alarm")).to_have_count(0)  # node4 is left out on purpose
    with first.faults.closed_port():
        for path in ("/", "/hosts"):
            page.goto(f"{server.address}{path}")
            alarm = page.locator(".oarsman-alarm")
            expect(alarm).to_contain_text("1 of 4 hosts do not respond: node1")
            expect(alarm).to_contain_text("nothing listens on port 22")
        expect(card(page, "node1").get_by_text("lost")).to_be_visible()
    expect(page.locator(".oarsman-alarm")).to_have_count(0)


# -- helpers ------------------------------------------------------------------------------------------
def step(page: Page, name: str) -> None:
    page.locator(".q-stepper__tab").filter(has_text=name).click()


def state(page: Page, word: str) -> Locator:
    return page.locator(".oarsman-state").filter(has_text=re.compile(f"{word}$")).first


def card(page: Page, host: str) -> Locator:
    return page.locator(".oarsman-hosts > .oarsman-card").filter(has=page.get_by_role("heading", name=host))


def slots(page: Page, label: str) -> Locator:
    """A drawing says what it shows."""
    return page.get_by_role("img", name=re.compile(f"^Slots: {label}$"))
