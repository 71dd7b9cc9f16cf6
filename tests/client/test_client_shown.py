"""What a notebook, a terminal and a file show: readable, and never markup or control characters from a job."""

from __future__ import annotations

import re
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from service.memory_backend import NOON, MemoryService

from oarsman.client import notebook
from oarsman.client.client import Client
from oarsman.service.models import CauseView, HostView, JobView

EVIL = "<script>alert(1)</script>\x1b[2J\"'&"
TAGS = re.compile(r"</?(table|thead|tbody|tr|th|td|p|b|pre|div)( style='[^'<>]*')?>")


@pytest.fixture
def client() -> Client:
    service = MemoryService()
    key = service.add("pi")
    cause = CauseView(
        summary=EVIL, rank=1, host=EVIL, exit_code=3, signal=9, memory_limit_hit=True, last_lines=[EVIL], hint=EVIL
    )
    service.become(key, "Failed", cause=cause, message=EVIL, owner=EVIL, reason=EVIL, started=NOON)
    return Client(service=service)


def harmless(html: str) -> bool:
    """Nothing is left of the markup but our own."""
    rest = TAGS.sub("", html)
    return "<" not in rest and ">" not in rest


def test_nothing_a_job_says_becomes_markup(client: Client) -> None:
    job = client.job("pi")
    hosts: notebook.Table[HostView] = notebook.Table(
        host.model_copy(update={"message": EVIL}) for host in client.hosts()
    )
    for html in (job._repr_html_(), client.jobs()._repr_html_(), hosts._repr_html_(), client.queue()._repr_html_()):  # type: ignore[attr-defined]
        assert harmless(html), html
    assert "&lt;script&gt;" in job._repr_html_()
    assert "rank 1" in job._repr_html_()
    assert "\x1b" not in re.sub(r"(?s)<p>.*?</p>", "", job._repr_html_())


def test_a_notebook_names_the_mpi_that_is_used_and_before_that_is_known_the_manifests(client: Client) -> None:
    summary = client.job("pi")._seen.summary
    assert "OpenMPI" in client.job("pi")._repr_html_()
    view = JobView.model_construct(cause=None, mpi="MPICH 4.3.2 (/opt/mpich/bin/mpirun)")
    shown = notebook.job_html("pi", summary, view)
    assert "MPICH 4.3.2" in shown
    assert "OpenMPI" not in shown


def test_text_forms_say_what_matters_and_hold_no_control_characters(client: Client) -> None:
    job = client.job("pi")
    for text in (repr(job), repr(client.jobs()), repr(client.hosts()), repr(client.queue())):
        assert "\x1b" not in text
    assert repr(job).startswith("<job default/pi Failed, 0/2 workers, 2 ranks, 1m30s")


def test_a_long_list_says_how_many_more_there_are() -> None:
    service = MemoryService()
    for number in range(60):
        service.add(f"job-{number}")
    found = Client(service=service).jobs()
    assert repr(found).endswith("... and 10 more")
    assert "and 10 more" in found._repr_html_()


# -- progress ---------------------------------------------------------------------------------------
def test_without_a_terminal_each_change_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with notebook.LiveLine() as progress:
        for text in ("a", "a", "b\x1b[2J"):
            progress.show(text)
    assert capsys.readouterr().err == "a\nb\\x1b[2J\n"


def test_progress_that_is_not_wanted_is_silent(capsys: pytest.CaptureFixture[str]) -> None:
    with notebook.LiveLine(wanted=False) as progress:
        progress.show("a")
    assert capsys.readouterr() == ("", "")


def test_on_a_terminal_the_last_line_stays(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with notebook.LiveLine() as progress:
        progress.show("[bold]a")
        progress.show("[bold]b")
    assert capsys.readouterr().err.endswith("[bold]b\n")


def test_in_a_notebook_one_line_is_rewritten(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    updated: list[str] = []
    display = ModuleType("IPython.display")

    def show(html: Any, *, display_id: bool) -> Any:
        shown.append(html)
        return SimpleNamespace(update=updated.append)

    display.HTML, display.display = str, show  # type: ignore[attr-defined]
    ipython = ModuleType("IPython")
    ipython.get_ipython = lambda: SimpleNamespace(kernel=object())  # type: ignore[attr-defined]
    ipython.display = display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    with notebook.LiveLine() as progress:
        progress.show("<a>")
        progress.show("b")
    assert (shown, updated) == (["<pre>&lt;a&gt;</pre>"], ["<pre>b</pre>"])


def test_ipython_on_a_terminal_is_no_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    ipython = ModuleType("IPython")
    ipython.get_ipython = lambda: SimpleNamespace()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    assert not notebook.in_notebook()
