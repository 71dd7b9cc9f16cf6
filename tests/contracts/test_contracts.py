"""What users see changes only on purpose."""

from __future__ import annotations

import json
from difflib import unified_diff
from typing import Any

import pytest
import yaml
from deploy.helm import CHART, MANIFESTS

from .pinned import HERE, PINNED, RENDERINGS, values_of

REWRITE = "If this change is meant, rewrite the file with `python -m tests.contracts` from the top of the repository."


@pytest.mark.parametrize("name", PINNED)
def test_what_users_see_is_what_the_file_says(name: str) -> None:
    pinned, now = (HERE / name).read_text(encoding="utf-8"), PINNED[name]()
    if now != pinned:
        difference = unified_diff(pinned.splitlines(), now.splitlines(), f"tests/contracts/{name}", "now", lineterm="")
        pytest.fail("\n".join([f"users now see something else. {REWRITE}", *difference]), pytrace=False)


# -- chart.yaml leaves nothing out -------------------------------------------------------------------


def at(values: Any, path: tuple[str, ...]) -> Any:
    for part in path:
        values = values.get(part) if isinstance(values, dict) else None
    return values


def test_every_value_that_is_off_or_empty_by_default_is_set() -> None:
    defaults = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    given = [values_of(name) for name in RENDERINGS]
    optional = [path for path, _ in MANIFESTS["leaves"](schema) if not at(defaults, path)]
    assert optional
    unset = [".".join(path) for path in optional if not any(at(values, path) for values in given)]
    assert unset == [], "set them in tests/contracts/values.*.yaml"


def test_every_template_makes_something() -> None:
    pinned = (HERE / "chart.yaml").read_text(encoding="utf-8")
    names = [path.name for path in (CHART / "templates").glob("*.yaml")]
    assert names
    assert [name for name in names if f"# Source: oarsman/templates/{name}\n" not in pinned] == []
