"""`oarsman sweep`: what people write, and what the command makes of it."""

from __future__ import annotations

import csv
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oarsman.cli.sweep_run import grid_of, points_of, show_results
from oarsman.errors import ManifestError, UsageError
from oarsman.job.sweep import text_of, typed, values_of
from oarsman.service.models import SweepPoint, SweepView

from .fakes import FakeJobs, oarsman

GRID = ("--name", "s", "--grid", "lr=0.1,2")
COMMAND = ("-n", "1", "--", "train", "{{lr}}")
NOW = datetime(2026, 1, 1, tzinfo=UTC)


@given(st.text(alphabet="0123456789.e+-truefalse_ x", max_size=8))
def test_a_value_is_handed_on_as_it_was_written(text: str) -> None:
    assert text_of(typed(text)) == text


@pytest.mark.parametrize(
    ("text", "value"),
    [("4", 4), ("0.1", 0.1), ("true", True), ("007", "007"), ("1e-3", "1e-3"), ("0.10", "0.10"), ("a", "a"), ("", "")],
)
def test_what_is_written_as_a_number_is_one(text: str, value: object) -> None:
    assert (typed(text), type(typed(text))) == (value, type(value))


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("0.1,b", [0.1, "b"]),
        ("1..3", [1, 2, 3]),
        ("10..50..20,7", [10, 30, 50, 7]),
        ("2..-1", [2, 1, 0, -1]),
        ("../data,1...2,0.1..2", ["../data", "1...2", "0.1..2"]),
        ("1..999999999999", [*range(1, 10_002)]),  # more than a sweep takes: refused, and not counted to the end
    ],
)
def test_values_are_listed_or_a_range(text: str, values: list[object]) -> None:
    assert values_of(text) == values


@pytest.mark.parametrize("options", [("lr",), ("=1",), ("lr=",), ("lr=1", "lr=2")])
def test_a_grid_that_makes_no_sense_is_refused(options: tuple[str, ...]) -> None:
    with pytest.raises(UsageError):
        grid_of(options)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("p.csv", "lr, word\n0.1,a\n2,b c\n"),
        ("p.json", '[{"lr": 0.1, "word": "a"}, {"lr": 2, "word": "b c"}]'),
        ("p.yaml", "- {lr: 0.1, word: a}\n- lr: 2\n  word: b c\n"),
    ],
)
def test_points_are_read_from_files_of_three_kinds(name: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text)
    assert points_of(str(path)) == [{"lr": 0.1, "word": "a"}, {"lr": 2, "word": "b c"}]


