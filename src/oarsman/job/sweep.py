"""One manifest, many sets of parameters: which points there are, and the document of each.

A sweep is its jobs. What is needed to go on with one is on its first job, so nothing else is kept anywhere.
"""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

from oarsman import names
from oarsman.errors import UsageError
from oarsman.job.job import Job
from oarsman.job.pattern import Pattern, compiled
from oarsman.text.sentence import Text, quoted

Parameter = str | int | float | bool
Parameters = Mapping[str, Parameter]

MOST_POINTS: Final = 10_000  # numbers have four digits
NOT_SUBMITTED: Final = "NotSubmitted"  # the state of a point that has no job
_LARGEST: Final = 200_000  # characters of a sweep as JSON; Kubernetes takes 256 KiB of annotations
_DIGITS: Final = 4
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")
_PLACE = re.compile(r"\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")
_RANGE = re.compile(r"(-?\d{1,15})\.\.(-?\d{1,15})(?:\.\.(\d{1,15}))?")
_NUMBERS = frozenset(
    {
        *("replicas", "minReplicas", "maxReplicas", "slotsPerWorker", "minAvailable", "priority", "containerPort"),
        *("backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished", "scheduleTimeoutSeconds"),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    name: str
    namespace: str
    manifest: str  # with {{name}} where a value belongs
    grid: Mapping[str, Sequence[Parameter]] = field(default_factory=dict)
    points: Sequence[Parameters] = ()
    metric: str | None = None  # a pattern; its first group is the number
    retries: int = 0
    at_once: int | None = None  # None: as many as fit

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    def job_name(self, index: int) -> str:
        return f"{self.name}-{index:0{_DIGITS}}"

    def job_key(self, index: int) -> str:
        return f"{self.namespace}/{self.job_name(index)}"

    @property
    def parameters(self) -> tuple[str, ...]:
        """Their names, in order."""
        return tuple(self.grid or (self.points[0] if self.points else ()))

    def all_points(self) -> tuple[Parameters, ...]:
        """In order; of a grid, the first parameter changes slowest."""
        if not self.grid:
            return tuple(self.points)
        return tuple(dict(zip(self.grid, values, strict=True)) for values in itertools.product(*self.grid.values()))

    def to_json(self) -> str:
        return json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Sweep:
        """Raises ValueError for what is none: anybody can write an annotation."""
        try:
            found = cls(**json.loads(text))
        except (TypeError, RecursionError) as error:
            raise ValueError(Text("this is no sweep: {why}", why=error)) from error
        if not _well_formed(found):
            raise ValueError(Text("this is no sweep"))
        return found

    def same_as(self, other: Sweep) -> bool:
        """Whether both have the same points; how many run at a time may differ."""
        return replace(self, at_once=None).to_json() == replace(other, at_once=None).to_json()


def _well_formed(found: Sweep) -> bool:
    texts = (found.name, found.namespace, found.manifest, found.metric or "")
    numbers = (found.retries, found.at_once or 0)
    return (
        all(isinstance(one, str) for one in texts)
        and all(isinstance(one, int) for one in numbers)
        and isinstance(found.grid, dict)
        and all(isinstance(one, list) for one in found.grid.values())
        and isinstance(found.points, list)
        and all(isinstance(one, dict) for one in found.points)
        and all(isinstance(value, Parameter) for value in _values(found))
    )


def _values(sweep: Sweep) -> Iterator[Parameter]:
    return itertools.chain(*sweep.grid.values(), *(point.values() for point in sweep.points))


def sweep_of(job: Job) -> str:
    """The sweep that a job is a point of, or nothing. A copy under another name is none, whatever its label says."""
    name = job.labels.get(names.LABEL_SWEEP, "")
    return name if name and index_of(name, job.name) is not None else ""


def index_of(sweep: str, job_name: str) -> int | None:
    stem, _, number = job_name.rpartition("-")
    return int(number) if stem == sweep and len(number) == _DIGITS and number.isdecimal() else None


# -- values as people write them ----------------------------------------------------------------------
def typed(text: str) -> Parameter:
    """A number where the text is exactly how that number is written: 0.10 and 007 stay as they are."""
    for kind in (int, float):
        try:
            value = kind(text)
        except ValueError:
            continue
        if str(value) == text:
            return value
    return {"true": True, "false": False}.get(text, text)


def values_of(text: str) -> list[Parameter]:
    """`0.1,0.01` is two values; `1..4` is 1, 2, 3 and 4, and `10..50..20` is 10, 30 and 50."""
    return [value for word in text.split(",") for value in _range(word) or [typed(word)]]


def _range(word: str) -> list[Parameter]:
    """Empty: it is none."""
    found = _RANGE.fullmatch(word)
    if found is None:
        return []
    first, last, step = int(found[1]), int(found[2]), max(1, int(found[3] or 1))
    sign = 1 if first <= last else -1
    return list(range(first, last + sign, sign * step)[: MOST_POINTS + 1])


# -- what can be wrong with it ------------------------------------------------------------------------
def check(sweep: Sweep) -> None:
    """Raises UsageError that says which part of it makes no sense."""
    if bool(sweep.grid) == bool(sweep.points):
        wrong = Text("a sweep has a grid or a list of points, one of the two")
        raise UsageError(wrong, field="grid", hint="--grid lr=0.1,0.01")
    if not all(sweep.grid.values()):
        raise UsageError(Text("a parameter of the grid has no values"), field="grid")
    count = math.prod(len(values) for values in sweep.grid.values()) if sweep.grid else len(sweep.points)
    if count > MOST_POINTS:
        wrong = Text("{count} points are too many; {most} is the most", count=count, most=MOST_POINTS)
        raise UsageError(wrong, field="grid")
    _check_names(sweep)
    if sweep.metric is not None:
        pattern_of(sweep.metric)
    if len(sweep.to_json()) > _LARGEST:
        wrong = Text("the sweep is too large to be kept with its first job")
        raise UsageError(wrong, field="points", hint=Text("a shorter manifest, fewer points, or a grid"))


def _check_names(sweep: Sweep) -> None:
    known = sweep.parameters
    where = "grid" if sweep.grid else "points"
    if not known:
        raise UsageError(Text("a point has no parameters"), field=where)
    for name in known:
        if not _NAME.fullmatch(name):
            wrong = Text("{name} cannot be the name of a parameter", name=quoted(name))
            raise UsageError(wrong, field=where, hint=Text("letters, digits and _, no digit first"))
    if len({_variable(name) for name in known}) < len(known):
        raise UsageError(Text("two parameters differ only in capital letters"), field=where)
    for index, point in enumerate(sweep.points):
        if set(point) != set(known):
            wrong = Text("point {index} has other parameters than point 0", index=index)
            hint = Text("each has {names}", names=", ".join(known))
            raise UsageError(wrong, field=f"points[{index}]", hint=hint)
    if any(isinstance(value, float) and not math.isfinite(value) for value in _values(sweep)):
        raise UsageError(Text("a parameter is not a finite number"), field=where)


# -- documents ----------------------------------------------------------------------------------------
def document_of(sweep: Sweep, template: Mapping[str, Any], index: int, parameters: Parameters) -> dict[str, Any]:
    """The MPIJob of one point. The first one carries the sweep itself."""
    made: dict[str, Any] = filled(template, parameters)
    given = made.get("metadata")
    metadata = dict(given) if isinstance(given, Mapping) else {}
    annotations = {
        **(metadata.get("annotations") or {}),
        names.ANNOTATION_SWEEP_POINT: str(index),
        names.ANNOTATION_SWEEP_PARAMETERS: json.dumps(dict(parameters), separators=(",", ":")),
    }
    if index == 0:
        annotations[names.ANNOTATION_SWEEP_SPEC] = sweep.to_json()
    made["metadata"] = {
        **metadata,
        "name": sweep.job_name(index),
        "namespace": sweep.namespace,
        "labels": {**(metadata.get("labels") or {}), names.LABEL_SWEEP: sweep.name},
        "annotations": annotations,
    }
    spec = made.get("spec")
    if isinstance(spec, dict):
        if sweep.retries:
            spec["runPolicy"] = {**(spec.get("runPolicy") or {}), "backoffLimit": sweep.retries}
        _add_variables(spec, {_variable(name): text_of(value) for name, value in parameters.items()})
    return made


def filled(value: Any, parameters: Parameters, key: str = "") -> Any:
    """A copy with every {{name}} inside its texts replaced. Raises UsageError for a name that nobody gives a value."""
    match value:
        case str():
            return _filled_text(value, parameters, key)
        case Mapping():
            return {name: filled(part, parameters, str(name)) for name, part in value.items()}
        case list() | tuple():
            return [filled(part, parameters) for part in value]
        case _:
            return value


def _filled_text(text: str, parameters: Parameters, key: str) -> str | int:
    def value_of(found: re.Match[str]) -> str:
        if found[1] not in parameters:
            wrong = Text("the manifest asks for {name}, which no parameter is called", name=f"{{{{{found[1]}}}}}")
            hint = Text("parameters are {names}", names=", ".join(parameters))
            raise UsageError(wrong, field=key or None, hint=hint)
        return text_of(parameters[found[1]])

    made = _PLACE.sub(value_of, text)
    if key in _NUMBERS and _PLACE.fullmatch(text) and re.fullmatch(r"-?\d{1,18}", made):
        return int(made)
    return made


def unused(sweep: Sweep) -> tuple[str, ...]:
    """Of parameters that the manifest does not mention: the program may read their variables, and that is all."""
    named = set(_PLACE.findall(sweep.manifest))
    left = [name for name in sweep.parameters if name not in named and _variable(name) not in sweep.manifest]
    template = Text(
        "nothing in the manifest uses the parameter {name}: write {place} where its value belongs, or have the "
        "program read the variable {variable}"
    )
    return tuple(Text(template, name=name, place=f"{{{{{name}}}}}", variable=_variable(name)) for name in left)


def text_of(value: Parameter) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _variable(parameter: str) -> str:
    return f"SWEEP_{parameter.upper()}"


def _add_variables(spec: Mapping[str, Any], variables: Mapping[str, str]) -> None:
    """To every container of launcher and workers; what has not the shape of one is left for the rules to complain."""
    added = [{"name": name, "value": value} for name, value in variables.items()]
    for container in _containers(spec):
        env = container.get("env") or []
        if isinstance(env, list):
            kept = [one for one in env if not (isinstance(one, dict) and one.get("name") in variables)]
            container["env"] = [*kept, *({**one} for one in added)]


def _containers(spec: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    roles = spec.get("mpiReplicaSpecs")
    for role in roles.values() if isinstance(roles, dict) else ():
        found: Any = role
        for step in ("template", "spec", "containers"):
            found = found.get(step) if isinstance(found, dict) else None
        yield from (one for one in found if isinstance(one, dict)) if isinstance(found, list) else ()


# -- metrics ------------------------------------------------------------------------------------------
def pattern_of(metric: str) -> Pattern:
    """The compiled pattern. Raises UsageError for what is none, or has no group that is the number."""
    found = compiled(metric, field="metric")
    if not found.groups:
        wrong = Text("the pattern of the metric has no group that is the number")
        raise UsageError(wrong, field="metric", hint="loss: ([0-9.]+)")
    return found


def number_in(pattern: Pattern, line: str) -> float | None:
    """What the last match of a line says, if it is a number."""
    found = None
    for said in pattern.first_groups(line):
        try:
            value = float(said or "")
        except ValueError:
            continue
        found = value if math.isfinite(value) else found
    return found
