"""What is being written: the text is the truth, the form reads it and edits it."""

from __future__ import annotations

from typing import Any

from oarsman.errors import ManifestError, UserError
from oarsman.manifest import form
from oarsman.text.sentence import Text

UNREADABLE = Text("the YAML cannot be read; mend it first")


class Draft:
    """While the text cannot be read, the values are those of the last text that could."""

    def __init__(self, text: str) -> None:
        self.text = ""
        self.readable = False
        self.values: dict[str, Any] = form.values({})
        self.take(text)

    def take(self, text: str) -> None:
        self.text = text
        try:
            self.values = form.values(form.document(text))
            self.readable = True
        except ManifestError:
            self.readable = False

    def change(self, field: str, value: Any) -> UserError | None:
        """Edit the text; what is wrong with the value, if the text cannot say it."""
        try:
            edited = form.with_value(self.text, field, value)
        except ManifestError:
            return UserError(UNREADABLE)
        except UserError as error:
            return error
        self.take(edited)
        return None


def with_change(text: str, field: str, value: Any) -> str:
    """The text with that value; the text as it is, if it cannot say so."""
    draft = Draft(text)
    draft.change(field, value)
    return draft.text
