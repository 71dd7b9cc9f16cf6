"""No module needs itself, by whatever way: late imports and those for type checkers count, too."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src"


def modules(source: Path) -> dict[str, Path]:
    found = {path.relative_to(source).with_suffix("").parts: path for path in source.rglob("*.py")}
    return {".".join(parts[:-1] if parts[-1] == "__init__" else parts): path for parts, path in found.items()}


def imported(path: Path, known: dict[str, Path]) -> Iterator[str]:
    """`from package import module` is about the module. What runs because a package is above it does not count."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom):
            assert node.module, f"{path}:{node.lineno}: a relative import"
            wanted = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name if name in known else node.module for name in wanted if node.module in known)


def order(source: Path) -> list[str]:
    """Each module after those that it imports. Raises CycleError."""
    known = modules(source)
    return list(TopologicalSorter({name: set(imported(path, known)) for name, path in known.items()}).static_order())


def test_no_imports_go_in_a_circle() -> None:
    try:
        assert len(order(SOURCE)) > 100
    except CycleError as error:
        pytest.fail(" is imported by ".join(error.args[1]))


@pytest.mark.parametrize(
    "back",
    [
        "import top.a\n",
        "from top import a\n",
        "from top.a import thing\n",
        "def late():\n    from top import a\n",
        "if TYPE_CHECKING:\n    from top.a import Thing\n",
    ],
)
def test_every_kind_of_import_can_close_a_circle(tmp_path: Path, back: str) -> None:
    (tmp_path / "top").mkdir()
    (tmp_path / "top" / "__init__.py").touch()
    (tmp_path / "top" / "a.py").write_text("from top.b import thing\n")
    (tmp_path / "top" / "b.py").touch()
    assert order(tmp_path)[-1] == "top.a"
    (tmp_path / "top" / "b.py").write_text(back)
    with pytest.raises(CycleError):
        order(tmp_path)
