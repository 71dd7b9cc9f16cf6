"""One document against its model: every problem of shape at once, in our words and at its place.

A document with mistakes is mended, so that the rules behind the mistakes can be asked as well. What is broken is taken
out, what is required and not there gets a stand-in, and a misspelled field that holds others is read as the field that
was meant. Nobody ever sees the mended document: every path that was touched is remembered, and no rule speaks about
such a path or draws on it.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from oarsman.errors import Problem
from oarsman.job.job import ApiVersion
from oarsman.manifest.document import AnyMPIJob, MPIJobV1, MPIJobV2beta1
from oarsman.manifest.places import ROLES, look, unshared
from oarsman.manifest.problems import Path, nearest, quote_hint, quoted
from oarsman.manifest.rules import check_counts
from oarsman.manifest.source import Document, Doubts
from oarsman.manifest.template import check_template
from oarsman.names import GROUP, KIND
from oarsman.text.sentence import Text, all_of, any_of

MODELS: Mapping[str, type[AnyMPIJob]] = {ApiVersion.V2BETA1.value: MPIJobV2beta1, ApiVersion.V1.value: MPIJobV1}
_OLD = ("v1alpha1", "v1alpha2")
_ROLES: Path = ("spec", "mpiReplicaSpecs")
_ROUNDS = 12  # a document without anything needs about eight


def check_shape(document: Document) -> tuple[Document, AnyMPIJob | None, list[Problem]]:
    """The document and its model, and what is wrong with them.

    With problems that are more than warnings, both are mended. What is found wrong only after a round of mending is
    told as well, unless it is about a place that was mended.
    """
    if not isinstance(document.value, dict):
        wrong = Text("a manifest must be a mapping, not {given}", given=quoted(document.value))
        return document, None, [document.problem((), wrong)]
    version, problems = _version(document)
    if version is None:
        return document, None, problems
    mended = document
    if problems:
        mended = replace(document, value=unshared(document.value) | {"apiVersion": version, "kind": KIND})
    for _ in range(_ROUNDS):
        model, found = _check_once(mended, MODELS[version])
        if not found:
            return mended, model, problems
        if mended is document:
            if _sound_without(document, MODELS[version], found):
                return document, model, found
            mended = replace(document, value=unshared(document.value))
        problems += [problem for problem in found if mended.sound(mended.path(problem))]
        _mend(mended, found)
    return mended, None, problems


def _sound_without(document: Document, model: type[AnyMPIJob], found: list[Problem]) -> bool:
    """Whether nothing is wrong but fields that are not known, and these are not misspelled ones that the job needs."""
    if not all(problem.warning for problem in found):
        return False
    bare = replace(document, value=unshared(document.value), doubts=Doubts())
    for *parents, name in map(document.path, found):
        del look(bare.value, *parents)[name]
    if _check_once(bare, model)[1]:
        return False
    for problem in found:  # what is perhaps only misspelled does not count as absent
        if problem.meant:
            document.doubts.add((*document.path(problem)[:-1], problem.meant))
    return True


def _check_once(document: Document, model: type[AnyMPIJob]) -> tuple[AnyMPIJob | None, list[Problem]]:
    checked: AnyMPIJob | None = None
    try:
        checked = model.model_validate(without_nulls(document.value))
        problems = list(check_counts(document, checked))
    except ValidationError as error:
        problems = [_translate(document, model, dict(e)) for e in error.errors(include_url=False)]
    # Templates are checked even where the rest is wrong; the model only knows that they are mappings.
    for role in ROLES:
        path = (*_ROLES, role, "template")
        template = look(document.value, *path)
        problems += check_template(document, path, template) if isinstance(template, dict) else []
    # A misspelled required field is one mistake: its hint is shown, that the right one is missing is not.
    meant = {(*document.path(p)[:-1], p.meant) for p in problems if p.stray}
    needed = {path for p in problems if p.message == "is required" and (path := document.path(p)) in meant}
    told = (p for p in problems if document.path(p) not in needed)
    return checked, [replace(p, warning=False) if _means_one_of(document, p, needed) else p for p in told]


def _means_one_of(document: Document, problem: Problem, paths: set[Path]) -> bool:
    return problem.stray and (*document.path(problem)[:-1], problem.meant) in paths


def without_nulls(value: Any, path: Path = ()) -> Any:
    """Null means absent in Kubernetes. Templates keep theirs: below them it can mean something."""
    if isinstance(value, dict) and path[-1:] != ("template",):
        return {k: without_nulls(v, (*path, k)) for k, v in value.items() if v is not None}
    return value


def _version(document: Document) -> tuple[str | None, list[Problem]]:
    """The version to read the document in, even if only guessed, and what is wrong with how it says so."""
    problems = []
    version, kind = document.value.get("apiVersion"), document.value.get("kind")
    accepted = all_of(list(MODELS))
    if kind is None:
        problems.append(document.missing(("kind",), Text("is required; write kind: {kind}", kind=KIND)))
    elif kind != KIND:
        wrong = Text("{given} is not accepted; it must be {kind}", given=quoted(kind), kind=KIND)
        problems.append(document.problem(("kind",), wrong, hint=nearest(str(kind), [KIND])))
    if isinstance(version, str) and version in MODELS:
        return (version if _is_meant(document, problems) else None), problems
    guess = _fitting(document)[0]
    if version is None:
        wrong = Text("is required; accepted are {accepted}", accepted=accepted)
        problems.append(document.missing(("apiVersion",), wrong))
    elif version in [f"{GROUP}/{old}" for old in _OLD]:
        guess = ApiVersion.V1.value
        wrong = Text("{given} is no longer accepted; accepted are {accepted}", given=quoted(version), accepted=accepted)
        hint = Text(
            "convert the manifest: change apiVersion to {version} and move backoffLimit and "
            "activeDeadlineSeconds under runPolicy",
            version=guess,
        )
        problems.append(document.problem(("apiVersion",), wrong, hint=hint))
    else:
        wrong = Text("{given} is not accepted; accepted are {accepted}", given=quoted(version), accepted=accepted)
        problems.append(document.problem(("apiVersion",), wrong, hint=nearest(str(version), _fitting(document))))
        guess = problems[-1].meant or guess
    return (guess if _is_meant(document, problems) else None), problems


def _is_meant(document: Document, problems: list[Problem]) -> bool:
    """Whether this is an MPIJob after all: it says so, has the spec of one, or nearly says so throughout."""
    spec = document.value.get("spec")
    has_roles = isinstance(spec, dict) and _ROLES[-1] in spec
    return document.value.get("kind") == KIND or has_roles or all(problem.hint for problem in problems)


def _fitting(document: Document) -> list[str]:
    """The versions that know most of the fields of the spec."""
    spec = document.value.get("spec")
    names = set(spec) if isinstance(spec, dict) else set()
    strange = {version: len(names.difference(_fields_at(model, ("spec",)))) for version, model in MODELS.items()}
    return [version for version, count in strange.items() if count == min(strange.values())]


_MESSAGES = {
    "int_type": Text("must be a whole number, not {given}"),
    "int_from_float": Text("must be a whole number, not {given}"),
    "string_type": Text("must be a string, not {given}"),
    "bool_type": Text("must be true or false, not {given}"),
    "dict_type": Text("must be a mapping, not {given}"),
    "model_type": Text("must be a mapping, not {given}"),
    "model_attributes_type": Text("must be a mapping, not {given}"),
    "list_type": Text("must be a list, not {given}"),
}


def _translate(document: Document, model: type[BaseModel], error: Mapping[str, Any]) -> Problem:
    kind, path, given = error["type"], tuple(error["loc"]), error["input"]
    context = error.get("ctx", {})
    if kind == "extra_forbidden":
        return _unknown_field(document, model, path)
    if kind == "missing":
        return document.missing(path, Text("is required"))
    if kind == "literal_error":
        allowed = [word for word in _flat(_annotation(_model_at(model, path[:-1]), path[-1])) if isinstance(word, str)]
        wrong = Text("{given} is not one of {allowed}", given=quoted(given), allowed=any_of(allowed))
        return document.problem(path, wrong, hint=nearest(given, allowed) if isinstance(given, str) else None)
    if kind == "greater_than_equal":
        wrong = Text("must be at least {least}, not {given}", least=context["ge"], given=quoted(given))
        return document.problem(path, wrong)
    if kind == "less_than_equal":
        wrong = Text("must be at most {most}, not {given}", most=context["le"], given=quoted(given))
        return document.problem(path, wrong)
    if kind == "quantity":
        return document.problem(path, context["text"], hint=context["hint"])
    if kind == "string_too_short":
        return document.problem(path, Text("must not be empty"))
    if kind == "invalid_key":
        wrong = Text("a field name must be text, not {given}", given=quoted(path[-1] if path else None))
        return document.problem(path[:-1], wrong)
    sentence = _MESSAGES.get(kind)
    if sentence is None:
        return document.problem(path, Text("is not valid: {why}", why=error["msg"]))
    hint = quote_hint(given) if kind == "string_type" else None
    if kind == "int_type" and isinstance(given, str) and given.strip().lstrip("-").isdecimal():
        hint = Text("leave the quotes out: {text}", text=given.strip())
    elif kind == "bool_type" and isinstance(given, str) and given.lower() in _TRUTHS:
        hint = Text("write {text}", text=_TRUTHS[given.lower()])
    return document.problem(path, Text(sentence, given=quoted(given)), hint=hint)


_TRUTHS = {"true": "true", "yes": "true", "on": "true", "false": "false", "no": "false", "off": "false"}


def _unknown_field(document: Document, model: type[BaseModel], path: Path) -> Problem:
    name = str(path[-1])
    known = _fields_at(model, path[:-1])
    if path[:-1] == _ROLES:
        wrong = Text("unknown replica type {name}; there are Launcher and Worker", name=quoted(name))
        return document.stray(path, wrong, hint=nearest(name, known))
    hint = _elsewhere(model, path) or nearest(name, known)
    return document.stray(path, Text("unknown field {name}", name=quoted(name)), hint=hint)


_PATHS: tuple[Path, ...] = (
    (),
    ("spec",),
    ("spec", "runPolicy"),
    ("spec", "runPolicy", "schedulingPolicy"),
    _ROLES,
)


def _elsewhere(model: type[BaseModel], path: Path) -> str | None:
    """Where the field lives if it is merely in the wrong place, or belongs to the other version."""
    name = path[-1]
    for place in _PATHS:
        if place != path[:-1] and name in _fields_at(model, place):
            return Text("it belongs to {place}", place=".".join(map(str, place)) or Text("the top level"))
    if path[:-1] != (*_ROLES, "Launcher") and name in _fields_at(model, (*_ROLES, "Launcher")):
        return Text("it belongs to a role of mpiReplicaSpecs")
    other, version = (MPIJobV1, "v1") if model is MPIJobV2beta1 else (MPIJobV2beta1, "v2beta1")
    known = name in _fields_at(other, path[:-1])
    return Text("only {version} has this field", version=f"{GROUP}/{version}") if known else None


def _fields_at(model: type[BaseModel], path: Path) -> list[str]:
    """The field names a mapping at this path may have."""
    inner = _model_at(model, path)
    return [field.alias or name for name, field in inner.model_fields.items()] if inner is not None else []


def _model_at(model: type[BaseModel] | None, path: Path) -> type[BaseModel] | None:
    for step in path:
        parts = _flat(_annotation(model, step))
        model = next((part for part in parts if isinstance(part, type) and issubclass(part, BaseModel)), None)
    return model


def _annotation(model: type[BaseModel] | None, step: str | int) -> Any:
    fields = model.model_fields.items() if model is not None else ()
    return next((field.annotation for name, field in fields if (field.alias or name) == step), None)


def _flat(annotation: Any) -> list[Any]:
    """A type, or the parts of a union or Literal, all the way down."""
    parts = get_args(annotation)
    return [leaf for part in parts for leaf in _flat(part)] if parts else [annotation]


# -- mending ------------------------------------------------------------------------------------------------
_STAND_INS: Mapping[str | int, Any] = {
    **{name: {} for name in ("metadata", "spec", "mpiReplicaSpecs", "Launcher", "template")},
    "replicas": 1,
    "containers": [{"name": "x"}],
    "name": "x",
    "mountPath": "/",
    "path": "/",
    "fieldPath": "metadata.name",
    "containerPort": 1,
}


def _mend(document: Document, problems: Iterable[Problem]) -> None:
    """Change the document's value, which must be its own, so that these problems are gone."""
    for problem in problems:
        path = document.path(problem)
        while path and isinstance(path[-1], int):  # an item goes with its list: other items keep their numbers
            path = path[:-1]
        document.doubts.add(path)
        if problem.stray:
            _settle_stray(document, path, problem.meant)
        else:
            _replace(document.value, path)


def _settle_stray(document: Document, path: Path, guess: str | None) -> None:
    *parents, name = path
    holder = look(document.value, *parents)
    if not isinstance(holder, dict) or name not in holder:
        return
    value = holder.pop(name)
    document.doubts.strays.add(str(name))
    if guess is None and (*parents,) == _ROLES:  # it is meant to be one of those that are not there
        document.doubts.strays.update(role for role in ROLES if role not in holder)
    if guess is None or holder.get(guess) is not None:
        return
    if value and isinstance(value, dict | list):
        holder[guess] = value
        document.doubts.spelling[(*parents, guess)] = str(name)
    else:
        document.doubts.add((*parents, guess))


def _replace(value: Any, path: Path) -> None:
    """Take out what is there, or put in what is missing."""
    holder = look(value, *path[:-1])
    if not path or not isinstance(holder, dict):
        return
    if path[-1] in holder:
        del holder[path[-1]]
    elif path[-1] in _STAND_INS:
        holder[path[-1]] = copy.deepcopy(_STAND_INS[path[-1]])
