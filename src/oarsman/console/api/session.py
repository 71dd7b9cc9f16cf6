"""Coming in and leaving: sessions by password, by one-time link, and who one is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import RedirectResponse

from oarsman.console.security.gate import Caller, Gate
from oarsman.sdk.models import Identity, Login

_WHY = {
    401: "Nobody is logged in, or what was shown is not valid.",
    403: "The role does not allow it, or the request comes from another site.",
    404: "There is no such thing.",
    409: "Its state does not allow it.",
    422: "What was sent is not valid; `errors` has each mistake.",
    429: "Too many attempts; Retry-After says when to come again.",
}


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The answers of a route that are errors, for its documentation."""
    body: Mapping[str, Any] = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/ProblemDetails"}}}
    return {status: {"description": _WHY[status], "content": body} for status in statuses}


def gate_of(request: Request) -> Gate:
    gate: Gate = request.app.state.gate
    return gate


def caller_of(request: Request) -> Caller:
    """Whoever asks. Not `async`: it reads a file, which is nothing for the event loop."""
    return gate_of(request).caller(request)


TheGate = Annotated[Gate, Depends(gate_of)]
TheCaller = Annotated[Caller, Depends(caller_of)]

router = APIRouter(prefix="/api/v1", tags=["session"])
once = APIRouter(include_in_schema=False)  # not of the API: people open it in a browser


@router.post("/session", response_model=Identity, responses=refusals(401, 403, 422, 429))
def log_in(login: Login, request: Request, response: Response, gate: TheGate) -> Identity:
    """Log in with name and password. The answer sets a cookie; programs had better use an API token."""
    identity, secret = gate.log_in(request, login.name, login.password)
    gate.give_cookie(response, secret)
    return identity


@router.delete("/session", status_code=204, response_class=Response, responses=refusals(401, 403))
def log_out(request: Request, response: Response, gate: TheGate) -> None:
    """End this session."""
    gate.log_out(request)
    gate.take_cookie(response)


@router.get("/me", response_model=Identity, responses=refusals(401))
def me(caller: TheCaller) -> Identity:
    """Whose the request is, and in which role."""
    return caller.identity


@once.get("/login/once")
def enter_by_link(request: Request, gate: TheGate, key: Annotated[str, Query(max_length=200)]) -> Response:
    secret = gate.enter_by_link(request, key)
    response = RedirectResponse("/", status_code=303)  # and the key is out of the address line
    gate.give_cookie(response, secret)
    return response
