"""What is seen without a click: the head of a job, what it waits for, what keeps failing, the menu of a phone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.console.api.running import Served
from tests.engines.hosts.machine import mpijob

from .conftest import LIGHT, Opened, oarsman
from .test_job_page import SMALL, submit
from .test_lists import PHONE, asleep, ended, holding_one_cpu

pytestmark = pytest.mark.mpi


def test_the_head_of_a_job_says_whose_it_is_what_runs_and_how_far_it_is(server: Served, opened: Opened) -> None:
    oarsman(server, "submit", "-n", "2", "--cpus", "50m", "--name", "steady", "--", "sleep", "600")
    page = opened("/jobs/default/steady")
    expect(page.get_by_role("heading", level=1)).to_have_text("steady")
    expect(page.get_by_role("navigation", name="Where this is").get_by_role("link", name="Jobs")).to_be_visible()
    about = page.locator(".oarsman-about")
    expect(about).to_contain_text("workers ready")
    expect(about).to_contain_text("just now")
    expect(about.locator(".oarsman-command")).to_have_text(re.compile("mpirun .*sleep 600"))
    expect(about.get_by_role("img", name=re.compile("Progress: (Hosts up|Launched|First output)"))).to_be_visible()
    expect(page.locator(".oarsman-head [data-since]")).to_have_text(re.compile(r"^\d+s$"))


def test_a_stopped_job_is_nowhere_shown_as_failed(server: Served, opened: Opened) -> None:
    oarsman(server, "submit", "-n", "1", "--cpus", "50m", "--name", "given-up", "--", "sleep", "600")
    page = opened("/jobs/default/given-up")
    expect(page.locator(".oarsman-state").filter(has_text="Running")).to_be_visible()
    oarsman(server, "stop", "given-up")
    card = page.locator(".oarsman-cause")
    expect(card).to_contain_text("Stopped on request")
    expect(card).to_have_class(re.compile("is-idle"))
    for path in ("/", "/jobs"):
        page.goto(server.address + path)
        expect(page.locator(".oarsman-state.is-idle").filter(has_text="Stopped").first).to_be_visible()
        expect(page.get_by_text(re.compile("^Failed"))).to_have_count(0)


def test_a_job_that_waits_says_for_what_and_leads_to_the_queue(server: Served, opened: Opened) -> None:
    holding_one_cpu(server, "holder")
    oarsman(server, "submit", "-n", "512", "--workers", "1", "--name", "large", "--", "sleep", "600")
    card = opened("/jobs/default/large").locator(".oarsman-cause")
    expect(card).to_contain_text("Waits for room")
    expect(card).to_contain_text(re.compile(r"needs .* CPUs, .* are free"))
    expect(card.get_by_role("link", name="Hosts and queue")).to_have_attribute("href", "/hosts")


def test_a_job_between_two_attempts_counts_down_to_the_next(server: Served, opened: Opened, tmp_path: Path) -> None:
    wanted = mpijob(
        "flaky",
        ["mpirun", "-n", "1", "sh", "-c", "echo 'part missing' >&2; exit 3"],
        workers=1,
        run_policy={"backoffLimit": 9},
        worker=SMALL,
    )
    wanted["spec"]["mpiReplicaSpecs"]["Launcher"]["restartPolicy"] = "OnFailure"
    submit(server, tmp_path, wanted)
    card = opened("/jobs/default/flaky").locator(".oarsman-cause")
    expect(card).to_contain_text(re.compile("Attempt . failed. Next attempt:"))
    left = card.locator("[data-until]")
    expect(left).to_have_text(re.compile(r"^\d+s$"))
    expect(left).not_to_have_text(left.inner_text())
    expect(card.locator("div", has_text=re.compile("^part missing$")).first).to_be_visible()  # the error comes first


def test_running_jobs_are_drawn_on_the_overview(server: Served, opened: Opened) -> None:
    busy = "i=0; while :; do i=$((i + 1)); done"
    oarsman(server, "submit", "-n", "1", "--cpus", "50m", "--name", "busy", "--", "sh", "-c", busy)
    page = opened("/")
    curve = page.get_by_role("img", name=re.compile(r"^Used: [\d.]+ %, at most [\d.]+ %$"))
    expect(curve.locator("polyline")).to_have_attribute("points", re.compile(r"^0\.0,[\d.]+ .*100\.0,"))
    page.get_by_role("link", name="busy").click()
    expect(page).to_have_url(re.compile("/jobs/default/busy"))


def test_a_mistake_in_the_text_leads_to_the_field_that_asks_for_it(opened: Opened) -> None:
    page = opened("/create?template=hello")
    line = page.locator(".cm-line").filter(has_text="slotsPerWorker: 2")
    line.click()
    page.keyboard.press("End")
    page.keyboard.insert_text("x")
    step = page.locator(".q-stepper__tab").filter(has_text="3. Resources")
    expect(step).to_have_class(re.compile("q-stepper__tab--error"))
    page.get_by_role("button", name=re.compile("^error line .*slotsPerWorker|^line .*slotsPerWorker")).first.click()
    expect(page.get_by_label("Slots per worker")).to_be_focused()


def test_the_review_of_a_new_job_shows_every_answer(opened: Opened) -> None:
    page = opened("/create?template=hello")
    page.get_by_label("Description").fill("says hello")
    page.locator(".q-stepper__tab").filter(has_text="Advanced").click()
    page.get_by_label("Environment variables").fill("OMP_NUM_THREADS=2")
    page.get_by_label("Retries").fill("3")
    page.locator(".q-stepper__tab").filter(has_text="Review").click()
    answers = page.locator(".oarsman-steps .oarsman-facts")
    for answer in ("says hello", "OMP_NUM_THREADS=2", "Retries3", "Number of workers2", "Total replicas3"):
        expect(answers.filter(has_text=answer)).to_have_count(1)


def test_on_a_phone_pages_are_in_a_menu_and_rows_have_two_lines(server: Served, opened: Opened, tmp_path: Path) -> None:
    asleep(server, tmp_path, "resting")
    ended(server, "done")
    page = opened(LIGHT)
    page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    page.goto(server.address + "/jobs")
    row = page.locator(".oarsman-row-card").filter(has_text="done")
    expect(row.locator(".oarsman-row-line")).to_have_count(2)
    hosts = page.get_by_role("navigation", name="Pages").get_by_role("link", name="Hosts and queue")
    expect(hosts).to_be_hidden()
    menu = page.get_by_role("button", name="Menu")
    expect(menu).to_have_attribute("aria-expanded", "false")
    menu.press("Enter")
    expect(menu).to_have_attribute("aria-expanded", "true")
    hosts.click()
    expect(page).to_have_url(server.address + "/hosts")


def test_the_mark_is_in_the_header_and_the_tab(opened: Opened) -> None:
    page = opened("/")
    mark = page.locator(".oarsman-brand img")
    assert mark.evaluate("image => image.complete && image.naturalWidth > 0")
    assert drawn_at_16_pixels(page, mark.get_attribute("src") or "")
    tab = page.locator("link[rel='shortcut icon']").get_attribute("href") or ""
    assert drawn_at_16_pixels(page, tab)


def drawn_at_16_pixels(page: Page, source: str) -> bool:
    """Whether it has both of its colours there."""
    found: bool = page.evaluate(
        """async (source) => {
            const image = Object.assign(new Image(), { src: source, width: 16, height: 16 });
            await image.decode();
            const canvas = Object.assign(document.createElement("canvas"), { width: 16, height: 16 }).getContext("2d");
            canvas.drawImage(image, 0, 0, 16, 16);
            const reds = [...canvas.getImageData(0, 0, 16, 16).data].filter((_, at) => at % 4 === 0);
            return Math.max(...reds) > 230 && Math.min(...reds) < 30;
        }""",
        source,
    )
    return found
