"""The words the command says, in the reader's language.

English is the source: `t("text {x}", x=1)` returns the text itself, or its entry in the Chinese job index
(`chinese.py`, imported only when wanted). A text without an entry is shown in English, never as an error;
a test makes sure that none is missing.
"""

from __future__ import annotations

import os
from collections.abc import Mapping


def language(environment: Mapping[str, str] = os.environ) -> str:
    """ "zh" or "en". Our own variable decides first, then the locale's, in the order of POSIX."""
    wanted = (environment.get(name, "") for name in ("OARSMAN_LANG", "LC_ALL", "LC_MESSAGES", "LANG"))
    return "zh" if next(filter(None, wanted), "").lower().startswith("zh") else "en"


def catalogue(code: str) -> Mapping[str, str]:
    if code != "zh":
        return {}
    from oarsman.cli.chinese import CATALOGUE

    return CATALOGUE


_catalogue = catalogue(language())


def t(text: str, /, **values: object) -> str:
    found = _catalogue.get(text, text)
    return found.format(**values) if values else found


def of(sentence: str) -> str:
    """What an engine said, which it says in English."""
    if not _catalogue:
        return sentence
    from oarsman.service.spoken import in_chinese

    return in_chinese(sentence)
