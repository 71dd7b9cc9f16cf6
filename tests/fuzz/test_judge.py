"""What the judge is there for, it finds: each of these is one thing that a server must not do."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from for_every import for_every

from . import wire
from .calls import Call
from .judge import Judge
from .wire import Answer, Request

JOBS = Request(b"GET", b"/api/v1/jobs")
REMOVAL = Request(b"DELETE", b"/api/v1/jobs/default/done")
GOOD = Answer(200, b"\r\n\r\n{}")


class Silent:
    """A site that nothing happens at, but for what it was made with."""

    def __init__(self, *, log: str = "", watched: Any = None, after: Mapping[str, str] | None = None) -> None:
        self.canary, self.address = Path("/nowhere"), "http://127.0.0.1:1"
        self.secret, self.private = "of-the-server", "of-ada"
        self.tokens = {name: f"oar_{name}" for name in ("ada", "ben", "vera")}
        self.process = SimpleNamespace(poll=lambda: None)
        happened = log, [json.dumps(watched)] if watched else []
        self._news = iter([("", []), happened])
        self._kept: list[Mapping[str, str]] = [{"ada jobs 1": "a", "ben jobs 2": "b"}]
        self._kept += [after] if after else []

    def news(self) -> tuple[str, list[str]]:
        return next(self._news, ("", []))

    def stamp(self) -> float:
        return time.monotonic()

    def kept(self) -> Mapping[str, str]:
        return self._kept.pop(0) if len(self._kept) > 1 else self._kept[0]

    def restore(self) -> None:
        pass


# what happened -> who asked for what, what was answered, what the site did meanwhile; what is said about it
FOUND = {
    "nothing": ("viewer", JOBS, GOOD, {}, None),
    "fault": ("viewer", JOBS, Answer(500), {}, "answered 500"),
    "not supported": ("viewer", JOBS, Answer(501, b'{"code":"unsupported"}'), {}, None),
    "closed": ("viewer", JOBS, Answer(None), {}, "no answer"),
    "trace": ("viewer", JOBS, Answer(400, b"\r\n\r\nTraceback (most recent call last)"), {}, "how the program works"),
    "log": ("nobody", JOBS, Answer(401), {"log": "Traceback (most"}, "the log"),
    "secret": ("viewer", JOBS, Answer(200, b"x of-the-server"), {}, "a secret"),
    "token": ("viewer", JOBS, Answer(200, b"x oar_ada"), {}, "a secret"),
    "another's": ("user", JOBS, Answer(200, b"x of-ada"), {}, "the owner's job"),
    "seen by those who may": ("viewer", JOBS, Answer(200, b"x of-ada"), {}, None),
    "let in": ("nobody", JOBS, GOOD, {}, "to nobody"),
    "obeyed": ("viewer", REMOVAL, GOOD, {}, "who only looks"),
    "started": ("viewer", JOBS, GOOD, {"watched": {"started": "sh"}}, "do this"),
    "started for a user": ("user", JOBS, GOOD, {"watched": {"started": "sh"}}, None),
    "opened": ("user", JOBS, GOOD, {"watched": {"opened": "/canary"}}, "do this"),
    "changed": ("viewer", JOBS, GOOD, {"after": {"ada jobs 1": "a", "ben jobs 2": "c"}}, "changed by viewer"),
    "changed by refusal": ("user", REMOVAL, Answer(403), {"after": {"ada jobs 1": "a"}}, "changed by user"),
    "changed another's": ("user", REMOVAL, GOOD, {"after": {"ben jobs 2": "b"}}, "changed by user"),
    "changed one's own": ("user", REMOVAL, GOOD, {"after": {"ada jobs 1": "a"}}, None),
}


@for_every(FOUND)
def test_what_must_not_be_is_found(what: str) -> None:
    caller, request, answer, happened, said = FOUND[what]
    with patch.object(wire, "ask", lambda *_: answer):
        verdict = Judge(Silent(**happened)).call(Call(0, what, caller, request))  # type: ignore[arg-type]
    assert (said is None) is (not verdict.wrong), verdict.wrong
    assert said is None or any(said in wrong for wrong in verdict.wrong)


def test_a_server_that_does_not_answer_is_told_from_one_that_does() -> None:
    judge = Judge(Silent())  # type: ignore[arg-type]
    with patch.object(wire, "ask", side_effect=TimeoutError):
        verdict = judge.call(Call(0, "", "viewer", JOBS))
    assert judge.hung
    assert f"no answer within {wire.LIMIT_SECONDS:.0f} s" in verdict.wrong
