"""Every page in both languages and both themes, on a desk, a tablet and a phone: `make screenshots`, then look at them.

The jobs are real ones, so that each page has something to show.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page

from tests.browser.chromium import chromium
from tests.browser.conftest import make_account, new_link, oarsman
from tests.console.api.running import ROOT, Served, served

OUT = ROOT / "build" / "screenshots"
LOOKS = [
    (language, theme, screen)
    for screen in ("desk", "tablet", "phone")
    for language in ("en", "zh")
    for theme in ("light", "dark")
]
SCREENS = {"desk": (1440, 900), "tablet": (1024, 768), "phone": (390, 844)}
# Address, and what to click there before the picture is taken.
PAGES = {
    "login": ("/login", ""),
    "overview": ("/", ""),
    "jobs": ("/jobs", ""),
    "job-failed": ("/jobs/default/benchmarks-lost-a-rank", ""),
    "job-waiting": ("/jobs/default/waits-for-room", ""),
    "job-stopped": ("/jobs/default/given-up", ""),
    "job-summary": ("/jobs/default/training?tab=Summary", ""),
    "job-log": ("/jobs/default/training?tab=Logs", ""),
    "job-ranks": ("/jobs/default/training?tab=Ranks", ""),
    "job-usage": ("/jobs/default/training?tab=Usage", ""),
    "job-metrics": ("/jobs/default/training?tab=Metrics", ""),
    "job-events": ("/jobs/default/training?tab=Events", ""),
    "job-yaml": ("/jobs/default/training?tab=YAML", ""),
    "create-basics": ("/create", ""),
    "create-run": ("/create?template=tensorflow-benchmarks", "1"),
    "create-resources": ("/create?template=tensorflow-benchmarks", "2"),
    "create-advanced": ("/create", "3"),
    "create-review": ("/create", "4"),
    "sweeps": ("/sweeps", ""),
    "sweep-new": ("/sweeps/new", ""),
    "sweep": ("/sweeps/default/learning-rates", ""),
    "hosts": ("/hosts", ""),
    "environments": ("/environments", ""),
    "account": ("/account", ""),
    "people": ("/people", ""),
    "checks": ("/checks", ""),
    "docs": ("/docs", ""),
    "missing": ("/missing", ""),
}
_TRAINING = """
import os, time
rank = int(os.environ["OMPI_COMM_WORLD_RANK"])
for step in range(100000):
    print(f"step {step} loss: {2.5 / (1 + step / 40):.4f} images/sec: {180 + step % 17:.1f}", flush=True)
    sum(range(200000))
    time.sleep(0.2 if rank != 3 else 1.6)
"""


def main() -> None:
    wanted = sys.argv[1:] or list(PAGES)
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        served(Path(folder) / "state") as server,
        some_jobs(server, Path(folder)),
        chromium() as browser,
    ):
        for look in LOOKS:
            pictures(browser, server, look, {name: OUT / f"{name}-{'-'.join(look)}.png" for name in wanted})
    print(f"{len(list(OUT.glob('*.png')))} pictures in {OUT.relative_to(ROOT)}")


@contextmanager
def some_jobs(server: Served, folder: Path) -> Iterator[None]:
    """One of each kind: ended well, failed, running with a straggler, waiting, stopped; accounts and an environment."""
    program = folder / "train.py"
    program.write_text(_TRAINING)
    (folder / "requirements.txt").write_text("")
    make_account(server, "ada", "admin")
    make_account(server, "grace", "user")
    oarsman(server, "run", "-n", "2", "--name", "hello", "--", "hostname")
    failing = 'if [ "$OMPI_COMM_WORLD_RANK" = 1 ]; then echo "CUDA out of memory" >&2; exit 3; fi; sleep 1'
    oarsman(server, "run", "-n", "2", "--name", "benchmarks-lost-a-rank", "--", "sh", "-c", failing, code=None)
    oarsman(server, "env", "build", "analysis", "-r", str(folder / "requirements.txt"), code=None)
    tried = 'awk "BEGIN { print \\"loss: \\" ({{lr}} * 5 + 1 / {{batch}} + 0.003 / {{lr}}) }"; [ {{lr}} != 1 ]'
    oarsman(
        server,
        "sweep",
        "run",
        "--name",
        "learning-rates",
        "--grid",
        "lr=1,0.1,0.03,0.01",
        "--grid",
        "batch=16,32",
        "--metric",
        "loss: ([0-9.]+)",
        "-n",
        "1",
        "--",
        "sh",
        "-c",
        tried,
        code=None,
    )
    oarsman(server, "submit", "-n", "4", "--cpus", "500m", "--name", "training", "--", sys.executable, str(program))
    oarsman(server, "submit", "-n", "2", "--cpus", "1", "--name", "waits-for-room", "--", "hostname")
    oarsman(server, "submit", "-n", "1", "--cpus", "50m", "--name", "given-up", "--", "sleep", "600")
    oarsman(server, "stop", "given-up")
    try:
        subprocess.run(["sleep", "40"], check=True)  # for lines and samples to come
        yield
    finally:
        for name in ("training", "waits-for-room"):
            oarsman(server, "stop", name, code=None)


def pictures(browser: Browser, server: Served, look: tuple[str, str, str], wanted: Mapping[str, Path]) -> None:
    """Of the pages that are named, each into its file."""
    language, theme, screen = look
    width, height = SCREENS[screen]
    context = browser.new_context(
        locale={"en": "en-US", "zh": "zh-CN"}[language],
        color_scheme="dark" if theme == "dark" else "light",
        viewport={"width": width, "height": height},
    )
    page = context.new_page()
    page.set_default_timeout(60_000)
    page.goto(new_link(server))
    for name, file in wanted.items():
        _picture(page, server, name, file)
    context.close()


def _picture(page: Page, server: Served, name: str, file: Path) -> None:
    path, click = PAGES[name]
    page.goto(server.address + path)
    page.wait_for_load_state("networkidle")
    if click:
        page.locator(".q-stepper__tab").nth(int(click)).click()
    page.wait_for_timeout(1500)  # charts draw themselves
    page.screenshot(path=file)
    overflow = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    print(f"{file.name}{f': {overflow} px too wide' if overflow > 0 else ''}", flush=True)


if __name__ == "__main__":
    main()