@pytest.mark.parametrize(
    ("name", "text"),
    [("p.csv", ""), ("p.csv", "lr\n"), ("p.yaml", "{}"), ("p.yaml", "- 1"), ("p.yaml", "- {lr: [1]}"), ("p.json", "[")],
)
def test_a_file_without_points_is_refused(name: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises((UsageError, ManifestError)):
        points_of(str(path))


def test_without_waiting_points_are_handed_in_listed_and_completed(jobs: FakeJobs) -> None:
    result = oarsman(jobs, "sweep", "run", *GRID, "--no-wait", *COMMAND)
    assert (result.exit_code, result.stderr) == (0, "s: 2 of 2 points are submitted\n")
    assert [record.job.launcher.container.argv[-1] for record in list(jobs.records.values())] == ["0.1", "2"]
    heads, row = oarsman(jobs, "sweep", "list").stdout.splitlines()
    assert heads.split() == ["NAME", "STATE", "DONE", "FAILED", "PARAMETERS", "AGE", "OWNER"]
    assert row.split()[:4] == ["s", "Running", "0/2", "-"]
    shown = oarsman(jobs, "sweep", "show", "s").stdout.splitlines()
    assert [line.split() for line in shown] == [
        ["POINT", "lr", "STATE", "TOOK", "CAUSE"],
        ["0", "0.1", "Pending", "-", "-"],
        ["1", "2", "Pending", "-", "-"],
    ]


def test_a_limit_of_ones_own_leaves_the_rest_and_says_how_to_go_on(jobs: FakeJobs) -> None:
    result = oarsman(jobs, "sweep", "run", *GRID, "--at-once", "1", "--no-wait", *COMMAND)
    assert result.stderr == "s: 1 of 2 points are submitted\n`oarsman sweep resume s` continues it\n"
    assert oarsman(jobs, "sweep", "resume", "s", "--no-wait").exit_code == 0
    assert len(list(jobs.records.values())) == 1
    assert oarsman(jobs, "sweep", "stop", "none").exit_code == 4


def test_a_manifest_and_options_that_change_it(jobs: FakeJobs, manifest: str) -> None:
    assert oarsman(jobs, "sweep", "run", manifest, *GRID, "--priority", "7", "--no-wait").exit_code == 0
    assert {record.job.annotation("oarsman.dev/priority") for record in list(jobs.records.values())} == {"7"}
    assert oarsman(jobs, "sweep", "run", manifest, *GRID, "--no-wait").exit_code == 5  # not the same sweep


@pytest.mark.parametrize(
    ("words", "about"),
    [
        (("--grid", "lr=1", *COMMAND), "--name is missing"),
        (("--name", "Not A Name", "--grid", "lr=1", *COMMAND), "name"),
        (("--name", "s", *COMMAND), "a grid or a list"),
        (("--name", "s", "--grid", "other=1", *COMMAND), "{{lr}}"),
        (("--name", "s", "--grid", "lr=1"), "a manifest is missing"),
        (("a.yaml", "b.yaml", *GRID), "takes one manifest"),
    ],
)
def test_what_is_missing_is_named(jobs: FakeJobs, words: tuple[str, ...], about: str) -> None:
    result = oarsman(jobs, "sweep", "run", *words)
    assert (result.exit_code, about in result.stderr) == (2, True), result.stderr
    assert list(jobs.records.values()) == []


def test_json_is_what_rest_tells(jobs: FakeJobs) -> None:
    view = json.loads(oarsman(jobs, "sweep", "run", *GRID, "--no-wait", "-o", "json", *COMMAND).stdout)
    assert [point["parameters"] for point in view["points"]] == [{"lr": 0.1}, {"lr": 2}]


# -- which point was best ----------------------------------------------------------------------------------
def a_view(*points: tuple[str, float | None, float]) -> SweepView:
    """Of state, metric and seconds."""
    return SweepView(
        key="default/s",
        name="s",
        namespace="default",
        created=NOW,
        state="Failed",
        total=len(points),
        states={},
        parameters=["lr"],
        metric="loss: ([0-9.]+)",
        points=[
            SweepPoint(
                index=index,
                parameters={"lr": index},
                key=f"default/s-{index:04}",
                state=state,
                started=NOW,
                ended=NOW + timedelta(seconds=took),
                metric=metric,
            )
            for index, (state, metric, took) in enumerate(points)
        ],
    )


FIVE = a_view(
    ("Succeeded", 0.5, 9), ("Failed", 0.1, 1), ("Succeeded", None, 5), ("Succeeded", 0.2, 7), ("Succeeded", 0.2, 8)
)


@pytest.mark.parametrize(
    ("sort", "points"),
    [
        ("metric", ["1", "3 (best)", "4 (best)", "0", "2"]),
        ("-metric", ["0 (best)", "3", "4", "1", "2"]),
        ("took", ["1", "2 (best)", "3", "4", "0"]),
        (None, ["0", "1", "2", "3", "4"]),
    ],
)
def test_points_are_sorted_and_the_best_of_those_that_succeeded_is_marked(
    sort: str | None, points: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    show_results(FIVE, None, sort)
    assert [line.partition("  ")[0].strip() for line in capsys.readouterr().out.splitlines()[1:]] == points
    show_results(FIVE, "json", sort)
    found = json.loads(capsys.readouterr().out)["points"]
    said = [f"{point['index']} (best)" if point.get("best") else str(point["index"]) for point in found]
    assert said == points
    assert all(("best" in point) is (sort is not None) for point in found)
    show_results(FIVE, "csv", sort)
    assert [row["point"] for row in csv.DictReader(capsys.readouterr().out.splitlines())] == [p[0] for p in points]


@pytest.mark.parametrize(
    ("view", "sort", "known"),
    [
        (FIVE, "loss", "there is: metric, took"),
        (a_view(("Succeeded", None, 1)), "-metric", "there is: took"),
        (a_view().model_copy(update={"points": ()}), "metric", "its points have no numbers yet"),
    ],
)
def test_sorting_by_what_no_point_has_names_what_there_is(view: SweepView, sort: str, known: str) -> None:
    with pytest.raises(UsageError, match=f"no point of s has {sort.removeprefix('-')}") as caught:
        show_results(view, None, sort)
    assert caught.value.hint == known


def test_a_minus_before_what_to_sort_by_is_no_option(jobs: FakeJobs) -> None:
    assert oarsman(jobs, "sweep", "run", *GRID, "--no-wait", *COMMAND).exit_code == 0
    result = oarsman(jobs, "sweep", "show", "s", "--sort", "-metric")
    assert (result.exit_code, "no point of s has metric" in result.stderr) == (2, True), result.stderr
