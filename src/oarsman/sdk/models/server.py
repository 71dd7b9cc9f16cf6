"""What a server says of itself, and how it says no."""

from __future__ import annotations

from collections.abc import Sequence

from oarsman.sdk.models.base import Value
from oarsman.sdk.models.before import ProblemView
from oarsman.sdk.models.who import Identity


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
