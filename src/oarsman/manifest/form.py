"""The form behind the text: what each field shows of a manifest, and how the text changes when a field does.

The text is the truth. A field that is changed edits the text where it says that one thing; comments, order, quotes
and everything the form knows nothing of stay as they were.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from oarsman import names
from oarsman.errors import ManifestError, Problem, UsageError
from oarsman.manifest.field_kinds import Field, Kind
from oarsman.manifest.fields import FORM as FIELDS
from oarsman.manifest.fields import blank
from oarsman.manifest.places import unshared
from oarsman.manifest.quantity import QuantityError, parse
from oarsman.manifest.text_edit import amended, documents
from oarsman.text.sentence import Text

__all__ = ["EMPTY", "FIELDS", "document", "values", "with_value"]

# What a field shows that says nothing.
EMPTY: Mapping[Kind, Any] = {
    "text": "",
    "words": [],
    "number": None,
    "choice": "",
    "pairs": {},
    "amount": "",
    "bool": None,
    "volumes": [],
}


def values(document: Mapping[str, Any]) -> dict[str, Any]:
    """What each field shows; defaults are not filled in. Nothing in the document is too wrong to be looked at."""
    return {name: field.read(dict(document)) for name, field in FIELDS.items()}


def document(text: str) -> dict[str, Any]:
    """The job that the form shows of a text: its first MPIJob. Raises ManifestError where it cannot be read."""
    found = documents(text)
    return _job(found[_which(found)]) if found else {}


def with_value(text: str, field: str, value: Any) -> str:
    """The text with that one field changed; None or an empty value takes it out.

    Raises ManifestError where the text cannot be read, and UsageError where the field cannot have that value.
    """
    if field not in FIELDS:
        wrong = Text("the form has no field '{name}'", name=field)
        raise UsageError(wrong, field=field, hint=Text("one of {names}", names=", ".join(FIELDS)))
    known = FIELDS[field]
    found = documents(text)
    which = _which(found)
    whole = unshared(found[which]) if found else blank()
    job = _job(whole)
    shown = known.read(job if found else {})
    if shown == value or shown == (value := _accepted(known, value)):  # what is shown may stay, even where it is wrong
        return text
    (known.change or known.write)(job, value)
    return amended(text, found, which, whole)


def _which(found: list[Any]) -> int:
    """The first MPIJob, or the first document where there is none yet."""
    kinds = [value.get("kind") if isinstance(value, dict) else None for value in found]
    return kinds.index(names.KIND) if names.KIND in kinds else 0


def _job(whole: Any) -> dict[str, Any]:
    """A List stands for its items."""
    items = whole.get("items") if isinstance(whole, dict) and whole.get("kind") == "List" else None
    job = items[0] if isinstance(items, list) and items else whole
    if not isinstance(job, dict):
        wrong = Problem(source="manifest", line=1, column=1, field="", message=Text("an MPIJob is a mapping"))
        raise ManifestError([wrong])
    return job


def _accepted(field: Field, value: Any) -> Any:
    """The value if the field can hold it; nothing said is the empty value of its kind."""
    empty = EMPTY[field.kind]
    if isinstance(value, float) and value.is_integer():  # what a browser sends for a whole number
        value = int(value)
    if field.kind == "amount" and isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    if value is None or value == "" or (value in ([], {}) and field.kind in ("words", "pairs", "volumes")):
        return empty
    wanted: dict[Kind, Any] = {"number": int, "bool": bool, "words": Sequence, "pairs": Mapping, "volumes": Sequence}
    kind = wanted.get(field.kind, str)
    if not isinstance(value, kind) or (kind is not bool and isinstance(value, bool)):
        raise UsageError(Text("{field} cannot be {value}", field=field.name, value=f"{value!r}"), field=field.name)
    if field.kind == "words" and isinstance(value, str):
        wrong = Text("{field} is a list of words", field=field.name)
        raise UsageError(wrong, field=field.name, hint='["python", "train.py"]')
    if field.kind == "words":
        return [str(word) for word in value]
    if field.kind == "pairs":
        return {str(name): str(given) for name, given in value.items()}
    if field.kind == "number" and field.minimum is not None and value < field.minimum:
        least = field.minimum
        wrong = Text("{field} must be at least {least}, not {given}", field=field.name, least=least, given=value)
        raise UsageError(wrong, field=field.name)
    if field.kind != "amount":
        return value
    try:
        parse(value)
    except QuantityError as error:
        raise UsageError(str(error), field=field.name, hint=error.hint) from None
    return value.strip()
