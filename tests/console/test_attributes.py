"""What comes from jobs and people never stands in a list of attributes that is taken apart.

NiceGUI reads `.props('a="b" :c="d"')` word by word, and evaluates what follows a colon: a quote in a name would end its
attribute and begin another one. Such values are set by themselves: `element.props["a"] = value`.
"""

from __future__ import annotations

import re
from pathlib import Path

from for_every import for_every

import oarsman.console

ROOT = Path(oarsman.console.__file__).parent
FILES = [str(path.relative_to(ROOT)) for folder in ("pages", "parts") for path in sorted((ROOT / folder).rglob("*.py"))]
QUOTED = re.compile(r"""=(?:"\{|'\{)(?!(?:self\.)?say\()([^}]*)\}""")  # our own words have no quotes; others may
ALLOWED = ("fill", "level", "other")  # of a few that the code itself names


@for_every(FILES)
def test_only_our_own_words_are_quoted_into_lists_of_attributes(name: str) -> None:
    text = (ROOT / name).read_text()
    lists = [text[at.start() : text.index(")", at.end())] for at in re.finditer(r"\.props\(\s*f", text)]
    found = [quoted for words in lists for quoted in QUOTED.findall(words)]
    assert [quoted for quoted in found if quoted not in ALLOWED] == []


def test_the_search_finds_what_it_looks_for() -> None:
    assert QUOTED.findall('role=group aria-label="{account.name}"') == ["account.name"]
    assert QUOTED.findall('aria-label="{say("Pages")}"') == []
