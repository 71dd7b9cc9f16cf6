"""The last row of a terminal may be a line that has not ended yet."""

from __future__ import annotations

import io
import re
from contextlib import redirect_stderr, redirect_stdout

import pytest

from oarsman.cli.logview import Printer

from .fakes import a_line
from .test_failures import Terminal

CLEARED = "\r\x1b[K"
TAG = "[rank 0 pi-worker-0] "


@pytest.fixture(autouse=True)
def _narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")


def without_colours(text: str) -> str:
    return re.sub(r"\x1b\[[0-9]*m", "", text)


def test_it_is_drawn_over_itself_and_cleared_before_other_lines() -> None:
    with redirect_stdout(Terminal()) as terminal, Printer() as printer:
        assert printer.shows_live
        printer.show_live([a_line("1%"), a_line("1%", 1)])
        printer.show_live([a_line("1%"), a_line("2%", 1)])  # of several the first is shown
        printer.show_live([a_line("2%")])
        printer.write(a_line("other", 1))
        printer.go_on()
        printer.write(a_line("done"))
        printer.go_on()
        printer.show_live([])
    assert without_colours(terminal.getvalue()) == (
        f"{TAG}1%{CLEARED}{TAG}2%{CLEARED}[rank 1 pi-worker-0] other\n{TAG}2%{CLEARED}{TAG}done\n"
    )


def test_it_stays_in_one_row_and_does_nothing_to_the_terminal() -> None:
    with redirect_stdout(Terminal()) as terminal, Printer() as printer:
        printer.show_live([a_line("\x1b[2J" + "x" * 100)])
    assert without_colours(terminal.getvalue()) == f"{TAG}\\x1b[2J{'x' * 11}{CLEARED}"


def test_a_file_gets_whole_lines_only() -> None:
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(Terminal()) as err, Printer(split=True) as printer:
        printer.show_live([a_line("1%")])
        assert printer.shows_live  # of the other stream
    assert (out.getvalue(), err.getvalue()) == ("", "")
    with redirect_stdout(io.StringIO()), Printer() as printer:
        assert not printer.shows_live
