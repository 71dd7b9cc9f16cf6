"""Whatever the text, loading it gives jobs or a ManifestError whose every problem can be shown."""

from __future__ import annotations

import contextlib
import copy
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from manifest_samples import SEEDS, V1, V2BETA1

from oarsman.errors import ManifestError, Problem
from oarsman.manifest import documents, job_from_document, load, render

SEED_TEXTS = [file.read_text(encoding="utf-8") for file in sorted(SEEDS.glob("*.yaml"))] + [V1, V2BETA1]
QUICK = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def problems_of(text: str | bytes) -> tuple[Problem, ...]:
    try:
        load(text, "f.yaml")
    except ManifestError as error:
        return error.problems
    return ()


def check(text: str | bytes) -> None:
    problems = problems_of(text)
    assert all(map(render, problems))
    assert all(problem.line >= 1 and problem.column >= 1 and problem.message for problem in problems)


@QUICK
@given(st.one_of(st.text(), st.binary(), st.text("{}[]:,-&*!|>'\"#%@`~<? \n\tab01", max_size=80)))
def test_arbitrary_text_never_surprises(text: str | bytes) -> None:
    check(text)


PIECES = st.sampled_from(
    [
        "",
        " ",
        "\n",
        "\t",
        ":",
        "- ",
        "{",
        "}",
        "[",
        "]",
        "&a ",
        "*a",
        "<<: ",
        "!!int ",
        "null",
        "true",
        "1",
        "-1",
        "1e400",
        "017",
        '"',
        "'",
        "#",
        "---\n",
        "...",
        "\0",
        "\x1b",
        "\u2028",
        "名",
        "? ",
        "|",
        ">",
        "%",
        "$(A)",
        "~",
        "0",
        "9" * 30,
        "\ufeff",
    ]
)


@QUICK
@given(st.sampled_from(SEED_TEXTS), st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 12), PIECES), max_size=4))
def test_a_seed_with_random_edits_never_surprises(text: str, edits: list[tuple[int, int, str]]) -> None:
    for at, length, piece in edits:
        at %= len(text) + 1
        text = text[:at] + piece + text[at + length :]
    check(text)


ODD: Any = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.just(1.5),
    st.sampled_from(["", "x", "1Gi", "$(A)"]),
    st.just([]),
    st.just({}),
    st.just([None]),
    st.just([[]]),
    st.just({"a": {}}),
    st.just([{"name": "x"}]),
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in children:
        found += places(part, (*path, key))
    return found


RICH = documents(
    V1.replace("spec:\n", "spec:\n  mainContainer: mpi\n  runPolicy: {schedulingPolicy: {minResources: {cpu: 1}}}\n", 1)
    + """\
            env: [{name: A, value: b}, {name: P, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
            envFrom: [{secretRef: {name: s}}]
            ports: [{containerPort: 22}]
            resources: {limits: {cpu: 2}, requests: {cpu: 1}}
            volumeMounts: [{name: a, mountPath: /a}]
          initContainers: [{name: init, image: i}]
          volumes: [{name: a, emptyDir: {sizeLimit: 1Gi}}, {name: h, hostPath: {path: /h}}]
"""
)[0]
PLACES = places(RICH)


@QUICK
@given(st.lists(st.tuples(st.sampled_from(PLACES), ODD), min_size=1, max_size=3))
def test_a_document_with_odd_values_never_surprises(changes: list[tuple[tuple[Any, ...], Any]]) -> None:
    document = copy.deepcopy(RICH)
    for path, value in changes:
        holder: Any = document
        try:
            for step in path[:-1]:
                holder = holder[step]
            holder[path[-1]] = copy.deepcopy(value)
        except (KeyError, IndexError, TypeError):
            continue
    with contextlib.suppress(ManifestError):
        job_from_document(document)


@QUICK
@given(st.lists(st.tuples(st.sampled_from(PLACES), st.integers(0, 20)), min_size=1, max_size=4))
def test_a_document_with_misspelled_fields_never_surprises(slips: list[tuple[tuple[Any, ...], int]]) -> None:
    document = copy.deepcopy(RICH)
    for path, at in slips:
        holder: Any = document
        with contextlib.suppress(KeyError, IndexError, TypeError):
            for step in path[:-1]:
                holder = holder[step]
            name = path[-1]
            holder[name[: at % len(name)] + name[at % len(name) + 1 :]] = holder.pop(name)
    with contextlib.suppress(ManifestError):
        job_from_document(document)


def test_a_document_that_is_endlessly_deep_is_refused() -> None:
    document: dict[str, Any] = copy.deepcopy(RICH)
    document["spec"]["loop"] = document
    with pytest.raises(ManifestError) as caught:
        job_from_document(document)
    assert [problem.message for problem in caught.value.problems] == ["nested more than 100 levels deep"]
