"""What only a cluster can be asked about a job's surroundings. Where there is none, or no answer, nothing is said."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from oarsman.cli.session import Session
from oarsman.errors import OarsmanError

if TYPE_CHECKING:
    from oarsman.engines.kube.client import Kube
    from oarsman.job.job import Job

T = TypeVar("T")


def served(session: Session, namespace: str) -> bool | None:
    """Whether somebody looks after the jobs of the namespace; None if that cannot be known."""
    from oarsman.backends.kube import lookups

    return _asked(session, lambda kube: lookups.served(kube, namespace))


def lacks(session: Session, namespace: str) -> bool:
    """Whether the namespace is known not to exist. On one machine namespaces are only words."""
    if session.engine != "kube":
        return False
    from oarsman.backends.kube import lookups

    return bool(_asked(session, lambda kube: lookups.lacks(kube, namespace)))


def workers_left(session: Session, job: Job) -> int:
    """Worker pods that still run although the job has ended, because it asked for that."""
    if session.engine != "kube" or job.run_policy.clean_pod_policy.value != "None":
        return 0
    from oarsman.backends.kube import lookups

    return _asked(session, lambda kube: lookups.workers_left(kube, job)) or 0


def _asked(session: Session, work: Callable[[Kube], Coroutine[Any, Any, T]]) -> T | None:
    ask = getattr(session.jobs, "ask", None)
    if ask is None:
        return None
    with suppress(OarsmanError, OSError):
        answer: T = ask(work)
        return answer
    return None
