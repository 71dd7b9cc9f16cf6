"""A sweep in the foreground: points are handed in as others end, a line says how far it is, a signal stops it.

One thread drives; the main thread, the only one that Python interrupts, waits for it and for signals.
"""

from __future__ import annotations

import csv
import io
import threading
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

import click

from oarsman import names
from oarsman.cli import documents, inputs, render
from oarsman.cli.foreground import Signals, in_thread
from oarsman.cli.inputs import JobInput
from oarsman.cli.session import Session, short
from oarsman.cli.text import note, of, t
from oarsman.cli.waiting import StatusLine
from oarsman.errors import ManifestError, NotFoundError, UsageError
from oarsman.job.sweep import NOT_SUBMITTED, index_of, text_of, typed, unused, values_of
from oarsman.manifest import builder
from oarsman.status.words import ENDED
from oarsman.text import units

if TYPE_CHECKING:
    import asyncio

    from oarsman.job.sweep import Parameter
    from oarsman.service.contract import Service
    from oarsman.service.models import SweepPoint, SweepSpec, SweepView
    from oarsman.service.sweep_runs import Drive

_TICK_SECONDS = 0.2
_ASK_AGAIN_SECONDS = 10.0


def in_the_foreground(session: Session, wanted: SweepSpec | str, *, wait: bool, output: str | None) -> int:
    """Begin a sweep, or go on with the one of that key. The exit code: 0 if every point succeeded (or could be handed
    in, for those who do not wait)."""
    from oarsman.client.places import current_folder

    drive: Drive | ServerDrive
    if session.remote is None:
        current_folder()
        drive = session.run(session.here().driven_sweep(wanted))
    else:
        drive = session.run(ServerDrive.begin(session.service, wanted))
    name = short(drive.sweep.key)
    if not wait:
        session.run(drive.hand_in())
        return _left_alone(drive, name, session, output)
    signalled = _Watched(session, drive).follow()
    try:
        view = session.run(session.service.sweep(drive.sweep.key))
    except NotFoundError:
        note(t("{name} was deleted", name=name))
        return 1
    show_results(view, output)
    text = t(
        "{name}: {succeeded} of {total} succeeded, {failed} failed",
        name=name,
        total=view.total,
        succeeded=view.states.get("Succeeded", 0),
        failed=view.states.get("Failed", 0),
    )
    session.note(click.style(text, fg="green" if view.state == "Succeeded" else "red"))
    if view.state in ("Stopped", "Running"):
        note(t("`oarsman sweep resume {name}` continues it", name=name))
    if signalled is not None:
        return 128 + signalled
    return 0 if view.state == "Succeeded" else 1


def _left_alone(drive: Drive | ServerDrive, name: str, session: Session, output: str | None) -> int:
    if output:
        with suppress(NotFoundError):
            show_results(session.run(session.service.sweep(drive.sweep.key)), output)
    else:
        count = drive.total - len(drive.todo)
        session.note(t("{name}: {count} of {total} points are submitted", name=name, count=count, total=drive.total))
    if drive.todo and session.remote is None:  # a server goes on by itself
        note(t("`oarsman sweep resume {name}` continues it", name=name))
    return 0


class _Watched:
    def __init__(self, session: Session, drive: Drive | ServerDrive) -> None:
        self._session, self._drive = session, drive
        self._news: SimpleQueue[Any] = SimpleQueue()
        self._progress = StatusLine(wanted=not session.quiet)
        self._ended = threading.Event()

    def follow(self) -> int | None:
        """Until every point has ended. The number of the signal that stopped it."""
        signalled: int | None = None
        with Signals(self._news.put) as signals:
            signals.waiting = False
            in_thread(self._run, self._news.put)
            try:
                while not self._ended.is_set():
                    with suppress(Empty):
                        found = self._news.get(timeout=_TICK_SECONDS)
                        if isinstance(found, BaseException):
                            raise found
                        if signalled is not None:
                            note(t("running points continue to their end"))
                            break
                        signalled = found
                        self._stop()
            finally:
                self._session.run(self._drive.close())
                self._progress.end()
        return signalled

    def _run(self) -> None:
        self._session.run(self._drive.run(to_the_end=True, seeing=self._show))
        self._ended.set()

    def _stop(self) -> None:
        """In a thread of its own: the next signal must find somebody who listens."""
        self._progress.pause()
        note(t("stopping {name}; once more leaves it as it is", name=short(self._drive.sweep.key)))
        self._session.run(self._drive.give_up())

        def stop() -> None:
            with suppress(NotFoundError):  # nothing of it is there yet
                self._session.run(self._session.service.stop_sweep(self._drive.sweep.key))

        in_thread(stop, self._news.put)

    def _show(self) -> None:
        drive = self._drive
        words = Counter({NOT_SUBMITTED: drive.total - len(drive.states)}) + Counter(drive.states.values())
        ended = sum(words[state] for state in ("Succeeded", "Failed", "Stopped"))
        self._progress.show(
            t(
                "{name}: {ended} of {total} ended ({states})",
                name=short(drive.sweep.key),
                ended=ended,
                total=drive.total,
                states=t(", ").join(f"{count} {t.of(state)}" for state, count in sorted(words.items())),
            )
        )


