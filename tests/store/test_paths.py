"""Where things are kept: found by every command, short enough for sockets, and ours alone."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from pathlib import Path

import pytest

from oarsman.backends.local.follow import SupervisorLink
from oarsman.errors import StoreError
from oarsman.store import paths as module
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
    paths.make()
    longest = paths.job_run("12345678-9abc") / "h" / ("x" * 63)
    assert len(str(longest)) <= 107
    assert paths.run.parent == Path("/tmp")


def test_nobody_can_guess_where_the_run_folder_will_be(tmp_path: Path) -> None:
    """Whoever can would make it first. The same state has another one when it is made anew."""
    found = []
    for _ in range(2):
        paths = Paths(tmp_path / "state")
        paths.make()
        found.append(paths.run)
        shutil.rmtree(paths.state)
    assert found[0] != found[1]


def test_a_run_folder_that_others_could_write_to_is_refused(paths: Paths, tmp_path: Path) -> None:
    open_to_all = tmp_path / "open"
    open_to_all.mkdir(mode=0o700)
    open_to_all.chmod(0o777)
    paths.make()
    paths.run.symlink_to(open_to_all)
    try:
        with pytest.raises(StoreError, match="not a folder of this user alone"):
            paths.make()
    finally:
        paths.run.unlink()


@pytest.mark.parametrize("mode", [0o777, 0o720, 0o701])
def test_a_run_folder_that_is_open_to_others_is_refused(paths: Paths, mode: int) -> None:
    paths.make()
    paths.run.mkdir()
    paths.run.chmod(mode)
    try:
        with pytest.raises(StoreError, match="not a folder of this user alone"):
            paths.make_run()
    finally:
        paths.run.rmdir()


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


@pytest.mark.parametrize(
    ("now", "known"),
    [
        (("boot", "id", "host"), True),
        (("boot after it", "id", "host"), True),
        (("boot", "id of a container", "its name"), True),
        (("boot after it", "id", "a clone"), False),
        (("boot of another", "other id", "host"), False),
    ],
    ids=str,
)
def test_the_machine_that_looks_after_a_state_is_known_again_and_no_other(
    now: tuple[str, str, str], known: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = Paths(tmp_path / "state")
    paths.make()
    monkeypatch.setattr(module, "_this_machine", lambda: ("boot", "id", "host"))
    paths.claim()
    monkeypatch.setattr(module, "_this_machine", lambda: now)
    if known:
        paths.make()
    else:
        with pytest.raises(StoreError, match=r"host.* manages "):
            paths.make()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make what belongs to somebody else")
@pytest.mark.parametrize("link", [False, True], ids=["folder", "link"])
def test_a_run_folder_that_somebody_else_made_is_not_used_but_another(link: bool, tmp_path: Path) -> None:
    paths = Paths(tmp_path / "state")
    paths.make()
    theirs = paths.run
    if link:
        theirs.symlink_to(tmp_path)
    else:
        theirs.mkdir()
    os.chown(theirs, 5001, 5001, follow_symlinks=False)
    try:
        paths.make()
        assert SupervisorLink(paths).reach() is None
        paths.make_run()
        assert paths.run != theirs
        assert (paths.run.stat().st_uid, paths.run.stat().st_mode & 0o777) == (0, 0o700)
        paths.run.rmdir()
    finally:
        theirs.unlink() if link else theirs.rmdir()
