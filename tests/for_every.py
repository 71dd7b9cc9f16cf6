"""A fact about every row of a table, as one test that names all rows of which it is not true.

A case of its own for each row costs pytest more than most rows do. Rows that need fixtures, or start something, are
better off with pytest.mark.parametrize.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import product

import pytest

_LONGEST = 100  # letters of a row in the message
Fact = Callable[..., None]


def for_every(*tables: Iterable[object]) -> Callable[[Fact], Callable[[], None]]:
    """The test is called with one row of each table, for every combination of them."""
    return for_every_row(product(*tables))


def for_every_row(table: Iterable[Iterable[object]]) -> Callable[[Fact], Callable[[], None]]:
    """The test is called with the cells of each row."""
    rows = [tuple(row) for row in table]

    def decorate(fact: Fact) -> Callable[[], None]:
        def whole_table() -> None:
            assert rows, "the table is empty"
            wrong = []
            for row in rows:
                try:
                    fact(*row)
                except (Exception, pytest.fail.Exception) as error:
                    wrong.append(f"{_shown(row)}\n    {type(error).__name__}: {error}".replace("\n", "\n    "))
            assert not wrong, "\n".join([f"not true of {len(wrong)} of {len(rows)}:", *wrong])

        whole_table.__name__, whole_table.__doc__ = fact.__name__, fact.__doc__
        whole_table.__module__, whole_table.__qualname__ = fact.__module__, fact.__qualname__
        return whole_table

    return decorate


def _shown(row: tuple[object, ...]) -> str:
    words = (str(getattr(part, "name", part)) for part in row)  # of a path its last part
    return ", ".join(word if len(word) <= _LONGEST else f"{word[:_LONGEST]}..." for word in words)
