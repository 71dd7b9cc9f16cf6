"""Coming in and leaving: sessions by password, by one-time link, and who one is."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import RedirectResponse

from oarsman.console.api.problems import responses
from oarsman.console.security.gate import Caller, Gate
from oarsman.errors import UnauthenticatedError
from oarsman.service.models import ClusterLogin, Identity, Login, PasswordChange


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


@router.post("/session", response_model=Identity, responses=responses(429))
def log_in(login: Login, request: Request, response: Response, gate: TheGate) -> Identity:
    """Log in with name and password. The answer sets a cookie; programs had better use an API token."""
    identity, secret = gate.log_in(request, login.name, login.password)
    gate.give_cookie(response, secret)
    return identity


@router.post("/session/cluster", response_model=Identity, responses=responses(429))
def log_in_to_cluster(login: ClusterLogin, request: Request, response: Response, gate: TheGate) -> Identity:
    """Log in with one's own token for the cluster that this server shows. The answer sets a cookie."""
    identity, secret = gate.log_in_to_cluster(request, login.token)
    gate.give_cookie(response, secret)
    return identity


@router.delete("/session", status_code=204, response_class=Response, responses=responses())
def log_out(request: Request, response: Response, gate: TheGate) -> None:
    """End this session."""
    gate.log_out(request)
    gate.take_cookie(response)


@router.get("/me", response_model=Identity, responses=responses())
def me(caller: TheCaller) -> Identity:
    """Whose the request is, and in which role."""
    return caller.identity


@router.put("/me/password", status_code=204, response_class=Response, responses=responses(429))
def change_password(wanted: PasswordChange, request: Request, response: Response, gate: TheGate) -> None:
    """Change one's own password. The answer sets a new cookie; every other session of the account ends."""
    gate.give_cookie(response, gate.change_password(request, wanted.current, wanted.new))


@once.get("/login/once")
def enter_by_link(request: Request, gate: TheGate, key: Annotated[str, Query(max_length=200)]) -> Response:
    try:
        secret = gate.enter_by_link(request, key)
    except UnauthenticatedError:
        if "text/html" not in request.headers.get("accept", ""):
            raise
        return RedirectResponse("/login?link=used", status_code=303)  # a person gets a page, not a document
    response = RedirectResponse("/", status_code=303)  # and the key is out of the address line
    gate.give_cookie(response, secret)
    return response
