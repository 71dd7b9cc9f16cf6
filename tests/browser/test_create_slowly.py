"""The create form far away from its server: what somebody types is never overwritten by the answer to an older text."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, WebSocketRoute, expect

from tests.console.api.running import Served

from .conftest import LIGHT, Opened
from .test_create import replace_in_yaml, step, yaml

PATIENCE = 60  # seconds; only ends what hangs
_PING = "2"  # of engine.io: a browser that does not answer it is taken for gone after some seconds


class SlowLine:
    """What the server sends waits here, for as long as a test says."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.waiting: list[str | bytes] = []
        self._holds = False
        self._browser: WebSocketRoute | None = None
        page.route_web_socket("**/socket.io/**", self._between)

    def _between(self, browser: WebSocketRoute) -> None:
        self._browser = browser
        browser.connect_to_server().on_message(self._arrived)

    def _arrived(self, message: str | bytes) -> None:
        if self._holds and message != _PING:
            self.waiting.append(message)
        elif self._browser is not None:
            self._browser.send(message)

    def hold(self) -> None:
        self._holds = True

    def until_waits(self, text: str) -> None:
        """Until an answer with that text is on its way."""
        self._until(lambda: any(text in str(message) for message in self.waiting), text)

    def go_on(self) -> None:
        self._holds = False
        for message in self.waiting:
            self._arrived(message)
        self.waiting.clear()

    def _until(self, true: Callable[[], bool], what: str) -> None:
        end = time.monotonic() + PATIENCE
        while not true():
            assert time.monotonic() < end, f"{what!r} is not among {self.waiting}"
            self.page.wait_for_timeout(50)  # messages arrive meanwhile


@pytest.fixture
def page(server: Served, opened: Opened) -> Page:
    """One of its own: what stands between it and its server stays there."""
    return opened(LIGHT).context.new_page()


@pytest.fixture
def line(page: Page, server: Served) -> SlowLine:
    line = SlowLine(page)
    page.goto(server.address + "/create?template=hello")
    expect(page.get_by_text("can start now")).to_be_visible()
    return line


def test_letters_typed_into_the_text_stay_when_an_older_answer_comes(page: Page, line: SlowLine) -> None:
    line.hold()
    replace_in_yaml(page, "name: hello", "name: typed")
    line.until_waits("name: typed")
    page.keyboard.type("-by-hand")
    line.go_on()
    expect(page.get_by_label("Name", exact=True)).to_have_value("typed-by-hand")
    expect(page.get_by_text("can start now")).to_be_visible()
    expect(yaml(page)).to_contain_text("name: typed-by-hand")
    page.keyboard.type("-again")  # where the next letter goes has not moved, either
    expect(page.get_by_label("Name", exact=True)).to_have_value("typed-by-hand-again")


def test_letters_typed_into_a_field_stay_when_an_older_answer_comes(page: Page, line: SlowLine) -> None:
    name = page.get_by_label("Name", exact=True)
    line.hold()
    replace_in_yaml(page, "name: hello", "name: typed")
    line.until_waits("name: typed")
    name.fill("from-the-form")
    line.until_waits("name: from-the-form")  # the server knows, and its answer comes behind the older one
    line.go_on()
    expect(yaml(page)).to_contain_text("name: from-the-form")
    expect(name).to_have_value("from-the-form")


def test_a_complaint_about_the_first_letters_leaves_the_later_ones(page: Page, line: SlowLine) -> None:
    name = page.get_by_label("Name", exact=True)
    line.hold()
    name.fill("Not")
    line.until_waits("name: Not")
    name.press_sequentially("-A-Name")
    line.go_on()
    expect(yaml(page)).to_contain_text("name: Not-A-Name")
    expect(name).to_have_value("Not-A-Name")


def test_a_change_in_the_form_is_not_lost_when_somebody_goes_on_in_the_text(page: Page, line: SlowLine) -> None:
    step(page, "Resources")
    expect(page.get_by_label("Number of workers")).to_be_visible()  # or the step itself is held
    line.hold()
    page.get_by_label("Number of workers").fill("3")
    line.until_waits("replicas: 3")
    replace_in_yaml(page, "name: hello", "name: typed")
    line.go_on()
    expect(yaml(page)).to_contain_text("name: typed")
    expect(yaml(page)).to_contain_text("replicas: 3")
    expect(page.get_by_label("Number of workers")).to_have_value("3")


def test_a_template_takes_the_place_of_what_is_typed_before_it_is_there(page: Page, line: SlowLine) -> None:
    page.get_by_label("Template", exact=True).click()
    option = page.get_by_role("option", name="TensorFlow benchmarks, v1", exact=True)
    expect(option).to_be_visible()
    line.hold()
    option.click()
    line.until_waits("tensorflow-benchmarks")
    replace_in_yaml(page, "name: hello", "name: typed")
    line.go_on()
    expect(page.get_by_label("Name", exact=True)).to_have_value("tensorflow-benchmarks")
    expect(yaml(page)).to_contain_text("name: tensorflow-benchmarks")
