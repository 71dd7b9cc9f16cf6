"""A test that failed is tried again with everything new, and why it failed is kept for somebody to look at."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import pytest_timeout
from _pytest.terminal import TerminalReporter
from pytest_rerunfailures import suspended_finalizers

FOLDER = Path("build", "second-tries")  # what is in it is of the last run that had second tries
_LONGEST = 80  # letters of a test's name in that of a file, which has room for 255 bytes


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """A second try has the time limit of the first, which is set once for all of them."""
    settings = pytest_timeout._get_item_settings(item)
    if getattr(item, "execution_count", 1) > 1 and settings.timeout and not settings.func_only:
        item.config.pluginmanager.hook.pytest_timeout_cancel_timer(item=item)
        item.config.pluginmanager.hook.pytest_timeout_set_timer(item=item, settings=settings)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    """A second try has new servers, browsers and machines: what its module shares ends with the first.

    Otherwise it stumbles over the first one's jobs and folders, which hides why that failed. The plugin means to keep
    them, and for that sets the endings of fixtures aside; it then forgets those of what the second try makes.
    """
    try:
        yield
    except Exception:
        _end_what_the_module_shares(item)
        raise
    if suspended_finalizers:
        _end_what_the_module_shares(item)


def _end_what_the_module_shares(item: pytest.Item) -> None:
    setup, module = item.session._setupstate, item.getparent(pytest.Module)
    setup.stack.update(suspended_finalizers)
    suspended_finalizers.clear()
    setup.teardown_exact(module and module.parent)  # type: ignore[arg-type]  # what other modules share stays


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: TerminalReporter, config: pytest.Config) -> None:
    """A test that passed the second time passed, but that it did not the first time is never silent."""
    if not getattr(config.option, "reruns", None):
        return
    shutil.rmtree(config.rootpath / FOLDER, ignore_errors=True)
    causes = terminalreporter.stats.get("rerun", [])
    if causes:
        terminalreporter.write_sep("=", f"warning: {len(causes)} second tries", yellow=True, bold=True)
    for number, report in enumerate(causes, 1):
        file = _keep(config.rootpath / FOLDER, number, report)
        cause = _cause(report)
        terminalreporter.write_line(
            f"SECOND TRY {report.nodeid} - {cause}; all of it: {file.relative_to(config.rootpath)}", yellow=True
        )


def _keep(folder: Path, number: int, report: pytest.TestReport) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    name = re.sub(r"[^\w.-]+", "-", report.nodeid)
    file = folder / f"{number}-{name[-_LONGEST:]}.txt"
    sections = (f"---- {title} ----\n{text}\n" for title, text in report.sections)
    file.write_text("\n".join([f"{report.nodeid} ({report.when})", report.longreprtext, *sections]), "utf-8")
    return file


def _cause(report: pytest.TestReport) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    lines = (crash.message if crash else report.longreprtext).strip().splitlines()
    return str(lines[0] if lines else "it did not say why")
