"""python -m tests.contracts    rewrites the files; `git diff` then shows what changes for users."""

from __future__ import annotations

from .pinned import HERE, PINNED

if __name__ == "__main__":
    made = {name: make() for name, make in PINNED.items()}  # all of them before the first is written
    for name, text in made.items():
        (HERE / name).write_text(text, encoding="utf-8")
