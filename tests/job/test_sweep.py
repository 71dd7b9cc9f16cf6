"""Which points a sweep has, and the document of each."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oarsman import names
from oarsman.errors import UsageError
from oarsman.job.sweep import Sweep, check, document_of, filled, index_of, number_in, pattern_of, sweep_of
from tests.builders import a_job

NAMES = st.from_regex(r"[a-z_][a-z0-9_]{0,8}", fullmatch=True)
VALUES = st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.booleans(), st.text(max_size=8))
TEMPLATE: dict[str, Any] = {
    "apiVersion": "kubeflow.org/v2beta1",
    "kind": "MPIJob",
    "metadata": {"name": "x", "labels": {"team": "a"}, "annotations": {"note": "lr {{lr}}"}},
    "spec": {
        "slotsPerWorker": "{{slots}}",
        "mpiReplicaSpecs": {
            "Launcher": {
                "template": {
                    "spec": {
                        "containers": [
                            {
                                "name": "l",
                                "command": ["train", "--lr={{lr}}", "{{ slots }}"],
                                "env": [{"name": "SWEEP_LR", "value": "old"}, {"name": "A", "value": "1"}],
                            }
                        ]
                    }
                }
            },
            "Worker": {"replicas": 2, "template": {"spec": {"containers": [{"name": "w"}]}}},
        },
    },
}


def a_sweep(**given: Any) -> Sweep:
    return Sweep(**{"name": "rates", "namespace": "lab", "manifest": "...", **given})


def test_the_first_parameter_of_a_grid_changes_slowest() -> None:
    points = a_sweep(grid={"lr": [0.1, 0.01], "batch": [1, 2]}).all_points()
    assert [tuple(point.values()) for point in points] == [(0.1, 1), (0.1, 2), (0.01, 1), (0.01, 2)]


@given(st.dictionaries(NAMES, st.lists(VALUES, min_size=1, max_size=3), min_size=1, max_size=3))
def test_a_grid_has_every_combination_once_and_survives_being_kept(grid: dict[str, list[Any]]) -> None:
    sweep = a_sweep(grid=grid)
    points = sweep.all_points()
    assert len(points) == math.prod(len(values) for values in grid.values())
    assert all(list(point) == list(grid) for point in points)
    again = Sweep.from_json(sweep.to_json())
    assert again.to_json() == sweep.to_json()
    assert again.same_as(sweep)
    assert again.all_points() == points


def test_a_document_has_the_values_the_marks_and_the_variables() -> None:
    sweep = a_sweep(grid={"lr": [0.5], "slots": [4]}, retries=2)
    made = document_of(sweep, TEMPLATE, 0, sweep.all_points()[0])
    metadata, spec = made["metadata"], made["spec"]
    assert (metadata["name"], metadata["namespace"]) == ("rates-0000", "lab")
    assert metadata["labels"] == {"team": "a", names.LABEL_SWEEP: "rates"}
    assert metadata["annotations"]["note"] == "lr 0.5"
    assert json.loads(metadata["annotations"][names.ANNOTATION_SWEEP_PARAMETERS]) == {"lr": 0.5, "slots": 4}
    assert Sweep.from_json(metadata["annotations"][names.ANNOTATION_SWEEP_SPEC]).same_as(sweep)
    assert spec["slotsPerWorker"] == 4
    assert spec["runPolicy"] == {"backoffLimit": 2}
    (launcher,) = spec["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"]
    (worker,) = spec["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"]
    assert launcher["command"] == ["train", "--lr=0.5", "4"]
    ours = [{"name": "SWEEP_LR", "value": "0.5"}, {"name": "SWEEP_SLOTS", "value": "4"}]
    assert launcher["env"] == [{"name": "A", "value": "1"}, *ours]
    assert worker["env"] == ours


def test_only_the_first_document_carries_the_sweep() -> None:
    sweep = a_sweep(grid={"lr": [1, 2], "slots": [1]})
    made = document_of(sweep, TEMPLATE, 1, sweep.all_points()[1])
    assert names.ANNOTATION_SWEEP_SPEC not in made["metadata"]["annotations"]
    assert made["metadata"]["annotations"][names.ANNOTATION_SWEEP_POINT] == "1"


PLAIN = VALUES.filter(lambda value: "{{" not in str(value)) | st.none()


@given(st.recursive(PLAIN, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)))
def test_what_has_no_placeholder_stays_as_it_is(document: Any) -> None:
    assert filled(document, {"lr": 1}) == document


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("replicas", "{{n}}", 3),
        ("replicas", "{{ n }}", 3),
        ("value", "{{n}}", "3"),
        ("replicas", "0{{n}}", "03"),
        ("replicas", "{{word}}", "many"),
        ("value", "{{on}}", "true"),
        ("value", "{{ .Values.n }}", "{{ .Values.n }}"),
    ],
)
def test_a_number_of_the_manifest_becomes_a_number(key: str, text: str, value: object) -> None:
    assert filled({key: text}, {"n": 3, "word": "many", "on": True}) == {key: value}


def test_a_placeholder_that_nobody_fills_is_named_with_those_there_are() -> None:
    with pytest.raises(UsageError, match=r"\{\{rate\}\}") as caught:
        filled(["{{rate}}"], {"lr": 1, "batch": 2})
    assert caught.value.hint == "parameters are lr, batch"


@pytest.mark.parametrize(
    ("given", "about"),
    [
        ({}, "a grid or a list"),
        ({"grid": {"a": [1]}, "points": [{"a": 1}]}, "a grid or a list"),
        ({"grid": {"a": []}}, "no values"),
        ({"grid": {"a": range(101), "b": range(100)}}, "too many"),
        ({"grid": {"a-b": [1]}}, "name of a parameter"),
        ({"grid": {"a": [1], "A": [1]}}, "capital letters"),
        ({"points": [{"a": 1}, {"b": 1}]}, "point 1"),
        ({"points": [{}]}, "no parameters"),
        ({"grid": {"a": [math.inf]}}, "finite"),
        ({"grid": {"a": [1, 0.5], "b": [math.nan]}}, "finite"),
        ({"points": [{"a": 1.0}, {"a": -math.inf}]}, "finite"),
        ({"points": [{"a": 1}, {"a": 1, "b": 2}]}, "point 1"),
        ({"points": [{"a": 1}] * 10_001}, "too many"),
        ({"grid": {"a": [1], "b": []}}, "no values"),
        ({"grid": {"a": [1]}, "metric": "(?P<x>a)(?P=x)"}, "not supported"),
        ({"grid": {"a": [1]}, "metric": "("}, "not a pattern"),
        ({"grid": {"a": [1]}, "metric": "loss"}, "no group"),
        ({"grid": {"a": [1]}, "metric": r"(a)\1"}, "not supported"),
        ({"grid": {"a": [1]}, "manifest": "x" * 300_000}, "too large"),
    ],
)
def test_what_makes_no_sense_is_refused(given: dict[str, Any], about: str) -> None:
    grid = {name: list(values) for name, values in given.get("grid", {}).items()}
    with pytest.raises(UsageError, match=about):
        check(a_sweep(**{**given, "grid": grid}))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"name":"a"}',
        "[" * 100_000,
        '{"name":"a","namespace":"b","manifest":"","grid":{"x":3}}',
        '{"name":"a","namespace":"b","manifest":"","points":[[1]]}',
        '{"name":"a","namespace":"b","manifest":"","grid":{"x":[[]]}}',
        '{"name":"a","namespace":"b","manifest":"","grid":[]}',
        '{"name":"a","namespace":"b","manifest":"","points":{"x":1}}',
        '{"name":"a","namespace":"b","manifest":"","points":[{"x":null}]}',
        '{"name":1,"namespace":"b","manifest":"","points":[{"x":1}]}',
        '{"name":"a","namespace":"b","manifest":"","points":[{"x":1}],"metric":["a"]}',
        '{"name":"a","namespace":"b","manifest":"","points":[{"x":1}],"retries":"2"}',
        '{"name":"a","namespace":"b","manifest":"","points":[{"x":1}],"at_once":1.5}',
    ],
)
def test_an_annotation_that_is_no_sweep_is_none(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - whichever words
        Sweep.from_json(text)


@pytest.mark.parametrize(
    ("line", "number"),
    [("loss: 0.5", 0.5), ("loss: 3 then loss: 1e-3", 0.001), ("loss: nan", None), ("loss: 4 loss: x", 4.0), ("", None)],
)
def test_the_last_number_of_a_line_counts(line: str, number: float | None) -> None:
    assert number_in(pattern_of(r"loss: (\S+)"), line) == number


@pytest.mark.parametrize(
    "metric",
    [
        r"loss: ([0-9.]+)",
        r"(?:val_)?loss=(\d+(?:\.\d+)?)",
        r"acc[*+]? ([^|]+)",
        r"\(a+\)+ (\d+)",
        r"(?:a|b) (\d+)",
        r"(?:ab)+ (?:c)*(x)",
        r"[)(]+(a)+",
        r"(\d+) []+*]+",
    ],
)
def test_patterns_that_people_write_are_taken(metric: str) -> None:
    assert pattern_of(metric).groups == 1


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    "metric", ["(.*)*", r"(\s*\s*\s*\s*\s*\s*\s*)x", "(?:a?){400}(?:a){400}(x)", "(a*)*(b)", "(.*.*.*.*.*)=x"]
)
def test_no_pattern_takes_for_ever(metric: str) -> None:
    pattern = pattern_of(metric)
    for line in ("a" * 2000, " " * 2000):
        assert number_in(pattern, line) is None


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("rates-0007", 7),
        ("rates-0007-2", None),
        ("rates-007", None),
        ("rates", None),
        ("other-0007", None),
        ("rates-000x", None),
        ("rates-00²²", None),
    ],
)
def test_a_copy_under_another_name_is_no_point(name: str, index: int | None) -> None:
    assert index_of("rates", name) == index


def test_a_job_is_a_point_of_the_sweep_that_its_label_names() -> None:
    for name, labels, sweep in (
        ("rates-0007", {names.LABEL_SWEEP: "rates"}, "rates"),
        ("rates-0007", {}, ""),
        ("rates-0007", {names.LABEL_SWEEP: "other"}, ""),
        ("copy", {names.LABEL_SWEEP: "rates"}, ""),
    ):
        assert sweep_of(replace(a_job(), name=name, labels=labels)) == sweep


def test_a_sweep_is_named_with_its_namespace_and_knows_its_jobs() -> None:
    sweep = a_sweep(points=[{"b": 1, "a": 2}])
    assert (sweep.key, sweep.job_key(12), sweep.parameters) == ("lab/rates", "lab/rates-0012", ("b", "a"))
    assert a_sweep().parameters == ()
    assert (a_sweep().retries, a_sweep(grid={"a": [1]}).parameters) == (0, ("a",))


def test_sweeps_with_other_points_are_not_the_same_and_how_many_run_at_once_does_not_matter() -> None:
    sweep = a_sweep(points=[{"a": 1}], at_once=1)
    assert sweep.same_as(a_sweep(points=[{"a": 1}], at_once=2))
    assert not sweep.same_as(a_sweep(points=[{"a": 2}], at_once=1))


def test_the_largest_sweeps_are_taken() -> None:
    check(a_sweep(points=[{"a": 1}] * 10_000))
    check(a_sweep(grid={"a": [1]}, manifest="x" * (200_000 - len(a_sweep(grid={"a": [1]}, manifest="").to_json()))))


@pytest.mark.parametrize(
    "template",
    [
        {},
        {"metadata": "x", "spec": "x"},
        {"spec": {"mpiReplicaSpecs": []}},
        {"spec": {"mpiReplicaSpecs": {"Worker": 1, "Launcher": {"template": {"spec": {"containers": ["x"]}}}}}},
        {"spec": {"mpiReplicaSpecs": {"Worker": {"template": {"spec": {"containers": [{"env": "x"}]}}}}}},
    ],
)
def test_what_has_not_the_shape_of_a_job_is_left_for_the_rules(template: dict[str, Any]) -> None:
    made = document_of(a_sweep(grid={"a": [1]}), template, 1, {"a": 1})
    assert made["metadata"]["name"] == "rates-0001"
    assert made.get("spec") == template.get("spec")


@pytest.mark.parametrize(("number", "made"), [("-12", -12), ("1" * 18, int("1" * 18)), ("1" * 19, "1" * 19)])
def test_a_number_that_is_too_long_stays_text(number: str, made: object) -> None:
    assert filled({"replicas": "{{n}}"}, {"n": number}) == {"replicas": made}


def test_without_retries_the_manifest_says_how_often_a_job_is_tried() -> None:
    template = {"spec": {"runPolicy": {"backoffLimit": 5, "suspend": True}}}
    for retries, limit in ((0, 5), (2, 2)):
        made = document_of(a_sweep(grid={"a": [1]}, retries=retries), template, 0, {"a": 1})
        assert made["spec"]["runPolicy"] == {"backoffLimit": limit, "suspend": True}
