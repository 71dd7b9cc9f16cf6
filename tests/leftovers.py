"""A run of the tests leaves nothing behind: no process, no mount, no file in the temporary folder or Oarsman's state.

Other programs start and write meanwhile, so the run marks what is its own: a temporary folder that it alone uses, and a
variable that its processes inherit. What carries neither is none of ours and is not blamed.
"""

from __future__ import annotations

import os
import secrets
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest
from _pytest.terminal import TerminalReporter

MARK = "OARSMAN_TEST_RUN"
ORPHANS = "oarsman_orphans"
MEMORY = Path("/dev/shm")
PATIENCE = 90.0  # seconds: a supervisor that nobody needs leaves after a minute, and a busy machine takes its time
LEFT = pytest.StashKey[list[str]]()
RUN = pytest.StashKey["Run"]()


@dataclass(frozen=True)
class Run:
    folder: Path  # TMPDIR of every test; its name is the mark of the run
    config: pytest.Config
    orphans: set[tuple[int, float]] = field(default_factory=set)  # what ran below a process of xdist when that ended

    @classmethod
    def begin(cls, config: pytest.Config) -> Run:
        # Its path is short: Oarsman puts no sockets into a folder whose path leaves no room for their names.
        within_another = MARK in os.environ or not os.access("/tmp", os.W_OK | os.X_OK)
        base = tempfile.gettempdir() if within_another else "/tmp"
        folder = Path(base, f"o-{secrets.token_hex(3)}")
        folder.mkdir()
        folder.chmod(0o1777)  # as any temporary folder: tests also run programs as other users
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", tempfile.gettempdir())  # what pytest keeps stays where it was
        os.environ |= {MARK: folder.name, "TMPDIR": str(folder), "XDG_STATE_HOME": str(folder / "state")}
        tempfile.tempdir = None  # asked again: it was kept from before
        return cls(folder, config)

    def left(self) -> list[str]:
        return [*self._processes(), *self._mounts(), *self._files()]

    def end(self) -> list[str]:
        """What is left when everything has had the time to end."""
        deadline = time.monotonic() + PATIENCE
        while (left := self.left()) and time.monotonic() < deadline:
            time.sleep(0.1)
        return left

    def remove_folder(self) -> None:
        """Unless something is in it, which is then for somebody to look at."""
        with suppress(OSError):
            self.folder.rmdir()

    def _processes(self) -> Iterator[str]:
        below = self.orphans | running_below()
        me = psutil.Process()
        above = {me.pid, *(parent.pid for parent in me.parents())}
        for process in psutil.process_iter():
            if process.pid in above:
                continue
            try:
                environment, words = process.environ(), process.cmdline()
                if process.status() != psutil.STATUS_ZOMBIE and (
                    (process.pid, process.create_time()) in below or self._is_ours(_inherited(environment))
                ):
                    yield _shown(process, environment, words)
            except (psutil.Error, OSError):  # it has ended, or is another user's
                continue

    def _mounts(self) -> Iterator[str]:
        """Network namespaces too: those without a process are kept by a mount."""
        for line in Path("/proc/self/mountinfo").read_text().splitlines():
            if self._is_ours([line]):
                yield f"mount {line.split()[4]}"

    def _files(self) -> Iterator[str]:
        noted = self.folder / "state" / "oarsman"  # which files are secrets is to be known for ever
        with suppress(OSError):
            (noted / "secrets").unlink()
            noted.rmdir()
            noted.parent.rmdir()
        yield from (f"file {path}" for path in sorted(self.folder.iterdir()))
        yield from (f"file {path}" for path in sorted(MEMORY.glob(f"*{self.folder.name}*")))

    def _is_ours(self, words: list[str]) -> bool:
        kept = self.config._tmp_path_factory._basetemp  # type: ignore[attr-defined]  # the folder of tmp_path, if one was made
        return any(self.folder.name in word or (kept and f"{kept}/" in word) for word in words)


def running_below() -> set[tuple[int, float]]:
    """What descends from this process: numbers, and when each began, since numbers come again."""
    return {(child.pid, child.create_time()) for child in psutil.Process().children(recursive=True)}


def _inherited(environment: dict[str, str]) -> list[str]:
    """Not where somebody happens to stand who looks at the files of the run."""
    return [value for name, value in environment.items() if name not in ("PWD", "OLDPWD")]


def _shown(process: psutil.Process, environment: dict[str, str], words: list[str]) -> str:
    """With the test that started it, which pytest writes into the environment."""
    test = environment.get("PYTEST_CURRENT_TEST", "")
    apart = _namespace(process.pid) != _namespace(os.getpid())
    return (
        f"process {process.pid} {' '.join(words) or process.name()}"
        + (", in a network namespace of its own" if apart else "")
        + (f", started by {test.rpartition(' ')[0]}" if test else "")
    )


def _namespace(pid: int) -> str:
    return os.readlink(f"/proc/{pid}/ns/net")


def _is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    if not _is_worker(config):
        config.stash[RUN] = Run.begin(config)
        config.add_cleanup(config.stash[RUN].remove_folder)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """After the processes of the tests and whatever all tests shared have ended."""
    if _is_worker(session.config):
        session.config.workeroutput[ORPHANS] = sorted(running_below())  # type: ignore[attr-defined]
    if RUN in session.config.stash:
        session.config.stash[LEFT] = left = session.config.stash[RUN].end()
        if left and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    found = getattr(node, "workeroutput", {}).get(ORPHANS, [])  # one that crashed says nothing
    node.config.stash[RUN].orphans.update(map(tuple, found))


def pytest_terminal_summary(terminalreporter: TerminalReporter, config: pytest.Config) -> None:
    left = config.stash.get(LEFT, [])
    if left:
        terminalreporter.write_sep("=", f"left behind by this run: {len(left)}", red=True, bold=True)
        for each in left:
            terminalreporter.write_line(each, red=True)
