"""Who looks after jobs, and a word to those who wait in vain: a cluster without an operator says nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from oarsman.cli.messages import t
from oarsman.cli.session import Session
from oarsman.errors import OarsmanError

_LOOK_AFTER_SECONDS = 11.0


def keeper(session: Session) -> str:
    return t("the operator") if session.engine == "kube" else t("the supervisor")


@contextmanager
def told_if_nothing_happens(session: Session, key: str, tell: Callable[[str], None]) -> Iterator[None]:
    """Within, `tell` is called once if nobody has looked at the job after a while. On one machine somebody does."""
    ask = getattr(session.jobs, "silence", None)
    if ask is None:
        yield
        return

    def look() -> None:
        with suppress(OarsmanError, OSError):
            if why := ask(key):
                tell(why)

    timer = threading.Timer(_LOOK_AFTER_SECONDS, look)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
