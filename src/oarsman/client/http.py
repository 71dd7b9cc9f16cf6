"""What answers over HTTP mean, and what trouble on the way does. Nothing here does I/O.

An answer becomes a model, a problem becomes the error that the same mistake raises in this process, and trouble on the
way becomes either `Again` (asking once more does no harm) or an error that says what nobody can know.
"""

from __future__ import annotations

import os
import random
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx
from httpx_sse import ServerSentEvent
from pydantic import ValidationError

from oarsman import errors
from oarsman.backoff import Backoff
from oarsman.errors import Problem
from oarsman.service.models import ProblemDetails, ProblemView
from oarsman.text.sentence import load
from oarsman.version import __version__

T = TypeVar("T")
PREFIX = "/api/v1"
ENV_TOKEN = "OARSMAN_TOKEN"
TRIES = 6
TRIES_OF_FOLLOWERS = 40  # two minutes and more: a server that was there is perhaps being started anew
_BACKOFF = Backoff(0.2, 5.0, random.uniform)
_TIMES = httpx.Timeout(60.0, connect=10.0)
_PASSING = frozenset({429, 502, 503, 504})
_NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
_BY_STATUS: dict[int, type[errors.OarsmanError]] = {
    401: errors.AccessError,
    403: errors.AccessError,
    404: errors.NotFoundError,
    409: errors.ConflictError,
    501: errors.UnsupportedError,
    **dict.fromkeys(_PASSING, errors.RetryableError),
}
_PARTICULAR = (errors.ManifestError, errors.ThrottledError, errors.JobFailed)  # made otherwise, or never by a server
_ERRORS = (kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.OarsmanError))
_BY_CODE = {kind.code: kind for kind in _ERRORS if kind not in _PARTICULAR}


class Again(Exception):
    """It did not work, and trying once more does no harm. Carries the error for those who have tried enough."""

    def __init__(self, error: errors.OarsmanError, *, counts: bool = True, after: float | None = None) -> None:
        super().__init__(str(error))
        self.error = error
        self.counts = counts  # False: nothing is wrong, the line was only silent for long
        self.after = after  # seconds the server asked for


@dataclass(slots=True)
class Patience:
    """How often to try, and how long to wait in between."""

    tries: int = TRIES
    failures: int = 0

    def delay(self, again: Again) -> float:
        """Seconds to wait; raises the error when there were enough tries."""
        if not again.counts:
            return 0.0
        self.failures += 1
        if self.failures >= self.tries:
            raise again.error
        if again.after is not None:
            return min(again.after, 60.0)
        return _BACKOFF.after(self.failures)

    def encouraged(self) -> None:
        """Whoever follows something has heard the server, and waits longer for it to come back."""
        self.failures, self.tries = 0, TRIES_OF_FOLLOWERS


# -- the address ------------------------------------------------------------------------------------
def options(address: str, token: str | None, verify: str | os.PathLike[str] | ssl.SSLContext | bool) -> dict[str, Any]:
    """For httpx. Redirects are not followed: the token is for this server alone."""
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise errors.UsageError(
            f"'{address}' is not the address of a server", field="address", hint="for example https://host:8443"
        )
    if parts.username or parts.password:
        raise errors.UsageError("the address holds a password", field="address", hint="use an API token: token=...")
    headers = {"User-Agent": f"oarsman/{__version__}"}
    if secret := token or os.environ.get(ENV_TOKEN):
        headers["Authorization"] = f"Bearer {secret}"
    return {
        "base_url": address.rstrip("/").removesuffix(PREFIX) + PREFIX,
        "headers": headers,
        "timeout": _TIMES,
        "verify": verify if isinstance(verify, ssl.SSLContext | bool) else _trusting(verify),
        "trust_env": not _loopback(parts.hostname),  # no proxy leads to this machine
    }


def _trusting(path: str | os.PathLike[str]) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=path)
    except (OSError, ssl.SSLError) as error:
        raise errors.UsageError(
            f"{os.fspath(path)} holds no certificates that can be read: {error}", field="verify"
        ) from error


def _loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


# -- answers ----------------------------------------------------------------------------------------
def check(response: httpx.Response, url: str, unsure: str = "") -> None:
    """Raises the error that a refusal means, or Again, unless asking twice may do it twice (`unsure`)."""
    if response.is_success:
        return
    error = error_of(response.status_code, response.content, url)
    if response.status_code in _PASSING and not unsure:
        asked = response.headers.get("Retry-After", "")
        raise Again(error, after=float(asked) if asked.isdigit() else None)
    raise error


