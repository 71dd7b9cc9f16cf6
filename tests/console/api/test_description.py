"""deploy/openapi.json is what the server says of itself now."""

from __future__ import annotations

import json
from pathlib import Path

from oarsman.console.server import bare_app

FILE = Path(__file__).resolve().parents[3] / "deploy" / "openapi.json"


def test_the_description_in_the_tree_is_the_one_that_is_served() -> None:
    assert json.loads(FILE.read_text("utf-8")) == bare_app().openapi(), "run `make manifests`"


def test_every_operation_says_how_it_fails() -> None:
    for path, methods in bare_app().openapi()["paths"].items():
        for method, operation in methods.items():
            problems = [r for status, r in operation["responses"].items() if int(status) >= 400]
            assert problems, f"{method} {path}"
            assert all(list(found["content"]) == ["application/problem+json"] for found in problems), f"{method} {path}"
