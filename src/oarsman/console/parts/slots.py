"""What a machine has, drawn: who holds which part of it, what is free, and how much is really used."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import NamedTuple
from zlib import crc32

from nicegui.element import Element

_COLOURS = 10  # --job-0 to --job-9 in style.css
_MOST_SQUARES = 64  # beyond it a square is more than one
_NOTHING = 1e-9


class Holder(NamedTuple):
    """`colour` is the name of a variable in style.css."""

    name: str
    colour: str
    amount: float


Cell = list[tuple[int, float]]  # (number of the holder, its share of this square), from left to right


def squares(total: float, amounts: Sequence[float], most: int = _MOST_SQUARES) -> list[Cell]:
    """The holders one after the other, over squares of equal size. The amounts are those of all, the free part too."""
    count = min(ceil(total), most)
    size = total / count if count else 0.0
    cells: list[Cell] = [[] for _ in range(count)]
    number, room = 0, size
    for holder, amount in enumerate(amounts):
        while amount > _NOTHING and number < count:
            taken = min(amount, room)
            cells[number].append((holder, round(taken / size, 4)))
            amount, room = amount - taken, room - taken
            if room <= _NOTHING:
                number, room = number + 1, size
    return cells


def colours(keys: Sequence[str]) -> dict[str, str]:
    """One for each job, different as long as there are enough, and the same when other jobs come and go."""
    found: dict[str, str] = {}
    for key in sorted(set(keys)):
        wish = crc32(key.encode("utf-8", "replace"))
        wishes = [f"job-{(wish + n) % _COLOURS}" for n in range(_COLOURS)]
        found[key] = next((colour for colour in wishes if colour not in found.values()), wishes[0])
    return found


class Slots(Element, component="slots.js"):
    """`label` is what it says to those who do not see it. `wide`: one long bar instead of squares."""

    def __init__(
        self, label: str, total: float, holders: Sequence[Holder], used: float | None, *, wide: bool = False
    ) -> None:
        super().__init__()
        self._props["label"] = label
        self._props["wide"] = wide
        self._props["used"] = min(1.0, used / total) if used is not None and total else None
        self._props["holders"] = [{"name": one.name, "colour": one.colour} for one in holders]
        self._props["cells"] = squares(total, [one.amount for one in holders], 1 if wide else _MOST_SQUARES)
