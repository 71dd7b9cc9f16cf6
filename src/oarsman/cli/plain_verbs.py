"""Verbs that do one thing to jobs and say so: a row here is all that one needs.

Only data: the list of verbs is shown without importing what carries them out.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from oarsman.cli.messages import t
from oarsman.text.catalogue import N_

if TYPE_CHECKING:
    from oarsman.service.contract import Service
    from oarsman.service.models import JobView


class PlainVerb(NamedTuple):
    act: Callable[[Service, str], Coroutine[Any, Any, JobView]]
    said: str  # has a place for {name}
    help: str
    examples: Sequence[tuple[str, str]]


PLAIN: dict[str, PlainVerb] = {
    "suspend": PlainVerb(
        act=lambda service, key: service.suspend(key),
        said=N_("{name} is being suspended"),
        help=t(
            "Suspend jobs: their processes end, their records and logs stay. "
            "`oarsman resume` starts them again from the beginning of their work."
        ),
        examples=[("oarsman suspend pi", t("make room without losing the job"))],
    ),
    "resume": PlainVerb(
        act=lambda service, key: service.resume(key),
        said=N_("{name} goes on"),
        help=t("Resume suspended jobs. They queue for room again and start as a new attempt."),
        examples=[("oarsman resume pi", "")],
    ),
    "stop": PlainVerb(
        act=lambda service, key: service.stop(key),
        said=N_("{name} is being stopped"),
        help=t(
            "Stop jobs for good: their processes end, their records and logs stay. "
            "A stopped job counts as failed, with the reason StoppedByUser."
        ),
        examples=[
            ("oarsman stop pi", ""),
            ("oarsman stop pi && oarsman wait pi --for finished", t("until nothing of it runs")),
        ],
    ),
}
