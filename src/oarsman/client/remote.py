"""The service of a server, through REST: the methods of `Service`, the errors of this process.

Questions are asked again when the connection fails, with growing pauses. Changes that may have arrived are not.
Streams go on behind the last answer that came whole, so that no log line is lost or seen twice.
"""

from __future__ import annotations

import os
import socket
import ssl
import threading
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, Generic, TypeVar
from weakref import WeakSet

import httpx
from httpx_sse import connect_sse

from oarsman.backends.base import LogLine
from oarsman.client import http as wire
from oarsman.client import log_lines
from oarsman.client.http import Again, Patience, ServerAddress
from oarsman.errors import RetryableError
from oarsman.service import models, operations
from oarsman.service.contract import ALL_JOBS, ALL_LINES
from oarsman.service.operations import Call, StreamCall

T = TypeVar("T")


class RemoteService:
    """Safe to use from several threads. Close it, or use it in a `with`."""

    def __init__(
        self,
        address: str,
        *,
        token: str | None = None,
        verify: str | os.PathLike[str] | ssl.SSLContext | bool = True,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        """`transport` takes the place of the network, for tests."""
        self.address = ServerAddress.of(address, token=token, verify=verify)
        self._http = httpx.Client(**self.address.options, transport=transport)
        self._closing = threading.Event()
        self._open: WeakSet[RemoteStream[Any]] = WeakSet()

    def close(self) -> None:
        self._closing.set()
        for stream in list(self._open):
            stream.interrupt()
        self._http.close()

    # -- carrying out ------------------------------------------------------------------------------
    def _do(self, call: Call[T]) -> T:
        patience = Patience()
        while True:
            try:
                return wire.answer(call, self._send(call), self.address.url)
            except Again as again:
                self._closing.wait(patience.delay(again))

    def _send(self, call: Call[Any]) -> httpx.Response:
        try:
            return self._http.request(call.method, call.path, params=call.parameters, json=call.body)
        except httpx.HTTPError as error:
            raise wire.trouble(error, call, self.address.url) from error

    def _stream(self, stream: StreamCall[T]) -> RemoteStream[T]:
        return RemoteStream(self._http, stream, self.address.url, self._open)

    # -- the methods of Service ----------------------------------------------------------------------
    def info(self) -> models.ServerInfo:
        return self._do(operations.info())

    def overview(self) -> models.Overview:
        return self._do(operations.overview())

    def jobs(self, query: models.JobQuery = ALL_JOBS) -> models.JobList:
        return self._do(operations.jobs(query))

    def job(self, key: str) -> models.JobView:
        return self._do(operations.job(key))

    def create(self, wanted: models.Create) -> models.JobView:
        return self._do(operations.create(wanted))

    def delete(self, key: str) -> None:
        self._do(operations.delete(key))

    def scale(self, key: str, workers: int) -> models.JobView:
        return self._do(operations.scale(key, workers))

    def suspend(self, key: str) -> models.JobView:
        return self._do(operations.suspend(key))

    def resume(self, key: str) -> models.JobView:
        return self._do(operations.resume(key))

    def stop(self, key: str) -> models.JobView:
        return self._do(operations.stop(key))

    def rerun(self, key: str) -> models.JobView:
        return self._do(operations.rerun(key))

    def clone(self, key: str, wanted: models.Clone) -> models.JobView:
        return self._do(operations.clone(key, wanted))

    def changes(self, query: models.JobQuery = ALL_JOBS) -> Iterator[models.JobChange]:
        return self._stream(operations.changes(query))

    def watch(self, key: str, *, timeout: float | None = None) -> Iterator[models.JobView]:
        stream = self._stream(operations.watch(key))
        return stream if timeout is None else _within(stream, timeout)

    def events(self, key: str) -> Sequence[models.EventView]:
        return self._do(operations.events(key))

    def log(
        self,
        key: str,
        only: models.LogFilter = ALL_LINES,
        *,
        after: str | None = None,
        before: str | None = None,
        limit: int = 500,
    ) -> models.LogPageView:
        return self._do(operations.log(key, only, after=after, before=before, limit=limit))

    def follow_log(
        self, key: str, only: models.LogFilter = ALL_LINES, *, after: str | None = None
    ) -> Iterator[models.LogPageView]:
        return self._stream(operations.follow_log(key, only, after=after))

    def lines(
        self,
        key: str,
        only: models.LogFilter = ALL_LINES,
        *,
        since: datetime | None = None,
        tail: int | None = None,
        follow: bool = False,
    ) -> Iterator[Sequence[LogLine]]:
        return log_lines.lines(self, key, only, since=since, tail=tail, follow=follow)

    def download_log(self, key: str, only: models.LogFilter = ALL_LINES) -> Iterator[bytes]:
        """The log as text. Not taken up again after a break: half a file must not look like a whole one."""
        stream = operations.download_log(key, only)
        try:
            with self._http.stream("GET", stream.path, params=stream.parameters) as response:
                _check(response, self.address.url)
                yield from response.iter_bytes()
        except Again as again:
            raise again.error from again
        except httpx.HTTPError as error:
            raise RetryableError(
                f"the download from {self.address.url} broke off: {error}", hint="begin again"
            ) from error

    def usage(self, key: str, *, since: datetime | None = None) -> Sequence[models.UsagePoint]:
        return self._do(operations.usage(key, since=since))

    def usage_now(self, key: str) -> Sequence[models.HostUsageView]:
        return self._do(operations.usage_now(key))

    def attention(self, key: str) -> models.Attention:
        return self._do(operations.attention(key))

    def progress(self, key: str) -> models.Progress:
        return self._do(operations.progress(key))

    def preview(self, wanted: models.Create) -> models.PreviewView:
        return self._do(operations.preview(wanted))

    def plan(self, wanted: models.Create) -> models.PlanView:
        return self._do(operations.plan(wanted))

    def templates(self) -> Sequence[models.Template]:
        return self._do(operations.templates())

    def convert(self, document: Mapping[str, Any], api_version: str) -> tuple[str, Sequence[str]]:
        return self._do(operations.convert(document, api_version))

    def hosts(self) -> Sequence[models.HostView]:
        return self._do(operations.hosts())

    def queue(self) -> Sequence[models.QueueEntry]:
        return self._do(operations.queue())

    def environments(self) -> Sequence[models.EnvironmentView]:
        return self._do(operations.environments())

    def environment(self, name: str) -> models.EnvironmentView:
        return self._do(operations.environment(name))

    def put_environment(self, wanted: models.EnvironmentSpec) -> models.EnvironmentView:
        return self._do(operations.put_environment(wanted))

    def delete_environment(self, name: str) -> None:
        self._do(operations.delete_environment(name))

    def environment_log(self, name: str, after: int = 0) -> models.BuildLogView:
        return self._do(operations.environment_log(name, after))

    def sweeps(self, namespace: str | None = None) -> Sequence[models.SweepView]:
        return self._do(operations.sweeps(namespace))

    def sweep(self, key: str) -> models.SweepView:
        return self._do(operations.sweep(key))

    def create_sweep(self, wanted: models.SweepSpec) -> models.SweepView:
        return self._do(operations.create_sweep(wanted))

    def stop_sweep(self, key: str) -> models.SweepView:
        return self._do(operations.stop_sweep(key))

    def resume_sweep(self, key: str) -> models.SweepView:
        return self._do(operations.resume_sweep(key))

    def delete_sweep(self, key: str) -> None:
        self._do(operations.delete_sweep(key))


class RemoteStream(Generic[T]):
    """Answers as they come. Another thread may close it, and whoever waits for the next answer sees the end."""

    def __init__(
        self, http: httpx.Client, stream: StreamCall[T], url: str, register: WeakSet[RemoteStream[Any]]
    ) -> None:
        self._http, self._stream, self._url, self._register = http, stream, url, register
        self._closed = threading.Event()
        self._response: httpx.Response | None = None
        self._answers = self._run()
        register.add(self)

    def __iter__(self) -> RemoteStream[T]:
        return self

    def __next__(self) -> T:
        return next(self._answers)

    def close(self) -> None:
        """By whoever reads it."""
        self.interrupt()
        with suppress(ValueError):  # another thread is in it, and has just been told
            self._answers.close()

    def interrupt(self) -> None:
        """By any thread: whoever waits for the next answer sees the end."""
        self._closed.set()
        self._register.discard(self)
        response = self._response
        if response is not None and (network := response.extensions.get("network_stream")) is not None:
            with suppress(OSError):  # a read in another thread ends with this, and with nothing else
                network.get_extra_info("socket").shutdown(socket.SHUT_RDWR)

    def _run(self) -> Generator[T, None, None]:
        patience = Patience()
        try:
            while not self._closed.is_set():
                try:
                    for answer in self._connected():
                        patience.encouraged()
                        self._stream = self._stream.resumed(self._stream, answer)
                        yield answer
                    return
                except Again as again:
                    self._closed.wait(patience.delay(again))
        finally:
            self._register.discard(self)

    def _connected(self) -> Iterator[T]:
        """The answers of one connection. Raises Again when it breaks."""
        established = False
        try:
            with connect_sse(
                self._http, "GET", self._stream.path, params=self._stream.parameters, **wire.STREAMED
            ) as source:
                _check(source.response, self._url)
                self._response, established, ended = source.response, True, False
                for event in source.iter_sse():
                    ended = ended or event.event == "end"
                    if data := wire.data_of(event):
                        yield wire.read(self._stream.reads, data, self._url)
                if not ended and not self._closed.is_set():
                    raise wire.cut_off(self._url)
        except httpx.HTTPError as error:
            if not self._closed.is_set():
                raise wire.broken(error, self._url, established=established) from error
        finally:
            self._response = None


def _within(stream: RemoteStream[T], timeout: float) -> Iterator[T]:
    """Raises TimeoutError when the stream has not ended by then."""
    up = threading.Event()

    def end() -> None:
        up.set()
        stream.interrupt()

    timer = threading.Timer(timeout, end)
    timer.daemon = True
    timer.start()
    try:
        yield from stream
    finally:
        timer.cancel()
        stream.close()
    if up.is_set():
        raise TimeoutError


def _check(response: httpx.Response, url: str) -> None:
    if not response.is_success:
        response.read()
        wire.refuse(response, url)
