"""Fields that are typed in while the server answers: what it says of an older text never overwrites a newer one.

The browser counts the reader's changes and tells the number with each; the server says with each of its values how many
it knows of. A value that knows of fewer than were made is passed over.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import nicegui
from nicegui import events, ui
from nicegui.elements.mixins.value_element import ValueElement

# The scripts of these elements build on those of NiceGUI's own.
ELEMENTS = {"nicegui-elements": str(Path(nicegui.__file__).parent / "elements")}


class Steady(ValueElement[Any]):
    """What the elements have in common: they remember how many of the reader's changes were heard of."""

    def heard(self, edits: int) -> None:
        with self._props.suspend_updates():
            self._props["known"] = edits


class _SteadyField(Steady):
    VALUE_PROP = "value"

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.heard(0)

    def _event_args_to_value(self, e: events.GenericEventArguments) -> Any:
        self.heard(e.args["edits"])
        return super()._event_args_to_value(replace(e, args=e.args["text"]))


class TextField(_SteadyField, ui.input, component="steady_field.js", esm=ELEMENTS):
    """One line."""


class TextArea(_SteadyField, ui.textarea, component="steady_field.js", esm=ELEMENTS):
    """As many lines as are typed."""


class NumberField(_SteadyField, ui.number, component="steady_field.js", esm=ELEMENTS):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        assert self.component is not None
        self.tag = self.component.tag  # NiceGUI's own has no script

    def _handle_value_change(self, value: Any) -> None:
        super()._handle_value_change(value)
        if self._send_update_on_value_change:
            self.run_method("updateValue")  # also where the server says the same as the last time
