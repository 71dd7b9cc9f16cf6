"""Bodies with a hundred thousand mistakes: each is answered soon and shortly, whoever sends it."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from .asking import Asking

BODIES: dict[str, tuple[str, str, Any]] = {
    "unknown fields of a login": ("", "/session", {f"{n:x}": 0 for n in range(75_000)}),
    "unknown fields of a manifest": ("vera", "/preview", {f"{n:x}": 0 for n in range(75_000)}),
    "variables that are no texts": ("vera", "/jobs", {"environment": {f"{n:x}": 0 for n in range(75_000)}}),
    "values that are none": ("vera", "/sweeps", {"name": "a", "manifest": "", "grid": {"a": [None] * 190_000}}),
    "lists of values that are none": (
        "vera",
        "/sweeps",
        {"name": "a", "manifest": "", "grid": {f"{n:x}": [None] for n in range(65_000)}},
    ),
    "points that are none": ("vera", "/sweeps", {"name": "a", "manifest": "", "points": [0] * 450_000}),
    "points of nothing": ("vera", "/sweeps", {"name": "a", "manifest": "", "points": [{"a": None}] * 90_000}),
}


@pytest.mark.parametrize("what", BODIES)
def test_many_mistakes_are_told_soon_and_shortly(ask: Asking, what: str) -> None:
    by, path, body = BODIES[what]
    sent = json.dumps(body, separators=(",", ":"))
    assert len(sent) < 1 << 20
    ask("GET", "/jobs")  # whatever is made once
    began = time.process_time()
    answer = ask("POST", path, by=by, content=sent, headers={"Content-Type": "application/json"})
    assert answer.status_code in (413, 422), answer.text[:1000]
    assert len(answer.content) < 50_000
    assert time.process_time() - began < 1.0
