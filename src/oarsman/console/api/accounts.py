"""Coming in and leaving, who one is; accounts, API tokens and the audit log.

A token does what its owner may do with jobs, and can end access: revoke, disable, remove. What hands out access
(tokens, accounts, passwords, roles) takes a person who is logged in: a stolen token cannot make itself at home.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from fastapi.responses import RedirectResponse

from oarsman.console.api.problems import responses
from oarsman.console.security.gate import Caller, Gate
from oarsman.errors import ForbiddenError, UnauthenticatedError
from oarsman.service import models
from oarsman.service.rights import Action, may, require
from oarsman.text.sentence import Text


def gate_of(request: Request) -> Gate:
    gate: Gate = request.app.state.gate
    return gate


def caller_of(request: Request) -> Caller:
    """Whoever asks. Not `async`: it reads a file, which is nothing for the event loop."""
    return gate_of(request).caller(request)


TheGate = Annotated[Gate, Depends(gate_of)]
TheCaller = Annotated[Caller, Depends(caller_of)]

router = APIRouter(prefix="/api/v1")
once = APIRouter(include_in_schema=False)  # not of the API: people open it in a browser


@router.post("/session", responses=responses(429), tags=["session"])
def log_in(login: models.Login, request: Request, response: Response, gate: TheGate) -> models.Identity:
    """Log in with name and password. The answer sets a cookie; programs had better use an API token."""
    identity, secret = gate.log_in(request, login.name, login.password)
    gate.give_cookie(request, response, secret)
    return identity


@router.post("/session/cluster", responses=responses(429), tags=["session"])
def log_in_to_cluster(
    login: models.ClusterLogin, request: Request, response: Response, gate: TheGate
) -> models.Identity:
    """Log in with one's own token for the cluster that this server shows. The answer sets a cookie."""
    identity, secret = gate.log_in_to_cluster(request, login.token)
    gate.give_cookie(request, response, secret)
    return identity


@router.delete("/session", status_code=204, response_class=Response, responses=responses(), tags=["session"])
def log_out(request: Request, response: Response, gate: TheGate) -> None:
    """End this session."""
    gate.log_out(request)
    gate.take_cookie(request, response)


@router.get("/me", responses=responses(), tags=["session"])
def me(caller: TheCaller) -> models.Identity:
    """Whose the request is, and in which role."""
    return caller.identity


@router.put("/me/password", status_code=204, response_class=Response, responses=responses(429), tags=["session"])
def change_password(wanted: models.PasswordChange, request: Request, response: Response, gate: TheGate) -> None:
    """Change one's own password. The answer sets a new cookie; every other session of the account ends."""
    gate.give_cookie(request, response, gate.change_password(request, wanted.current, wanted.new))


@once.get("/login/once")
def enter_by_link(request: Request, gate: TheGate, key: Annotated[str, Query(max_length=200)]) -> Response:
    try:
        secret = gate.enter_by_link(request, key)
    except UnauthenticatedError:
        if "text/html" not in request.headers.get("accept", ""):
            raise
        return RedirectResponse("/login?link=used", status_code=303)  # a person gets a page, not a document
    response = RedirectResponse("/", status_code=303)  # and the key is out of the address line
    gate.give_cookie(request, response, secret)
    return response


Named = Annotated[str, Path(max_length=63)]


def _in_person(caller: Caller) -> None:
    if caller.way == "token":
        raise ForbiddenError(
            Text("a token cannot hand out access"),
            hint=Text("log in for this, or use `oarsman users` and `oarsman tokens`"),
        )


@router.get("/accounts", responses=responses(), tags=["accounts"])
def accounts(caller: TheCaller, gate: TheGate) -> list[models.Account]:
    """All accounts, by name. For admins."""
    require(caller.identity, Action.ADMINISTER)
    return gate.store.accounts.all()


@router.post("/accounts", status_code=201, responses=responses(409, 429), tags=["accounts"])
def add_account(wanted: models.NewAccount, caller: TheCaller, gate: TheGate) -> models.Account:
    """Make an account. For admins."""
    require(caller.identity, Action.ADMINISTER)
    _in_person(caller)
    password = gate.store.accounts.hash(wanted.password)
    with gate.store.together():
        made = gate.store.accounts.add(wanted.name, wanted.role, password)
        _note(gate, caller, "add account", f"{made.name} as {made.role.value}")
    return made


