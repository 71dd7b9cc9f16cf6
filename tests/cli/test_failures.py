"""How calls that go wrong end, and what reaches a terminal."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from oarsman.backends.base import JobRecord
from oarsman.cli import logview, render
from oarsman.cli.text import t
from oarsman.errors import OarsmanError, StoreError, SupervisorError, UnsupportedError, UserError
from oarsman.job.state import Cause

from .fakes import FakeJobs, a_line, oarsman


class Failing(FakeJobs):
    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error

    def list(self, namespace: str | None = None) -> Sequence[JobRecord]:
        raise self.error


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UserError("m"), 2),
        (UnsupportedError("m", field="spec.x", hint="do y"), 6),
        (SupervisorError("m"), 75),
        (StoreError("m"), 70),
        (KeyboardInterrupt(), 130),
        (BrokenPipeError(), 141),
    ],
)
def test_an_error_ends_with_its_own_code(error: BaseException, code: int) -> None:
    result = oarsman(Failing(error), "list")
    assert result.exit_code == code
    assert result.stdout.strip() == ""
    if isinstance(error, OarsmanError):
        assert result.stderr.startswith("error: m\n")
    if isinstance(error, UnsupportedError):
        assert result.stderr == "error: m\n  field: spec.x\n  hint: do y\n"


def test_an_unexpected_error_is_one_line_and_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    result = oarsman(Failing(ZeroDivisionError("by\x1b[2Jzero")), "list")
    (file,) = tmp_path.iterdir()
    assert result.exit_code == 70
    assert result.stderr == (
        f"error: ZeroDivisionError: by\\x1b[2Jzero\n  hint: this is a bug in oarsman; the traceback is in {file}\n"
    )
    assert "Traceback" in file.read_text("utf-8")


@pytest.mark.parametrize("words", [["--debug", "list"], ["list", "--debug"]])
def test_debug_shows_the_traceback(words: list[str]) -> None:
    result = oarsman(Failing(ZeroDivisionError("zero")), *words)
    assert result.exit_code == 70
    assert "Traceback (most recent call last)" in result.stderr
    assert result.stderr.endswith("error: ZeroDivisionError: zero\n")


def test_an_unknown_engine_is_refused_clearly(jobs: FakeJobs) -> None:
    assert "--on takes one of: local, ssh, kube" in oarsman(jobs, "list", "--on", "moon").stderr


def test_a_reader_that_goes_away_is_no_error() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "wb") as gone:
        done = subprocess.run(
            [sys.executable, "-m", "oarsman.cli", "--help"], stdout=gone, stderr=subprocess.PIPE, text=True
        )
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.parametrize(
    ("words", "env", "colours"),
    [
        (["lsit"], {}, True),
        (["--no-color", "lsit"], {}, False),
        (["lsit"], {"NO_COLOR": "1"}, False),
        (["version", "--nope"], {}, True),
    ],
)
def test_colours_are_for_terminals_that_want_them(words: list[str], env: dict[str, str], colours: bool) -> None:
    ours, theirs = os.openpty()
    with open(ours, "rb", buffering=0) as screen, open(theirs, "wb", buffering=0) as terminal:
        subprocess.run([sys.executable, "-m", "oarsman.cli", *words], stderr=terminal, env={**os.environ, **env})
        text = screen.read(4096)
    assert b"error:" in text
    assert (b"\x1b[" in text) is colours


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_control_characters_are_shown_on_a_terminal_not_obeyed() -> None:
    with redirect_stdout(Terminal()) as terminal, logview.Printer() as printer:
        printer.write(a_line("a\x1b]0;evil\x07b\tc\x9b2J\r"))
        printer.write(a_line("\x1b[31mred\x1b[0m \u202eback \udcff", 1))
    assert terminal.getvalue() == (
        "\x1b[36m[rank 0 pi-worker-0]\x1b[0m a\\x1b]0;evil\\x07b\tc\\x9b2J\n"
        "\x1b[32m[rank 1 pi-worker-0]\x1b[0m red \\u202eback \\xff\n"
    )


def test_tables_and_cards_on_a_terminal_are_harmless_too() -> None:
    with redirect_stdout(Terminal()) as terminal:
        render.table(["A"], [["x\x1b[2J\ny"]])
        render.cause_card(Cause(summary="bad\x07", last_lines=("[bold]not markup[/bold] \x1b[2J",), hint="try"))
    text = terminal.getvalue()
    assert "\x1b[2J" not in text
    assert "\x07" not in text
    assert "x\\x1b[2J\\x0ay" in text
    assert "[bold]not markup[/bold]" in text


def test_nothing_is_written_after_the_printer_is_closed() -> None:
    with redirect_stdout(io.StringIO()) as out, logview.Printer() as printer:
        printer.write(a_line("kept"))
    printer.write(a_line("late"))
    assert out.getvalue() == "[rank 0 pi-worker-0] kept\n"


def test_stderr_and_stdout_keep_their_order_in_one_file(tmp_path: Path) -> None:
    path = tmp_path / "both"
    with (
        open(path, "a", encoding="utf-8") as out,
        open(path, "a", encoding="utf-8") as err,
        redirect_stdout(out),
        redirect_stderr(err),
        logview.Printer(split=True, tags=False) as printer,
    ):
        for number in range(6):
            printer.write(a_line(str(number), stream="err" if number % 2 else "out"))
    assert path.read_text("utf-8").split() == list("012345")


def test_ctrl_c_while_the_command_is_still_being_loaded_shows_no_traceback(tmp_path: Path) -> None:
    """As if the disk were slow: the first library that is imported waits."""
    (tmp_path / "click").mkdir()
    (tmp_path / "click" / "__init__.py").write_text("import time; print('loading', flush=True); time.sleep(600)")
    process = subprocess.Popen(
        [sys.executable, "-m", "oarsman.cli", "list"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "loading\n"
    process.send_signal(signal.SIGINT)
    assert (process.communicate(timeout=100), process.returncode) == (("", ""), 130)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["list", "hang"], "错误：多余的参数：hang\n"),
        (["hosts", "list", "a", "b"], "错误：多余的参数：a b\n"),
        (["logs", "pi", "--tail"], "错误：--tail 后面缺少值\n"),
        (["list", "--no-color=x"], "错误：--no-color 后面不能带值\n"),
    ],
)
def test_what_click_finds_wrong_is_said_in_chinese(
    words: list[str], said: str, jobs: FakeJobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(t, "language", "zh")
    result = oarsman(jobs, *words)
    assert (result.exit_code, result.stderr.startswith(said)) == (2, True), result.stderr
