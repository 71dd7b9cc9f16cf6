"""The list of jobs, the overview, and the page of hosts and queue, as somebody uses them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.console.api.running import Served

from .conftest import LIGHT, Opened, jobs_of, make_account, oarsman

MARKUP = '<img src=x onerror="document.title=1">'
PHONE = {"width": 390, "height": 844}
pytestmark = pytest.mark.mpi


# -- jobs ---------------------------------------------------------------------------------------------
def test_whoever_has_no_jobs_is_told_how_to_begin(opened: Opened) -> None:
    page = opened("/jobs")
    expect(page.get_by_text("There are no jobs yet.")).to_be_visible()
    expect(page.get_by_text("oarsman run -n 4 -- hostname")).to_be_visible()
    expect(page.get_by_role("main").get_by_role("link", name="New job").first).to_have_attribute("href", "/create")


def test_a_link_shows_the_same_list(server: Served, opened: Opened, tmp_path: Path) -> None:
    asleep(server, tmp_path, "train-b", "train-a", "other")
    ended(server, "train-c")
    page = opened("/jobs?search=train&state=Suspended&sort=name")
    expect(names(page)).to_have_text(["train-a", "train-b"])
    page.get_by_label("Search").fill("train-b")
    expect(names(page)).to_have_text(["train-b"])
    expect(page).to_have_url(re.compile(r"/jobs\?search=train-b&state=Suspended&sort=name$"))
    page.reload()
    expect(names(page)).to_have_text(["train-b"])
    page.get_by_role("button", name="Show all").click()
    expect(names(page)).to_have_count(4)


def test_whoever_is_not_in_gets_to_the_list_that_was_linked(server: Served, opened: Opened) -> None:
    page = opened(None)
    make_account(server, "ann", "viewer")
    page.goto(server.address + "/jobs?search=a%26b&state=Failed")
    log_in(page, "ann")
    expect(page).to_have_url(server.address + "/jobs?search=a%26b&state=Failed")
    expect(page.get_by_label("Search")).to_have_value("a&b")


def test_columns_are_chosen_and_sorted_by(server: Served, opened: Opened, tmp_path: Path) -> None:
    asleep(server, tmp_path, "b", "a", queue="night")
    asleep(server, tmp_path, "c", queue="day")
    page = opened("/jobs")
    expect(page.get_by_role("cell", name="night")).to_have_count(2)
    expect(page.get_by_role("columnheader", name="Owner")).to_have_count(0)  # the same for all of them
    column = page.get_by_role("columnheader", name="Name")
    column.get_by_role("button").press("Enter")  # as the keyboard does it
    expect(names(page)).to_have_text(["a", "b", "c"])
    expect(column).to_have_attribute("aria-sort", "ascending")
    column.click()
    expect(names(page)).to_have_text(["c", "b", "a"])
    expect(column).to_have_attribute("aria-sort", "descending")
    page.get_by_role("button", name="Columns").click()
    page.get_by_role("checkbox", name="Queue").click()
    expect(page.get_by_role("columnheader", name="Queue")).to_have_count(0)
    expect(page).to_have_url(re.compile(r"[?&]columns="))  # what a reload goes by
    page.reload()
    expect(names(page)).to_have_text(["c", "b", "a"])
    expect(page.get_by_role("columnheader", name="Queue")).to_have_count(0)


def test_pages_are_turned_and_the_order_goes_over_all_of_them(server: Served, opened: Opened, tmp_path: Path) -> None:
    asleep(server, tmp_path, *(f"p{number:02}" for number in range(27)))
    page = opened("/jobs?sort=name")
    expect(names(page)).to_have_text([f"p{number:02}" for number in range(25)])
    expect(page.get_by_text("1–25 of 27")).to_be_visible()
    page.get_by_role("button", name="Next page").click()
    expect(names(page)).to_have_text(["p25", "p26"])
    expect(page.get_by_text("26–27 of 27")).to_be_visible()
    expect(page.get_by_role("button", name="Next page")).to_be_disabled()
    expect(page).to_have_url(re.compile(r"\?sort=name&page=2$"))
    page.reload()  # or a colleague who has the link
    expect(names(page)).to_have_text(["p25", "p26"])
    oarsman(server, "delete", "--yes", "p25", "p26")
    expect(page.get_by_text("1–25 of 25")).to_be_visible()
    expect(names(page)).to_have_count(25)


def test_what_is_done_to_marked_jobs_and_the_pages_are_at_hand_wherever_the_list_is_scrolled_to(
    server: Served, opened: Opened, tmp_path: Path
) -> None:
    asleep(server, tmp_path, *(f"p{number:02}" for number in range(25)))
    page = opened("/jobs?sort=name")
    page.get_by_role("checkbox", name="p00").click()
    for place in ("0", "document.documentElement.scrollHeight"):
        page.evaluate(f"scrollTo(0, {place})")
        expect(page.get_by_role("button", name="Delete")).to_be_in_viewport(ratio=1)
        expect(page.get_by_role("button", name="Next page")).to_be_in_viewport(ratio=1)


def test_a_view_is_saved_found_after_a_reload_and_deleted(server: Served, opened: Opened, tmp_path: Path) -> None:
    asleep(server, tmp_path, "train-a", "other")
    page = opened("/jobs?search=train&columns=name,state")
    page.get_by_role("button", name="Views").click()
    page.get_by_text("Save this view…").click()
    name = f"training {MARKUP}"
    page.get_by_label("Name of the view").fill(name)
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("button", name=name, exact=True)).to_be_visible()

    page = opened("/jobs")  # another browser of the same person
    expect(names(page)).to_have_count(2)
    page.get_by_role("button", name="Views").click()
    page.get_by_role("listitem").filter(has_text=name).click()
    expect(names(page)).to_have_text(["train-a"])
    expect(page.get_by_role("columnheader", name="Owner")).to_have_count(0)
    expect(page).to_have_url(re.compile(r"search=train"))
    page.get_by_role("button", name=name, exact=True).click()
    page.get_by_role("button", name=f"Delete the view {name}").click()
    expect(page.get_by_role("button", name="Views")).to_be_visible()
    page.reload()
    page.get_by_role("button", name="Views").click()
    expect(page.get_by_text("Save this view…")).to_be_visible()
    expect(page.get_by_text("training")).to_have_count(0)
    expect_no_markup(page)


def test_marked_jobs_are_suspended_resumed_and_run_again_and_what_is_refused_says_why(
    server: Served, opened: Opened
) -> None:
    for name in ("many-1", "many-2"):
        running(server, name, "--oversubscribe")
    ended(server, "many-3")
    page = opened("/jobs?search=many&sort=name")
    expect(page.get_by_role("row").filter(has_text="Running")).to_have_count(2)

    together(page, "Suspend")
    expect(page.get_by_role("dialog").last).to_contain_text("Suspend: 2 done, 1 refused")
    expect(page.get_by_role("dialog").last).to_contain_text("default/many-3 has ended; it cannot be suspended")
    page.get_by_role("button", name="Close").click()
    expect(page.get_by_role("row").filter(has_text="Suspended")).to_have_count(2)
    expect(page.get_by_role("button", name="Resume")).to_be_hidden()

    together(page, "Resume")
    page.get_by_role("button", name="Close").click()
    expect(page.get_by_role("row").filter(has_text="Running")).to_have_count(2)

    together(page, "Run again")
    expect(page.get_by_role("dialog").last).to_contain_text("Run again: 1 done, 2 refused")
    page.get_by_role("button", name="Close").click()
    expect(page.get_by_role("row").filter(has_text="Succeeded")).to_have_count(1)

    together(page, "Stop")
    page.get_by_role("button", name="Close").click()
    expect(page.get_by_role("row").filter(has_text="Running")).to_have_count(0)


def test_marks_stay_while_rows_change_and_go_with_another_filter(
    server: Served, opened: Opened, tmp_path: Path
) -> None:
    asleep(server, tmp_path, "kept")
    page = opened("/jobs")
    page.get_by_role("checkbox", name="kept").click()
    expect(page.get_by_text("1 marked")).to_be_visible()
    asleep(server, tmp_path, "newer")
    expect(names(page)).to_have_text(["newer", "kept"])
    expect(page.get_by_role("checkbox", name="kept")).to_be_checked()
    expect(page.get_by_text("1 marked")).to_be_visible()
    page.get_by_label("Search").fill("newer")
    expect(names(page)).to_have_text(["newer"])
    expect(page.get_by_text("1 marked")).to_be_hidden()


def test_a_marked_job_that_is_gone_is_no_longer_marked(server: Served, opened: Opened, tmp_path: Path) -> None:
    asleep(server, tmp_path, "stays", "goes")
    page = opened("/jobs")
    page.get_by_role("checkbox", name="All on this page").click()
    expect(page.get_by_text("2 marked")).to_be_visible()
    oarsman(server, "delete", "--yes", "goes")
    expect(page.get_by_text("1 marked")).to_be_visible()


def test_a_running_job_counts_up_and_the_server_sends_nothing_for_it(server: Served, opened: Opened) -> None:
    running(server, "counting", "--oversubscribe")
    page = opened(LIGHT)
    sent: list[str] = []
    page.once("websocket", lambda socket: socket.on("framereceived", lambda frame: sent.append(str(frame))))
    page.goto(server.address + "/jobs")
    row = page.get_by_role("row").filter(has_text="counting")
    expect(row).to_contain_text("Running")
    expect(row).to_contain_text("1/1")
    spent = row.locator("[data-since]")
    expect(spent).to_have_text(re.compile(r"^\d+s$"))
    first = spent.inner_text()
    sent.clear()
    expect(spent).not_to_have_text(first)
    second = spent.inner_text()
    expect(spent).not_to_have_text(second)
    assert [frame for frame in sent if "counting" in frame] == []


def test_a_row_is_opened_by_a_click_and_by_the_keyboard(server: Served, opened: Opened, tmp_path: Path) -> None:
    asleep(server, tmp_path, "wanted")
    page = opened("/jobs")
    page.get_by_role("cell", name="just now").click()
    expect(page).to_have_url(re.compile(r"/jobs/default/wanted"))
    page.goto(server.address + "/jobs")
    page.wait_for_load_state("networkidle")  # the first look at the jobs draws the rows anew
    page.get_by_role("table").get_by_role("link", name="wanted").press("Enter")
    expect(page).to_have_url(re.compile(r"/jobs/default/wanted"))


def test_descriptions_and_addresses_never_become_markup(server: Served, opened: Opened, tmp_path: Path) -> None:
    asleep(server, tmp_path, "plain", description=MARKUP)
    page = opened("/jobs")
    expect(page.get_by_text(MARKUP)).to_be_visible()
    page.goto(f"{server.address}/jobs?owner={MARKUP}&namespace={MARKUP}&search={MARKUP}")
    expect(page.get_by_text("No job matches.")).to_be_visible()
    expect(page.get_by_label("Owner")).to_have_value(MARKUP)
    expect_no_markup(page)


# -- overview, hosts and queue ------------------------------------------------------------------------
def test_a_tile_of_the_overview_leads_to_its_jobs(server: Served, opened: Opened, tmp_path: Path) -> None:
    asleep(server, tmp_path, "resting")
    ended(server, "done")
    page = opened("/")
    expect(page.get_by_role("link", name="Suspended")).to_contain_text("1")
    expect(
        page.get_by_role("img", name=re.compile(r"CPU: .* of .* held, .* free; .* used, at least .* held but idle"))
    ).to_be_visible()
    page.get_by_role("link", name="Suspended").click()
    expect(names(page)).to_have_text(["resting"])


def test_who_holds_what_is_drawn_and_who_waits_says_why(server: Served, opened: Opened) -> None:
    page = opened("/hosts")
    expect(page.get_by_text("Nothing waits.")).to_be_visible()
    holding_one_cpu(server, "holder")
    expect(page.locator('.oarsman-slot[title="default/holder"]')).to_have_count(1)
    expect(page.get_by_role("img", name=re.compile("^CPU: 1 of .* held"))).to_be_visible()
    expect(page.get_by_role("img", name=re.compile("^Memory: 256 MiB of .* held"))).to_be_visible()
    oarsman(server, "submit", "-n", "512", "--workers", "1", "--name", "large", "--priority", "3", "--", "sleep", "600")
    row = page.get_by_role("row").filter(has_text="default/large")
    expect(row).to_contain_text(re.compile(r"needs .* CPUs, .* are free"))
    expect(row).to_contain_text("512 CPU")
    expect(row.locator("[data-since]")).to_have_text(re.compile(r"^\d+s$"))
    page.get_by_role("listitem").get_by_role("link", name="default/holder").click()
    expect(page).to_have_url(re.compile(r"/jobs/default/holder"))
    page.goto(server.address + "/")
    expect(page.get_by_text(re.compile(r"needs .* CPUs, .* are free"))).to_be_visible()


def test_a_user_sees_that_others_hold_something_and_not_what(server: Served, opened: Opened) -> None:
    holding_one_cpu(server, "secret-plan")
    make_account(server, "bob", "user")
    page = opened(None)
    page.goto(server.address + "/hosts")
    log_in(page, "bob")
    expect(page.locator('.oarsman-slot[title="others"]')).to_have_count(1)
    expect(page.get_by_role("listitem").filter(has_text="others")).to_contain_text("1 CPU · 256 MiB")
    assert "secret-plan" not in page.content()


def test_on_a_phone_nothing_has_to_be_scrolled_sideways(server: Served, opened: Opened, tmp_path: Path) -> None:
    holding_one_cpu(server, "holder")
    asleep(server, tmp_path, "x" * 50, description=MARKUP * 5)
    oarsman(server, "submit", "-n", "512", "--workers", "1", "--name", "large", "--", "sleep", "600")
    page = opened(LIGHT)
    page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    for path, shown in (
        ("/", page.get_by_role("link", name="Suspended")),
        ("/jobs", page.locator(".oarsman-row-card")),
        ("/hosts", page.locator(".oarsman-row-card")),
    ):
        page.goto(server.address + path)
        expect(shown.first).to_be_visible()
        page.wait_for_function("document.documentElement.scrollWidth <= innerWidth")
        expect_no_markup(page)


# -- helpers ------------------------------------------------------------------------------------------
def names(page: Page) -> Locator:
    return page.locator("tbody .oarsman-link")


def together(page: Page, word: str) -> None:
    page.get_by_role("checkbox", name="All on this page").click()
    page.get_by_role("button", name=word).click()
    page.get_by_role("dialog").get_by_role("button", name=word).click()


def expect_no_markup(page: Page) -> None:
    assert page.locator("img[src=x]").count() == 0
    assert page.title() != "1"


def running(server: Served, name: str, *options: str) -> None:
    oarsman(server, "submit", "-n", "1", "--workers", "1", *options, "--name", name, "--", "sleep", "600")


def holding_one_cpu(server: Served, name: str) -> None:
    running(server, name, "--cpus", "1", "--memory", "256Mi")


def ended(server: Served, name: str) -> None:
    oarsman(server, "run", "-n", "1", "--oversubscribe", "--name", name, "--", "true")


def asleep(server: Served, folder: Path, *names: str, description: str = "", queue: str = "") -> None:
    """Jobs that cost nothing: they are made suspended."""
    container = [{"name": "main", "image": "any", "command": ["mpirun", "-n", "1", "true"]}]
    replicas = {
        role: {"replicas": 1, "template": {"spec": {"containers": container}}} for role in ("Launcher", "Worker")
    }
    policy = {"suspend": True, **({"schedulingPolicy": {"queue": queue}} if queue else {})}
    for name in names:
        document = {
            "apiVersion": "kubeflow.org/v2beta1",
            "kind": "MPIJob",
            "metadata": {"name": name, "annotations": {"oarsman.dev/description": description}},
            "spec": {"runPolicy": policy, "mpiReplicaSpecs": replicas},
        }
        jobs_of(server).submit(document, environment=server.environment, folder=folder)


def log_in(page: Page, name: str) -> None:
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password").fill("correct horse")
    page.get_by_role("button", name="Log in").click()