class ServerDrive:
    """What `Drive` is for a sweep of this process: here the server hands in the points, and tells of their jobs."""

    def __init__(self, service: Service, sweep: SweepView) -> None:
        self._service, self.sweep = service, sweep
        self.total = sweep.total
        self.states = {point.index: point.state for point in sweep.points if point.state != NOT_SUBMITTED}
        self._running: asyncio.Task[Any] | None = None

    @classmethod
    async def begin(cls, service: Service, wanted: SweepSpec | str) -> ServerDrive:
        asked = service.resume_sweep(wanted) if isinstance(wanted, str) else service.create_sweep(wanted)
        return cls(service, await asked)

    @property
    def todo(self) -> list[int]:
        return [point.index for point in self.sweep.points if point.index not in self.states]

    async def hand_in(self) -> None:
        """The server has, what may be now."""

    async def run(self, *, to_the_end: bool, seeing: Callable[[], object]) -> None:
        import asyncio

        from oarsman.portal import with_silences
        from oarsman.service.models import JobQuery

        self._running = asyncio.current_task()
        query = JobQuery(namespace=self.sweep.namespace, sweep=self.sweep.name)
        seeing()
        # A server that hands in no more points, because it cannot, changes no job with that: it is asked.
        async with aclosing(with_silences(self._service.changes(query), _ASK_AGAIN_SECONDS)) as changes:
            async for change in changes:
                if change is not None:
                    if (row := change.changed) is not None:
                        self._see(row.name, row.state)
                    elif change.removed is not None:
                        self._see(change.removed.partition("/")[2], None)
                    seeing()
                if await self._over():
                    return

    def _see(self, name: str, state: str | None) -> None:
        index = index_of(self.sweep.name, name)
        if index is not None and state is not None:
            self.states[index] = state
        elif index is not None:
            self.states.pop(index, None)

    async def _over(self) -> bool:
        if any(state not in ENDED for state in self.states.values()):
            return False
        if len(self.states) == self.total:
            return True
        try:
            return (await self._service.sweep(self.sweep.key)).state != names.RUNNING
        except NotFoundError:
            return True

    async def give_up(self) -> None:
        """The server hands in nothing more once it is told to stop."""

    async def close(self) -> None:
        if self._running is not None:
            self._running.cancel()


# -- results ------------------------------------------------------------------------------------------
def show_results(view: SweepView, output: str | None, sort: str | None = None) -> None:
    from oarsman.service.sweeps import csv_text, seconds

    best: Collection[int] = ()
    if sort:
        view, best = _sorted(view, sort)
    if output == "json":
        document = documents.plain(view)
        for point in document["points"] if sort else ():
            point["best"] = point["index"] in best
        documents.emit(document, "json")
    elif output == "csv":
        click.echo(csv_text(view), nl=False)
    else:
        metric = [t("METRIC")] if view.metric else []
        headers = [t("POINT"), *view.parameters, t("STATE"), t("TOOK"), *metric, t("CAUSE")]
        rows = [_point_row(view, point, seconds(point), best=point.index in best) for point in view.points]
        render.table(headers, rows)


