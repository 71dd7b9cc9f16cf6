"""Small changes to the source of the core, which `scripts/mutation.py` makes one at a time."""

from __future__ import annotations

import ast
import difflib
import itertools
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "oarsman"
FOLDERS = ("job", "plan", "status", "manifest")
QUIET = {"strict", "repr"}  # keyword arguments that only guard or decorate


@dataclass(frozen=True)
class Mutant:
    file: str  # below PACKAGE
    place: str  # the function it is in
    operator: str
    start: int  # bytes of the source
    end: int
    old: str
    new: str
    lines: tuple[int, int]  # of the statement it is in
    number: int = 1  # of those that look alike

    @property
    def name(self) -> str:
        """Stays the same when lines move."""
        alike = f" ({self.number})" if self.number > 1 else ""
        return f"{self.file} {self.place}: {one_line(self.old)} => {one_line(self.new)}{alike}"

    def applied(self, source: bytes) -> bytes:
        return source[: self.start] + self.new.encode() + source[self.end :]

    def difference(self) -> str:
        """The lines that change, before and after."""
        source = (PACKAGE / self.file).read_text()
        lines = difflib.unified_diff(source.splitlines(), self.applied(source.encode()).decode().splitlines(), n=0)
        return "\n".join(line for line in lines if line[:3] not in ("---", "+++", "@@ "))


def one_line(text: str) -> str:
    return " ".join(text.split())


COMPARISONS: dict[type[ast.cmpop], tuple[str, ...]] = {
    ast.Eq: ("!=",),
    ast.NotEq: ("==",),
    ast.Lt: ("<=", ">="),
    ast.LtE: ("<", ">"),
    ast.Gt: (">=", "<="),
    ast.GtE: (">", "<"),
    ast.Is: ("is not",),
    ast.IsNot: ("is",),
    ast.In: ("not in",),
    ast.NotIn: ("in",),
}
ARITHMETIC: dict[type[ast.operator], str] = {
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "+",
    ast.Div: "*",
    ast.FloorDiv: "*",
    ast.Mod: "*",
    ast.Pow: "*",
}
NAMES = {"min": "max", "max": "min", "any": "all", "all": "any", "startswith": "endswith", "endswith": "startswith"}


