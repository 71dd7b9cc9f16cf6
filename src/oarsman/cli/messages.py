"""What the command says, in the reader's language: `t("text {x}", x=1)`."""

from __future__ import annotations

from oarsman.text.catalogue import Translator, of_environment

t = Translator(of_environment())


def of(sentence: str) -> str:
    """What an engine said."""
    said = t.of(sentence)
    if t.language != "zh" or said != sentence:
        return said
    from oarsman.service.spoken import in_chinese

    return in_chinese(sentence)