def read(reads: Callable[[bytes], T], data: bytes, url: str) -> T:
    try:
        return reads(data)
    except (ValidationError, KeyError) as error:
        raise errors.TerminalError(
            f"{url} gave an answer that is not understood here: {_first_problem(error)}",
            hint="is it an Oarsman server, and of the same version as this package?",
        ) from error


def _first_problem(error: ValidationError | KeyError) -> str:
    if isinstance(error, KeyError):
        return f"{error} is missing"
    first = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(str(step) for step in first["loc"])
    return f"{place}: {first['msg']}" if place else first["msg"]


# -- errors -----------------------------------------------------------------------------------------
def error_of(status: int, content: bytes, url: str) -> errors.OarsmanError:
    """The error a problem document means; for an answer that is none, what its status says."""
    try:
        problem = ProblemDetails.model_validate_json(content, extra="ignore")
    except ValidationError:
        kind = _BY_STATUS.get(status, errors.TerminalError)
        return kind(f"{url} answered with status {status}", hint="is it an Oarsman server?")
    return error_from(problem)


def error_from(problem: ProblemDetails) -> errors.OarsmanError:
    problem = _as_made(problem)
    if problem.code == errors.ManifestError.code and problem.errors:
        return errors.ManifestError([Problem(source="<manifest>", **dict(found)) for found in problem.errors])
    fallback = errors.UserError if 400 <= problem.status < 500 else errors.TerminalError
    if problem.code == errors.ThrottledError.code:
        return errors.ThrottledError(problem.detail or problem.title, retry_after=1.0, hint=problem.hint)
    kind = _BY_CODE.get(problem.code) or _BY_STATUS.get(problem.status, fallback)
    message, where, hint = problem.detail or problem.title, problem.field, problem.hint
    if problem.errors:
        first = problem.errors[0]
        message = message if first.message in message else f"{message}: {first.message}"
        where, hint = where or first.field or None, hint or first.hint
    return kind(message, field=where, hint=hint)


def _as_made(problem: ProblemDetails) -> ProblemDetails:
    """With sentences that can be said in another language, where the server told what they were made of."""
    made = {text: load(written) for text, written in (problem.texts or {}).items()}

    def told(one: ProblemDetails | ProblemView, *names: str) -> dict[str, str]:
        given = {name: getattr(one, name) for name in names}
        return {name: made[text] for name, text in given.items() if text in made and made[text] == text}

    found = [one.model_copy(update=told(one, "message", "hint")) for one in problem.errors]
    return problem.model_copy(update={**told(problem, "detail", "hint"), "errors": found})


def trouble(error: httpx.HTTPError, url: str, unsure: str = "") -> errors.OarsmanError | Again:
    """What went wrong on the way. A change that may have arrived is never sent again without being asked to.

    `unsure`: what nobody knows then; empty: it was no such change.
    """
    late = isinstance(error, httpx.TimeoutException)
    why = "no answer in time" if late else str(error).strip() or type(error).__name__
    if isinstance(error, httpx.ConnectError) and "CERTIFICATE_VERIFY_FAILED" in why:
        return errors.AccessError(
            f"the certificate of {url} is not trusted: {why}",
            hint="verify='ca.pem', or `oarsman server set --ca-file ca.pem`, names the certificate of its issuer",
        )
    if unsure and not isinstance(error, _NEVER_SENT):
        return errors.RetryableError(
            f"the connection to {url} broke before an answer came; nobody knows whether {unsure}: {why}",
            hint="look before you try again: client.jobs(), client.job(name)",
        )
    return Again(
        errors.RetryableError(f"{url} cannot be reached: {why}", hint="is the address right and the server running?")
    )


# -- server-sent events -----------------------------------------------------------------------------
SILENCE_SECONDS = 60.0  # a stream that says nothing for so long, not even that it is alive, is asked for again
STREAMED: dict[str, Any] = {"timeout": httpx.Timeout(SILENCE_SECONDS, connect=10.0)}


def data_of(event: ServerSentEvent) -> bytes:
    """What a message carries; nothing of other events. Raises the problem that ended the stream there."""
    if event.event == "problem":
        error = error_from(ProblemDetails.model_validate_json(event.data, extra="ignore"))
        raise Again(error) if isinstance(error, errors.RetryableError) else error
    return event.data.encode() if event.event == "message" else b""


def broken(error: httpx.HTTPError, url: str, *, established: bool) -> errors.OarsmanError | Again:
    """What happened to a stream. One that was silent for long may just have nothing to say."""
    found = trouble(error, url)
    if isinstance(found, Again):
        found.counts = not (established and isinstance(error, httpx.ReadTimeout))
    return found
