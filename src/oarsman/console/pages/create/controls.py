"""What the form asks, step by step, and one control per kind of question.

Each control knows how a value looks to a reader, and what a reader's text means.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from nicegui import ui
from nicegui.elements.mixins.validation_element import ValidationElement
from nicegui.elements.mixins.value_element import ValueElement

from oarsman.console.parts.fields import NumberField, TextArea, TextField
from oarsman.console.parts.words import Words
from oarsman.manifest.problems import more_slots
from oarsman.service.models import FitView, ProblemView
from oarsman.text.catalogue import N_
from oarsman.text.sentence import Text

Kind = Literal["text", "long", "number", "amount", "choice", "words", "pairs", "volumes", "switch"]
KUBE, LOCAL, SSH, HOSTS = ("kube",), ("local",), ("ssh",), ("local", "ssh")
_UNSAID = ("", N_("not said"))
_VERSIONS = (("kubeflow.org/v2beta1", N_("v2beta1")), ("kubeflow.org/v1", N_("v1")))
_IMPLEMENTATIONS = (_UNSAID, ("OpenMPI", N_("Open MPI")), ("MPICH", N_("MPICH")), ("Intel", N_("Intel MPI")))
_NETWORKS = (_UNSAID, ("private", N_("private")), ("host", N_("of this machine")))


@dataclass(frozen=True, slots=True)
class Question:
    field: str
    label: str
    kind: Kind = "text"
    note: str = ""  # under the field, always there
    choices: tuple[tuple[str, str], ...] = ()  # value and what it is called; empty: as it is without being said
    only_on: tuple[str, ...] = ()  # the engines that know this; empty: all of them
    wide: bool = False
    least: int = 0


BASICS = (
    Question("name", N_("Name"), note=N_("lower-case letters, digits and '-'; starts with a letter"), wide=True),
    Question("description", N_("Description"), wide=True),
    Question("namespace", N_("Namespace")),
    Question("api_version", N_("Written as"), "choice", choices=_VERSIONS),
    Question("priority", N_("Priority"), "number", N_("jobs with a higher priority start first"), least=-1_000_000_000),
    Question("queue", N_("Queue"), note=N_("of the cluster's scheduler"), only_on=KUBE),
)
RUN = (
    Question("image", N_("Image"), note=N_("used on Kubernetes; elsewhere the programs of the hosts run"), wide=True),
    Question("environment", N_("Environment"), "choice", N_("a named set of packages")),
    Question("mpi", N_("MPI"), "choice", choices=_IMPLEMENTATIONS),
    Question("command", N_("Launch command"), "words", N_("as in a shell; mpirun starts the ranks"), wide=True),
    Question("args", N_("Arguments"), "words", N_("added after the command"), wide=True),
    Question("working_dir", N_("Working folder")),
    Question(
        "install",
        N_("Install commands"),
        "long",
        N_("run before the job starts: in every pod on Kubernetes, elsewhere only where the launcher runs"),
        wide=True,
    ),
)
WORKERS = (
    Question("workers", N_("Number of workers"), "number", least=1),
    Question("slots", N_("Slots per worker"), "number", N_("ranks that one worker takes"), least=1),
    Question("worker_cpu", N_("CPU of a worker"), "amount", N_("such as 2 or 500m")),
    Question("worker_memory", N_("Memory of a worker"), "amount", N_("such as 4Gi")),
    Question("worker_gpu", N_("GPU of a worker"), "amount"),
    Question("worker_vgpu", N_("vGPU of a worker"), "amount"),
    Question("worker_gpu_memory", N_("GPU memory of a worker"), "amount", N_("in MiB, for shared GPUs")),
)
LAUNCHER = (
    Question("launcher_cpu", N_("CPU of the launcher"), "amount"),
    Question("launcher_memory", N_("Memory of the launcher"), "amount"),
    Question("launcher_gpu", N_("GPU of the launcher"), "amount"),
)
ENDING = (
    Question(
        "clean_policy",
        N_("Workers after the end"),
        "choice",
        choices=(_UNSAID, ("None", N_("keep them")), ("Running", N_("end those that run")), ("All", N_("remove all"))),
    ),
    Question("retries", N_("Retries"), "number", N_("how often a failed job is started again")),
    Question("deadline", N_("Deadline in seconds"), "number", N_("a job that runs longer is ended"), least=1),
    Question("ttl", N_("Kept after the end, in seconds"), "number", N_("then it is deleted")),
    Question(
        "restart_policy",
        N_("Launcher that fails"),
        "choice",
        choices=(
            _UNSAID,
            ("Never", N_("is not started again")),
            ("OnFailure", N_("is started again")),
            ("ExitCode", N_("depends on its exit code")),
        ),
    ),
    Question("suspend", N_("Submit without starting"), "switch"),
)
SCHEDULING = (
    Question("elastic_min", N_("Elastic: fewest ranks"), "number", N_("for horovodrun with host discovery"), least=1),
    Question("elastic_max", N_("Elastic: most ranks"), "number", least=1),
    Question(
        "min_available", N_("Started together, at least"), "number", N_("pods, for gang scheduling"), only_on=KUBE
    ),
    Question("schedule_timeout", N_("Seconds to wait for all"), "number", N_("for gang scheduling"), only_on=KUBE),
    Question("priority_class", N_("Priority class"), only_on=KUBE),
    Question("oversubscribe", N_("More ranks than CPUs"), "switch", only_on=LOCAL),
    Question("oversubscribe", N_("More ranks than slots"), "switch", only_on=SSH),
    Question("network", N_("Network"), "choice", choices=_NETWORKS, only_on=LOCAL),
)
SURROUNDINGS = (
    Question("env", N_("Environment variables"), "pairs", N_("one NAME=value per line"), wide=True),
    Question(
        "volumes", N_("Volumes"), "volumes", N_("one /path=source per line; source: a folder or a claim"), wide=True
    ),
    Question("labels", N_("Labels"), "pairs", N_("one name=value per line")),
    Question("annotations", N_("Annotations"), "pairs", N_("one name=value per line")),
)
_LAUNCHER, _WORKER = (f"{role}.template.spec.containers" for role in ("Launcher", "Worker"))
# Where a mistake in the manifest is shown in the form: the end of its path, without the places in lists.
PLACES = {
    "metadata.name": "name",
    "metadata.namespace": "namespace",
    "slotsPerWorker": "slots",
    "Worker.replicas": "workers",
    "cleanPodPolicy": "clean_policy",
    "backoffLimit": "retries",
    "activeDeadlineSeconds": "deadline",
    "ttlSecondsAfterFinished": "ttl",
    "mpiImplementation": "mpi",
    "Launcher.restartPolicy": "restart_policy",
    "schedulingPolicy.minAvailable": "min_available",
    "suspend": "suspend",
    f"{_LAUNCHER}.image": "image",
    f"{_LAUNCHER}.command": "command",
    f"{_LAUNCHER}.args": "args",
    **{
        f"{place}.resources.{part}.{resource}": f"{role}_{resource}"
        for role, place in (("launcher", _LAUNCHER), ("worker", _WORKER))
        for part in ("limits", "requests")
        for resource in ("cpu", "memory")
    },
}
_IN_A_LIST = re.compile(r"\[[0-9]+\]")


def mistaken(problem: ProblemView) -> Iterator[str]:
    """The fields that it is about."""
    place = _IN_A_LIST.sub("", problem.field)
    yield from (to for end, to in PLACES.items() if place.endswith(end))
    if more_slots(problem.hint) is not None:
        yield "slots"


def hint(problem: ProblemView) -> str:
    """In the words of the form."""
    more = more_slots(problem.hint)
    if more is None:
        return problem.hint or ""
    template = Text(
        "set 'Slots per worker' to {slots} or 'Number of workers' to {workers}, or lower the number of ranks in "
        "'Launch command'"
    )
    return Text(template, slots=more[0], workers=more[1])


# Where what is only warned of is shown: the texts of engines that are about one field.
_WARNED = {
    "image {image} is not pulled: the programs of this machine run": "image",
    "{ranks} ranks share {cpus} CPUs": "slots",
    "no MPI was found on this machine; `oarsman doctor` says what to install": "mpi",
    "the command does not start MPI, so it runs once, on the launcher; the workers are used only if the program "
    "starts mpirun itself. To run it in every rank, write mpirun before it": "command",
}


def warned(warning: str) -> str:
    """The field that it is about; nothing where it is about none."""
    return _WARNED.get(warning.template, "") if isinstance(warning, Text) else ""


def too_large(fit: FitView, values: Mapping[str, Any]) -> Iterator[str]:
    """The fields that ask for more than there is."""
    for field, amount in (("worker_cpu", "cpus"), ("worker_memory", "memory_bytes"), ("worker_gpu", "gpus")):
        if getattr(fit.wanted, amount) > getattr(fit.total, amount):
            yield field if values.get(field) else "workers"


Changed = Callable[[str, Any], str | None]  # field and value; what is wrong with it, and then nothing was changed


class Control:
    """Two ways: what the reader types is handed to `changed`, and `show` puts in what the text says."""

    def __init__(
        self,
        question: Question,
        say: Words,
        changed: Changed,
        mistook: Callable[[], None],
        choices: dict[str, str] | None = None,
    ) -> None:
        """`mistook` is told when what is typed makes no sense by itself."""
        self.question = question
        self._changed = changed
        self._mistook = mistook
        self._note = say(question.note) if question.note else ""
        self._warning: str | None = None
        self._value: Any = None
        self.mistaken = False  # what is typed cannot be said in the text, which therefore still says something else
        self.element = self._make(say, choices)
        if isinstance(self.element, ValidationElement):
            self.element.without_auto_validation()  # which would take every complaint away at once
        self.element.on_value_change(lambda event: self._typed(event.value))
        self.element.classes(f"oarsman-field asks-for-{question.field}" + (" is-wide" if question.wide else ""))

    def show(self, value: Any) -> None:
        """Nothing is touched where the reader's own spelling means the same already, or has to be mended first."""
        if self.mistaken and value == self._value:
            return
        self._value, self.mistaken = value, False
        try:
            same = _meaning(self.question, self.element.value) == _plain(value)
        except ValueError:
            same = False
        if not same:
            # a text may say what nobody offered; then it is offered
            if isinstance(self.element, ui.select) and (value or "") not in self.element.options:
                self.element.set_options({**dict(self.element.options), str(value): str(value)})
            self.element.value = _spelled(self.question, value)
        self.complain(None)

    def said(self, say: Words) -> str:
        """The answer as a reader knows it; nothing where there is none."""
        if self._value in (None, "", False):
            return ""
        if self.question.kind == "switch":
            return say("yes")
        named = dict(self.question.choices).get(str(self._value))
        return say(named) if named else str(_spelled(self.question, self._value))

    def complain(self, message: str | None) -> None:
        """What the server says of it; what the reader has to mend first stays in view."""
        if not self.mistaken:
            self._complain(message)

    def warn(self, message: str | None) -> None:
        """In the place of the note; it keeps nobody from going on."""
        if message == self._warning:
            return
        self._warning = message
        self.element.classes(**{"add" if message else "remove": "is-warned"})
        self.element.props["hint"] = message or self._note
        self.element.props["hide-bottom-space"] = not (message or self._note)

    def _complain(self, message: str | None) -> None:
        if isinstance(self.element, ValidationElement):
            self.element.error = message

    def _typed(self, shown: Any) -> None:
        try:
            value = _meaning(self.question, shown)
        except ValueError as error:
            self._refuse(str(error))
            self._mistook()
            return
        was, self.mistaken = self.mistaken, False
        if value != _plain(self._value):
            complaint = self._changed(self.question.field, value)
            if complaint is None:
                self._value = value
            else:
                self._refuse(complaint)
        elif was:
            self._complain(None)
            self._mistook()

    def try_again(self) -> None:
        """What could not be said before may be said now."""
        if self.mistaken:
            self._typed(self.element.value)

    def _refuse(self, complaint: str) -> None:
        self.mistaken = True
        self._complain(complaint)

    def _make(self, say: Words, choices: dict[str, str] | None) -> ValueElement[Any]:
        question = self.question
        label, note = say(question.label), self._note
        if question.kind == "switch":
            return ui.switch(label)
        if question.kind == "choice":
            known = choices or {value: say(words) for value, words in question.choices}
            made: ValueElement[Any] = ui.select(known, label=label).props("outlined dense options-dense")
        elif question.kind == "number":
            made = NumberField(label, min=question.least, precision=0).props("outlined dense clearable debounce=300")
        elif question.kind in ("words", "long", "pairs", "volumes"):
            made = TextArea(label).props("outlined dense autogrow debounce=400 spellcheck=false")
            made.classes("oarsman-code")
        else:
            made = TextField(label).props("outlined dense debounce=300 autocomplete=off spellcheck=false")
        made.props["hint"] = note
        made.props["hide-bottom-space"] = not note
        return made


