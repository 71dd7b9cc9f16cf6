"""Everything that was ever made in a namespace, out of etcd's own history: nothing is missed between two looks.

A watch of the API server forgets what happened while that server was dead. etcd numbers every change, and tells them
all from any number on, whoever was killed meanwhile, itself included.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from cluster.cluster import Cluster
from cluster.kubectl import until

# Runs where etcd listens: in the control plane's network. One line per change; it ends when etcd does.
_READER = """
import sys, urllib.request
asked = urllib.request.Request(sys.argv[1], data=sys.argv[2].encode(), method="POST")
for line in urllib.request.urlopen(asked):
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()
"""


@dataclass(frozen=True)
class Change:
    revision: int
    kind: str  # as etcd's keys have it: pods, jobs, configmaps, secrets, specs (of services)
    name: str
    what: str  # made, changed, gone


class Ledger:
    """What happens to the objects of a namespace, from the beginning of the `with` on."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._changes: list[Change] = []
        self._read_to = 0
        self._trouble = ""
        self._over = threading.Event()
        self._reader: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._read, name="ledger", daemon=True)

    def __enter__(self) -> Self:
        self._read_to = self.revision()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        if self._reader:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._reader.pid, signal.SIGKILL)  # nsenter alone would leave behind what it started
        self._thread.join(120)

    # -- what can be asked ---------------------------------------------------------------------------------
    def changes(self) -> list[Change]:
        """All until now: waits until the present is reached."""
        now = self._marked()
        until(lambda: bool(self._trouble) or self._read_to >= now, f"the history is read until {now}")
        if self._trouble:
            raise RuntimeError(self._trouble)
        return list(self._changes)

    def made(self, kind: str) -> Counter[str]:
        """How often an object of that name was made."""
        return Counter(change.name for change in self.changes() if (change.kind, change.what) == (kind, "made"))

    # -- the history ---------------------------------------------------------------------------------------
    def revision(self) -> int:
        return int(self._ask("range", {"key": _b64(b"\0"), "range_end": _b64(b"\0"), "count_only": True}))

    def _marked(self) -> int:
        """The number of a change made just now in the namespace: when it was read, so was all before it."""
        return int(self._ask("put", {"key": _b64(f"/registry/ledger/{self._namespace}/mark".encode()), "value": ""}))

    def _ask(self, verb: str, body: dict[str, Any]) -> str:
        code = "import json,sys,urllib.request as u; " + (
            "print(json.load(u.urlopen(u.Request(sys.argv[1], data=sys.argv[2].encode(), method='POST'), timeout=20))"
            "['header']['revision'])"
        )
        return self._cluster.control_plane.world.run(
            sys.executable, "-ISc", code, f"{self._url}/v3/kv/{verb}", json.dumps(body)
        )

    @property
    def _url(self) -> str:
        named = "--listen-client-urls="
        return next(word.removeprefix(named) for word in self._cluster.etcd.command if word.startswith(named))

    def _read(self) -> None:
        while not self._over.is_set():
            everything = {"key": _b64(b"/registry/"), "range_end": _b64(b"/registry0"), "prev_kv": False}
            body = {"create_request": {**everything, "start_revision": str(self._read_to + 1)}}
            self._reader = subprocess.Popen(
                self._cluster.control_plane.world.command(
                    sys.executable, "-ISc", _READER, f"{self._url}/v3/watch", json.dumps(body)
                ),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            with self._reader as reader:
                assert reader.stdout
                for line in reader.stdout:
                    if not self._note(line):
                        return
                reader.kill()
            self._over.wait(0.2)  # etcd is being started again

    def _note(self, line: bytes) -> bool:
        try:
            told = json.loads(line).get("result", {})
        except ValueError:
            return True  # cut off by a kill; what it would have said is told again
        if told.get("compact_revision"):
            self._trouble = f"etcd has forgotten what was before {told['compact_revision']}"
            return False
        last = self._read_to
        for event in told.get("events", ()):
            pair = event["kv"]
            last = max(last, int(pair["mod_revision"]))
            parts = base64.b64decode(pair["key"]).decode().split("/")
            if len(parts) < 4 or parts[-2] != self._namespace:
                continue
            kind, name = parts[-3], parts[-1]
            gone, first = event.get("type") == "DELETE", pair.get("version") == "1"
            self._changes.append(
                Change(int(pair["mod_revision"]), kind, name, "gone" if gone else "made" if first else "changed")
            )
        self._read_to = last
        return True


def _b64(key: bytes) -> str:
    return base64.b64encode(key).decode()
