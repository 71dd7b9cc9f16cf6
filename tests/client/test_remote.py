"""Through a network that breaks: what is asked again, what never is, and that streams lose and double nothing."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from pydantic import ValidationError
from service.memory_backend import MANIFEST, NOON, MemoryService
from waiting import waiting

from oarsman import errors
from oarsman.backoff import Backoff
from oarsman.client import http
from oarsman.client.client import Client
from oarsman.client.remote import RemoteService
from oarsman.console.api import problems
from oarsman.service import models
from oarsman.service.contract import Service, operations
from oarsman.text.catalogue import Translator
from oarsman.text.sentence import Text

from .rest import EVENT_STREAM, Rest, event

Handler = Callable[[httpx.Request], Any]


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "_BACKOFF", Backoff(0.0, 0.0))


def remote(handler: Handler, **options: Any) -> Any:
    return waiting(RemoteService("http://127.0.0.1:1", transport=httpx.MockTransport(handler), **options))


INFO = asyncio.run(MemoryService().info()).model_dump_json(by_alias=True)


# -- what is asked again ----------------------------------------------------------------------------
@pytest.mark.parametrize(
    "trouble",
    [httpx.ConnectError("refused"), httpx.ReadError("reset"), httpx.RemoteProtocolError("cut"), httpx.ReadTimeout("")],
)
def test_a_question_is_asked_again_until_it_is_answered(trouble: httpx.HTTPError) -> None:
    answers: list[Any] = [trouble, trouble, httpx.Response(503), httpx.Response(200, content=INFO)]

    def handler(_: httpx.Request) -> httpx.Response:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer  # type: ignore[no-any-return]

    assert remote(handler).info().home == "default"
    assert answers == []


def test_a_server_that_is_not_there_is_named_after_a_few_tries() -> None:
    asked = []

    def handler(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        raise httpx.ConnectError("Connection refused")

    with pytest.raises(errors.RetryableError, match=r"http://127\.0\.0\.1:1 cannot be reached: Connection refused"):
        remote(handler).info()
    assert len(asked) == http.TRIES


@pytest.mark.parametrize("trouble", [httpx.ReadError("reset"), httpx.ReadTimeout(""), httpx.WriteError("reset")])
@pytest.mark.parametrize("change", ["create", "rerun", "clone", "delete"])
def test_a_change_that_may_have_arrived_is_never_sent_twice(change: str, trouble: httpx.HTTPError) -> None:
    sent = []

    def handler(request: httpx.Request) -> httpx.Response:
        sent.append(request)
        raise trouble

    service = remote(handler)
    changes: dict[str, Callable[[], Any]] = {
        "create": lambda: service.create(models.Create(manifest=MANIFEST)),
        "rerun": lambda: service.rerun("default/pi"),
        "clone": lambda: service.clone("default/pi", models.Clone()),
        "delete": lambda: service.delete("default/pi"),
    }
    with pytest.raises(errors.RetryableError, match="nobody knows whether") as caught:
        changes[change]()
    assert len(sent) == 1
    assert "look before you try again" in (caught.value.hint or "")


@pytest.mark.parametrize("status", [502, 503, 504])
def test_a_submission_that_a_proxy_gave_up_on_is_not_sent_twice(status: int) -> None:
    sent = []

    def handler(request: httpx.Request) -> httpx.Response:
        sent.append(request)
        return httpx.Response(status)

    with pytest.raises(errors.RetryableError, match=str(status)):
        remote(handler).create(models.Create(manifest=MANIFEST))
    assert len(sent) == 1


def test_a_submission_that_never_left_is_sent_once_the_server_is_there() -> None:
    service = MemoryService()
    rest = Rest(service)
    failures = [httpx.ConnectError("refused")]

    async def handler(request: httpx.Request) -> httpx.Response:
        if failures:
            raise failures.pop()
        return await rest.handle_async_request(request)

    assert remote(handler).create(models.Create(manifest=MANIFEST)).summary.key == "default/pi"
    assert len(service.created) == 1


# -- errors -----------------------------------------------------------------------------------------
def _refused(details: dict[str, Any]) -> errors.OarsmanError:
    status = details["status"]
    with pytest.raises(errors.OarsmanError) as caught:
        remote(lambda _: httpx.Response(status, json={"title": "no", **details})).job("default/pi")
    return caught.value


@pytest.mark.parametrize(
    "kind",
    [
        errors.NotFoundError,
        errors.ConflictError,
        errors.UnsupportedError,
        errors.UsageError,
        errors.AccessError,
        errors.StoreError,
        errors.UserError,
    ],
)
def test_a_problem_is_the_error_of_its_code_with_field_and_hint(kind: type[errors.OarsmanError]) -> None:
    error = _refused({"status": 400, "code": kind.code, "detail": "why", "field": "spec.x", "hint": "do this"})
    assert type(error) is kind
    assert (error.message, error.field, error.hint) == ("why", "spec.x", "do this")


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (401, errors.AccessError),
        (403, errors.AccessError),
        (404, errors.NotFoundError),
        (409, errors.ConflictError),
        (418, errors.UserError),
        (500, errors.TerminalError),
    ],
)
def test_a_code_nobody_knows_is_judged_by_its_status(status: int, kind: type[errors.OarsmanError]) -> None:
    assert isinstance(_refused({"status": status, "code": "brand-new", "detail": "why"}), kind)


def test_mistakes_in_what_was_sent_are_told_with_their_field() -> None:
    error = _refused(
        {
            "status": 422,
            "code": "invalid",
            "detail": "limit: must be more",
            "errors": [{"field": "limit", "message": "must be more"}],
        }
    )
    assert isinstance(error, errors.UserError)
    assert (error.field, error.message) == ("limit", "limit: must be more")


def test_too_many_attempts_are_told_after_waiting_as_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http.Patience, "delay", lambda self, again: _give_up(again))
    problem = {"title": "slow", "status": 429, "code": "throttled", "detail": "too many"}
    with pytest.raises(errors.ThrottledError, match="too many"):
        remote(lambda _: httpx.Response(429, json=problem, headers={"Retry-After": "7"})).info()


def test_what_a_server_refuses_can_be_said_in_chinese() -> None:
    gone = errors.NotFoundError(
        Text("there is no job {key}", key="default/hang2"), hint=Text("one of {names}", names="a, b")
    )
    sent = problems.answer_error(gone)
    found = http.error_of(sent.status_code, bytes(sent.body), "http://there")
    assert (found.message, found.hint) == (gone.message, gone.hint)
    assert Translator("zh").of(found.message) == "没有作业 default/hang2"
    assert Translator("zh").of(found.hint or "") != gone.hint


def _give_up(again: http.Again) -> float:
    assert again.after == 7.0
    raise again.error


def _from_the_future(value: Any) -> Any:
    """The same, with a field in every object that nobody here has heard of; an empty one is a table without entries."""
    if isinstance(value, list):
        return [_from_the_future(part) for part in value]
    if isinstance(value, dict) and value:
        return {**{name: _from_the_future(part) for name, part in value.items()}, "newlyInvented": {"deep": [1]}}
    return value


@pytest.mark.parametrize("question", ["info", "jobs", "job", "log"])
def test_a_newer_server_may_say_more_than_is_understood(question: str) -> None:
    service = waiting(MemoryService())
    key = service.add("pi", "Running")
    service.say(key, "hello")
    asked = (key,) if question in ("job", "log") else ()
    today = getattr(service, question)(*asked).model_dump(mode="json", by_alias=True)
    answer = httpx.Response(200, json=_from_the_future(today))
    understood = getattr(remote(lambda _: answer), question)(*asked)
    assert understood.model_dump(mode="json", by_alias=True) == today


def test_streams_and_problems_of_a_newer_server_are_understood_too() -> None:
    stream = b'data: {"removed": "default/pi", "newlyInvented": 1}\n\nevent: end\ndata: {}\n\n'
    told = remote(lambda _: httpx.Response(200, headers=EVENT_STREAM, content=stream)).changes()
    assert list(told) == [models.JobChange(removed="default/pi")]
    problem = {"title": "no", "status": 404, "code": errors.NotFoundError.code, "detail": "gone", "newlyInvented": 1}
    with pytest.raises(errors.NotFoundError, match="gone"):
        remote(lambda _: httpx.Response(404, json=problem)).job("default/pi")


@pytest.mark.parametrize("asked", [models.Create, models.Clone, models.JobQuery, models.LogFilter])
def test_what_is_asked_of_a_server_has_no_unknown_fields(asked: type[models.Value]) -> None:
    with pytest.raises(ValidationError, match="newlyInvented"):
        asked.model_validate({"newlyInvented": 1})


def test_a_page_that_is_no_answer_is_not_taken_for_one() -> None:
    with pytest.raises(errors.TerminalError, match="not understood here") as caught:
        remote(lambda _: httpx.Response(200, text="<html>hello</html>")).info()
    assert "Oarsman server" in (caught.value.hint or "")
    with pytest.raises(errors.NotFoundError, match="status 404"):
        remote(lambda _: httpx.Response(404, text="nothing")).info()


@pytest.mark.parametrize("address", ["host:80", "ftp://host", "https://", "https://host/?a=b", "https://me:pw@host"])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(errors.UsageError) as caught:
        Client(address)
    assert caught.value.field == "address"
    assert "pw" not in str(caught.value)


# -- who asks ---------------------------------------------------------------------------------------
def test_the_token_goes_with_every_request_and_into_no_repr(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str | None] = []

    def handler(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers.get("Authorization"))
        return httpx.Response(200, content=INFO)

    monkeypatch.setenv("OARSMAN_TOKEN", "oar_env")
    service = remote(handler)
    service.info()
    remote(handler, token="oar_given").info()
    monkeypatch.delenv("OARSMAN_TOKEN")
    remote(handler).info()
    assert seen == ["Bearer oar_env", "Bearer oar_given", None]
    assert "oar_env" not in repr(service)


def test_a_redirect_is_not_followed_with_the_token() -> None:
    asked = []

    def handler(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return httpx.Response(307, headers={"Location": "http://elsewhere/"})

    with pytest.raises(errors.TerminalError, match="status 307"):
        remote(handler, token="oar_x").info()
    assert len(asked) == 1


def test_certificates_are_verified_unless_said_otherwise(tmp_path: Any) -> None:
    assert http.options("https://host", None, verify=True)["verify"] is True
    with pytest.raises(errors.UsageError, match="holds no certificates") as caught:
        http.options("https://host", None, verify=tmp_path / "none.pem")
    assert caught.value.field == "verify"
    mine = ssl.create_default_context()
    assert http.options("https://host", None, verify=mine)["verify"] is mine


def test_an_untrusted_certificate_is_said_to_be_one() -> None:
    def handler(_: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("[SSL: CERTIFICATE_VERIFY_FAILED] self-signed certificate")

    with pytest.raises(errors.AccessError, match="not trusted") as caught:
        remote(handler).info()
    assert "verify=" in (caught.value.hint or "")


def test_names_become_paths_and_nothing_else() -> None:
    job = operations()["job"]
    assert job.request({"key": "a b/c?d", "run": None}).path == "/jobs/a%20b/c%3Fd"
    for key in ("", "a", "a/", "/b", "a/b/c", "../x", "x/.."):
        with pytest.raises(errors.UsageError, match="not the key of a job"):
            job.request({"key": key, "run": None})


def test_a_remote_service_has_every_method_of_the_contract_and_every_method_is_an_operation() -> None:
    methods = {name for name, value in vars(Service).items() if callable(value) and not name.startswith("_")}
    assert methods - {"close", "lines"} == set(operations())
    assert all(callable(getattr(RemoteService, name)) for name in methods)


# -- a server that cuts the connection ----------------------------------------------------------------
LINES = [f"line {n}\u2028 with \x85 odd \r separators" for n in range(40)]
PAGES = [
    models.LogPageView(
        lines=[models.LogLineView(after=str(n + 1), time=NOON, rank=0, host="w", stream="out", text=LINES[n])],
        before=None,
        after=str(n + 1),
        attempt=2,
    )
    for n in range(len(LINES))
]


class Cutter:
    """Serves the log by chunks over real sockets, and cuts each connection somewhere in the middle of an event."""

    def __init__(self, per_connection: int) -> None:
        self._per_connection = per_connection
        self.paths: list[str] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                self._answer(connection)

    def _answer(self, connection: socket.socket) -> None:
        request = b""
        while b"\r\n\r\n" not in request:
            request += connection.recv(65536)
        path = request.split(b" ")[1].decode()
        self.paths.append(path)
        place = int(httpx.URL(path).params.get("after", "0"))
        pages = PAGES[place : place + self._per_connection]
        last = place + len(pages) == len(PAGES)
        connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
        whole = b": hello\n\n" + b"".join(event(page) for page in pages)
        tail = b"event: end\ndata: {}\n\n" if last else event(PAGES[place + len(pages)])[:-7]  # not all of it
        for part in (whole[: len(whole) // 2], whole[len(whole) // 2 :], tail):
            connection.sendall(b"%x\r\n%s\r\n" % (len(part), part))
        if last or len(self.paths) % 2:  # every other time the cut looks like a proper end
            connection.sendall(b"0\r\n\r\n")


@contextmanager
def cutter(per_connection: int) -> Iterator[Cutter]:
    server = Cutter(per_connection)
    try:
        yield server
    finally:
        server.close()


@pytest.mark.parametrize("per_connection", [1, 3, 7, 40])
def test_a_log_read_through_cuts_has_every_line_once(per_connection: int) -> None:
    with cutter(per_connection) as server:
        service = waiting(RemoteService(server.address))
        found = [line.text for page in service.follow_log("default/pi") for line in page.lines]
        service.close()
        assert found == LINES
        assert len(server.paths) == -(-len(LINES) // per_connection)
        assert "attempt" not in server.paths[0]
        assert all("attempt=2" in path for path in server.paths[1:])  # the newest one may be another by then


def test_a_stream_that_never_gets_anywhere_is_given_up() -> None:
    asked = []

    def handler(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return httpx.Response(200, headers=EVENT_STREAM, content=b": hello\n\n")

    with pytest.raises(errors.RetryableError, match="ended a stream before its end"):
        list(remote(handler).watch("default/pi"))
    assert len(asked) == http.TRIES


def test_a_problem_in_the_middle_of_a_stream_is_raised() -> None:
    body = b'event: problem\ndata: {"title": "no", "status": 404, "code": "not-found", "detail": "gone"}\n\n'
    with pytest.raises(errors.NotFoundError, match="gone"):
        list(remote(lambda _: httpx.Response(200, headers=EVENT_STREAM, content=body)).watch("default/pi"))


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\u0085"])
def test_only_line_feeds_end_a_line_of_a_stream(separator: str) -> None:
    change = models.JobChange(removed=f"default/a{separator}b")
    body = event(change) + b"event: end\ndata: {}\n\n"
    assert separator.encode() in body
    assert list(remote(lambda _: httpx.Response(200, headers=EVENT_STREAM, content=body)).changes()) == [change]


def test_a_page_in_place_of_a_stream_is_no_stream() -> None:
    page = {"content-type": "text/html"}  # of a proxy that wants a login, for example
    with pytest.raises(errors.RetryableError, match="got 'text/html'"):
        list(remote(lambda _: httpx.Response(200, headers=page, content=b"<p>Hello</p>")).watch("default/pi"))


def test_a_stream_that_is_refused_says_why() -> None:
    problem = {"title": "no", "status": 404, "code": "not-found", "detail": "no such job"}
    with pytest.raises(errors.NotFoundError, match="no such job"):
        list(remote(lambda _: httpx.Response(404, json=problem)).follow_log("default/pi"))


def test_half_a_download_does_not_look_like_a_whole_one() -> None:
    class Half(httpx.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            yield b"first"
            raise httpx.ReadError("cut")

    chunks = remote(lambda _: httpx.Response(200, stream=Half())).download_log("default/pi")
    assert next(chunks) == b"first"
    with pytest.raises(errors.RetryableError, match="broke off"):
        next(chunks)


def test_closing_wakes_whoever_waits_for_a_silent_stream() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    service = waiting(RemoteService(f"http://127.0.0.1:{listener.getsockname()[1]}"))
    stream = service.watch("default/pi")
    answers: list[Any] = []
    reader = threading.Thread(target=lambda: answers.extend(stream))
    reader.start()
    connection, _ = listener.accept()
    while b"\r\n\r\n" not in connection.recv(65536):
        pass
    job = MemoryService()
    job.add("pi")
    data = event(job.kept["default/pi"])
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    connection.sendall(head + b"%x\r\n%s\r\n" % (len(data), data))
    while not answers:
        reader.join(0.01)
    stream.close()
    reader.join(60)
    service.close()
    assert not reader.is_alive()
    connection.close()
    listener.close()