def _sorted(view: SweepView, sort: str) -> tuple[SweepView, Collection[int]]:
    """Points without a value come last. The best are the first of those that succeeded: one that failed may have shown
    any number before."""
    from oarsman.service.sweeps import seconds

    measures: dict[str, Callable[[SweepPoint], float | None]] = {"metric": lambda point: point.metric, "took": seconds}
    there = [name for name, measure in measures.items() if any(measure(point) is not None for point in view.points)]
    name = sort.removeprefix("-")
    if name not in there:
        known = t("there is: {names}", names=", ".join(there)) if there else t("its points have no numbers yet")
        raise UsageError(t("no point of {sweep} has {what}", sweep=short(view.key), what=name), hint=known)
    sign = -1 if sort.startswith("-") else 1

    def place(point: SweepPoint) -> tuple[bool, float]:
        value = measures[name](point)
        return value is None, sign * (value or 0)

    points = sorted(view.points, key=place)
    first = next((place(point) for point in points if point.state == names.SUCCEEDED), (True, 0))
    best = [] if first[0] else [p.index for p in points if p.state == names.SUCCEEDED and place(p) == first]
    return view.model_copy(update={"points": points}), best


def _point_row(view: SweepView, point: SweepPoint, took: float | None, *, best: bool) -> list[str]:
    values = [text_of(point.parameters.get(name, "")) for name in view.parameters]
    metric = ["" if point.metric is None else f"{point.metric:g}"] if view.metric else []
    duration = "" if took is None else units.duration(took)
    index = t("{point} (best)", point=point.index) if best else str(point.index)
    return [index, *values, point.state, duration, *metric, of(point.cause)]


# -- parameters as people write them -------------------------------------------------------------------
def grid_of(options: tuple[str, ...]) -> dict[str, list[Parameter]]:
    found: dict[str, list[Parameter]] = {}
    for option in options:
        name, equals, values = option.partition("=")
        if not (name and equals and values):
            raise UsageError(t("--grid {option}: write NAME=VALUE,VALUE,...", option=option), hint="--grid lr=0.1,0.01")
        if name in found:
            raise UsageError(t("--grid {option}: this parameter was given before", option=option))
        found[name] = values_of(values)
    return found


def points_of(path: str) -> list[dict[str, Parameter]]:
    """CSV by the name of the file; anything else is read as YAML, which JSON is too."""
    raw, source = inputs.read(path)
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(t("{source} is not text in UTF-8", source=source)) from error
    found = _from_csv(text) if source.endswith(".csv") else _from_yaml(raw, source)
    if not found or any(not point for point in found):
        raise UsageError(
            t("{source} has no points", source=source),
            hint=t("a CSV file with names in its first row, or a list of mappings"),
        )
    return found


def _from_csv(text: str) -> list[dict[str, Parameter]]:
    rows = csv.DictReader(io.StringIO(text), skipinitialspace=True)
    return [{str(name): typed((value or "").strip()) for name, value in row.items() if name} for row in rows]


def _documents(raw: bytes, source: str) -> list[Any]:
    from oarsman.manifest.source import read

    documents, problems = read(raw, source)
    if problems:
        raise ManifestError(problems)
    return [document.value for document in documents]


def _from_yaml(raw: bytes, source: str) -> list[dict[str, Parameter]]:
    values = _documents(raw, source)
    found = values[0] if len(values) == 1 and isinstance(values[0], list) else []
    scalars = str | int | float | bool
    if not all(isinstance(one, dict) and all(isinstance(value, scalars) for value in one.values()) for one in found):
        return []
    return [{str(name): value for name, value in one.items()} for one in found]


def unused_parameters(wanted: SweepSpec) -> Sequence[str]:
    from oarsman.service.sweeps import sweep_of_spec

    return unused(sweep_of_spec(wanted))


def manifest_of(asked: JobInput, session: Session) -> str:
    """The text of the manifest. It is not checked here: a placeholder may stand where a number belongs."""
    from oarsman.manifest import to_yaml

    settings = replace(asked.settings, name=None)
    if asked.shape is not None:
        return to_yaml([asked.document(session, "sweep run")])
    if len(asked.words) > 1:
        raise UsageError(
            t("`{purpose}` takes one manifest, or -n and a command", purpose="sweep run"),
            hint="oarsman sweep run --name rates --grid lr=1,2 -n 4 -- COMMAND",
        )
    raw, source = inputs.read(asked.words[0])
    if settings == builder.JobSettings():
        return raw.decode("utf-8-sig", "replace")
    return to_yaml([builder.apply(document, settings) for document in _documents(raw, source)])
