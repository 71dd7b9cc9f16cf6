"""Write the tables of the guide that come from the program. `make fmt` runs this; a test tells when one is stale."""

from __future__ import annotations

import re
from pathlib import Path

FAILURES = Path(__file__).resolve().parents[1] / "docs" / "guide" / "failures.md"


def known_errors() -> str:
    from oarsman.status.known_errors import KNOWN

    rows = (f"| {known.name.replace('-', ' ')} | {known.hint} |" for known in KNOWN)
    return "\n".join(["| error | hint |", "|---|---|", *rows])


def fresh(text: str) -> str:
    """The text with its table as the program has it now."""
    marks = r"(<!-- made by scripts/tables.py: known errors -->\n).*?(\n<!-- end -->)"
    return re.sub(marks, lambda found: f"{found[1]}{known_errors()}{found[2]}", text, flags=re.S)


if __name__ == "__main__":
    FAILURES.write_text(fresh(FAILURES.read_text()))