@router.patch("/accounts/{name}", responses=responses(404, 409, 429), tags=["accounts"])
def change_account(name: Named, wanted: models.AccountChange, caller: TheCaller, gate: TheGate) -> models.Account:
    """Change role or password, disable or enable. A new password and being disabled end its sessions. For admins."""
    require(caller.identity, Action.ADMINISTER)
    if wanted.role is not None or wanted.password is not None or wanted.disabled is False:
        _in_person(caller)
    password = gate.store.accounts.hash(wanted.password) if wanted.password is not None else None
    with gate.store.together():
        changed = gate.store.accounts.change(name, role=wanted.role, hashed_password=password, disabled=wanted.disabled)
        _note(gate, caller, "change account", f"{changed.name}: {_said(wanted)}")
    return changed


@router.delete(
    "/accounts/{name}", status_code=204, response_class=Response, responses=responses(404, 409), tags=["accounts"]
)
def remove_account(name: Named, caller: TheCaller, gate: TheGate) -> None:
    """Remove an account with its sessions and tokens; its jobs stay. For admins."""
    require(caller.identity, Action.ADMINISTER)
    with gate.store.together():
        gate.store.accounts.remove(name)
        _note(gate, caller, "remove account", name)


def _said(wanted: models.AccountChange) -> str:
    words = [f"role {wanted.role.value}"] if wanted.role is not None else []
    if wanted.password is not None:
        words.append("new password")
    if wanted.disabled is not None:
        words.append("disabled" if wanted.disabled else "enabled")
    return ", ".join(words) or "nothing"


@router.get("/tokens", responses=responses(), tags=["tokens"])
def tokens(caller: TheCaller, gate: TheGate) -> list[models.Token]:
    """One's own tokens; an admin sees everybody's."""
    require(caller.identity, Action.TOKENS, caller.identity.name)
    return gate.store.tokens.all(_whose(caller))


@router.post("/tokens", status_code=201, responses=responses(409, 429), tags=["tokens"])
def make_token(wanted: models.NewToken, caller: TheCaller, gate: TheGate) -> models.MadeToken:
    """Make a token for oneself. Its secret is in this answer and nowhere else."""
    require(caller.identity, Action.TOKENS, caller.identity.name)
    _in_person(caller)
    gate.store.audit.refuse_too_often(caller.identity.name, "make token")
    with gate.store.together():
        token, secret = gate.store.tokens.make(caller.identity.name, caller.account, note=wanted.note, days=wanted.days)
        _note(gate, caller, "make token", token.id)
    return models.MadeToken(token=token, secret=secret)


@router.delete("/tokens/{id}", status_code=204, response_class=Response, responses=responses(404), tags=["tokens"])
def revoke_token(id: Named, caller: TheCaller, gate: TheGate) -> None:
    """Revoke a token at once: one's own; an admin anybody's."""
    require(caller.identity, Action.TOKENS, caller.identity.name)
    with gate.store.together():
        token = gate.store.tokens.revoke(id, _whose(caller))
        _note(gate, caller, "revoke token", f"{token.id} of {token.owner}")


def _whose(caller: Caller) -> str | None:
    """The account whose tokens one deals with; None: everybody's. Of those who may have any, only the machine's owner
    has no account."""
    return None if may(caller.identity, Action.TOKENS) else caller.account


@router.get("/audit", responses=responses(), tags=["audit"])
def audit(
    caller: TheCaller,
    gate: TheGate,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    cursor: Annotated[str | None, Query(pattern=r"^[0-9]{1,18}$")] = None,
) -> models.AuditPage:
    """Who did what, newest first. For admins."""
    require(caller.identity, Action.ADMINISTER)
    return gate.store.audit.page(limit=limit, cursor=cursor)


def _note(gate: Gate, caller: Caller, what: str, about: str) -> None:
    gate.store.audit.note(caller.identity.name, caller.address, what, about)