class Changes(ast.NodeVisitor):
    """Every change that can be made to one file."""

    def __init__(self, file: str, source: bytes) -> None:
        self.file, self.source = file, source
        self.begins = [0, *itertools.accumulate(len(line) for line in source.splitlines(keepends=True))]
        self.place: list[str] = []
        self.lines = (0, 0)  # of the present statement, without the statements inside it
        self.found: list[Mutant] = []

    def visit(self, node: ast.AST) -> None:
        before = self.lines
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            end = max(node.lineno, body[0].lineno - 1) if body else node.end_lineno or node.lineno
            self.lines = node.lineno, end
        super().visit(node)
        self.lines = before

    def span(self, node: Any) -> tuple[int, int]:
        return (
            self.begins[node.lineno - 1] + node.col_offset,
            self.begins[node.end_lineno - 1] + node.end_col_offset,
        )

    def text(self, node: ast.AST) -> str:
        start, end = self.span(node)
        return self.source[start:end].decode()

    def change(self, node: ast.AST, operator: str, new: str) -> None:
        (start, end), old = self.span(node), self.text(node)
        alike = sum((m.place, m.old, m.new) == (self.where, old, new) for m in self.found)
        self.found.append(Mutant(self.file, self.where, operator, start, end, old, new, self.lines, alike + 1))

    @property
    def where(self) -> str:
        return ".".join(self.place) or "-"

    def visit_body(self, node: Any) -> None:
        self.place.append(node.name)
        for part in node.body:
            self.visit(part)
        self.place.pop()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        for default in (*node.args.defaults, *node.args.kw_defaults):
            if default is not None:
                self.visit(default)
        self.visit_body(node)

    visit_AsyncFunctionDef = visit_FunctionDef  # type: ignore[assignment]

    def visit_ClassDef(self, node: ast.ClassDef) -> None:  # its decorators say how it is kept, not what it does
        self.visit_body(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Words for people; Python 3.11 does not tell the places inside."""

    visit_Assert = visit_Import = visit_ImportFrom = visit_JoinedStr  # type: ignore[assignment]

    def visit_keyword(self, node: ast.keyword) -> None:
        if node.arg not in QUIET:
            self.visit(node.value)

    def visit_Compare(self, node: ast.Compare) -> None:
        parts = [node.left, *node.comparators]
        for at, op in enumerate(node.ops):
            for other in COMPARISONS[type(op)]:
                between = self.source[self.span(parts[at])[1] : self.span(parts[at + 1])[0]].decode()
                word = next(
                    w
                    for w in ("not in", "is not", "==", "!=", "<=", ">=", "<", ">", "in", "is")
                    if w in one_line(between)
                )
                start, end = self.span(node)
                left = self.source[start : self.span(parts[at])[1]].decode()
                right = self.source[self.span(parts[at + 1])[0] : end].decode()
                self.change(node, "comparison", left + one_line(between).replace(word, f" {other} ") + right)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        word = "or" if isinstance(node.op, ast.And) else "and"
        parts = [f"({self.text(value)})" for value in node.values]
        self.change(node, "and/or", f"({f' {word} '.join(parts)})")
        same = f" {'and' if word == 'or' else 'or'} "
        for at in range(len(parts)):
            self.change(node, "operand dropped", f"({same.join(parts[:at] + parts[at + 1 :])})")
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not | ast.USub):
            self.change(node, "not dropped", f"({self.text(node.operand)})")
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        texts = (ast.JoinedStr, ast.Tuple, ast.List)
        worded = any(
            isinstance(n, texts) or (isinstance(n, ast.Constant) and isinstance(n.value, str)) for n in ast.walk(node)
        )
        if type(node.op) in ARITHMETIC and not worded:  # else it would only be a TypeError
            left, right = self.text(node.left), self.text(node.right)
            self.change(node, "arithmetic", f"(({left}) {ARITHMETIC[type(node.op)]} ({right}))")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self.change(node, "constant", str(not node.value))
        elif isinstance(node.value, int | float):
            self.change(node, "constant", str(node.value + 1))
            if node.value == 1:
                self.change(node, "constant", "0")

    def visit_Call(self, node: ast.Call) -> None:
        name = node.func
        if isinstance(name, ast.Name) and name.id in NAMES:
            self.change(name, "other function", NAMES[name.id])
        elif isinstance(name, ast.Attribute) and name.attr in NAMES:
            self.change(name, "other function", f"{self.text(name.value)}.{NAMES[name.attr]}")
        self.generic_visit(node)

    def negate(self, test: ast.expr) -> None:
        plain = isinstance(test, ast.Compare) and len(test.ops) == 1 and len(COMPARISONS[type(test.ops[0])]) == 1
        if not plain and not (isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)):
            self.change(test, "condition negated", f"(not ({self.text(test)}))")

    def visit_If(self, node: ast.If | ast.IfExp | ast.While) -> None:
        self.negate(node.test)
        self.generic_visit(node)

    visit_IfExp = visit_While = visit_If  # type: ignore[assignment]

    def visit_comprehension(self, node: ast.comprehension) -> None:
        for test in node.ifs:
            self.negate(test)
        self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is not None and not (isinstance(node.value, ast.Constant) and node.value.value is None):
            self.change(node, "return None", "return None")
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        if not any(isinstance(target, ast.Name | ast.Tuple) for target in node.targets):
            self.change(node, "statement removed", "pass")  # else it would only be a NameError
        if not any(isinstance(target, ast.Name) and target.id == "__all__" for target in node.targets):
            self.generic_visit(node)

    def visit_removable(self, node: ast.stmt) -> None:
        self.change(node, "statement removed", "pass")
        self.generic_visit(node)

    visit_AugAssign = visit_Raise = visit_Continue = visit_Break = visit_Delete = visit_removable  # type: ignore[assignment]

    def visit_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            self.visit_removable(node)


def every_mutant() -> dict[str, list[Mutant]]:
    found = {}
    for path in sorted(p for folder in FOLDERS for p in (PACKAGE / folder).rglob("*.py")):
        changes = Changes(str(path.relative_to(PACKAGE)), path.read_bytes())
        changes.visit(ast.parse(changes.source))
        if changes.found:
            found[changes.file] = changes.found
    return found


def chosen(mutants: dict[str, list[Mutant]], count: int, seed: int) -> list[Mutant]:
    """As many per file as it has its share of all, at least two. Other files do not change which."""
    total = sum(map(len, mutants.values()))
    result: list[Mutant] = []
    for file, found in mutants.items():
        share = min(len(found), max(2, round(count * len(found) / total)))
        result += sorted(random.Random(f"{seed} {file}").sample(found, share), key=lambda m: m.start)
    return result
