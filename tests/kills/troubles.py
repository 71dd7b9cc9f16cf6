"""What goes wrong, in a thread of its own: all of it is drawn from one source of chance and noted with whom it hit."""

from __future__ import annotations

import contextlib
import errno
import os
import random
import signal
import struct
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from oarsman.store.paths import Paths

from .parts import Part, parts

KILLED = ("supervisor", "supervisor", "agent", "host", "host agent", "connection", "launcher", "daemon", "rank", "rank")
HALTED = ("supervisor", "agent", "host", "host agent", "launcher", "rank")
OTHERS = ("halt", "halt", "halt", "halt", "clock", "clock", "full disk")  # one for some kills
KILLS_EACH = 7
MOST_HITS = 2  # for one that is tried again: each costs a longer wait
HALT_SECONDS, FULL_SECONDS = 1.0, 1.5
STEPS = (-7200, -60, -5, 5, 60, 7200)


@dataclass(frozen=True, slots=True)
class Hit:
    what: str
    at: float  # seconds of uptime, as in the ledgers
    words: str = ""


@dataclass(slots=True)
class Target:
    """A job under way, as far as troubles are concerned."""

    uid: str
    limit: int  # of attempts that may fail
    hits: list[Hit] = field(default_factory=list)  # what may cost it an attempt
    heard: list[Hit] = field(default_factory=list)  # what must not change anything

    @property
    def may_be_hit(self) -> bool:
        return not self.limit or len(self.hits) < MOST_HITS


class Clock:
    """The time of day of the supervisor and what it starts."""

    def __init__(self, folder: Path) -> None:
        self.file, library = folder / "clock", folder / "clock.so"
        self.file.write_bytes(struct.pack("q", 0))
        source = Path(__file__).with_name("clock.c")
        subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", library, source, "-ldl"], check=True)
        self.environment = {"LD_PRELOAD": str(library), "KILLS_CLOCK": str(self.file)}

    def set(self, offset: int) -> None:
        with self.file.open("r+b") as file:
            file.write(struct.pack("q", offset))


class Troubles:
    def __init__(self, paths: Paths, seed: int, kills: int, clock: Clock, *, disk: bool) -> None:
        self._paths = paths
        self._chance = random.Random(f"troubles {seed}")
        self._clock = clock
        self._others = [each for each in OTHERS if disk or each != "full disk"]
        self.kills = kills
        self.done: Counter[str] = Counter()  # by what was done to whom
        self.killed = 0
        self._last = ""
        self._full: list[Hit] = []  # while the disk is: whoever comes then is hit, too
        self.allowed: Callable[[], bool] = lambda: True  # whether it is time for another
        self._targets: dict[str, Target] = {}
        self._lock = threading.Lock()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.failure: BaseException | None = None

    # -- who is there ------------------------------------------------------------------------------------
    def add(self, target: Target) -> None:
        with self._lock:
            self._targets[target.uid] = target
            target.hits += self._full

    def remove(self, uid: str) -> None:
        with self._lock:
            self._targets.pop(uid, None)

    # -- how they come -----------------------------------------------------------------------------------
    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._end.set()
        self._thread.join()

    @property
    def enough(self) -> bool:
        return self.killed >= self.kills

    def _run(self) -> None:
        try:
            while not self._end.wait(self._chance.uniform(0.05, 0.7)):
                if self.enough:
                    return
                if self.allowed():
                    self._one()
        except BaseException as error:
            self.failure = error
            raise

    def _one(self) -> None:
        if self._chance.random() < 0.5 and self.done.total() - self.killed < self.killed / KILLS_EACH:
            other = self._chance.choice(self._others)
            {"halt": self._halt, "clock": self._step, "full disk": self._fill}[other]()
        else:
            self._kill(self._chance.choice(KILLED))

    def _choose(self, kind: str) -> Part | None:
        with self._lock:
            uids = {uid for uid, target in self._targets.items() if target.may_be_hit}
            everybody = set(self._targets)
        found = [part for part in parts(self._paths, everybody) if part.kind == kind]
        found = [part for part in found if part.uid in uids or kind == "supervisor"]
        return self._chance.choice(found) if found else None

    def _kill(self, kind: str) -> None:
        again = kind == self._last == "supervisor"  # where few jobs are left it would be the only one
        part = self._choose(kind) if not again or self._chance.random() < 0.2 else None
        if part is None:
            return
        self._last = kind
        # On record before it happens: what follows from it may be judged at once.
        hit = self._note(part.uid, f"kill {kind}", part.words)
        if part.kill():
            self.killed += 1
            self.done[f"kill {kind}"] += 1
        else:
            hit()

    def _halt(self) -> None:
        kind = self._chance.choice(HALTED)
        part = self._choose(kind)
        if part is None:
            return
        self._note("", f"halt {kind}", part.words)
        if part.signal(signal.SIGSTOP):
            self.done[f"halt {kind}"] += 1
            time.sleep(HALT_SECONDS)
            part.signal(signal.SIGCONT)

    def _step(self) -> None:
        seconds = self._chance.choice(STEPS)
        self._note("", f"clock {seconds:+d} s")
        self._clock.set(seconds)
        self.done["clock"] += 1

    def _fill(self) -> None:
        """Whoever writes meanwhile may lose an attempt."""
        with self._lock:
            self._full = [Hit("full disk", uptime())]
            for target in self._targets.values():
                target.hits += self._full
        filling = self._paths.state / "filling"
        try:
            with filling.open("wb", buffering=0) as file:
                with contextlib.suppress(OSError):
                    while True:
                        file.write(bytes(1 << 20))
                _to_the_last_byte(file.fileno())
            self.done["full disk"] += 1
            time.sleep(FULL_SECONDS)
        finally:
            filling.unlink()
            with self._lock:
                self._full = []

    def _note(self, uid: str, what: str, words: str = "") -> Callable[[], None]:
        """Whom it hits; returns what to call if it did not happen."""
        hit = Hit(what, uptime(), words)
        with self._lock:
            lists = [target.heard for target in self._targets.values()]
            if uid:
                lists = [self._targets[uid].hits] if uid in self._targets else []
            for each in lists:
                each.append(hit)
        return lambda: [each.remove(hit) for each in lists] and None


def _to_the_last_byte(fd: int) -> None:
    try:
        while True:
            os.write(fd, bytes(512))
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise


def uptime() -> float:
    return float(Path("/proc/uptime").read_text().split()[0])
