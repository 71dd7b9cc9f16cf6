"""The numbered pictures of docs/guide/console.md: a job is created in the real console, step by step."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser, Page, ViewportSize

from tests.browser.conftest import new_link, oarsman
from tests.console.api.running import Served

NAME = "benchmarks-mpi"
PROGRAM = "examples/benchmarks/synthetic_benchmarks.py"
COMMAND = f"mpirun -np 2 python3 -m mpi4py {PROGRAM} --model=resnet101 --batch_size=64"
_BUTTON = ".q-stepper__nav button:visible"
_FOLDER = ".q-stepper__step-inner .is-wide:not([class*=asks]):visible"
_LOCALES = {"en": "en-US", "zh": "zh-CN"}
_NUMBER = """(element, number) => {  // on the corner of a field, behind a text
  const field = element.matches('.oarsman-field, .q-field, .q-btn, .q-tab, .cm-editor, .q-stepper__header')
  const range = document.createRange(), mark = document.createElement('div')
  range.selectNodeContents(element)
  const box = (field ? element : range).getBoundingClientRect()
  const x = field ? box.left - 11 : box.right + 8, y = field ? box.top - 11 : (box.top + box.bottom) / 2 - 11
  mark.textContent = number
  mark.className = 'number'
  Object.assign(mark.style, {
    position: 'absolute', left: `${x + scrollX}px`, top: `${y + scrollY}px`, zIndex: 9999,
    width: '22px', height: '22px', borderRadius: '50%', background: '#c2255c', color: '#fff',
    font: 'bold 13px/22px sans-serif', textAlign: 'center', boxShadow: '0 0 0 2px #fff',
  })
  document.body.append(mark)
}"""
_WEBP = """async png => {
  const image = await createImageBitmap(new Blob([Uint8Array.from(atob(png), byte => byte.charCodeAt(0))]))
  const canvas = document.createElement('canvas')
  canvas.width = image.width, canvas.height = image.height
  canvas.getContext('2d').drawImage(image, 0, 0)
  return canvas.toDataURL('image/webp', 0.8).split(',')[1]
}"""


@dataclass(frozen=True)
class Step:
    """What is done, which parts of the page then get a number, and the part that the picture shows."""

    name: str
    do: Callable[[Page], None]
    numbered: tuple[str, ...]
    shown: str = ".oarsman-create-form"


def _fill(page: Page, field: str, text: str) -> None:
    page.locator(f".asks-for-{field}").locator("input, textarea").first.fill(text)


def _go_to(page: Page, step: int) -> None:
    page.locator(".q-stepper__tab").nth(step - 1).click()


def _basics(page: Page) -> None:
    _fill(page, "name", NAME)
    page.locator(".oarsman-outlook .is-good").wait_for()


def _run(page: Page) -> None:
    _go_to(page, 2)
    _fill(page, "command", COMMAND)


def _resources(page: Page) -> None:
    _go_to(page, 3)
    for role, amount in (("worker", "500m"), ("launcher", "100m")):
        _fill(page, f"{role}_cpu", amount)
        _fill(page, f"{role}_memory", "256Mi")


def _advanced(page: Page) -> None:
    _go_to(page, 4)
    _fill(page, "deadline", "3600")


def _review(page: Page) -> None:
    _go_to(page, 5)


def _job(page: Page) -> None:
    page.locator(_BUTTON).first.click()
    page.wait_for_url(f"**/jobs/default/{NAME}*")
    page.locator(".oarsman-head .is-good").wait_for()


STEPS = (
    Step(
        "1",
        _basics,
        (
            ".oarsman-page .q-select",
            ".q-stepper__header",
            ".asks-for-name",
            ".cm-editor",
            ".oarsman-outlook .is-good",
            _BUTTON,
        ),
        ".oarsman-page",
    ),
    Step("2", _run, (".asks-for-image", ".asks-for-environment", ".asks-for-command", ".asks-for-install", _FOLDER)),
    Step(
        "3",
        _resources,
        (
            ".q-stepper__step-inner [role=status]:visible",
            ".asks-for-workers",
            ".asks-for-slots",
            ".asks-for-worker_cpu",
            ".asks-for-launcher_cpu",
        ),
    ),
    Step("4", _advanced, (".asks-for-clean_policy", ".asks-for-retries", ".asks-for-deadline", ".asks-for-env")),
    Step("5", _review, (".oarsman-h2:visible", ".oarsman-h2:visible >> nth=-1", _BUTTON)),
    Step(
        "6",
        _job,
        (".oarsman-head .oarsman-note", ".q-tab >> nth=2", ".q-tab-panel .q-field:visible", ".oarsman-actions .q-btn"),
        ".oarsman-page",
    ),
)


def steps(browser: Browser, server: Served, language: str, folder: Path) -> None:
    """One picture per step, into the folder."""
    size: ViewportSize = {"width": 1440, "height": 720}
    context = browser.new_context(locale=_LOCALES[language], color_scheme="light", viewport=size)
    page = context.new_page()
    page.set_default_timeout(60_000)
    page.goto(new_link(server))
    page.goto(f"{server.address}/create")
    page.wait_for_load_state("networkidle")
    for step in STEPS:
        step.do(page)
        page.mouse.move(0, 0)
        page.wait_for_timeout(1000)  # for what slides in
        file = folder / f"create-{step.name}{'.zh-CN' if language == 'zh' else ''}.webp"
        file.write_bytes(_picture(page, step))
    oarsman(server, "delete", NAME, "--yes")
    context.close()


def _picture(page: Page, step: Step) -> bytes:
    page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
    for number, selector in enumerate(step.numbered, 1):
        page.locator(selector).first.evaluate(_NUMBER, str(number))
    box = page.locator(step.shown).first.bounding_box()
    assert box is not None
    png = page.screenshot(clip={**box, "height": box["height"] + 1}, full_page=True)
    page.evaluate("document.querySelectorAll('.number').forEach(mark => mark.remove())")
    return base64.b64decode(page.evaluate(_WEBP, base64.b64encode(png).decode()))
