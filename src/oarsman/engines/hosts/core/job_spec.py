"""What a job's job agent is told about the job: a file in the job's folder, written anew by each preparation."""

from __future__ import annotations

import json
from typing import Any

FILE = "spec.json"


def read_spec(folder: str) -> dict[str, Any]:
    with open(f"{folder}/{FILE}") as file:
        spec: dict[str, Any] = json.load(file)
    return spec
