"""The reader's language, and texts in it.

`Translator("zh")("text {x}", x=1)` looks the text up in the catalogue and fills in the values; `.of(sentence)` does the
same for a `Text` that came from somewhere else. English needs no catalogue, and none is read for it. The `.po` file is
read as it is: see docs/decisions/019-one-catalogue.md.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from functools import cache

from oarsman.text.sentence import Text

LANGUAGES = {"en": "English", "zh": "中文"}
_FILES = {"zh": "locale/zh_CN/LC_MESSAGES/oarsman.po"}
_ENTRY = re.compile(r'^msgid ((?:".*"\n)+)msgstr ((?:".*"\n)+)', re.MULTILINE)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r"}


class Translator:
    def __init__(self, language: str) -> None:
        self.language = language if language in LANGUAGES else "en"

    def __call__(self, text: str, /, **values: object) -> str:
        """A text without an entry is shown in English, never as an error; a test makes sure that none is missing."""
        found = catalogue(self.language).get(text, text)
        return found.format(**values) if values else found

    def of(self, sentence: str) -> str:
        """What somebody else made: a `Text` is said anew in this language, any other string is looked up as it is."""
        if self.language == "en":
            return sentence
        if not isinstance(sentence, Text) or not sentence.arguments:
            return self(sentence)
        given = sentence.arguments.items()
        said = {name: self.of(value) if isinstance(value, Text) else str(value) for name, value in given}
        return _filled(self(sentence.template), said)


def _filled(template: str, values: Mapping[str, str]) -> str:
    """In Chinese a space sets off what is not Chinese; between two Chinese characters there is none. A sentence within
    another one has no full stop."""
    import string  # late: most processes have nothing to say in Chinese

    said = ""
    for words, name, _, _ in string.Formatter().parse(template):
        said = joined(said, words)
        if name is not None:
            value = values[name]
            said = joined(said, value.removesuffix("。") if template != f"{{{name}}}" else value)
    return said


def joined(left: str, right: str) -> str:
    """Two pieces of Chinese, with a space between them only where one of them is not."""
    if left[-1:] == " " and _wide(left[-2:-1]) and _wide(right[:1]):
        left = left[:-1]
    if right[:1] == " " and _wide(left[-1:]) and _wide(right[1:2]):
        right = right[1:]
    return left + right


def _wide(character: str) -> bool:
    return character >= "\u2018"


def N_(text: str) -> str:
    """Marks a text that is translated later, where it is shown: extraction looks for literals."""
    return text


@cache
def catalogue(language: str) -> Mapping[str, str]:
    """Text in English -> text in that language."""
    if language not in _FILES:
        return {}
    with open(os.path.join(os.path.dirname(__file__), _FILES[language]), encoding="utf-8", newline="\n") as file:
        return dict(entries(file.read()))


def entries(po: str) -> Iterator[tuple[str, str]]:
    """The translated messages of a .po file that has neither plurals nor contexts."""
    for message, translation in _ENTRY.findall(po):
        if message != '""\n' and translation != '""\n':
            yield _string(message), _string(translation)


def _string(lines: str) -> str:
    """One string, written as one or more lines in quotes."""
    text = lines[1:-2].replace('"\n"', "")
    return re.sub(r"\\(.)", lambda found: _ESCAPED.get(found[1], found[1]), text) if "\\" in text else text


def of_environment(environment: Mapping[str, str] = os.environ) -> str:
    """Our own variable decides first, then the locale's, in the order of POSIX."""
    wanted = (environment.get(name, "") for name in ("OARSMAN_LANG", "LC_ALL", "LC_MESSAGES", "LANG"))
    return "zh" if next(filter(None, wanted), "").lower().startswith("zh") else "en"


def of_browser(chosen: str | None, accept_language: str) -> str:
    """A choice made before comes first; then what the browser prefers, in its order."""
    if chosen in LANGUAGES:
        return chosen
    return next((code for code in _preferred(accept_language) if code in LANGUAGES), "en")


def _preferred(accept_language: str) -> list[str]:
    """ "zh-CN,zh;q=0.9,en;q=0.8" is zh, zh, en. What is not understood is passed over."""
    weighed: list[tuple[float, str]] = []
    for part in accept_language[:1000].split(","):
        code, _, parameter = part.strip().partition(";")
        weight = parameter.strip().removeprefix("q=")
        try:
            weighed.append((float(weight) if weight else 1.0, code.partition("-")[0].strip().lower()))
        except ValueError:
            continue
    return [code for weight, code in sorted(weighed, key=lambda pair: -pair[0]) if weight > 0]
