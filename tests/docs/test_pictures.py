"""Pictures are shown somewhere, small together, and what is numbered on one is explained below it."""

from __future__ import annotations

import re

import pytest

from docs.blocks import ROOT
from scripts.steps import STEPS

PICTURES = sorted(path for path in (ROOT / "docs" / "pictures").iterdir())
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]


def test_every_picture_is_shown_and_all_are_below_one_mebibyte() -> None:
    shown = "".join(page.read_text() for page in PAGES)
    assert [picture.name for picture in PICTURES if f"pictures/{picture.name})" not in shown] == []
    assert sum(picture.stat().st_size for picture in PICTURES) < 1 << 20


@pytest.mark.parametrize("language", ["", ".zh-CN"])
def test_every_number_on_a_picture_is_explained_below_it(language: str) -> None:
    text = (ROOT / f"docs/guide/console{language}.md").read_text()
    for step in STEPS:
        _, _, below = text.partition(f"create-{step.name}{language}.webp)")
        explained = re.findall(r"^- ([①-⑳])", re.split(r"^#", below, maxsplit=1, flags=re.M)[0], re.M)
        assert explained == [chr(ord("①") + number) for number in range(len(step.numbered))], step.name