def _plain(value: Any) -> Any:
    """Absent is absent, however it is spelled."""
    return None if value in (None, "", [], {}, (), False) else value


def _meaning(question: Question, shown: Any) -> Any:
    """Raises ValueError with what is wrong."""
    if question.kind == "number":
        return None if shown in (None, "") else int(shown)
    if question.kind == "words":
        # a backslash at the end of a line goes on, as everybody writes it; so does a plain line break
        return _plain(shlex.split((shown or "").replace("\\\n", " ")))
    if question.kind == "pairs":
        return _plain(dict(_pair(line) for line in _lines(shown)))
    if question.kind == "volumes":
        return _plain([_volume(line) for line in _lines(shown)])
    if isinstance(shown, str) and question.kind != "long":
        shown = shown.strip()
    return _plain(shown)


def _spelled(question: Question, value: Any) -> Any:
    if question.kind == "words":
        return shlex.join(value or ())
    if question.kind == "pairs":
        return "\n".join(f"{name}={text}" for name, text in (value or {}).items())
    if question.kind == "volumes":
        return "\n".join(f"{v['path']}={v['source']}{':ro' if v.get('read_only') else ''}" for v in value or ())
    if question.kind == "switch":
        return bool(value)
    if question.kind == "number":
        return value
    return "" if value is None else str(value)


def _lines(shown: str | None) -> list[str]:
    return [line for line in (shown or "").splitlines() if line.strip()]


def _pair(line: str) -> tuple[str, str]:
    name, equals, value = line.partition("=")
    if not equals or not name.strip():
        raise ValueError(f"'{line}': name=value")
    return name.strip(), value


def _volume(line: str) -> dict[str, Any]:
    path, source = _pair(line)
    if not path.startswith("/"):
        raise ValueError(f"'{path}': /path=source")
    return {"path": path, "source": source.strip().removesuffix(":ro"), "read_only": source.strip().endswith(":ro")}
