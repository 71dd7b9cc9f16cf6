"""`oarsman hosts trust`: what is said before any host is asked."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from click.testing import Result

from oarsman.cli.text import t

from .fakes import FakeJobs, oarsman


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "hosts.txt").write_text("nowhere.invalid slots=2\n")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("OARSMAN_HOSTS", raising=False)
    monkeypatch.chdir(tmp_path)


def trust(*words: str, stdin: str | None = None) -> Result:
    return oarsman(FakeJobs(), "hosts", "trust", "--hosts", "hosts.txt", *words, stdin=stdin)


def test_the_page_tells_what_is_changed_and_how_it_is_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    page = oarsman(FakeJobs(), "hosts", "trust", "--help").stdout
    assert "Only the folder ~/.ssh is changed" in page
    assert "--undo" in page
    assert "  trust " in oarsman(FakeJobs(), "hosts", "--help").stdout


@pytest.mark.parametrize(
    ("words", "stdin", "said"),
    [
        ([], "", "there is no terminal to ask on"),
        (["--undo", "--key", "x.pub"], "", "--undo removes every key that was installed"),
        (["--yes", "--key", "x"], "", "x.pub cannot be read: No such file or directory"),
        (["--yes", "--key", "hosts.txt"], "", "hosts.txt.pub cannot be read"),
        (["--yes", "--password-file", "x"], "", "x cannot be read: No such file or directory"),
        (["--yes", "--password-file", "-"], "\n", "there is no password in -"),
    ],
)
def test_a_call_that_makes_no_sense_is_refused_at_once(words: list[str], stdin: str, said: str) -> None:
    done = trust(*words, stdin=stdin)
    assert done.exit_code == 2
    assert said in done.stderr


def test_what_is_no_public_key_is_not_installed(tmp_path: Path) -> None:
    (tmp_path / "mine.pub").write_text("-----BEGIN OPENSSH PRIVATE KEY-----\nx\n")
    done = trust("--yes", "--key", "mine.pub")
    assert (done.exit_code, "mine.pub is no public key of OpenSSH" in done.stderr) == (2, True)


def test_hosts_that_cannot_be_reached_are_named_and_nothing_is_made_here(tmp_path: Path) -> None:
    done = trust("--yes")
    assert done.exit_code == 1
    assert "nowhere.invalid" in done.stdout
    assert "nothing to do" in done.stdout
    assert list((tmp_path / "home").iterdir()) == []


def test_it_speaks_chinese(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(t, "language", "zh")
    done = trust("--yes")
    assert "无需改动" in done.stdout
    assert "修复后再次运行" in done.stderr


def test_without_ssh_it_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert subprocess.run(["ssh", "-V"], capture_output=True, check=False).returncode == 0
    monkeypatch.setenv("PATH", str(tmp_path))
    done = trust("--yes")
    assert done.exit_code == 1
    assert "there is no ssh on this machine" in done.stdout
