"""Fields that are tied to the launch line: workers, slots, and the bounds of an elastic job."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from oarsman.errors import UsageError
from oarsman.job.launch import LaunchLine, parse
from oarsman.sdk.form.places import container, look, put, settle
from oarsman.sdk.form.simple import Field, shown
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
        _set_option(document, which, value)

    return Field(name, "number", read, write, minimum=1)


def _line(document: Document) -> LaunchLine | None:
    return parse([str(word) for _, words in _parts(document) for word in words])


def _parts(document: Document) -> Iterator[tuple[str, list[Any]]]:
    for part in ("command", "args"):
        words = look(document, *container(document, "Launcher"), part)
        if isinstance(words, list):
            yield part, words


def _set_option(document: Document, which: str, value: int | None) -> None:
    """Change the word behind the option, take both away, or add them behind the last number of ranks."""
    behind: tuple[list[Any], int] | None = None
    for _, words in _parts(document):
        for index, word in enumerate(words):
            option, equals, _ = str(word).partition("=")
            if option in _OPTIONS[which]:
                width = 1 if equals else 2
                new = [] if value is None else [f"{option}={value}"] if equals else [option, str(value)]
                words[index : index + width] = new
                return
            if option in _COUNTS or option.rsplit("/", 1)[-1] == "horovodrun":
                behind = words, index + (1 if equals or not option.startswith("-") else 2)
    if value is not None and behind is not None:
        words, index = behind
        words[index:index] = [_OPTIONS[which][0], str(value)]
