"""A sentence of an engine, in the reader's language; what it was in English can be read by pointing at it."""

from __future__ import annotations

import json

from nicegui import ui

from oarsman.console.words import Words
from oarsman.sdk.spoken import accounts


def said(say: Words, sentence: str) -> ui.label:
    label = ui.label(say.of(sentence))
    if say.of(sentence) != sentence:
        label.props["title"] = sentence
    return label


def at_the_door(say: Words) -> str:
    """What the API may answer to somebody's password, as a table for scripts: that answer goes past the pages."""
    texts = [text for text in accounts.SENTENCES if "{" not in text]
    return f"({json.dumps({text: say.of(text) for text in texts if say.of(text) != text})})"
