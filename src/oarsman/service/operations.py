"""Every question of `Service` as a value that knows both ways to be asked: in this process, or through REST.

Whoever carries it out (a thread, httpx, httpx in an event loop) needs to know nothing about the question itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import Any, Generic, TypeVar, cast
from urllib.parse import quote

from pydantic import BaseModel, TypeAdapter

from oarsman.errors import UsageError
from oarsman.service import models
from oarsman.service.contract import ALL_JOBS, ALL_LINES, Service

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
Parameters = Mapping[str, str | int | Sequence[str | int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(Generic[T]):
    """One question with one answer."""

    of: Callable[[Service], T]
    path: str
    reads: Callable[[bytes], T]
    method: str = "GET"
    parameters: Parameters = field(default_factory=dict)
    body: Mapping[str, Any] | None = None
    changes: bool = False  # asking twice may do it twice
    about: str = ""  # what would be changed, for the message when nobody knows whether it was


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamCall(Generic[T]):
    """One question with answers as they come. `resumed` says how to go on behind an answer, after a break."""

    of: Callable[[Service], Iterator[T]]
    path: str
    reads: Callable[[bytes], T]
    parameters: Parameters = field(default_factory=dict)
    resumed: Callable[[StreamCall[T], T], StreamCall[T]] = lambda stream, _: stream


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def _reads(kind: Any) -> Callable[[bytes], Any]:
    """A newer server may say more than is understood here; what is asked of a server stays strict."""
    return lambda data: _adapter(kind).validate_json(data, extra="ignore")


def _nothing(_: bytes) -> None:
    return None


def path_of(key: str, what: str = "job") -> str:
    namespace, slash, name = key.partition("/")
    if not (slash and namespace and name) or "/" in name or {namespace, name} & {".", ".."}:
        raise UsageError(f"'{key}' is not the key of a {what}", hint="a key is namespace/name")
    return f"/{what}s/{quote(namespace, safe='')}/{quote(name, safe='')}"


def _body(value: BaseModel) -> dict[str, Any]:
    return value.model_dump(mode="json", by_alias=True, exclude_defaults=True)


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value not in (None, "", (), [], False)}


# -- the place --------------------------------------------------------------------------------------
def info() -> Call[models.ServerInfo]:
    return Call(of=lambda s: s.info(), path="/info", reads=_reads(models.ServerInfo))


def overview() -> Call[models.Overview]:
    return Call(of=lambda s: s.overview(), path="/overview", reads=_reads(models.Overview))


def hosts() -> Call[Sequence[models.HostView]]:
    return Call(of=lambda s: s.hosts(), path="/hosts", reads=_reads(list[models.HostView]))


def queue() -> Call[Sequence[models.QueueEntry]]:
    return Call(of=lambda s: s.queue(), path="/queue", reads=_reads(list[models.QueueEntry]))


def templates() -> Call[Sequence[models.Template]]:
    return Call(of=lambda s: s.templates(), path="/templates", reads=_reads(list[models.Template]))


# -- environments -----------------------------------------------------------------------------------
def _environment(name: str) -> str:
    if not name or name in (".", ".."):
        raise UsageError(f"'{name}' is not the name of an environment")
    return f"/environments/{quote(name, safe='')}"


def environments() -> Call[Sequence[models.EnvironmentView]]:
    return Call(of=lambda s: s.environments(), path="/environments", reads=_reads(list[models.EnvironmentView]))


def environment(name: str) -> Call[models.EnvironmentView]:
    return Call(of=lambda s: s.environment(name), path=_environment(name), reads=_reads(models.EnvironmentView))


def put_environment(wanted: models.EnvironmentSpec) -> Call[models.EnvironmentView]:
    return Call(
        of=lambda s: s.put_environment(wanted),
        method="PUT",
        path=_environment(wanted.name),
        body=_body(wanted),
        reads=_reads(models.EnvironmentView),
    )


def delete_environment(name: str) -> Call[None]:
    return Call(
        of=lambda s: s.delete_environment(name),
        method="DELETE",
        path=_environment(name),
        reads=_nothing,
        changes=True,
        about=f"environment {name} was deleted",
    )


def environment_log(name: str, after: int = 0) -> Call[models.BuildLogView]:
    return Call(
        of=lambda s: s.environment_log(name, after),
        path=f"{_environment(name)}/log",
        parameters=_given(after=after),
        reads=_reads(models.BuildLogView),
    )


# -- sweeps -----------------------------------------------------------------------------------------
def sweeps(namespace: str | None = None) -> Call[Sequence[models.SweepView]]:
    return Call(
        of=lambda s: s.sweeps(namespace),
        path="/sweeps",
        parameters=_given(namespace=namespace),
        reads=_reads(list[models.SweepView]),
    )


def sweep(key: str) -> Call[models.SweepView]:
    return Call(of=lambda s: s.sweep(key), path=path_of(key, "sweep"), reads=_reads(models.SweepView))


def create_sweep(wanted: models.SweepSpec) -> Call[models.SweepView]:
    """Asking twice does nothing twice: the same sweep again goes on with what is there."""
    return Call(
        of=lambda s: s.create_sweep(wanted),
        method="POST",
        path="/sweeps",
        body=_body(wanted),
        reads=_reads(models.SweepView),
    )


def stop_sweep(key: str) -> Call[models.SweepView]:
    return Call(
        of=lambda s: s.stop_sweep(key),
        method="POST",
        path=f"{path_of(key, 'sweep')}/stop",
        reads=_reads(models.SweepView),
    )


def resume_sweep(key: str) -> Call[models.SweepView]:
    return Call(
        of=lambda s: s.resume_sweep(key),
        method="POST",
        path=f"{path_of(key, 'sweep')}/resume",
        reads=_reads(models.SweepView),
    )


def delete_sweep(key: str) -> Call[None]:
    return Call(
        of=lambda s: s.delete_sweep(key),
        method="DELETE",
        path=path_of(key, "sweep"),
        reads=_nothing,
        changes=True,
        about=f"sweep {key} was deleted",
    )


# -- jobs -------------------------------------------------------------------------------------------
def _query(query: models.JobQuery) -> dict[str, Any]:
    values = query.model_dump(exclude_defaults=True)
    return {("state" if name == "states" else name): value for name, value in values.items() if value is not None}


def jobs(query: models.JobQuery = ALL_JOBS) -> Call[models.JobList]:
    return Call(of=lambda s: s.jobs(query), path="/jobs", parameters=_query(query), reads=_reads(models.JobList))


def job(key: str) -> Call[models.JobView]:
    return Call(of=lambda s: s.job(key), path=path_of(key), reads=_reads(models.JobView))


def create(wanted: models.Create) -> Call[models.JobView]:
    return Call(
        of=lambda s: s.create(wanted),
        method="POST",
        path="/jobs",
        body=_body(wanted),
        reads=_reads(models.JobView),
        changes=True,
        about="the job was submitted",
    )


def delete(key: str) -> Call[None]:
    return Call(
        of=lambda s: s.delete(key),
        method="DELETE",
        path=path_of(key),
        reads=_nothing,
        changes=True,
        about=f"{key} was deleted",
    )


def scale(key: str, workers: int) -> Call[models.JobView]:
    return Call(
        of=lambda s: s.scale(key, workers),
        method="POST",
        path=f"{path_of(key)}/scale",
        body=_body(models.Scale(workers=workers)),
        reads=_reads(models.JobView),
    )


def _action(
    key: str, verb: str, of: Callable[[Service], models.JobView], *, changes: bool = False
) -> Call[models.JobView]:
    return Call(
        of=of,
        method="POST",
        path=f"{path_of(key)}/{verb}",
        reads=_reads(models.JobView),
        changes=changes,
        about=f"'{verb}' reached {key}",
    )


def suspend(key: str) -> Call[models.JobView]:
    return _action(key, "suspend", lambda s: s.suspend(key))


def resume(key: str) -> Call[models.JobView]:
    return _action(key, "resume", lambda s: s.resume(key))


def stop(key: str) -> Call[models.JobView]:
    return _action(key, "stop", lambda s: s.stop(key), changes=True)


def rerun(key: str) -> Call[models.JobView]:
    return _action(key, "rerun", lambda s: s.rerun(key), changes=True)


def clone(key: str, wanted: models.Clone) -> Call[models.JobView]:
    return Call(
        of=lambda s: s.clone(key, wanted),
        method="POST",
        path=f"{path_of(key)}/clone",
        body=_body(wanted),
        reads=_reads(models.JobView),
        changes=True,
        about=f"{key} was cloned",
    )


def changes(query: models.JobQuery = ALL_JOBS) -> StreamCall[models.JobChange]:
    return StreamCall(
        of=lambda s: s.changes(query), path="/jobs/stream", parameters=_query(query), reads=_reads(models.JobChange)
    )


def watch(key: str) -> StreamCall[models.JobView]:
    return StreamCall(of=lambda s: s.watch(key), path=f"{path_of(key)}/watch", reads=_reads(models.JobView))


# -- what a job said and did ------------------------------------------------------------------------
def events(key: str) -> Call[Sequence[models.EventView]]:
    return Call(of=lambda s: s.events(key), path=f"{path_of(key)}/events", reads=_reads(list[models.EventView]))


def _filter(only: models.LogFilter) -> dict[str, Any]:
    return _given(
        rank=list(only.ranks),
        worker=list(only.workers),
        launcher="true" if only.launcher else None,
        stream=only.stream,
        search=only.search,
        attempt=only.attempt,
    )


def log(
    key: str,
    only: models.LogFilter = ALL_LINES,
    *,
    after: str | None = None,
    before: str | None = None,
    limit: int = 500,
) -> Call[models.LogPageView]:
    return Call(
        of=lambda s: s.log(key, only, after=after, before=before, limit=limit),
        path=f"{path_of(key)}/log",
        parameters={**_filter(only), **_given(after=after, before=before, limit=limit)},
        reads=_reads(models.LogPageView),
    )


def follow_log(
    key: str, only: models.LogFilter = ALL_LINES, *, after: str | None = None
) -> StreamCall[models.LogPageView]:
    def behind(_: StreamCall[models.LogPageView], page: models.LogPageView) -> StreamCall[models.LogPageView]:
        pinned = only.model_copy(update={"attempt": page.attempt})  # "the newest" may be another one by now
        return follow_log(key, pinned, after=page.after)

    return StreamCall(
        of=lambda s: s.follow_log(key, only, after=after),
        path=f"{path_of(key)}/log/stream",
        parameters={**_filter(only), **_given(after=after)},
        reads=_reads(models.LogPageView),
        resumed=behind,
    )


def download_log(key: str, only: models.LogFilter = ALL_LINES) -> StreamCall[bytes]:
    return StreamCall(
        of=lambda s: s.download_log(key, only),
        path=f"{path_of(key)}/log/download",
        parameters=_filter(only),
        reads=lambda data: data,
    )


def usage(key: str, *, since: datetime | None = None) -> Call[Sequence[models.UsagePoint]]:
    return Call(
        of=lambda s: s.usage(key, since=since),
        path=f"{path_of(key)}/usage",
        parameters=_given(since=since.isoformat() if since is not None else None),
        reads=_reads(list[models.UsagePoint]),
    )


def usage_now(key: str) -> Call[Sequence[models.HostUsageView]]:
    return Call(
        of=lambda s: s.usage_now(key), path=f"{path_of(key)}/usage/now", reads=_reads(list[models.HostUsageView])
    )


def attention(key: str) -> Call[models.Attention]:
    return Call(of=lambda s: s.attention(key), path=f"{path_of(key)}/attention", reads=_reads(models.Attention))


def progress(key: str) -> Call[models.Progress]:
    return Call(of=lambda s: s.progress(key), path=f"{path_of(key)}/progress", reads=_reads(models.Progress))


# -- before it runs -----------------------------------------------------------------------------------
def preview(wanted: models.Create) -> Call[models.PreviewView]:
    return Call(
        of=lambda s: s.preview(wanted),
        method="POST",
        path="/preview",
        body=_body(wanted),
        reads=_reads(models.PreviewView),
    )


def plan(wanted: models.Create) -> Call[models.PlanView]:
    return Call(
        of=lambda s: s.plan(wanted), method="POST", path="/plan", body=_body(wanted), reads=_reads(models.PlanView)
    )


def _converted(data: bytes) -> tuple[str, Sequence[str]]:
    found = cast(dict[str, Any], _adapter(dict[str, Any]).validate_json(data))
    return str(found["manifest"]), [str(loss) for loss in found.get("losses", ())]


def convert(document: Mapping[str, Any], api_version: str) -> Call[tuple[str, Sequence[str]]]:
    return Call(
        of=lambda s: s.convert(document, api_version),
        method="POST",
        path="/convert",
        body={"document": dict(document), "apiVersion": api_version},
        reads=_converted,
    )
