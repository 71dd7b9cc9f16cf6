"""Every page, in both languages, light and dark, wide and on a phone: axe finds nothing wrong with it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from importlib import resources

import pytest
from playwright.sync_api import Page, expect

from oarsman.console.pages import account, checks, create, environments, hosts, job, jobs, new_sweep, overview, sweeps
from oarsman.console.pages.page import Page as ConsolePage
from tests.console.api.running import Served

from .conftest import DESK, LIGHT, Opened, delete, oarsman
from .test_lists import PHONE, asleep

pytestmark = [pytest.mark.mpi, pytest.mark.timeout(600)]

AXE = resources.files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8")
FOUND = """async ([part, only]) => (
    await axe.run(part, { preload: false, ...(only && { runOnly: only }) })).violations.map(
    (one) => `${one.id}: ${one.nodes.slice(0, 3).map((node) => node.target.join(" ")).join(", ")} (${one.help})`)"""
AT_REST = """document.getAnimations().every((one) =>
    one.playState !== "running" || one.effect.getComputedTiming().iterations === Infinity)"""
JOB = "/jobs/default/broken"
# Page -> where it is, in each of its shapes; the first three are made elsewhere.
PAGES = {
    "/login": ("/login",),
    "/docs": ("/docs",),
    "": ("/nothing-is-here",),
    checks.ChecksPage.path: ("/checks",),
    new_sweep.NewSweepPage.path: ("/sweeps/new",),
    account.AccountPage.path: ("/account",),
    account.PeoplePage.path: ("/people",),
    overview.OverviewPage.path: ("/",),
    jobs.JobsPage.path: ("/jobs", "/jobs?search=nothing-has-this-name"),
    job.JobPage.path: (
        *(f"{JOB}?tab={tab}" for tab in ("Summary", "Runs", "Ranks", "Logs", "Usage", "Metrics", "Events", "YAML")),
        "/jobs/default/resting",
        "/jobs/default/there-is-none",
    ),
    create.CreatePage.path: ("/create", "/create?template=failure"),
    sweeps.SweepsPage.path: ("/sweeps",),
    sweeps.SweepPage.path: ("/sweeps/default/rates",),
    environments.EnvironmentsPage.path: ("/environments",),
    hosts.HostsPage.path: ("/hosts",),
}

DIALOGS = (
    *(("/jobs/default/resting", word) for word in ("Scale", "Stop", "Clone", "Delete")),
    ("/environments", "New environment"),
    ("/people", "New account"),
    ("/jobs", "Views"),
    ("/jobs", "Columns"),
)


@pytest.fixture(scope="module", autouse=True)
def something_to_show(server: Served, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    asleep(server, tmp_path_factory.mktemp("asleep"), "resting", description="a job with a description")
    script = "echo 'it vanished' >&2; exit 3"
    oarsman(server, "run", "-n", "1", "--oversubscribe", "--name", "broken", "--", "sh", "-c", script, code=None)
    grid = ("--name", "rates", "--grid", "lr=1,2", "--metric", "loss: ([0-9.]+)")
    oarsman(server, "sweep", "run", *grid, "-n", "1", "--", "echo", "loss: {{lr}}")
    yield
    oarsman(server, "sweep", "delete", "rates")
    delete(server, "default/resting", "default/broken")


def test_every_page_is_looked_at() -> None:
    assert {kind.path for kind in ConsolePage.__subclasses__()} < {*PAGES}


# What can be wrong in a look and right in those before it: the dark has other colours and no other words, another
# language other words and no other colours, a phone other parts.
COLOURS = ["color-contrast", "link-in-text-block"]
LOOKS = {"en-US": {"light": None, "dark": COLOURS, "dark, on a phone": None}, "zh-CN": {"light": None}}


@pytest.mark.parametrize("language", LOOKS)
def test_axe_finds_nothing_on_any_page(server: Served, opened: Opened, language: str) -> None:
    page = opened(LIGHT, language)
    found = [
        f"{address} ({look}) {fault}"
        for addresses in PAGES.values()
        for address in addresses
        for look, fault in faults(page, server.address + address, LOOKS[language])
    ]
    assert not found, "\n".join(found)


def faults(page: Page, address: str, looks: Mapping[str, list[str] | None]) -> Iterator[tuple[str, str]]:
    page.set_viewport_size(DESK)  # type: ignore[arg-type]
    page.emulate_media(color_scheme="light")
    page.goto(address)
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    expect(page.locator("fieldset[disabled]")).to_have_count(0)  # a form, until the page is connected
    page.evaluate(AXE)
    for look, rules in looks.items():
        if look != "light":
            page.emulate_media(color_scheme="dark")
            expect(page.locator("body.body--dark")).to_have_count(1)
        if look.endswith("phone"):
            page.set_viewport_size(PHONE)  # type: ignore[arg-type]
            expect(page.locator(".q-table:visible, .oarsman-nav:visible")).to_have_count(
                0
            )  # rows and a menu take their place
        page.wait_for_function(AT_REST)
        for fault in page.evaluate(FOUND, ["html", rules]):
            yield look, fault


def test_axe_finds_nothing_in_dialogs_and_each_has_a_name(server: Served, opened: Opened) -> None:
    page = opened(LIGHT)
    found = []
    for address, word in DIALOGS:
        page.goto(server.address + address)
        page.get_by_role("button", name=word, exact=True).click()
        expect(page.get_by_role("dialog", name=re.compile("."))).to_be_visible()
        page.wait_for_function(AT_REST)
        page.evaluate(AXE)
        found += [f"{address} {word}: {fault}" for fault in page.evaluate(FOUND, ["[role=dialog]", None])]
    assert not found, "\n".join(found)


def test_what_is_wrong_with_a_field_can_be_read_in_the_dark(opened: Opened) -> None:
    page = opened("/create", color_scheme="dark")
    page.get_by_label("Name", exact=True).fill("Not A Name")
    expect(page.locator(".q-field--error [role=alert]")).to_be_visible()
    page.wait_for_function(AT_REST)
    page.evaluate(AXE)
    assert page.evaluate(FOUND, ["html", None]) == []
