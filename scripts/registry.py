"""What the package registry says, asked where pip asks; its address is pip's, and is in no file of ours."""

from __future__ import annotations

import os
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]
_SECONDS = 20.0


def index() -> str:
    """With names of packages behind it."""
    if stated := os.environ.get("PIP_INDEX_URL"):
        return stated.rstrip("/")
    command = [sys.executable, "-m", "pip", "config", "get", "global.index-url"]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    if said.returncode == 0 and said.stdout.strip():
        return said.stdout.strip().rstrip("/")
    from pip._internal.models.index import PyPI

    return str(PyPI.simple_url).rstrip("/")


def fetched(url: str) -> bytes | None:
    """None: the registry has nothing there. Raises OSError if it cannot be reached."""
    try:
        with urllib.request.urlopen(url, timeout=_SECONDS) as answer:
            return bytes(answer.read())
    except urllib.error.HTTPError as error:
        if error.code in (404, 410):
            return None
        raise


def pinned() -> dict[str, str]:
    """What constraints.txt says, by name as the registry spells it."""
    lines = (line.partition("#")[0].strip() for line in (ROOT / "constraints.txt").read_text().splitlines())
    found = [Requirement(line) for line in lines if line]
    return {canonical(each.name): next(iter(each.specifier)).version for each in found}


def canonical(name: str) -> str:
    from packaging.utils import canonicalize_name

    return str(canonicalize_name(name))
