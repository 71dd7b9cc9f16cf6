"""The fenced blocks of the documents, and what is put in place of what a reader has."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<body>.*?)^```$", re.M | re.S)
HEADING = re.compile(r"^## (.*)$", re.M)
EXPECTED_CODE = re.compile(r"^(?P<command>.*\S)\s+# exits with (?P<code>\d+)$", re.M)


@dataclass(frozen=True)
class Block:
    document: str
    section: str
    line: int
    info: str
    body: str

    @property
    def runs(self) -> bool:
        """By itself, on any machine (or on the hosts of the tests): `tests/docs` does."""
        return self.info in ("sh", "python")

    @property
    def script(self) -> str:
        if self.info == "python":
            return self.body
        without_make = "".join(line for line in self.body.splitlines(True) if not line.startswith("make "))
        return EXPECTED_CODE.sub(r'code=0; \g<command> || code=$?; [ "$code" = \g<code> ]', without_make)

    def with_ours(self, ours: Mapping[str, str]) -> str:
        """The script with our things in place of those that stand for the reader's."""
        script = self.script
        for theirs, given in ours.items():
            script = script.replace(theirs, given)
        return script


def blocks(document: str) -> list[Block]:
    text = (ROOT / document).read_text()
    found = []
    for fence in FENCE.finditer(text):
        headings = HEADING.findall(text, 0, fence.start())
        line = text.count("\n", 0, fence.start()) + 1
        found.append(Block(document, headings[-1] if headings else "", line, fence["info"].strip(), fence["body"]))
    return found
