"""Every `t("...")` of the command, read from its sources."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import oarsman.cli

FOLDER = Path(oarsman.cli.__file__).parent


def literals() -> Iterator[tuple[str, str]]:
    """(place, text) of each call of `t`; the text must be a literal, or it could not be translated."""
    for path in sorted(FOLDER.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "t":
                place = f"{path.name}:{node.lineno}"
                text = node.args[0]
                assert isinstance(text, ast.Constant), f"{place}: t() takes a literal"
                assert isinstance(text.value, str), f"{place}: t() takes a text"
                yield place, text.value
