"""What the command says, in the reader's language: `t("text {x}", x=1)`."""

from __future__ import annotations

from oarsman.text.catalogue import Translator, of_environment

t = Translator(of_environment())


def of(sentence: str) -> str:
    """What somebody else said: an engine, a backend, a manifest's reader."""
    return t.of(sentence)
