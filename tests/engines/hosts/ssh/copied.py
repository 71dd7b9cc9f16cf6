"""Code to copy, and what a copy has to keep of it."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest

LONG_AGO = 1_000_000_000
ODD = (" a b ", "new\nline", "-rf", "'\"$HOME`*?\\", os.fsdecode(b"\xff\xfe"), "...", "~", "é", "x" * 200)


def settle(folder: Path) -> None:
    """As if nothing had changed for long: what has just changed is always sent."""
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink() and path.stat().st_mtime > LONG_AGO + 100:
            os.utime(path, (LONG_AGO, LONG_AGO))


def contents(folder: Path) -> dict[str, tuple[Any, ...]]:
    """All that a copy has to keep, by path."""
    return {os.path.relpath(path, folder): facts(path) for path in folder.rglob("*")}


def facts(path: Path) -> tuple[Any, ...]:
    found = path.lstat()
    if path.is_symlink():
        return ("link", os.readlink(path))
    if path.is_dir():
        return ("folder",)
    return ("file", path.read_bytes(), int(found.st_mtime), bool(found.st_mode & stat.S_IXUSR))


@pytest.fixture
def code(tmp_path: Path) -> Path:
    folder = tmp_path / "code"
    (folder / "pkg" / "deep").mkdir(parents=True)
    (folder / "empty").mkdir()
    (folder / "train.py").write_text("print(1)\n")
    (folder / "pkg" / "deep" / "data").write_bytes(os.urandom(300_000))
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    (folder / "inside").symlink_to("pkg/deep")
    (folder / "outside").symlink_to("/etc/hostname")
    (folder / "dangling").symlink_to("a\nb//\n")
    for name in ODD:
        (folder / name).mkdir()
        (folder / name / name).write_text(name, errors="surrogateescape")
    settle(folder)
    return folder


def change_text(code: Path) -> None:
    (code / "train.py").write_text("print(2)\n")
    os.utime(code / "train.py", (LONG_AGO + 1, LONG_AGO + 1))


def rename(code: Path) -> None:
    (code / "train.py").rename(code / "fit.py")
