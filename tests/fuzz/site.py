"""The server that is sent all this: `oarsman serve` with accounts, and what an owner has there.

`ada` owns a job that ended, with a log; one that is suspended; a sweep whose points are; and an environment. `ben`, the
user whose calls these are, has a suspended job. Nothing runs, so nothing changes by itself. `vera` only looks.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

import httpx
import in_process
import yaml
from argon2 import PasswordHasher

from oarsman.console.security.accounts import Passwords
from oarsman.console.security.store import ConsoleStore
from oarsman.job.environment import EnvironmentWanted
from oarsman.service.models import Role
from oarsman.store.environments import NamedEnvironment, Result, Shelf
from oarsman.store.paths import Paths

ROOT = Path(__file__).resolve().parents[2]
OWNER, USER, VIEWER = "ada", "ben", "vera"
ROLES = {"root": Role.ADMIN, OWNER: Role.USER, USER: Role.USER, VIEWER: Role.VIEWER}
OWNERS_JOBS, USERS_JOB, SWEEP, ENVIRONMENT = ("done", "asleep"), "mine", "rates", "broken"
_API = "/api/v1"
_PATIENCE_SECONDS = 120.0
_NOT_FILES = ("oarsman.db", "console.db", "supervisor", "run")  # of the state: looked into, or a supervisor's own
_UNTOLD = {"sessions": "*", "audit": "*", "links": "*", "tokens": "last_used", "counters": "*", "removed": "*"}


def a_job(name: str, script: str = "true", *, suspend: bool = True) -> dict[str, Any]:
    container = {"name": "l", "image": "none", "command": ["sh", "-c", script]}
    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": name},
        "spec": {
            "runPolicy": {"suspend": suspend, "backoffLimit": 0},
            "mpiReplicaSpecs": {
                "Launcher": {"template": {"spec": {"containers": [container]}}},
                "Worker": {"replicas": 1, "template": {"spec": {"containers": [{"name": "w", "image": "none"}]}}},
            },
        },
    }


class Site:
    def __init__(self, folder: Path) -> None:
        self.paths = Paths(folder / "state")
        self.work = folder / "work"  # jobs run here, and see nothing beside it
        self.work.mkdir()
        for path in (folder, self.work):
            path.chmod(0o755)
        self.canary = folder / f"canary-{secrets.token_hex(4)}"
        self.secret, self.private = secrets.token_hex(16), secrets.token_hex(16)  # of the server; of ada
        self._make_canary()
        self._log, self._watch = folder / "server.log", folder / "watched"
        self._read_log = self._read_watch = 0
        self.tokens = self._accounts()
        path = os.pathsep.join([str(ROOT / ".venv/bin"), os.environ["PATH"]])
        own = {
            "OARSMAN_STATE": str(self.paths.state),
            "PATH": path,
            "FUZZ_SECRET": self.secret,
            "PYTHONUNBUFFERED": "1",
        }
        self.environment = {**os.environ, **own, "LANG": "C.UTF-8"}
        watched = [sys.executable, str(Path(__file__).with_name("watched.py")), str(self._watch), str(self.canary)]
        as_whom = [f"--run-as={name}=nobody" for name in (OWNER, USER) if os.geteuid() == 0]  # root's runs none as root
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [*watched, "serve", "--port", "0", "--folder", str(self.work), *as_whom],
                env=self.environment,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        try:
            until(lambda: b"this link" in self._log.read_bytes() or self.process.poll() is not None)
            self.address = self._log.read_text().split("answers at ", 1)[1].split()[0]
            self._fill()
        except BaseException:
            self.close()
            raise

    def _make_canary(self) -> None:
        """A program that would tell that it ran, an inventory, a pipe that nobody writes to: all of it private."""
        (self.canary / "bin").mkdir(parents=True)
        (self.canary / "inventory").write_text(f"{self.secret}\nhosts: [{self.secret}]\n")
        for program in (self.canary / "bin" / "mpirun", self.canary / "mpirun"):
            program.write_text(f"#!/bin/sh\ntouch {self.canary}/ran\necho {self.secret}\n")
            program.chmod(0o755)
        os.mkfifo(self.canary / "pipe")

    def _accounts(self) -> dict[str, str]:
        self.paths.make()
        quick = Passwords(PasswordHasher(time_cost=1, memory_cost=8, parallelism=1))
        with closing(ConsoleStore(self.paths.console_database, passwords=lambda: quick)) as store:
            for name, role in ROLES.items():
                store.accounts.add(name, role, store.accounts.hash("correct horse battery"))
            return {name: store.tokens.make(name, name)[1] for name in ROLES}

    # -- what is there ---------------------------------------------------------------------------------
    def client(self, name: str) -> httpx.Client:
        headers = {"Authorization": f"Bearer {self.tokens[name]}"}
        return httpx.Client(base_url=self.address + _API, headers=headers, timeout=60, trust_env=False)

    def _fill(self) -> None:
        with self.client(OWNER) as ada:
            done = a_job("done", f"echo {self.private}; seq 300; echo no luck >&2; exit 7", suspend=False)
            sweep = {"name": SWEEP, "manifest": yaml.safe_dump(a_job("p-{{a}}")), "grid": {"a": [1, 2]}}
            for path, body in (
                ("jobs", {"document": done}),
                ("jobs", {"document": a_job("asleep")}),
                ("sweeps", sweep),
            ):
                ada.post(f"/{path}", json=body).raise_for_status()
            until(lambda: self._state(ada, "/jobs/default/done") in ("Failed", "Succeeded"))
            until(lambda: self.private in ada.get("/jobs/default/done/log/download").text)
        self._note_environment()
        self.restore()
        until(self._at_rest)
        self.news()

    def _at_rest(self) -> bool:
        """The supervisor has nothing more to write about what there is."""
        before = self.kept()
        time.sleep(1.0)
        return self.kept() == before

    def _note_environment(self) -> None:
        """As a build that failed left it: one of pip costs seconds."""
        shelf, wanted = Shelf(self.paths.state), asdict(EnvironmentWanted(name=ENVIRONMENT, requirements="nothing"))
        named = {"name": ENVIRONMENT, "digest": "d" * 16, "owner": OWNER, "created_at": "2026-01-01T00:00:00+00:00"}
        with shelf.alone():
            shelf.put(NamedEnvironment(**named, wanted=wanted))
            contents = shelf.contents(named["digest"])
            contents.folder.mkdir(parents=True)
            contents.log.write_text("ERROR: there is no nothing\n" * 100)
            contents.write_result(Result(ready=False, message="there is no nothing"))

    def _state(self, client: httpx.Client, path: str) -> str:
        found = client.get(path).raise_for_status().json()
        return str(found.get("summary", found)["state"])

    def restore(self) -> None:
        """After the user has changed what is theirs."""
        with self.client(USER) as ben:
            for job in ben.get("/jobs", params={"owner": USER, "limit": 1000}).raise_for_status().json()["items"]:
                if job["name"] != USERS_JOB:
                    ben.delete(f"/jobs/{job['key']}")
                    until(lambda: ben.get(f"/jobs/{job['key']}").status_code == 404)  # noqa: B023 - asked at once
            if ben.get(f"/jobs/default/{USERS_JOB}").status_code == 404:
                ben.post("/jobs", json={"document": a_job(USERS_JOB)}).raise_for_status()

    # -- what is seen of it ------------------------------------------------------------------------------
    def news(self) -> tuple[str, list[str]]:
        """What the server has logged, and what it has started and opened, since the last time."""
        log, watched = self._log.read_bytes(), self._watch.read_bytes()
        new = log[self._read_log :].decode(errors="replace"), watched[self._read_watch :].decode().splitlines()
        self._read_log, self._read_watch = len(log), len(watched)
        return new

    def stamp(self) -> tuple[object, ...]:
        """Other than before if anything may have changed; quicker than to look at all of it."""
        bases = [
            Path(f"{path}{more}")
            for path in (self.paths.database, self.paths.console_database)
            for more in ("", "-wal")
        ]
        found = [(path.stat().st_size, path.stat().st_mtime_ns) for path in bases if path.exists()]
        return *found, tuple(self._files())

    def kept(self) -> Mapping[str, str]:
        """Everything that lasts, by a name that begins with its owner's: rows of both databases, and files."""
        return dict(sorted([*self._rows(), *self._files()]))

    def _rows(self) -> Iterator[tuple[str, str]]:
        owners = {}
        for path in (self.paths.database, self.paths.console_database):
            with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
                db.row_factory = sqlite3.Row
                for (table,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
                    if _UNTOLD.get(table) == "*" or table.startswith("sqlite_"):
                        continue
                    for number, row in enumerate(db.execute(f"SELECT * FROM {table} ORDER BY 1, 2")):
                        told = {name: row[name] for name in row.keys() if name != _UNTOLD.get(table)}  # noqa: SIM118
                        if table == "jobs":
                            owners[row["uid"]] = row["owner"]
                        owner = told.get("owner") or owners.get(told.get("uid", "")) or ""
                        mark = told.get("uid") or told.get("name") or number
                        yield (
                            f"{owner} {table} {mark} {told.get('id', '')}",
                            hashlib.sha256(repr(told).encode()).hexdigest(),
                        )
        self._owners = owners

    def _files(self) -> Iterator[tuple[str, str]]:
        """By size and time of the last change."""
        for top in (self.paths.state, self.canary):
            for folder, _, files in os.walk(top):
                for file in files:
                    path = Path(folder, file)
                    if path.parent == self.paths.state and path.name.startswith(_NOT_FILES):
                        continue
                    found = path.lstat()
                    owner = next((owner for uid, owner in self._owners.items() if uid in folder), "")
                    yield f"{owner} file {path}", f"{found.st_size} {found.st_mtime_ns}"

    def close(self) -> None:
        """The server first: nobody else starts what is ended here."""
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for words in (("delete", "--all", "--yes", "--wait"), ("supervisor", "stop")):
            in_process.oarsman(self.environment, self.canary.parent, *words)


def until(ready: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not ready():
        if time.monotonic() > deadline:
            raise TimeoutError
        time.sleep(0.02)
