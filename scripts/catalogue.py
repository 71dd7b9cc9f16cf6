"""Bring the catalogues up to date with the sources. `make fmt` runs this; a test tells when one is stale.

A text is a literal that is given to Text(), t(), say() or N_(). New ones get an empty translation, unused ones go.
They are looked for with `ast`: before Python 3.12, Babel's own extraction does not see what is inside an f-string.
"""

from __future__ import annotations

import ast
import io
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.pofile import read_po, write_po

SOURCES = Path(__file__).resolve().parents[1] / "src" / "oarsman"
CATALOGUES = sorted((SOURCES / "text" / "locale").glob("*/LC_MESSAGES/oarsman.po"))
_MARKS = {"Text", "N_"}
_MARKS_OF_FACES = {"t", "say", "_say"}  # elsewhere these are names of other things
_FACES = ("cli", "console", "service")


@cache
def calls() -> list[tuple[str, str, ast.expr]]:
    """Where a text is said (file and line), by which function, and its first argument."""
    return list(_calls())


def _calls() -> Iterator[tuple[str, str, ast.expr]]:
    for path in sorted(SOURCES.rglob("*.py")):
        face = path.relative_to(SOURCES).parts[0] in _FACES
        marks = _MARKS | _MARKS_OF_FACES if face else _MARKS
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and node.args and (name := _name(node.func)) in marks:
                yield f"{path.relative_to(SOURCES)}:{node.lineno}", name, node.args[0]


def _name(function: ast.expr) -> str:
    match function:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def literals(argument: ast.expr) -> Iterator[str]:
    """`"one" if many else "two"` and `state or "none"` have a literal too."""
    match argument:
        case ast.Constant(value=str(text)):
            yield text
        case ast.IfExp(body=body, orelse=other):
            yield from literals(body)
            yield from literals(other)
        case ast.BoolOp(values=values):
            for value in values:
                yield from literals(value)


def texts() -> set[str]:
    return {text for _, _, argument in calls() for text in literals(argument)}


def fresh(po: str) -> str:
    """The catalogue as it should be written. Its first block, comments and header, is kept as it is."""
    header, _, _ = po.partition("\n\n")
    template = Catalog()
    for text in texts():
        template.add(text)
    catalogue = read_po(io.StringIO(po), abort_invalid=True)
    catalogue.update(template, no_fuzzy_matching=True)
    body = io.BytesIO()
    write_po(body, catalogue, width=0, no_location=True, omit_header=True, sort_output=True, ignore_obsolete=True)
    return f"{header}\n\n{body.getvalue().decode().strip()}\n"


if __name__ == "__main__":
    for file in CATALOGUES:
        file.write_text(fresh(file.read_text("utf-8")), "utf-8")
