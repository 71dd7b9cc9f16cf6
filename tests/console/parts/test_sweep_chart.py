"""The metric of a sweep's points against a parameter, as it is drawn."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from oarsman.console.pages.sweeps import scatter
from oarsman.console.parts.words import Words
from oarsman.service.models import SweepPoint, SweepView


def chart(*points: tuple[str, object, float | None]) -> dict[str, Any]:
    """Of state, parameter and metric."""
    view = SweepView(
        key="default/s",
        name="s",
        namespace="default",
        created=datetime.now(UTC),
        state="Failed",
        total=len(points),
        states={},
        parameters=["lr"],
        points=[
            SweepPoint(index=index, parameters={"lr": value}, key=f"default/s-{index}", state=state, metric=metric)
            for index, (state, value, metric) in enumerate(points)
        ],
    )
    return scatter(Words("en"), view, "lr")


def drawn(options: dict[str, Any]) -> dict[str, list[Any]]:
    return {one["name"]: one["data"] for one in options["series"]}


def test_what_a_failed_point_found_last_is_drawn_apart() -> None:
    options = chart(("Succeeded", 0.1, 3.0), ("Failed", 0.2, 9.0), ("Running", 0.3, 2.0), ("Failed", 0.4, None))
    assert drawn(options) == {"Results": [[0.1, 3.0], [0.3, 2.0]], "Failed": [[0.2, 9.0]]}
    assert len({(one["symbol"], one["color"]) for one in options["series"]}) == 2
    assert options["legend"]["show"] is True


def test_without_failures_there_is_nothing_to_tell_apart() -> None:
    options = chart(("Succeeded", 0.1, 3.0), ("Succeeded", 0.2, None))
    assert drawn(options) == {"Results": [[0.1, 3.0]]}
    assert options["legend"]["show"] is False


@pytest.mark.parametrize(
    ("values", "axis"),
    [([0.1, 0.2], "value"), ([1e-5, 1.0], "log"), ([0.0, 100.0], "value"), (["adam", "sgd"], "category")],
)
def test_a_parameter_has_the_axis_that_its_values_need(values: list[object], axis: str) -> None:
    assert chart(*(("Succeeded", value, 1.0) for value in values))["xAxis"]["type"] == axis
