"""Whether somebody may change jobs where they run, as far as the place itself decides that.

Asked once a minute at most, and never by a page while it is drawn: the answer is fetched before.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from oarsman.backends.base import Backend, HasRights

_LASTS_SECONDS = 60.0
_MOST_NAMESPACES = 20  # looked at to find one in which something may be changed
_BOUND = 500


class RightsThere:
    """Of a cluster, by the user's own token; other places leave it to the roles.

    `namespaces`: those in which there are jobs to be changed.
    """

    def __init__(
        self,
        jobs: Backend,
        namespaces: Callable[[], Sequence[str]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._asked = jobs if isinstance(jobs, HasRights) else None
        self._namespaces = namespaces
        self._clock = clock
        self._known: dict[str | None, tuple[float, bool]] = {}

    async def look(self, namespace: str | None = None) -> bool:
        """May anything be changed there? None: anywhere. Asks if the last answer is too old."""
        if self._asked is None:
            return True
        known = self._known.get(namespace)
        if known is not None and self._clock() - known[0] < _LASTS_SECONDS:
            return known[1]
        wanted = [namespace] if namespace else [None, *self._namespaces()[:_MOST_NAMESPACES]]
        found = await self._asked.may_change(wanted)
        if len(self._known) >= _BOUND:
            self._known.clear()
        self._known[namespace] = (self._clock(), found)
        return found

    def may_change(self, namespace: str | None = None) -> bool:
        """The last answer, however old: what is tried is decided anew by the cluster, with its reason.

        Of a cluster that has not answered nothing can be changed either.
        """
        return self._asked is None or self._known.get(namespace, (0.0, False))[1]
