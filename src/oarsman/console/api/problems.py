"""Every error as application/problem+json (RFC 9457), whoever raised it: ours, the framework's, or an accident.

And how much may be sent: read no further than that, whatever the client says its length is.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from oarsman import errors
from oarsman.console.api import PREFIX
from oarsman.manifest.problems import dotted
from oarsman.manifest.source import MAX_PROBLEMS
from oarsman.service import views
from oarsman.service.models import ProblemDetails, ProblemView
from oarsman.text.catalogue import N_
from oarsman.text.sentence import Text, dump
from oarsman.text.sentence import plain as plain_text

log = logging.getLogger("oarsman.console")
MEDIA_TYPE = "application/problem+json"

# The most particular class that fits decides; `status_of` walks up from the error's own class.
_STATUS: Mapping[type[errors.OarsmanError], int] = {
    errors.ManifestError: 422,
    errors.UsageError: 400,
    errors.UserError: 400,
    errors.UnauthenticatedError: 401,
    errors.AccessError: 403,
    errors.ForbiddenError: 403,
    errors.NotFoundError: 404,
    errors.ConflictError: 409,
    errors.UnsupportedError: 501,
    errors.ThrottledError: 429,
    errors.ClusterError: 502,
    errors.RetryableError: 503,
    errors.OarsmanError: 500,
}
_CODES = {404: "not-found", 405: "method-not-allowed", 406: "not-acceptable", 413: "too-large", 415: "media-type"}
_RETRY_SECONDS = 1


def status_of(error: errors.OarsmanError) -> int:
    return next(_STATUS[kind] for kind in type(error).__mro__ if kind in _STATUS)


def details(error: errors.OarsmanError) -> ProblemDetails:
    found = error.problems if isinstance(error, errors.ManifestError) else ()
    said: dict[str, Any] = {"detail": views.encodable(error.message), "field": error.field, "hint": error.hint}
    sentences = (error.message, error.hint, *(text for problem in found for text in (problem.message, problem.hint)))
    texts = {plain_text(text): dump(text) for text in sentences if isinstance(text, Text) and text.arguments} or None
    said |= {"errors": [ProblemView.of(problem) for problem in found], "texts": texts}
    return _problem(status_of(error), error.code, **said)


def _problem(status: int, code: str, **more: Any) -> ProblemDetails:
    return ProblemDetails(title=HTTPStatus(status).phrase, status=status, code=code, **more)


def answer(problem: ProblemDetails, headers: Mapping[str, str] | None = None) -> Response:
    return Response(
        problem.model_dump_json(by_alias=True, exclude_none=True), problem.status, headers, media_type=MEDIA_TYPE
    )


def answer_error(error: errors.OarsmanError) -> Response:
    problem = details(error)
    headers = {}
    if isinstance(error, errors.ThrottledError):
        headers["Retry-After"] = str(max(1, round(error.retry_after)))
    elif problem.status == HTTPStatus.SERVICE_UNAVAILABLE:
        headers["Retry-After"] = str(_RETRY_SECONDS)
    elif problem.status == HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = "Bearer"
    return answer(problem, headers)


def plain(status: int, detail: str) -> ProblemDetails:
    """A problem that is about HTTP itself."""
    code = _CODES.get(status, HTTPStatus(status).phrase.lower().replace(" ", "-"))
    return _problem(status, code, detail=detail)


def invalid(found: Sequence[Any]) -> ProblemDetails:
    """What pydantic found wrong with a request: each with the path of its field, as the user wrote it. It may be a
    hundred thousand mistakes; nobody reads more than the first."""
    wrong = [_field(dict(one)) for one in found[:MAX_PROBLEMS]]
    first = wrong[0]
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return _problem(422, "invalid", detail=f"{first.field}: {first.message}{more}", field=first.field, errors=wrong)


def _field(error: dict[str, Any]) -> ProblemView:
    where, *path = error["loc"] or ("body",)
    if error["type"] == "json_invalid":
        return ProblemView(field="body", message=f"this is not JSON: {error.get('ctx', {}).get('error', '')}")
    field = dotted(tuple(path)) or str(where)
    return ProblemView(field=views.encodable(field), message=error["msg"])


def install(app: FastAPI) -> None:
    @app.exception_handler(errors.OarsmanError)
    async def ours(_: Request, error: errors.OarsmanError) -> Response:
        if status_of(error) >= HTTPStatus.INTERNAL_SERVER_ERROR:
            log.warning("%s: %s", error.code, error)
        return answer_error(error)

    @app.exception_handler(RequestValidationError)
    async def not_understood(_: Request, error: RequestValidationError) -> Response:
        return answer(invalid(error.errors()))

    @app.exception_handler(HTTPException)
    async def of_http(_: Request, error: HTTPException) -> Response:
        said = error.detail if error.detail != HTTPStatus(error.status_code).phrase else ""
        return answer(plain(error.status_code, said), error.headers)

    @app.exception_handler(Exception)
    async def accident(_: Request, error: Exception) -> Response:
        return answer(plain(500, "something went wrong here; the server's log says what"))


_MEANINGS = {
    400: N_("What was asked for makes no sense"),
    401: N_("Nobody is logged in, or the token is not known"),
    403: N_("Not allowed for this role"),
    404: N_("There is no such job, or it is not yours to see"),
    409: N_("The job is not in a state that allows this, or the name is taken"),
    413: N_("More than 1 MiB was sent"),
    422: N_("What was sent is not valid; `errors` has every mistake with its field, line and column"),
    429: N_("Too many attempts; Retry-After says how long to wait"),
    500: N_("A fault of the server"),
    501: N_("This engine cannot do that"),
    502: N_("The cluster said no, or could not be reached"),
    503: N_("Not at the moment; trying again may help"),
}
_SCHEMA = {"schema": {"$ref": "#/components/schemas/ProblemDetails"}}
ALWAYS = (400, 401, 403, 422, 500, 501, 502, 503)


def responses(*more: int) -> dict[int | str, dict[str, Any]]:
    """What else an operation may answer with."""
    return {
        status: {"description": _MEANINGS[status], "content": {MEDIA_TYPE: _SCHEMA}}
        for status in sorted({*ALWAYS, *more})
    }


LARGEST_BODY = 1 << 20
LARGEST_OF_ANYBODY = 1 << 16  # it is read before anybody knows whose it is
_OF_ANYBODY = f"{PREFIX}/session"


def body_limit(app: ASGIApp) -> ASGIApp:
    """An ASGI layer around the API. What is too large is refused before anything looks at it."""

    async def limited(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].startswith(PREFIX):
            await app(scope, receive, send)
            return
        most = LARGEST_OF_ANYBODY if scope["path"].startswith(_OF_ANYBODY) else LARGEST_BODY
        announced = next((value for name, value in scope["headers"] if name == b"content-length"), b"")
        too_large = announced.isdigit() and int(announced) > most
        body = None if too_large else await _whole(receive, most)
        if body is None:
            said = plain(413, f"more than {most} bytes were sent")
            await answer(said, {"Connection": "close"})(scope, receive, send)
            return
        sent = False

        async def replay() -> Message:
            nonlocal sent
            if sent:
                return await receive()  # from now on: that the client has gone
            sent = True
            return {"type": "http.request", "body": body, "more_body": False}

        await app(scope, replay, send)

    return limited


async def _whole(receive: Receive, most: int) -> bytes | None:
    """The body; None if it is too large. A client that goes away in the middle has sent nothing."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return b""
        body += message.get("body", b"")
        if len(body) > most:
            return None
        if not message.get("more_body"):
            return bytes(body)
