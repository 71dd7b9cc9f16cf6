"""From text, or from a document that was text once, to jobs: every problem of every document at once."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from oarsman.errors import ManifestError, Problem
from oarsman.job.job import Container, Job, Role
from oarsman.manifest.build import build_job, time_of
from oarsman.manifest.check import MODELS, check_shape, without_nulls
from oarsman.manifest.document import AnyMPIJob
from oarsman.manifest.older import modern
from oarsman.manifest.places import as_written, look, unshared
from oarsman.manifest.problems import quoted
from oarsman.manifest.rules import check_job
from oarsman.manifest.source import MAX_DEPTH, MAX_PROBLEMS, Document, EnoughError, read
from oarsman.text.sentence import Text

# Jobs of documents that had no problems, by what these say. A face reads the manifest, the service is handed the
# document, the backend stores it: all in one process, and each asks for the job.
_sound: OrderedDict[str, Job] = OrderedDict()
_MOST_SOUND = 64
_LONGEST_SOUND = 100_000  # letters of a document that is remembered
_sound_lock = threading.Lock()


def load(text: str | bytes, source: str = "<stdin>") -> list[Job]:
    """The jobs of a manifest, in order. Raises ManifestError with everything that is wrong with it."""
    return [job for _, job in _load(text, source)]


def documents(text: str | bytes, source: str = "<stdin>") -> list[dict[str, Any]]:
    """The checked documents of a manifest as they were given, one per job."""
    return [document.value for document, _ in _load(text, source)]


def job_from_document(document: Mapping[str, Any]) -> Job:
    """A job from a document already parsed. Its problems have fields but no positions."""
    job, problems = _without_places(document)
    if problems or job is None:
        raise ManifestError(_readable(problems))
    return job


def job_checked_before(document: Mapping[str, Any]) -> Job:
    """The job of a document that was checked when it was taken: rules are not asked again, for every look at it.

    What cannot be read like that is checked in full, so that its problems are told in the usual words.
    """
    try:
        return build_job(MODELS[document["apiVersion"]].model_validate(without_nulls(document)), document)
    except (LookupError, TypeError, AttributeError, ValueError):
        return job_from_document(document)


def salvaged(document: Mapping[str, Any]) -> Job | None:
    """The job a document with problems most likely means; to look after one that runs already, never to start one."""
    job, _ = _without_places(document)
    return job


def _without_places(document: Mapping[str, Any]) -> tuple[Job | None, list[Problem]]:
    placeless = Document(dict(document), "<document>")
    if not _shallow(placeless.value, MAX_DEPTH):
        return None, [placeless.problem((), Text("nested more than {most} levels deep", most=MAX_DEPTH))]
    _, job, problems = _check(placeless)
    return job, problems


def sketch(document: Mapping[str, Any]) -> Job:
    """Of a document that is no valid job, which only others than us submit, as much as can be shown."""
    metadata, spec = document["metadata"], document.get("spec") or {}
    roles = spec.get("mpiReplicaSpecs") or {}
    launcher, worker = _sketched(roles.get("Launcher")), _sketched(roles.get("Worker"))
    return Job(
        name=metadata["name"],
        namespace=metadata["namespace"],
        uid=metadata.get("uid") or "",
        generation=metadata.get("generation") or 1,
        launcher=replace(launcher, replicas=1),
        worker=worker if "Worker" in roles else None,
        labels=metadata.get("labels") or {},
        annotations=metadata.get("annotations") or {},
        created_at=time_of(metadata.get("creationTimestamp")),
        document=document,
    )


def _sketched(role: Any) -> Role:
    found = role if isinstance(role, dict) else {}
    replicas = found.get("replicas")
    containers = ((found.get("template") or {}).get("spec") or {}).get("containers") or [{}]
    first = containers[0] if isinstance(containers, list) and isinstance(containers[0], dict) else {}
    command = [word for part in ("command", "args") for word in first.get(part) or () if isinstance(word, str)]
    shown = Container(name=str(first.get("name") or ""), image=str(first.get("image") or ""), command=tuple(command))
    return Role(replicas=replicas if isinstance(replicas, int) else 1, containers=(shown,))


def checked_models(text: str | bytes, source: str) -> list[tuple[AnyMPIJob, dict[str, Any]]]:
    """Models beside documents, for those who rewrite manifests."""
    found = [(check_shape(document)[1], document.value) for document, _ in _load(text, source)]
    return [(model, document) for model, document in found if model is not None]


def _load(text: str | bytes, source: str) -> list[tuple[Document, Job]]:
    found, problems = read(text, source)
    noted = {(problem.line, problem.column) for problem in problems}
    parts = [part for document in found for part in _items(document)]
    if not parts and not problems:
        nothing = Text("there is no MPIJob here: the text is empty")
        problems.append(Problem(source=source, line=1, column=1, field="", message=nothing))
    result: list[tuple[Document, Job]] = []
    for document in parts:
        if len(problems) >= MAX_PROBLEMS:
            break
        checked, job, wrong = _check(document)
        problems += [problem for problem in wrong if (problem.line, problem.column) not in noted]
        if job is not None:
            result.append((checked, job))
    problems += _repeated_names(result)
    if problems:
        unique = {(p.line, p.column, p.field, p.message): p for p in problems}
        raise ManifestError(_readable(sorted(unique.values(), key=lambda p: (p.line, p.column))))
    return result


def _readable(problems: Sequence[Problem]) -> Sequence[Problem]:
    if len(problems) < MAX_PROBLEMS:
        return problems
    last = problems[MAX_PROBLEMS - 1]
    more = Text("there may be more: these are the first {most}", most=MAX_PROBLEMS)
    return [*problems[:MAX_PROBLEMS], replace(last, field="", message=more, hint=None, snippet="", stray=False)]


def _check(document: Document) -> tuple[Document, Job | None, list[Problem]]:
    """The document, its job and its problems. With problems, the first two are mended: good for more rules only."""
    if (current := modern(document.value)) is None:
        return _check_current(replace(document, value=as_written(document.value)))
    older = Text("an old version; it is read as {version}", version=current["apiVersion"])
    hint = Text("`oarsman convert FILE` writes it anew")
    told = replace(document.problem(("apiVersion",), older, hint=hint), warning=True)
    checked, job, problems = _check_current(replace(document, value=current))
    if problems or job is None:
        return checked, job, [told, *problems]
    return checked, replace(job, warnings=(told, *job.warnings)), []


def _check_current(document: Document) -> tuple[Document, Job | None, list[Problem]]:
    said = repr(document.value)
    with _sound_lock:
        known = _sound.get(said)
    if known is not None:
        return document, replace(known, document=document.value), []
    mended, job, problems = _check_anew(replace(document, value=unshared(document.value)))  # a job has its own parts
    if job is None or problems or job.warnings:
        return mended, job, problems
    if len(said) > _LONGEST_SOUND:
        return document, replace(job, document=document.value), []
    with _sound_lock:
        _sound[said] = job
        while len(_sound) > _MOST_SOUND:
            _sound.popitem(last=False)
    return document, replace(job, document=document.value), []


def _check_anew(document: Document) -> tuple[Document, Job | None, list[Problem]]:
    try:
        mended, model, problems = check_shape(document)
        if model is None:
            return mended, None, problems
        job = build_job(model, mended.value)
        problems += [problem for problem in check_job(mended, job) if mended.sound(mended.path(problem))]
    except EnoughError:
        return document, None, list(document.doubts.noted.values())
    if not all(problem.warning for problem in problems):
        return mended, job, problems
    if mended is document:
        return document, replace(job, warnings=tuple(problems)), []
    return mended, job, [replace(problem, warning=False) for problem in problems]  # without what they stand for, no job


def _shallow(value: Any, levels: int) -> bool:
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list):
        return True
    return levels > 0 and all(_shallow(part, levels - 1) for part in value)


def _items(document: Document) -> list[Document]:
    """A document of kind List stands for its items."""
    items = document.root.children.get("items") if document.root is not None else None
    if items is None or look(document.value, "kind") != "List" or not isinstance(items.value, list):
        return [document]
    return [Document(node.value, document.source, document.lines, node) for node in items.children.values()]


def _repeated_names(parts: Sequence[tuple[Document, Job]]) -> Iterator[Problem]:
    seen: set[str] = set()
    for document, job in parts:
        if not document.sound(("metadata", "name"), ("metadata", "namespace")):
            continue
        if job.key in seen:
            wrong = Text("another job of this text is already called {name}", name=quoted(job.key))
            yield document.problem(("metadata", "name"), wrong)
        seen.add(job.key)
