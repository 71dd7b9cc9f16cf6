"""The form and the text agree, for every field of every manifest there is: this is what the create page rests on."""

from __future__ import annotations

import re

import pytest
from for_every import for_every
from manifest.form.samples import (
    BROKEN,
    GOOD,
    WHERE,
    commented,
    comments,
    differences,
    new_value,
    readable,
    shows,
    text_of,
)

from oarsman.errors import ManifestError, UsageError
from oarsman.manifest import form

FIELDS = tuple(form.FIELDS)
ELASTIC = ("elastic_min", "elastic_max")


def _settable(name: str, field: str) -> bool:
    """The bounds of an elastic job can be set only where there is one."""
    return field not in ELASTIC or "horovodrun" in text_of(name)


def test_there_are_manifests_and_every_field_is_covered() -> None:
    assert sum("seeds" in name for name in GOOD) == 3
    assert len(GOOD) > 10
    assert len(BROKEN) > 60
    assert set(WHERE) == set(FIELDS)


@for_every([*GOOD, *(name for name in BROKEN if readable(name))])
def test_saying_what_is_said_already_changes_no_letter(name: str) -> None:
    text = text_of(name)
    shown = form.values(form.document(text))
    assert {field: form.with_value(text, field, shown[field]) for field in FIELDS} == dict.fromkeys(FIELDS, text)


@for_every([name for name in BROKEN if not readable(name)])
def test_a_text_that_cannot_be_read_is_a_manifest_error_or_taken_for_empty(name: str) -> None:
    text = text_of(name)
    if not text.strip() or all(line.startswith("#") for line in text.splitlines() if line.strip()):
        assert form.values(form.document(text)) == form.values({})
        return
    with pytest.raises(ManifestError):
        form.with_value(text, "name", "another")


@for_every(GOOD, [field for field in FIELDS if field != "api_version"])
def test_a_change_shows_and_changes_nothing_else(name: str, field: str) -> None:
    if not _settable(name, field):
        with pytest.raises(UsageError, match="horovodrun") as raised:
            form.with_value(text_of(name), field, 2)
        assert raised.value.hint
        return
    text = commented(name)
    value = new_value(field, text)
    changed = form.with_value(text, field, value)
    assert shows(changed, field) == value
    places = list(differences(form.document(text), form.document(changed)))
    assert places
    assert not [place for place in places if not re.match(WHERE[field], place)]
    assert comments(changed) == comments(text)


@for_every(GOOD)
def test_another_version_moves_only_what_the_versions_say_in_different_places(name: str) -> None:
    text = commented(name)
    old = form.document(text)["apiVersion"]
    new = "kubeflow.org/v1" if old == "kubeflow.org/v2beta1" else "kubeflow.org/v2beta1"
    changed = form.with_value(text, "api_version", new)
    before, after = form.values(form.document(text)), form.values(form.document(changed))
    assert after == {**before, "api_version": new}
    moved = "cleanPodPolicy" in form.document(text)["spec"]
    assert (comments(changed) == comments(text)) is not moved


@for_every(GOOD)
def test_taking_a_change_back_restores_the_text(name: str) -> None:
    text = commented(name)
    shown = form.values(form.document(text))
    for field in FIELDS:
        if not _settable(name, field) or (field == "api_version" and "/v1\n" in text_of(name)):
            continue
        back = form.with_value(form.with_value(text, field, new_value(field, text)), field, shown[field])
        assert back == text, field


@for_every(GOOD)
def test_what_is_taken_out_can_be_put_in_again(name: str) -> None:
    text = text_of(name)
    shown = form.values(form.document(text))
    for field in FIELDS:
        if shown[field] in (None, "", [], {}) or field in (*ELASTIC, "command", "args"):
            continue
        without = form.with_value(text, field, None)
        assert shows(without, field) == form.EMPTY[form.FIELDS[field].kind]
        again = form.values(form.document(form.with_value(without, field, shown[field])))
        unlike = {other for other in FIELDS if again[other] != shown[other]}
        assert not unlike, field


@for_every([name for name in BROKEN if readable(name)])
def test_a_manifest_with_mistakes_can_be_edited_or_says_why_not(name: str) -> None:
    text = text_of(name)
    refused = []
    for field in FIELDS:
        value = new_value(field, text)
        try:
            changed = form.with_value(text, field, value)
        except UsageError as error:
            refused.append((field, error.hint))
            continue
        assert shows(changed, field) == value, field
    assert all(hint for _, hint in refused)
