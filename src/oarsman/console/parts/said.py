"""A sentence of an engine, in the reader's language; what it was in English can be read by pointing at it."""

from __future__ import annotations

from nicegui import ui

from oarsman.console.words import Words


def said(say: Words, sentence: str) -> ui.label:
    label = ui.label(say.of(sentence))
    if say.of(sentence) != sentence:
        label.props["title"] = sentence
    return label
