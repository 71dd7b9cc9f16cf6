"""What people read is declared as a text, so that it can be said in their language: nobody hands on bare English.

Looked at are the words of our errors and hints, and whatever is called a message, a cause or a reason where something
is made that people are shown.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import oarsman
from oarsman import errors

SOURCES = Path(oarsman.__file__).parent
SHOWN = {"because", "hint", "left_out", "message", "not_ready_because", "summary", "trouble"}  # arguments by name
ALL_SHOWN = {"BuildError", "QuantityError", "ScalarError", "Trouble", "Unfit"}  # every argument of these
SAID_BY_PLANS = {"say", "tell", "unsay"}
SENTENCE = re.compile(r"[A-Za-z]{2,}\S* \S*[A-Za-z]{2,}")
# Not looked at: the Python client speaks to programmers, in tracebacks; the operator to its log and its probes.
ELSEWHERE = ("client/", "control/health.py", "control/operator.py", "engines/kube/lease.py")
# A place in a list of problems that only programs send for, and hints that are something to type.
PLAIN = {
    "this is not JSON: …",
    "local, ssh or kube",
    "pip install 'oarsman[kube]'",
    "--grid lr=0.1,0.01",
    "loss: ([0-9.]+)",
    "horovodrun -np 2 --min-np 1 --max-np 4 --host-discovery-script /etc/mpi/discover_hosts.sh ...",
    '["python", "train.py"]',
}


def trees() -> dict[str, ast.Module]:
    files = sorted(SOURCES.rglob("*.py"))
    return {str(file.relative_to(SOURCES)): ast.parse(file.read_text("utf-8")) for file in files}


def name(node: ast.expr) -> str:
    match node:
        case ast.Name(id=found) | ast.Attribute(attr=found):
            return found
    return ""


def our_errors(found: dict[str, ast.Module]) -> set[str]:
    """The errors of `errors.py`, and all that are made of them."""
    ours = {one.__name__ for one in vars(errors).values() if isinstance(one, type) and issubclass(one, Exception)}
    classes = [node for tree in found.values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    for _ in range(4):
        ours |= {one.name for one in classes if any(name(base) in ours for base in one.bases)}
    return ours


def bare(argument: ast.expr) -> Iterator[str]:
    """The sentences in an argument that nobody declared."""
    match argument:
        case ast.Constant(value=str(text)):
            yield text
        case ast.JoinedStr(values=parts):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in parts)
        case ast.IfExp(body=one, orelse=other) | ast.BinOp(left=one, right=other):
            yield from bare(one)
            yield from bare(other)
        case ast.BoolOp(values=values):
            for value in values:
                yield from bare(value)


def undeclared(file: str, tree: ast.Module, ours: set[str]) -> Iterator[str]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or name(node.func) == "Text":
            continue
        shown = [keyword.value for keyword in node.keywords if keyword.arg in SHOWN]
        if name(node.func) in ours:
            shown += node.args[:1]
        if name(node.func) in ALL_SHOWN or (file.startswith("plan/") and name(node.func) in SAID_BY_PLANS):
            shown += node.args
        for argument in shown:
            for text in bare(argument):
                if SENTENCE.search(text) and text not in PLAIN and not text.startswith(("oarsman ", "kubectl ")):
                    yield f"{file}:{argument.lineno}: {text}"


def test_errors_and_messages_are_declared_as_texts() -> None:
    found = trees()
    ours = our_errors(found)
    assert {"UserError", "ApiError", "Unavailable"} <= ours
    looked_at = {file: tree for file, tree in found.items() if not file.startswith(ELSEWHERE)}
    assert [text for file, tree in looked_at.items() for text in undeclared(file, tree, ours)] == []


def test_bare_english_is_found_wherever_it_stands() -> None:
    source = """
raise UserError(f"there is no {thing}", hint="look elsewhere")
raise UserError(Text("there is no {thing}", thing=thing) if thing else "there is nothing", hint=known)
Cause(summary=said or "it was lost", host="a b")
"""
    assert [text.partition(": ")[2] for text in undeclared("x.py", ast.parse(source), {"UserError"})] == [
        "look elsewhere",
        "there is no …",
        "there is nothing",
        "it was lost",
    ]
