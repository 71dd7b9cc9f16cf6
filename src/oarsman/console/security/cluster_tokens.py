"""Whose a token of the cluster is: what the cluster said of it, remembered for a minute.

A token that was taken back is refused a minute later at the latest. The same wrong token again is no new guess: it is
answered from memory, and not counted, so a program that forgot to renew its token keeps nobody else out.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol

from oarsman.console.security.database import hashed

GOOD_SECONDS = 60.0
BAD_SECONDS = 10.0  # one that has just been made may be known to the cluster in a moment
_BOUND = 4_096


class KnownToken(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def expires(self) -> datetime | None: ...


@dataclass(slots=True)
class _Verdict:
    lock: threading.Lock = field(
        default_factory=threading.Lock
    )  # a page asks many things at once, the cluster only one
    known: KnownToken | None = None
    asked: float | None = None


class ClusterTokens:
    """`ask` asks the cluster: somebody, or None for a token that it does not accept."""

    def __init__(
        self,
        ask: Callable[[str], KnownToken | None],
        *,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        bound: int = _BOUND,
    ) -> None:
        self._ask = ask
        self._clock = clock
        self._now = now
        self._bound = bound
        self._lock = threading.Lock()
        self._verdicts: OrderedDict[bytes, _Verdict] = OrderedDict()  # by the token's hash; the oldest first

    def known(self, token: str, *, count: Callable[[], None], uncount: Callable[[], None]) -> KnownToken | None:
        """`count` is called before a token is looked at for the first time, and may refuse; `uncount` if it is good."""
        verdict = self._of(hashed(token))
        with verdict.lock:
            if not self._is_fresh(verdict):
                first = verdict.asked is None
                if first:
                    count()
                try:
                    verdict.known = self._ask(token)
                except BaseException:
                    if first:
                        uncount()
                    raise
                if first and verdict.known is not None:
                    uncount()
                verdict.asked = self._clock()
            found = verdict.known
        return found if found is None or found.expires is None or self._now() < found.expires else None

    def doubt(self, token: str) -> None:
        """The cluster has refused it elsewhere: what it said before is not believed any longer."""
        verdict = self._of(hashed(token))
        with verdict.lock:
            verdict.asked = float("-inf")

    def _is_fresh(self, verdict: _Verdict) -> bool:
        if verdict.asked is None:
            return False
        lasts = GOOD_SECONDS if verdict.known is not None else BAD_SECONDS
        return self._clock() - verdict.asked < lasts

    def _of(self, hash: bytes) -> _Verdict:
        with self._lock:
            found = self._verdicts.setdefault(hash, _Verdict())
            self._verdicts.move_to_end(hash)
            while len(self._verdicts) > self._bound:
                self._verdicts.popitem(last=False)
            return found
