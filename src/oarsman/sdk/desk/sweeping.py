"""What a door keeps for sweeps: the threads that hand in points, the numbers found in logs, what each sweep is.

Nothing of it is needed to go on: when the process ends, a sweep with points left can be resumed by whoever is told to.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict

from oarsman.errors import NotFoundError, OarsmanError, RetryableError
from oarsman.job.sweep import Sweep
from oarsman.runtime.jobs import Jobs
from oarsman.runtime.sweep_metrics import MetricsKept
from oarsman.runtime.sweeps import Drive, spec_of

log = logging.getLogger("oarsman.sweeps")
_AGAIN_AFTER_SECONDS = 5.0
_LAST_WORDS_SECONDS = 10.0
_MOST_KNOWN = 1_000


class Sweeping:
    """`at_first`: how many points are handed in before whoever asked gets an answer; None: all that may be now."""

    def __init__(self, at_first: int | None = None) -> None:
        self.metrics = MetricsKept()
        self._at_first = at_first
        self._lock = threading.Lock()
        self._drives: dict[str, tuple[Drive, threading.Thread]] = {}
        self._known: OrderedDict[str, Sweep | None] = OrderedDict()
        self._closing = threading.Event()

    # -- what a sweep is -----------------------------------------------------------------------------
    def spec(self, jobs: Jobs, key: str, uid: str) -> Sweep | None:
        """Of the sweep whose first job this is. Read once: it never changes."""
        with self._lock:
            if uid in self._known:
                return self._known[uid]
        try:
            record = jobs.get(key)
        except NotFoundError:
            return None
        found = spec_of(record)
        with self._lock:
            self._known[uid] = found
            while len(self._known) > _MOST_KNOWN:
                self._known.popitem(last=False)
        return found

    # -- going on ------------------------------------------------------------------------------------
    def start(self, drive: Drive) -> None:
        """Hand in what may be now, and leave the rest to a thread."""
        key = drive.sweep.key
        self.end(key)
        drive.hand_in(self._at_first)
        if not drive.todo:
            return
        thread = threading.Thread(target=self._go_on, args=(key, drive), name=f"sweep {key}", daemon=True)
        with self._lock:
            self._drives[key] = (drive, thread)
        thread.start()

    def _go_on(self, key: str, drive: Drive) -> None:
        try:
            while not self._closing.is_set() and drive.todo:
                try:
                    drive.run()
                    break
                except RetryableError as error:
                    log.warning("sweep %s: %s; tried again", key, error)
                    self._closing.wait(_AGAIN_AFTER_SECONDS)
        except OarsmanError as error:
            log.warning("sweep %s is left as it is: %s", key, error)
        except Exception:
            log.exception("sweep %s is left as it is", key)
        finally:
            with self._lock:
                if self._drives.get(key, (None, None))[0] is drive:
                    del self._drives[key]

    def drives(self, key: str) -> bool:
        return key in self._drives

    @property
    def busy(self) -> bool:
        return bool(self._drives)

    def end(self, key: str) -> None:
        """Nothing more of it is handed in from here."""
        with self._lock:
            found = self._drives.pop(key, None)
        if found is not None:
            found[0].close()
            found[1].join(_LAST_WORDS_SECONDS)

    def close(self) -> None:
        self._closing.set()
        for key in list(self._drives):
            self.end(key)
