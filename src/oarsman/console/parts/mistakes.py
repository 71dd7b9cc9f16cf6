"""What pydantic finds wrong with a value, in the reader's language. Its own English is for programs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import ValidationError

from oarsman.console.parts.words import Words
from oarsman.text.catalogue import N_

_SAID = {
    "missing": N_("this is missing"),
    "string_type": N_("this is missing"),
    "string_too_short": N_("at least {min_length} characters"),
    "string_too_long": N_("at most {max_length} characters"),
    "string_pattern_mismatch": N_("not possible here: it has to match {pattern}"),
    "int_type": N_("this is no whole number"),
    "int_parsing": N_("this is no whole number"),
    "int_from_float": N_("this is no whole number"),
    "greater_than_equal": N_("at least {ge}"),
    "less_than_equal": N_("at most {le}"),
    "literal_error": N_("one of {expected}"),
    "enum": N_("one of {expected}"),
    "too_many": N_("more than {most} are too many"),
    "kind": N_("a value here is of another kind"),
}
_NAME = N_("lower-case letters, digits and '-'; starts with a letter")
TOO_SHORT = "String should have at least 8 characters"  # a password, in an answer of the API


def said(say: Words, found: Mapping[str, Any]) -> str:
    """One error of pydantic's. Where it has other kinds in another version, they are told in its English."""
    if found["type"] == "string_pattern_mismatch" and tuple(found["loc"]) == ("name",):
        return say(_NAME)
    template = _SAID.get(found["type"])
    return say(template, **found.get("ctx", {})) if template else str(found["msg"])


def by_field(say: Words, error: ValidationError) -> dict[str, str]:
    """The first of each field."""
    found: dict[str, str] = {}
    for one in error.errors(include_url=False):
        found.setdefault(str(one["loc"][0]) if one["loc"] else "", said(say, one))
    return found


def in_one_line(say: Words, error: ValidationError, called: Iterable[tuple[str, str]]) -> str:
    """`called`: what a field is called there."""
    names = dict(called)
    return "; ".join(f"{names.get(field, field)}: {text}" for field, text in by_field(say, error).items())
