"""Names for copies of a job."""

from __future__ import annotations

from collections.abc import Iterator

_MOST = 1000
_LONGEST = 63


def copies(name: str) -> Iterator[str]:
    """x-2, x-3 and so on; of x-7, x-8 and so on."""
    stem, _, number = name.rpartition("-")
    stem, first = (stem, int(number) + 1) if stem and number.isdecimal() and len(number) < 4 else (name, 2)
    for copy in range(first, first + _MOST):
        ending = f"-{copy}"
        yield stem[: _LONGEST - len(ending)].rstrip("-.") + ending
