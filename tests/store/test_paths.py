"""Where things are kept: found by every command, short enough for sockets, and ours alone."""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path

import pytest

from oarsman.errors import StoreError
from oarsman.store.paths import Paths


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return Paths(tmp_path / "state")


def use_temp(monkeypatch: pytest.MonkeyPatch, folder: Path | str) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(folder))


def test_every_command_finds_the_same_run_folder_whatever_its_tmpdir(
    paths: Paths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("oarsman.store.paths._SHORT_AND_PLAIN", re.compile(".*"))
    first, second = tmp_path / "1", tmp_path / "2"
    first.mkdir()
    second.mkdir()
    use_temp(monkeypatch, first)
    paths.make()
    run = paths.run
    assert run.parent == first
    use_temp(monkeypatch, second)
    paths.make()
    assert paths.run == run
    shutil.rmtree(first)
    paths.make()
    assert paths.run.parent == second


@pytest.mark.parametrize("folder", ["/tmp/a/very/long/folder/" + "x" * 60, "/tmp/a b", "/tmp/a:b"])
def test_a_temporary_folder_that_no_socket_can_be_in_is_not_used(
    paths: Paths, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    use_temp(monkeypatch, folder)
    longest = paths.job_run("12345678-9abc") / "h" / ("x" * 63)
    assert len(str(longest)) <= 107
    assert paths.run.parent == Path("/tmp")


def test_a_run_folder_that_others_could_write_to_is_refused(paths: Paths, tmp_path: Path) -> None:
    open_to_all = tmp_path / "open"
    open_to_all.mkdir(mode=0o700)
    open_to_all.chmod(0o777)
    paths.run.symlink_to(open_to_all)
    try:
        with pytest.raises(StoreError, match="not a folder of this user alone"):
            paths.make()
    finally:
        paths.run.unlink()


def test_whoever_only_looks_leaves_no_run_folder(paths: Paths) -> None:
    paths.make()
    assert not paths.run.exists()
    paths.make_run()
    assert paths.run.stat().st_mode & 0o777 == 0o700
    paths.run.rmdir()


def test_a_user_without_a_home_is_told_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OARSMAN_STATE", raising=False)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setattr("os.path.expanduser", lambda path: path)
    with pytest.raises(StoreError, match="no home folder"):
        Paths.default()
    with pytest.raises(StoreError, match="no place to keep jobs"):
        Paths(Path("/proc/nonexistent/state")).make()
