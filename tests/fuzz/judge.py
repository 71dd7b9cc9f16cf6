"""Whether the server is unmoved: after every manifest and every call the same is asked of it."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from . import library, odd, site, wire
from .calls import Call
from .manifests import ManifestCase
from .routes import API
from .site import Site
from .wire import Answer, Request

_TRACE = re.compile(rb"Traceback \(most recent call last\)|File \"[^\"]+\", line \d+")
# Of odd requests two say so, in a line.
_FAULT = re.compile("Traceback|never retrieved| CRITICAL | ERROR (?!engineio.server|uvicorn.error: Invalid)")
_SUPERVISOR = "oarsman.control.supervisor"  # which the server starts by itself when there is none
_READING = (b"GET", b"HEAD", b"OPTIONS")
_FREE = (f"{API}/openapi.json", "/healthz")  # for everybody
_LOOKING = (f"{API}/preview", f"{API}/plan", f"{API}/convert")  # POST, and change nothing
_KNOWN_501 = b'"code":"unsupported"'  # said on purpose: this engine cannot do that
_SHOWN = 700


@dataclass
class Verdict:
    name: str  # "call:17"
    about: str
    wrong: list[str] = field(default_factory=list)
    sent: list[str] = field(default_factory=list)
    slowest: float = 0.0
    answers: list[int | None] = field(default_factory=list)


class Judge:
    def __init__(self, there: Site) -> None:
        self.site = there
        self.hung = False  # it answers nobody any more
        self._last = "user"
        self._before = there.kept()
        self._stamp = there.stamp()

    # -- cases -------------------------------------------------------------------------------------------
    def manifest(self, case: ManifestCase) -> Verdict:
        verdict = Verdict(f"manifest:{case.index}", f"{case.caller}: {', '.join(case.how)}")
        text = odd.settled(case.text, str(self.site.canary))
        began = time.monotonic()
        verdict.wrong += library.wrong_with(text)
        verdict.slowest = time.monotonic() - began
        for request in _doors(text, case.caller):
            if not self.hung:
                self._send(verdict, case.caller, request)
        return verdict

    def call(self, case: Call) -> Verdict:
        verdict = Verdict(f"call:{case.index}", f"{case.caller}: {case.kind}")
        self._send(verdict, case.caller, self._settled(case.request))
        return verdict

    def _send(self, verdict: Verdict, caller: str, request: Request) -> None:
        request = self._shown_by(caller, request)
        wrong = [*self._noticed(self._last)]  # what came late is of whoever asked before
        self._last = caller
        try:
            answer = wire.ask(self.site.address, request)
        except TimeoutError:
            answer = Answer(None, b"", wire.LIMIT_SECONDS)
            verdict.wrong.append(f"no answer within {wire.LIMIT_SECONDS:.0f} s")
            self.hung = True
        except ConnectionError as error:
            answer = Answer(None, repr(error).encode())
        wrong += _in(answer, request)
        wrong += self._told(caller, answer)
        wrong += _allowed(caller, request, answer)
        wrong += self._noticed(caller)
        wrong += self._changed(caller, request, answer)
        verdict.answers.append(answer.status)
        verdict.slowest = max(verdict.slowest, answer.seconds)
        if wrong:
            sent = f"{request.bytes('HOST')[:_SHOWN]!r}\n    -> {answer.status} {answer.raw[:_SHOWN]!r}"
            verdict.sent.append(re.sub(r"oar_\w+", "TOKEN", sent))
        verdict.wrong += wrong

    def _shown_by(self, caller: str, request: Request) -> Request:
        """With the token of whoever it is; unless the case shows one of its own."""
        name = {"user": site.USER, "viewer": site.VIEWER}.get(caller)
        if name is None or any(header.lower() == b"authorization" for header, _ in request.headers):
            return request
        token = b"Bearer " + self.site.tokens[name].encode()
        return replace(request, headers=((b"Authorization", token), *request.headers))

    def _settled(self, request: Request) -> Request:
        def here(raw: bytes) -> bytes:
            return odd.settled(raw, str(self.site.canary), self.site.address)

        headers = tuple((name, here(value)) for name, value in request.headers)
        return replace(request, target=here(request.target), headers=headers, body=here(request.body))

    # -- what must hold ------------------------------------------------------------------------------------
    def _told(self, caller: str, answer: Answer) -> Iterator[str]:
        """Secrets: of the server to nobody; of its owner to those who may see everybody's jobs."""
        tokens = [token for name, token in self.site.tokens.items()]
        for secret in (self.site.secret, *tokens, "root:x:0:0"):
            if secret.encode() in answer.raw:
                yield f"the answer has a secret of the server: {secret[:8]}..."
        if caller != "viewer" and self.site.private.encode() in answer.raw:
            yield "the answer has what the owner's job wrote"

    def _noticed(self, caller: str) -> Iterator[str]:
        log, watched = self.site.news()
        if _FAULT.search(log):
            yield f"the log: {log[-4000:]}"
        for line in watched:
            what = json.loads(line)
            if (caller != "user" or "opened" in what) and _SUPERVISOR not in line:
                yield f"{caller} had the server do this: {what}"
        if (self.site.canary / "ran").exists():
            (self.site.canary / "ran").unlink()
            yield "a program of the canary's folder ran"
        if self.site.process.poll() is not None:
            yield f"the server has ended with {self.site.process.returncode}"

    def _changed(self, caller: str, request: Request, answer: Answer) -> Iterator[str]:
        stamp = self.site.stamp()
        if stamp == self._stamp:
            return
        after = self.site.kept()
        found = [name for name in {*self._before, *after} if self._before.get(name) != after.get(name)]
        done = answer.status is not None and answer.status < 300 and request.method not in _READING
        theirs = (f"{site.USER} ", " file") if caller == "user" and done else ()
        changed = [name for name in found if not name.startswith(theirs)]
        if changed:
            yield f"changed by {caller}, who was answered {answer.status}: {sorted(changed)[:10]}"
        if found:
            self.site.restore()
            self.site.news()  # what the user may start is no news
            after = self.site.kept()
        self._before, self._stamp = after, self.site.stamp()


