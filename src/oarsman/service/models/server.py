"""Accounts, tokens and roles; what a server says of itself, and how it says no."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from enum import Enum
from typing import Annotated, Literal

from pydantic import Field

from oarsman.service.models.base import Value
from oarsman.service.models.place import ProblemView


class Role(str, Enum):
    VIEWER = "viewer"  # sees all, changes nothing
    USER = "user"  # sees and changes own jobs
    ADMIN = "admin"  # everything, accounts included
    CLUSTER = "cluster"  # whatever the cluster allows with jobs, and nothing of the console's own


AccountRole = Literal[Role.VIEWER, Role.USER, Role.ADMIN]  # what an account can have


class Identity(Value):
    name: str
    role: Role


class Account(Value):
    name: str
    role: Role
    created: datetime
    disabled: bool = False


class NewAccount(Value):
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._@-]{0,62}$")]
    role: AccountRole = Role.USER
    password: Annotated[str, Field(min_length=8, max_length=1024)]


class AccountChange(Value):
    role: AccountRole | None = None
    password: Annotated[str | None, Field(min_length=8, max_length=1024)] = None
    disabled: bool | None = None


class Login(Value):
    name: Annotated[str, Field(max_length=63)]
    password: Annotated[str, Field(max_length=1024)]


class PasswordChange(Value):
    """Of one's own."""

    current: Annotated[str, Field(max_length=1024)]
    new: Annotated[str, Field(min_length=8, max_length=1024)]


class ClusterLogin(Value):
    token: Annotated[str, Field(min_length=1, max_length=16_384)]  # the caller's own, for the cluster


class Token(Value):
    """An API token; the secret itself is shown once, when it is made."""

    id: str
    owner: str
    note: str = ""
    created: datetime
    expires: datetime | None = None
    last_used: datetime | None = None


class NewToken(Value):
    note: Annotated[str, Field(max_length=200)] = ""
    days: Annotated[int | None, Field(ge=1, le=3650)] = None


class MadeToken(Value):
    token: Token
    secret: str


class AuditEntry(Value):
    time: datetime
    who: str
    address: str
    what: str  # login, login refused, submit, stop, delete, ...
    about: str = ""
    outcome: str = "ok"


class AuditPage(Value):
    items: Sequence[AuditEntry]  # newest first
    next: str | None = None  # hand it back as `cursor` for older ones


class ServerInfo(Value):
    version: str
    engine: str
    home: str  # the namespace of manifests that mention none
    accounts: bool  # whether people log in
    me: Identity


class ProblemDetails(Value):
    """RFC 9457. `errors` has one entry per mistake in what was sent."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str = ""
    code: str = ""  # stable, for programs
    field: str | None = None
    hint: str | None = None
    errors: Sequence[ProblemView] = ()
