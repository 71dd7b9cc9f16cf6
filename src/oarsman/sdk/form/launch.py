"""Fields that are tied to the launch line: workers, slots, and the bounds of an elastic job."""

from __future__ import annotations

from typing import Any, Literal

from oarsman.errors import UsageError
from oarsman.job.launch import LaunchLine, parse
from oarsman.sdk.form.places import container, look, put, settle
from oarsman.sdk.form.simple import Field, said, shown
from oarsman.sdk.parts import Document, keep_filling_slots, total_slots

_WORKER = ("spec", "mpiReplicaSpecs", "Worker")
_OPTIONS = {"min": ("--min-np", "--min-num-proc"), "max": ("--max-np", "--max-num-proc")}
_COUNTS = ("-np", "--np", "-n", "--num-proc", *_OPTIONS["min"], *_OPTIONS["max"])


def count(name: str, *path: str) -> Field:
    """A number of workers or slots: a launch line that filled every slot goes on to do so."""

    def read(document: Document) -> Any:
        return shown("number", look(document, *path))

    def write(document: Document, value: int | None) -> None:
        before = total_slots(document)
        if value is not None and path[:3] == _WORKER and look(document, *_WORKER) is None:
            _add_workers(document)
        settle(document, path, value)
        keep_filling_slots(document, before)

    return Field(name, "number", read, write, minimum=1)


def _add_workers(document: Document) -> None:
    """Workers of a job that had none run what the launcher runs."""
    image = look(document, *container(document, "Launcher"), "image")
    put(document, (*_WORKER, "replicas"), None)
    put(document, (*container(document, "Worker"), "name"), "worker")
    if image is not None:
        put(document, (*container(document, "Worker"), "image"), image)


# -- elastic ------------------------------------------------------------------------------------------------
def bound(name: str, which: Literal["min", "max"]) -> Field:
    """The fewest or most ranks of an elastic job, which are words of its launch line."""

    def read(document: Document) -> int | None:
        line = _line(document)
        if line is None:
            return None
        return line.min_processes if which == "min" else line.max_processes

    def write(document: Document, value: int | None) -> None:
        line = _line(document)
        if line is None or not line.elastic:
            raise UsageError(
                "only a job that horovodrun starts with host discovery is elastic", field=name,
                hint="horovodrun -np 2 --min-np 1 --max-np 4 --host-discovery-script /etc/mpi/discover_hosts.sh ...",
            )  # fmt: skip
        if line.in_shell:
            raise UsageError("the launch line is inside a shell command", field=name, hint="change it in the text")
        _set_option(document, line, which, value)

    return Field(name, "number", read, write, minimum=1)


def _line(document: Document) -> LaunchLine | None:
    return parse([said(word) for _, word in _words(document)])


def _words(document: Document) -> list[tuple[str, Any]]:
    """The words of the launch line, each with the field it stands in."""
    found = ((part, look(document, *container(document, "Launcher"), part)) for part in ("command", "args"))
    return [(part, word) for part, words in found if isinstance(words, list) for word in words]


def _set_option(document: Document, line: LaunchLine, which: str, value: int | None) -> None:
    """Change the word behind the option, take both away, or add them behind the last number of ranks."""
    words = _words(document)
    texts = [said(word) for _, word in words]
    start = texts.index(line.path)
    place, width, form = start + 1, 0, _OPTIONS[which][0]
    for index in range(start + 1, start + 1 + len(line.options)):
        option, equals, _ = texts[index].partition("=")
        if option in _OPTIONS[which]:
            place, width, form = index, 1 if equals else 2, option + equals
            break
        if option in _COUNTS:
            place = index + (1 if equals else 2)
    new = [] if value is None else [f"{form}{value}"] if form.endswith("=") else [form, str(value)]
    part = words[min(place, len(words) - 1)][0]
    words[place : place + width] = [(part, word) for word in new]
    for part in ("command", "args"):
        settle(document, (*container(document, "Launcher"), part), [word for of, word in words if of == part])
