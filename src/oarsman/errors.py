"""Every error Oarsman raises, in one place.

OarsmanError
├── UserError                  the user can fix it; exit code 2 unless said otherwise
│   ├── ManifestError          a manifest has problems; carries all of them
│   ├── UsageError             a command or an option makes no sense here
│   ├── NotFoundError          no such job                                     (exit 4)
│   ├── ConflictError          the object is not in a state that allows this   (exit 5)
│   ├── UnsupportedError       this engine cannot honour what was asked        (exit 6)
│   ├── AccessError            how to reach a cluster is not known, or is wrong
│   ├── UnauthenticatedError   a server does not know who asks                 (exit 3)
│   └── ForbiddenError         a server knows who asks, and says no            (exit 3)
├── RetryableError             the world was in the way; trying again may help (exit 75)
│   ├── ThrottledError         too many attempts; says how long to wait
│   ├── PlaceLostError         a machine that a job was given cannot be used; it is placed anew
│   ├── SupervisorError        the supervisor could not be started or reached
│   └── ClusterError           a cluster could not be reached or said no; engines/kube/client/errors.py has the kinds
├── TerminalError              trying again will not help                      (exit 70)
│   └── StoreError             the store cannot be read or written
└── JobFailed                  Oarsman did its part; the job itself failed

Each error knows how to present itself: a stable code for programs, the field it is about, a
hint that says what to do, and the exit code of the command that let it escape.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from oarsman.text.sentence import Text


class OarsmanError(Exception):
    """Base of everything Oarsman raises on purpose."""

    code: ClassVar[str] = "error"
    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, field: str | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.field = field
        self.hint = hint


class UserError(OarsmanError):
    code = "user-error"
    exit_code = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that is wrong with a text, and where; `manifest.problems` shows it."""

    source: str  # file name, or <stdin>
    line: int  # from 1
    column: int  # from 1
    field: str  # spec.mpiReplicaSpecs.Worker.replicas
    message: str
    hint: str | None = None  # "did you mean ...?"
    snippet: str = ""  # the source line

    stray: bool = False  # whether the field is there but should not be
    warning: bool = False  # the manifest is valid all the same

    @property
    def meant(self) -> str | None:
        """The word that was probably meant."""
        meant = self.hint.arguments.get("meant") if isinstance(self.hint, Text) else None
        return meant if isinstance(meant, str) else None


def did_you_mean(word: str) -> str:
    return Text("did you mean '{meant}'?", meant=word)


class ManifestError(UserError):
    """One or more problems in a manifest. All of them are listed, in the order of the text."""

    code = "invalid-manifest"

    def __init__(self, problems: Sequence[Problem]) -> None:
        first = problems[0]
        more = len(problems) - 1
        message = Text("{first} (and {count} more)", first=first.message, count=more) if more else first.message
        super().__init__(message, field=first.field, hint=first.hint)
        self.problems = tuple(problems)


class UsageError(UserError):
    code = "usage"


class NotFoundError(UserError):
    code = "not-found"
    exit_code = 4


class ConflictError(UserError):
    code = "conflict"
    exit_code = 5


class UnsupportedError(UserError):
    code = "unsupported"
    exit_code = 6


class AccessError(UserError):
    code = "access"


class UnauthenticatedError(UserError):
    code = "unauthenticated"
    exit_code = 3


class ForbiddenError(UserError):
    code = "forbidden"
    exit_code = 3


class RetryableError(OarsmanError):
    code = "retryable"
    exit_code = 75


class ThrottledError(RetryableError):
    code = "throttled"

    def __init__(self, message: str, *, retry_after: float, field: str | None = None, hint: str | None = None) -> None:
        super().__init__(message, field=field, hint=hint)
        self.retry_after = retry_after  # seconds


class PlaceLostError(RetryableError):
    code = "place-lost"


class SupervisorError(RetryableError):
    code = "supervisor"


class ClusterError(RetryableError):
    code = "cluster"


class TerminalError(OarsmanError):
    code = "internal"
    exit_code = 70


class StoreError(TerminalError):
    code = "store"


class JobFailed(OarsmanError):
    """A job that was waited for has failed. The message is its cause in one line; more of it is in the fields."""

    code = "job-failed"

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        rank: int | None = None,
        host: str | None = None,
        exit_status: int | None = None,
        signal: int | None = None,
        last_lines: Sequence[str] = (),
    ) -> None:
        super().__init__(message, hint=hint)
        self.rank = rank
        self.host = host
        self.exit_status = exit_status  # of the rank; `exit_code` is that of our own command
        self.signal = signal
        self.last_lines = tuple(last_lines)
