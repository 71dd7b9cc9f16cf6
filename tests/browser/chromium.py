"""A real Chromium without windows, for tests and screenshots."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

# The same engine three times; the first draws no windows and takes two thirds of the others' time.
PROGRAMS = ("chromium-headless-shell", "chromium", "google-chrome")

# What a browser does by itself would only be refused here; a root user has no sandbox.
QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@contextmanager
def chromium() -> Iterator[Browser]:
    found = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if found is None:
        raise RuntimeError("there is no chromium: say scripts/setup test")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=list(QUIET))
        yield browser
        browser.close()
