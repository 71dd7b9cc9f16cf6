"""Whether the server answers: for whoever starts it anew if it does not. Nobody has to log in for that."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import PlainTextResponse

PATH = "/healthz"
router = APIRouter(include_in_schema=False)


@router.get(PATH)
async def healthz() -> PlainTextResponse:
    """Of the cluster nothing is said: a server that is started anew would not bring it back."""
    return PlainTextResponse("ok\n")
