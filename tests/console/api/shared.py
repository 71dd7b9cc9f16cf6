"""A server that people with accounts share, run by a user of its own or by root, and what they try through it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import Any

import httpx

from .running import OARSMAN, ROOT, Served, events

PASSWORD = "correct horse battery"
SECRET = "what only the server should know"
SOMEBODY = 5001  # who runs the server where root does not; not a user of any machine's
PATIENCE = 180.0


def as_somebody(uid: int) -> tuple[str, ...]:
    """As that user, who is shown the Python of these tests and the project also where they lie in root's home."""
    hidden = {path: top for path in (sys.base_prefix, str(ROOT)) if (top := _closed(Path(path)))}
    steps = ["set -e", "mount -t tmpfs tmpfs /mnt"]
    for number, path in enumerate(hidden):
        steps += [f"mkdir /mnt/{number}", f"mount --bind {quote(path)} /mnt/{number}"]
    steps += [f"mount -t tmpfs -o mode=755 tmpfs {quote(top)}" for top in sorted(set(hidden.values()))]
    for number, path in enumerate(hidden):
        steps += [f"mkdir -p {quote(path)}", f"mount --move /mnt/{number} {quote(path)}"]
    steps += ["umount /mnt", f'exec setpriv --reuid {uid} --regid {uid} --clear-groups "$@"']
    return "unshare", "--mount", "sh", "-c", "\n".join(steps), "sh"


def _closed(path: Path) -> str:
    """The topmost folder on the way there that only its owner may enter."""
    return next((str(above) for above in reversed(path.parents) if not above.stat().st_mode & 0o001), "")


class Shared(Served):
    """`uid`: of the server's user. Its folders are below one that everybody can enter."""

    def __init__(self, base: Path, uid: int, *options: str, variables: Mapping[str, str] | None = None) -> None:
        self.home, self.folder, self.state = base / "home", base / "jobs", base / "state"
        for made in (base, self.home, self.folder):
            made.mkdir(exist_ok=True)
            made.chmod(0o755)
            os.chown(made, uid, uid)
        if uid:
            self.folder.chmod(0o700)
        self.before = as_somebody(uid) if uid else ()
        self.mpi = str(ROOT / ".mpi" / "openmpi5" / "bin")
        self.variables = {
            "HOME": str(self.home),
            "LOGNAME": "somebody" if uid else "root",
            "OARSMAN_STATE": str(self.state),
            "PATH": os.pathsep.join([self.mpi, str(ROOT / ".venv" / "bin"), "/usr/local/bin:/usr/bin:/bin:/usr/sbin"]),
            "LANG": "C.UTF-8",
            "TMPDIR": os.environ["TMPDIR"],
            "SERVER_SECRET": SECRET,
            **(variables or {}),
        }
        for name, role in (("vic", "viewer"), ("ann", "user"), ("ben", "user"), ("chief", "admin"), ("nobody", "user")):
            self.command("users", "add", name, "--role", role, "--password-stdin", stdin=f"{PASSWORD}\n")
        super().__init__(self.state, *options, before=self.before, folder=self.folder, only=self.variables)

    def command(self, *words: str, stdin: str = "", code: int | None = 0) -> str:
        """As the server's user says it."""
        done = subprocess.run(
            [*self.before, OARSMAN, *words],
            env=self.variables,
            cwd=self.folder,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        assert code in (None, done.returncode), (words, done.stdout, done.stderr)
        return done.stdout if code is not None else done.stderr

    @contextmanager
    def person(self, name: str) -> Iterator[Person]:
        headers = {"Origin": self.address, "X-Oarsman": "1"}
        with httpx.Client(base_url=self.address, timeout=60, trust_env=False, headers=headers) as client:
            come_in = client.post("/api/v1/session", json={"name": name, "password": PASSWORD})
            assert come_in.status_code == 200, come_in.text
            yield Person(client)

    @contextmanager
    def owner(self) -> Iterator[Person]:
        self.link = self.command("tokens", "link").split()[-1]  # each opens it once
        with self.client() as client:
            yield Person(client)


class Person:
    def __init__(self, client: httpx.Client) -> None:
        self.client = client

    def submit(self, document: Mapping[str, Any], **more: Any) -> httpx.Response:
        return self.client.post("/api/v1/jobs", json={"document": document, **more})

    def ended(self, document: Mapping[str, Any], **more: Any) -> tuple[str, list[str]]:
        """How it ended, and what its ranks wrote."""
        made = self.submit(document, **more)
        assert made.status_code == 201, made.text
        return self.end_of(made.json()["summary"]["key"])

    def end_of(self, key: str) -> tuple[str, list[str]]:
        with self.client.stream("GET", f"/api/v1/jobs/{key}/watch", timeout=PATIENCE) as response:
            for _, _, data in events(response):
                job = json.loads(data)
                if job["summary"]["state"] in ("Succeeded", "Failed", "Stopped"):
                    break
        lines = self.client.get(f"/api/v1/jobs/{key}/log/download").text.splitlines()
        return job["summary"]["state"] + job["summary"]["cause"] + job["summary"]["message"], lines


def a_job(name: str, command: list[str], *, workers: int = 2, **annotations: str) -> dict[str, Any]:
    """Its launcher says what; of `annotations` the names are those of ours."""
    launcher = {"name": "l", "command": command}
    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": name, "annotations": {f"oarsman.dev/{key}": text for key, text in annotations.items()}},
        "spec": {
            "runPolicy": {"backoffLimit": 0},
            "mpiReplicaSpecs": {
                "Launcher": {"restartPolicy": "Never", "template": {"spec": {"containers": [launcher]}}},
                "Worker": {"replicas": workers, "template": {"spec": {"containers": [{"name": "w"}]}}},
            },
        },
    }


@contextmanager
def shared(uid: int, *options: str, variables: Mapping[str, str] | None = None) -> Iterator[Shared]:
    base = Path(tempfile.mkdtemp(prefix="oarsman-test-", dir="/var"))  # not in /tmp, where jobs see nothing anyway
    server = Shared(base, uid, *options, variables=variables)
    try:
        yield server
    finally:
        try:
            with server.owner() as owner:
                remove_all(owner)
        finally:
            server.process.send_signal(signal.SIGTERM)
            server.process.communicate(timeout=PATIENCE)
            server.command("supervisor", "stop")
            shutil.rmtree(base)


def remove_all(owner: Person) -> None:
    deadline = time.monotonic() + PATIENCE
    while left := owner.client.get("/api/v1/jobs").json()["items"]:
        assert time.monotonic() < deadline, left
        for job in left:
            owner.client.delete(f"/api/v1/jobs/{job['key']}")
        time.sleep(0.1)
