"""A machine for a test: the installed command with a state of its own and one MPI first on PATH.

Everything it starts is ended by its own process numbers, also when the test fails.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch

import inotify_simple
import psutil
from click.testing import CliRunner
from waiting import waiting

from oarsman.backends.base import JobRecord, LogQuery
from oarsman.backends.local.backend import LocalBackend
from oarsman.backends.local.follow import SupervisorLink
from oarsman.cli.main import cli
from oarsman.cli.session import Session
from oarsman.engines.hosts.core.journal import JournalReader
from oarsman.engines.hosts.core.journal_state import Seen
from oarsman.engines.hosts.local.transport import marked
from oarsman.errors import NotFoundError
from oarsman.job.state import Status
from oarsman.store.jobs import JobStore
from oarsman.store.paths import Paths

ROOT = Path(__file__).resolve().parents[3]
MPIS = ROOT / ".mpi"
PATIENCE = 180.0
QUICK = (
    "delete",
    "describe",
    "hosts",
    "list",
    "logs",
    "plan",
    "resume",
    "scale",
    "stop",
    "suspend",
    "top",
    "wait",
)  # verbs
EVERY_MPI = ("openmpi5", "openmpi4", "debian", "mpich", "intel")
ONE_OF_EACH = ("openmpi5", "debian", "mpich", "intel")  # Debian's and openmpi4 are of one generation


def mpi_folder(name: str) -> Path:
    """An MPI of the set-up. Debian's is not there where nothing may be installed; its generation still is."""
    folder = MPIS / name
    return folder if folder.exists() else MPIS / "openmpi4"


