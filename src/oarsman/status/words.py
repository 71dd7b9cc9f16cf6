"""A job in a few words: its state, and why. Command, REST API, SDK and console all say these."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from oarsman import names
from oarsman.errors import UsageError
from oarsman.text.sentence import Text, listed

if TYPE_CHECKING:
    from oarsman.job.state import Status

PENDING: Final = "Pending"
STOPPING: Final = "Stopping"
DELETING: Final = "Deleting"
STOPPED: Final = "Stopped"
ENDED: Final = (names.SUCCEEDED, names.FAILED, STOPPED)
STATES: Final = (
    PENDING,
    names.QUEUED,
    names.RUNNING,
    names.RESTARTING,
    names.SUSPENDED,
    STOPPING,
    DELETING,
    *ENDED,
)


def known(word: str) -> str:
    """The state that somebody asks for, however it is written. Nothing would be found in one that does not exist."""
    found = next((state for state in STATES if state.lower() == word.lower()), None)
    if found is None:
        hint = Text("states are {names}", names=listed(STATES))
        raise UsageError(Text("there is no state '{name}'", name=word), field="state", hint=hint)
    return found


def state(status: Status, *, deleting: bool = False, stop_requested: bool = False) -> str:
    """One word; what the user has just asked for comes before what still is.

    A job that somebody stopped has the condition Failed, which other programs know; it did what people wanted.
    """
    if deleting:
        return DELETING
    if stop_requested and not status.finished:
        return STOPPING
    phase = status.phase
    if phase == names.FAILED and reason(status) == names.REASON_STOPPED:
        return STOPPED
    return PENDING if phase == names.CREATED else phase


def reason(status: Status) -> str:
    """Why it is in that state, in one word for programs."""
    condition = status.condition(status.phase)
    return condition.reason if condition is not None else ""


def message(status: Status) -> str:
    """Why it is in that state, in a sentence: what it waits for, or what the condition says."""
    if status.queue is not None:
        return status.queue.reason
    condition = status.condition(status.phase)
    return condition.message if condition is not None else ""
