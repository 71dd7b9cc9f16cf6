"""What an API server can say no with.

ClusterError
└── ApiError              a request failed; it knows what was being tried
    ├── NotFound          404
    ├── AlreadyExists     409, the name is taken
    ├── Conflict          409, the object changed meanwhile, or a precondition failed
    ├── Gone              410, that point of history is no longer (or not yet) known: list again
    ├── Unauthorized      401
    ├── Forbidden         403
    ├── Invalid           422 and 400, the object itself is wrong
    ├── TooManyRequests   429
    ├── Unavailable       5xx, refused and broken connections, timeouts
    └── Unreadable        the answer is not what was asked for
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar

import msgspec

from oarsman.errors import ClusterError
from oarsman.text.sentence import Text

_UNREADABLE = "cannot be handled as a"
_ADMISSION = re.compile(r"admission webhook|denied (the )?request|is forbidden")


class StatusCause(msgspec.Struct, frozen=True):
    field: str = ""
    message: str = ""
    reason: str = ""


class ApiError(ClusterError):
    """A request failed. `retryable` says whether the same request may succeed later."""

    retryable: ClassVar[bool] = False
    exit_code = 70

    def __init__(
        self,
        trying: str,
        message: str,
        *,
        status: int = 0,
        reason: str = "",
        causes: Sequence[StatusCause] = (),
        retry_after: float | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, field=causes[0].field or None if causes else None, hint=hint)
        self.trying = trying
        self.status = status
        self.reason = reason
        self.causes = tuple(causes)
        self.retry_after = retry_after

    def __str__(self) -> str:
        said = Text("{what}: {why}", what=self.trying, why=self.message)
        if not (self.status and self.reason):
            return said
        return Text("{what} ({why})", what=said, why=f"{self.status} {self.reason}")


class NotFound(ApiError):
    exit_code = 4


class AlreadyExists(ApiError):
    exit_code = 5


class Conflict(ApiError):
    """Reading the object again and deciding again may help; the same request will not."""

    retryable = True
    exit_code = 75


class Gone(ApiError):
    retryable = True
    exit_code = 75


class Unauthorized(ApiError):
    pass


class Forbidden(ApiError):
    pass


class Invalid(ApiError):
    exit_code = 2

    @property
    def final(self) -> bool:
        """Whether the server itself found the object wrong. Webhooks, policies and proxies may change their minds."""
        if self.status == 400:
            return _UNREADABLE in self.message
        return _ADMISSION.search(self.message) is None


class TooManyRequests(ApiError):
    retryable = True
    exit_code = 75


class Unavailable(ApiError):
    retryable = True
    exit_code = 75


class Unreadable(ApiError):
    pass


class _Details(msgspec.Struct, frozen=True, rename="camel"):
    causes: list[StatusCause] | None = None
    retry_after_seconds: float | None = None


class Refusal(msgspec.Struct, frozen=True):
    """The `Status` object that a server answers with."""

    message: str = ""
    reason: str = ""
    code: int = 0
    details: _Details | None = None


_KINDS: dict[int, type[ApiError]] = {
    400: Invalid,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    408: Unavailable,
    409: Conflict,
    410: Gone,
    422: Invalid,
    429: TooManyRequests,
}
_REFUSALS = msgspec.json.Decoder(Refusal)


def from_answer(trying: str, status: int, body: bytes, retry_after: str | None = None) -> ApiError:
    """The error for an answer, whether the server itself or something in front of it gave it."""
    try:
        refusal = _REFUSALS.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        refusal = Refusal(message=body[:300].decode(errors="replace").strip())
    # In seconds: the form with a date is not used by API servers.
    seconds = float(retry_after) if retry_after and retry_after.isdigit() else None
    return from_refusal(trying, status, refusal, seconds)


def from_refusal(trying: str, status: int, refusal: Refusal, retry_after: float | None = None) -> ApiError:
    status, reason, message = status or refusal.code, refusal.reason, refusal.message
    causes = (refusal.details and refusal.details.causes) or ()
    if retry_after is None and refusal.details:
        retry_after = refusal.details.retry_after_seconds
    kind = Unavailable if status >= 500 else _KINDS.get(status, ApiError)
    # A history that ends before the point we know: the cluster was restored from a backup.
    if any(cause.reason == "ResourceVersionTooLarge" for cause in causes) or "Too large resource version" in message:
        kind = Gone
    if reason == "AlreadyExists":
        kind = AlreadyExists
    said = message or Text("the server answered with status {status}", status=status)
    return kind(trying, said, status=status, reason=reason, causes=causes, retry_after=retry_after)
