"""Whether somebody may change jobs where they run, as far as the place itself decides that.

Asked once a minute at most, and never by a page while it is drawn: the answer is fetched before.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from oarsman.errors import OarsmanError

_LASTS_SECONDS = 60.0
_MOST_NAMESPACES = 20  # looked at to find one in which something may be changed
_BOUND = 500


class RightsQuestion(Protocol):
    def __call__(self, namespaces: Sequence[str | None], /) -> bool: ...


class RightsThere:
    """`ask`: of a cluster, by the user's own token. None: the place leaves it to the roles.

    `namespaces`: those in which there are jobs to be changed.
    """

    def __init__(
        self,
        ask: RightsQuestion | None,
        namespaces: Callable[[], Sequence[str]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ask = ask
        self._namespaces = namespaces
        self._clock = clock
        self._lock = threading.Lock()
        self._known: dict[str | None, tuple[float, bool]] = {}

    def look(self, namespace: str | None = None) -> bool:
        """May anything be changed there? None: anywhere. Asks if the last answer is too old."""
        if self._ask is None:
            return True
        with self._lock:
            known = self._known.get(namespace)
        if known is not None and self._clock() - known[0] < _LASTS_SECONDS:
            return known[1]
        wanted = [namespace] if namespace else [None, *self._namespaces()[:_MOST_NAMESPACES]]
        found = self._ask(wanted)
        with self._lock:
            if len(self._known) >= _BOUND:
                self._known.clear()
            self._known[namespace] = (self._clock(), found)
        return found

    def may_change(self, namespace: str | None = None) -> bool:
        """The last answer, however old: what is tried is decided anew by the cluster, with its reason."""
        with self._lock:
            known = self._known.get(namespace)
        try:
            return known[1] if known is not None else self.look(namespace)
        except OarsmanError:  # of a cluster that does not answer nothing can be changed either
            return False
