"""Each file in broken/ is a manifest with a mistake, and behind it, as a comment, exactly what the user sees."""

from __future__ import annotations

from pathlib import Path

import pytest
from for_every import for_every

from oarsman.errors import ManifestError
from oarsman.manifest import job_from_document, load, render
from oarsman.manifest.source import read

BROKEN = sorted((Path(__file__).parent / "broken").glob("*.yaml"))
MARK = "# expected:\n"


def parts(file: Path) -> tuple[str, str]:
    manifest, _, comment = file.read_text(encoding="utf-8").partition(MARK)
    return manifest, "\n".join(line.removeprefix("#").removeprefix(" ") for line in comment.splitlines())


def one_document(file: Path) -> bool:
    documents, unreadable = read(parts(file)[0], file.name)
    return not unreadable and len(documents) == 1 and isinstance(documents[0].value, dict)


def test_there_are_enough_of_them() -> None:
    assert len(BROKEN) >= 40


@for_every(BROKEN)
def test_a_broken_manifest_is_explained_word_by_word(file: Path) -> None:
    manifest, expected = parts(file)
    with pytest.raises(ManifestError) as caught:
        load(manifest, file.name)
    problems = caught.value.problems
    errors = sum(not problem.warning for problem in problems)
    count = f"{errors} problems" if errors != 1 else "1 problem"
    lines = "\n".join([*map(render, problems), count]).splitlines()
    assert "\n".join(line.rstrip() for line in lines) == expected


@for_every(BROKEN)
def test_problems_come_in_the_order_of_the_text(file: Path) -> None:
    with pytest.raises(ManifestError) as caught:
        load(parts(file)[0], file.name)
    places = [(problem.line, problem.column) for problem in caught.value.problems]
    assert places == sorted(places)


@for_every(BROKEN)
def test_no_place_is_reported_twice(file: Path) -> None:
    with pytest.raises(ManifestError) as caught:
        load(parts(file)[0], file.name)
    places = [(problem.line, problem.column, problem.field) for problem in caught.value.problems]
    assert len(places) == len(set(places))


@for_every([file for file in BROKEN if one_document(file)])
def test_a_document_without_text_has_the_same_problems_without_places(file: Path) -> None:
    documents, _ = read(parts(file)[0], file.name)
    with pytest.raises(ManifestError) as from_text:
        load(parts(file)[0], file.name)
    with pytest.raises(ManifestError) as from_document:
        job_from_document(documents[0].value)
    assert {(p.field, p.message, p.hint) for p in from_document.value.problems} == {
        (p.field, p.message, p.hint) for p in from_text.value.problems
    }
    assert all(p.line == 0 and p.column == 0 and p.snippet == "" for p in from_document.value.problems)