class Machine:
    patience = PATIENCE  # seconds for a job to get where it is expected

    def __init__(self, state: Path, mpi: str = "openmpi5", *, folder: Path | None = None, **environment: str) -> None:
        bins = [mpi_folder(mpi) / "bin", *([Path("/usr/bin")] if mpi == "debian" else []), ROOT / ".venv/bin"]
        path = os.pathsep.join([*map(str, bins), os.environ["PATH"]])
        self.environment = {
            **{k: v for k, v in os.environ.items() if k not in ("VIRTUAL_ENV", "OARSMAN_STATE")},
            "PATH": path,
            "OARSMAN_STATE": str(state),
            "LANG": "C.UTF-8",
            "NO_COLOR": "1",
            **environment,
        }
        self.folder = folder or state.parent / "work"
        self.folder.mkdir(exist_ok=True)
        self.paths = Paths(state)
        self._jobs: LocalBackend | None = None
        self._started: list[subprocess.Popen[str]] = []

    # -- the command ---------------------------------------------------------------------------------
    def command(self, *words: str) -> list[str]:
        return [str(ROOT / ".venv/bin/oarsman"), *words]

    def run(self, *words: str, prefix: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
        if words[0] in QUICK and not prefix:
            return self._run_here(*words)
        return subprocess.run(
            [*prefix, *self.command(*words)],
            env=self.environment,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PATIENCE,
        )

    def _run_here(self, *words: str) -> subprocess.CompletedProcess[str]:
        """In this process: to start another takes longer than such a command."""
        words = tuple(self.command(*words)[1:])
        with patch.dict(os.environ, self.environment, clear=True), contextlib.chdir(self.folder):
            done = CliRunner().invoke(cli, words, obj=Session(), catch_exceptions=False)
        return subprocess.CompletedProcess(words, done.exit_code, done.stdout, done.stderr)

    def ok(self, *words: str, prefix: tuple[str, ...] = ()) -> str:
        done = self.run(*words, prefix=prefix)
        assert done.returncode == 0, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def start(self, *words: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            self.command(*words),
            env=self.environment,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        self._started.append(process)
        return process

    # -- jobs ----------------------------------------------------------------------------------------
    @property
    def jobs(self) -> LocalBackend:
        if self._jobs is None:
            self._jobs = waiting(LocalBackend(self.paths))
        return self._jobs

    def submit(self, document: Mapping[str, Any]) -> str:
        return self.jobs.submit(document, environment=self.environment, folder=self.folder).job.key

    def until(self, key: str, wanted: Callable[[Status], bool]) -> JobRecord:
        last: JobRecord | None = None
        try:
            for record in self.jobs.watch(key, timeout=self.patience):
                last = record
                if wanted(record.status):
                    return record
        except TimeoutError:
            pass
        raise AssertionError(f"{key} did not get there: {last.status if last else 'it is gone'}\n{self.log_of(key)}")

    def until_finished(self, key: str) -> JobRecord:
        return self.until(key, lambda status: status.finished)

    def until_ranks(self, key: str, count: int) -> Seen:
        """Wait until that many ranks have written something: they are past MPI's start."""
        lines: set[int | None] = set()
        self.until(key, lambda status: bool(status.attempts) or status.finished)
        for line in self.jobs.logs(key, LogQuery(follow=True)):
            lines.add(line.rank)
            if len(lines - {None}) == count:
                return self.seen(key)
        raise AssertionError(f"only ranks {lines} have spoken\n{self.log_of(key)}")

    def seen(self, key: str) -> Seen:
        seen = Seen()
        for fact in JournalReader(str(self.paths.job(self.uid(key)))).news():
            seen.learn(fact)
        return seen

    def until_journal(self, key: str, wanted: Callable[[Seen], bool]) -> Seen:
        """Wait on the job agent's own notes, without waking a supervisor."""
        folder = self.paths.job(self.uid(key))
        deadline = time.monotonic() + PATIENCE
        with inotify_simple.INotify() as notifier:
            notifier.add_watch(str(folder), inotify_simple.flags.MODIFY)
            while not wanted(seen := self.seen(key)):
                assert time.monotonic() < deadline, f"the journal does not say so: {seen}"
                notifier.read(timeout=1000)
        return seen

    def uid(self, key: str) -> str:
        """As the store has it: whoever asks the backend wakes a supervisor."""
        with contextlib.closing(JobStore(self.paths.database)) as store:
            return store.get(key).uid

    def lines(self, key: str, **query: Any) -> list[str]:
        return [line.text for line in self.jobs.logs(key, LogQuery(**query))]

    def rank_lines(self, key: str) -> list[str]:
        """What ranks wrote, without the launcher's own remarks."""
        return [line.text for line in self.jobs.logs(key) if line.rank is not None]

    def log_of(self, key: str) -> str:
        with contextlib.suppress(Exception):
            return "\n".join(self.lines(key)) + "\n" + self.paths.supervisor_log.read_text()
        return ""

    # -- processes -----------------------------------------------------------------------------------
    def supervisor(self) -> psutil.Process:
        pid = SupervisorLink(self.paths).pid()
        assert pid is not None
        return psutil.Process(pid)

    def processes(self, uid: str) -> list[psutil.Process]:
        """Everything that carries the job's mark, wherever it went. Zombies have no environment, so no mark."""
        return marked(uid)

    def nothing_left(self, uid: str) -> None:
        remaining = self.processes(uid)
        psutil.wait_procs(remaining, timeout=PATIENCE)
        assert not self.processes(uid), [process.cmdline() for process in self.processes(uid)]

    def folders_gone(self, uid: str) -> None:
        """Of a job whose record is: that goes first."""
        deadline = time.monotonic() + PATIENCE
        while left := [path for path in (self.paths.job(uid), self.paths.job_run(uid)) if path.exists()]:
            assert time.monotonic() < deadline, left
            time.sleep(0.02)

    def clear(self) -> None:
        """Delete every job, which ends its processes."""
        for process in self._started:
            if process.poll() is None:
                process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()
        if not self.paths.database.exists():
            return
        troubles = []
        for record in self.jobs.list():
            try:
                self._remove(record)
            except Exception as error:  # the other jobs are to end all the same
                troubles.append(f"{record.job.key}: {type(error).__name__}: {error}")
        assert not troubles, "\n".join(["jobs that could not be removed without a trace:", *troubles])

    def close(self) -> None:
        """The same, and end the supervisor, whatever became of the jobs."""
        try:
            self.clear()
        finally:
            if self.paths.database.exists():
                SupervisorLink(self.paths).stop()
                remove_run_folder(self.paths)

    def _remove(self, record: JobRecord) -> None:
        with contextlib.suppress(NotFoundError):  # its time to live was over meanwhile
            self.jobs.delete(record.job.key)
            for _ in self.jobs.watch(record.job.key, timeout=PATIENCE):
                pass
        self.nothing_left(record.job.uid)


def remove_run_folder(paths: Paths) -> None:
    """As a supervisor does when it leaves, unless a job agent has not removed its part of it by then."""
    deadline = time.monotonic() + PATIENCE
    while paths.run.is_dir():
        with contextlib.suppress(OSError):  # there is something in it, or the supervisor was quicker
            paths.run.rmdir()
        assert time.monotonic() < deadline, list(paths.run.iterdir())
        time.sleep(0.02)


def mpijob(
    name: str,
    command: list[str],
    *,
    workers: int = 2,
    slots: int = 1,
    annotations: Mapping[str, str] | None = None,
    run_policy: Mapping[str, Any] | None = None,
    launcher: Mapping[str, Any] | None = None,
    worker: Mapping[str, Any] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """A v2beta1 document. A launcher that fails is not tried again unless the test says so."""
    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": name, "annotations": dict(annotations or {})},
        "spec": {
            "slotsPerWorker": slots,
            "runPolicy": {"backoffLimit": 0, **(run_policy or {})},
            "mpiReplicaSpecs": {
                "Launcher": {
                    "template": {"spec": {"containers": [{"name": "l", "command": command, **(launcher or {})}]}}
                },
                "Worker": {
                    "replicas": workers,
                    "template": {"spec": {"containers": [{"name": "w", **(worker or {})}]}},
                },
            },
            **spec,
        },
    }


def python(program: str) -> list[str]:
    return ["python3", "-m", "mpi4py", "-c", program]


# For ever, for a message: MPI goes on working meanwhile, as in a receive, which would take a core for it.
WAITS_IN_MPI = "while not MPI.COMM_WORLD.iprobe(): time.sleep(0.02)\n"
# Says where it is, then waits.
WAITS = (
    "from mpi4py import MPI; import os, time\n"
    "world = MPI.COMM_WORLD\n"
    "print('rank', world.rank, 'of', world.size, 'on', MPI.Get_processor_name(), flush=True)\n"
    "world.Barrier()\n"
    f"{WAITS_IN_MPI}"
)
