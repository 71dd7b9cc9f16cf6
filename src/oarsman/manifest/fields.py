"""Every field that can be set on its own: where it is in a document, how it is read, written and taken out.

The options of the command line, the client's MPIJob and the console's form all write documents by this table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from oarsman import names
from oarsman.errors import UsageError
from oarsman.job.launch import LaunchLine, parse
from oarsman.manifest.field_kinds import Field, amount, annotation, at, of_both, of_launcher
from oarsman.manifest.field_pairs import marks, variables, volumes
from oarsman.manifest.places import WORKER, Document, container, drop, look, put, said, settle
from oarsman.text.sentence import Text

RANKS = ("-n", "-np", "--np", "--n")
IMPLEMENTATIONS = ("OpenMPI", "MPICH", "Intel")
_SPELLING = {name.lower(): name for name in IMPLEMENTATIONS}
_VERSIONS = (f"{names.GROUP}/v2beta1", f"{names.GROUP}/v1")
_RUN = ("spec", "runPolicy")
_SCHEDULING = (*_RUN, "schedulingPolicy")
_LAUNCHER = ("spec", "mpiReplicaSpecs", "Launcher")
_OLD_CLEAN_POLICY, _CLEAN_POLICY = ("spec", "cleanPodPolicy"), (*_RUN, "cleanPodPolicy")
_IMPLEMENTATION, _MPI = ("spec", "mpiImplementation"), ("metadata", "annotations", names.ANNOTATION_MPI)


def blank() -> Document:
    """A job that says nothing yet."""
    return {"apiVersion": _VERSIONS[0], "kind": names.KIND}


def write(document: Document, values: Mapping[str, Any]) -> None:
    """Several fields, in this order; None leaves a field as it is."""
    for name, value in values.items():
        if value is not None:
            FIELDS[name].write(document, value)


# -- what the versions say in different places ------------------------------------------------------------
def _is_v1(document: Document) -> bool:
    return said(look(document, "apiVersion")) == f"{names.GROUP}/v1"


def _write_api_version(document: Document, value: str) -> None:
    """What the two versions say in different places moves along."""
    mpi, policy = _read_mpi(document), look(document, *_OLD_CLEAN_POLICY)
    moves = mpi in IMPLEMENTATIONS
    if moves:
        _change_mpi(document, "")
    settle(document, ("apiVersion",), value)
    if moves:
        _change_mpi(document, mpi)
    if policy is not None and not _is_v1(document):
        _write_clean_policy(document, "")
        _write_clean_policy(document, said(policy))


def _write_clean_policy(document: Document, value: str | None) -> None:
    """The older place of v1 wins where it is used."""
    if not value:
        drop(document, _OLD_CLEAN_POLICY)
        drop(document, _CLEAN_POLICY)
    else:
        put(document, _OLD_CLEAN_POLICY if look(document, *_OLD_CLEAN_POLICY) is not None else _CLEAN_POLICY, value)


def _read_mpi(document: Document) -> str:
    """v1 has no field for it, so there it is an annotation, which may also be a path."""
    if not _is_v1(document):
        return said(look(document, *_IMPLEMENTATION))
    text = said(look(document, *_MPI))
    return _SPELLING.get(text, text)


def _write_mpi(document: Document, value: str | None) -> None:
    """The annotation says which MPI of a machine is used. Where that names an implementation, v2beta1 says so too."""
    if value is None:
        drop(document, _MPI)
        drop(document, _IMPLEMENTATION)
        return
    put(document, _MPI, value)
    if value in _SPELLING and not _is_v1(document):
        put(document, _IMPLEMENTATION, _SPELLING[value])


def _change_mpi(document: Document, value: str) -> None:
    if _is_v1(document):
        settle(document, _MPI, value.lower() if value in IMPLEMENTATIONS else value)
    else:
        settle(document, _IMPLEMENTATION, value)


# -- how many ---------------------------------------------------------------------------------------------
def _count(name: str, *path: str) -> Field:
    """A number of workers or slots: a launch line that filled every slot goes on to do so."""

    def write(document: Document, value: int | None) -> None:
        before = total_slots(document)
        if value is not None and path[:3] == WORKER and look(document, *WORKER) is None:
            _add_workers(document)
        settle(document, path, value)
        _keep_filling_slots(document, before)

    return replace(at(name, "number", *path, minimum=1), write=write)


def _add_workers(document: Document) -> None:
    """Workers of a job that had none run what the launcher runs."""
    image = look(document, *container(document, "Launcher"), "image")
    put(document, (*WORKER, "replicas"), None)
    put(document, (*container(document, "Worker"), "name"), "worker")
    if image is not None:
        put(document, (*container(document, "Worker"), "image"), image)


def total_slots(document: Document) -> int:
    workers = look(document, *WORKER, "replicas")
    launcher_too = workers is not None and look(document, "spec", "runLauncherAsWorker") is True
    return (_at_least_one(workers) + launcher_too) * _at_least_one(look(document, "spec", "slotsPerWorker"))


def _at_least_one(value: Any) -> int:
    return value if isinstance(value, int) and value > 0 else 1


def _keep_filling_slots(document: Document, before: int) -> None:
    """A launch line that did not fill every slot is left alone."""
    for part in ("command", "args"):
        words = look(document, *container(document, "Launcher"), part)
        for index, word in enumerate(words if isinstance(words, list) else []):
            if word in RANKS and words[index + 1 : index + 2] == [str(before)]:
                words[index + 1] = str(total_slots(document))
                return


# -- elastic ----------------------------------------------------------------------------------------------
_OPTIONS = {"min": ("--min-np", "--min-num-proc"), "max": ("--max-np", "--max-num-proc")}
_COUNTS = ("-np", "--np", "-n", "--num-proc", *_OPTIONS["min"], *_OPTIONS["max"])


def _bound(name: str, which: Literal["min", "max"]) -> Field:
    """The fewest or most ranks of an elastic job, which are words of its launch line."""

    def read(document: Document) -> int | None:
        line = _line(document)
        if line is None:
            return None
        return line.min_processes if which == "min" else line.max_processes

    def write(document: Document, value: int | None) -> None:
        line = _line(document)
        if line is None or not line.elastic:
            hint = "horovodrun -np 2 --min-np 1 --max-np 4 --host-discovery-script /etc/mpi/discover_hosts.sh ..."
            wrong = Text("only a job that horovodrun starts with host discovery is elastic")
            raise UsageError(wrong, field=name, hint=hint)
        if line.in_shell:
            wrong = Text("the launch line is inside a shell command")
            raise UsageError(wrong, field=name, hint=Text("change it in the text"))
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


# -- the table --------------------------------------------------------------------------------------------
_OF_THE_FORM = (
    # basics
    replace(at("api_version", "choice", "apiVersion", choices=_VERSIONS), write=_write_api_version),
    at("name", "text", "metadata", "name"),
    annotation("description", "text", names.ANNOTATION_DESCRIPTION),
    at("namespace", "text", "metadata", "namespace"),
    annotation("priority", "number", names.ANNOTATION_PRIORITY),
    at("queue", "text", *_SCHEDULING, "queue"),
    # run
    of_both("image", "text", "image"),
    annotation("environment", "text", names.ANNOTATION_ENVIRONMENT),
    annotation("install", "text", names.ANNOTATION_INSTALL),
    of_launcher("command", "words", "command"),
    of_launcher("args", "words", "args"),
    of_both("working_dir", "text", "workingDir"),
    Field("mpi", "choice", _read_mpi, _write_mpi, IMPLEMENTATIONS, change=_change_mpi),
    # resources
    amount("launcher_cpu", "Launcher", "cpu"),
    amount("launcher_memory", "Launcher", "memory"),
    amount("launcher_gpu", "Launcher", "nvidia.com/gpu"),
    _count("workers", "spec", "mpiReplicaSpecs", "Worker", "replicas"),
    _count("slots", "spec", "slotsPerWorker"),
    amount("worker_cpu", "Worker", "cpu"),
    amount("worker_memory", "Worker", "memory"),
    amount("worker_gpu", "Worker", "nvidia.com/gpu"),
    amount("worker_vgpu", "Worker", "nvidia.com/vgpu"),
    amount("worker_gpu_memory", "Worker", "nvidia.com/gpumem"),
    # advanced
    Field(
        "clean_policy",
        "choice",
        lambda document: said(look(document, *_OLD_CLEAN_POLICY)) or said(look(document, *_CLEAN_POLICY)),
        _write_clean_policy,
        ("None", "Running", "All"),
    ),
    at("retries", "number", *_RUN, "backoffLimit", minimum=0),
    at("deadline", "number", *_RUN, "activeDeadlineSeconds", minimum=0),
    at("ttl", "number", *_RUN, "ttlSecondsAfterFinished", minimum=0),
    _bound("elastic_min", "min"),
    _bound("elastic_max", "max"),
    at("suspend", "bool", *_RUN, "suspend"),
    at("min_available", "number", *_SCHEDULING, "minAvailable", minimum=0),
    at("priority_class", "text", *_SCHEDULING, "priorityClass"),
    at("schedule_timeout", "number", *_SCHEDULING, "scheduleTimeoutSeconds", minimum=0),
    at("restart_policy", "choice", *_LAUNCHER, "restartPolicy", choices=("Never", "OnFailure", "ExitCode")),
    marks("labels", "metadata", "labels"),
    marks("annotations", "metadata", "annotations", hide_ours=True),
    variables("env"),
    volumes("volumes"),
    annotation("network", "choice", names.ANNOTATION_NETWORK, choices=("private", "host")),
    annotation("oversubscribe", "bool", names.ANNOTATION_OVERSUBSCRIBE),
)
_OTHERS = (
    annotation("code", "choice", names.ANNOTATION_CODE, choices=("copy", "none")),
    annotation("placement", "choice", names.ANNOTATION_PLACEMENT, choices=("slot", "node")),
    at("launchers", "number", *_LAUNCHER, "replicas", minimum=1),
)
FORM: Mapping[str, Field] = {field.name: field for field in _OF_THE_FORM}  # in the order of its steps
FIELDS: Mapping[str, Field] = {**FORM, **{field.name: field for field in _OTHERS}}
