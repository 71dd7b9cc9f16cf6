"""The form behind the text: what each field shows of a manifest, and how the text changes when a field does.

The text is the truth. A field that is changed edits the text where it says that one thing; comments, order, quotes
and everything the form knows nothing of stay as they were.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oarsman import names
from oarsman.errors import ManifestError, UsageError
from oarsman.manifest.form.fields import FIELDS
from oarsman.manifest.form.simple import EMPTY, Field, accepted
from oarsman.manifest.form.text import amended, documents
from oarsman.manifest.mend import unshared
from oarsman.manifest.problems import Problem

__all__ = ["EMPTY", "FIELDS", "Field", "document", "values", "with_value"]


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
        raise UsageError(f"the form has no field '{field}'", field=field, hint=f"one of {', '.join(FIELDS)}")
    known = FIELDS[field]
    found = documents(text)
    which = _which(found)
    whole = unshared(found[which]) if found else {"apiVersion": f"{names.GROUP}/v2beta1", "kind": names.KIND}
    job = _job(whole)
    shown = known.read(job if found else {})
    if shown == value or shown == (value := accepted(known, value)):  # what is shown may stay, even where it is wrong
        return text
    known.write(job, value)
    return amended(text, which, whole)


def _which(found: list[Any]) -> int:
    """The first MPIJob, or the first document where there is none yet."""
    kinds = [value.get("kind") if isinstance(value, dict) else None for value in found]
    return kinds.index(names.KIND) if names.KIND in kinds else 0


def _job(whole: Any) -> dict[str, Any]:
    """A List stands for its items."""
    items = whole.get("items") if isinstance(whole, dict) and whole.get("kind") == "List" else None
    job = items[0] if isinstance(items, list) and items else whole
    if not isinstance(job, dict):
        wrong = Problem(source="manifest", line=1, column=1, field="", message="an MPIJob is a mapping")
        raise ManifestError([wrong])
    return job