def _in(answer: Answer, request: Request) -> Iterator[str]:
    if answer.status is None and request.whole:
        yield f"no answer: {answer.raw!r}"
    if answer.status is not None and answer.status >= 500 and not (answer.status == 501 and _KNOWN_501 in answer.raw):
        yield f"answered {answer.status}"
    if _TRACE.search(answer.raw) or b"Internal Server Error" in answer.body[:100]:
        yield "the answer shows how the program works"


def _allowed(caller: str, request: Request, answer: Answer) -> Iterator[str]:
    """By role alone: whoever is not in gets nothing of the API, and whoever looks changes nothing."""
    if (
        answer.status is None
        or answer.status >= 300
        or not request.path.startswith(f"{API}/")
        or request.method == b"OPTIONS"
    ):
        return
    if caller == "nobody" and request.path not in _FREE:
        yield f"answered {answer.status} to nobody"
    if caller == "viewer" and request.method not in _READING and request.path not in _LOOKING:
        yield f"answered {answer.status} to somebody who only looks"


def _doors(text: bytes, caller: str) -> Iterator[Request]:
    """To everything that takes a manifest. What a user could run is sent suspended."""
    said = text.decode("utf-8", "surrogateescape")
    jobs = library.jobs_of(text)
    kind = ((b"Content-Type", b"application/json"),)

    def door(path: str, body: object) -> Request:
        return Request(b"POST", f"{API}/{path}".encode(), kind, odd.as_json(body))

    yield door("preview", {"manifest": said})
    yield door("plan", {"manifest": said})
    document = _asleep(dict(jobs[0].document)) if len(jobs) == 1 else None
    if document is not None:
        with suppress(ValueError, TypeError, RecursionError):  # what JSON cannot say
            yield door("convert", {"document": document, "apiVersion": "v1" if len(text) % 2 else "v2beta1"})
            yield door("jobs", {"document": document})
    else:
        yield door("jobs", {"manifest": said})


def _asleep(document: dict[str, object]) -> dict[str, object]:
    spec = dict(document["spec"])  # type: ignore[call-overload]
    spec["runPolicy"] = {**(spec.get("runPolicy") or {}), "suspend": True}
    return {**document, "spec": spec}


def slowest(verdicts: Sequence[Verdict]) -> Mapping[str, float]:
    found = sorted(verdicts, key=lambda verdict: -verdict.slowest)[:5]
    return {verdict.name: verdict.slowest for verdict in found}
