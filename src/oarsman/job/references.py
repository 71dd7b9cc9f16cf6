"""References among a container's variables and words: $(NAME), as a kubelet replaces them."""

from __future__ import annotations

import re
from collections.abc import Mapping

_REFERENCE = re.compile(r"\$(?:\$|\(([^()$]+)\))")  # what opens anew is no name: nothing is looked at twice
_MOST_LETTERS = 1 << 20  # no process can be given more


class References:
    """Of one container. Values that name each other twice, again and again, double every time: no more than so many
    letters are put in altogether, and what is beyond stays as it is written."""

    def __init__(self) -> None:
        self._left = _MOST_LETTERS

    def replaced(self, text: str, values: Mapping[str, str]) -> str:
        """$(NAME) is its value if that is known, $$ is a dollar: $$(NAME) stays $(NAME)."""
        return _REFERENCE.sub(lambda found: self._value(found, values), text) if "$" in text else text

    def _value(self, found: re.Match[str], values: Mapping[str, str]) -> str:
        if found[1] is None:
            return "$"
        value = values.get(found[1], found[0])
        if len(value) > self._left:
            return found[0]
        self._left -= len(value)
        return value
