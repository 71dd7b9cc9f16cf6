"""The words of the pages, in the reader's language: English is the source, `chinese.py` has the other.

A page says `say("text {x}", x=1)`. The language is the one the reader chose, else the browser's first that we know.
"""

from __future__ import annotations

from collections.abc import Mapping

from oarsman.errors import OarsmanError

LANGUAGES = {"en": "English", "zh": "中文"}
COOKIE = "oarsman-language"
# What the API calls by one word, and people by another
_ENGLISH = {"local": "this machine", "ssh": "SSH hosts", "kube": "Kubernetes"}


class Words:
    def __init__(self, language: str) -> None:
        self.language = language if language in LANGUAGES else "en"
        self._catalogue = _catalogue(self.language)

    def __call__(self, text: str, /, **values: object) -> str:
        found = self._catalogue.get(text) or _ENGLISH.get(text, text)
        return found.format(**values) if values else found

    def of(self, sentence: str) -> str:
        """What an engine said, which it says in English."""
        if self.language != "zh":
            return sentence
        from oarsman.service.spoken import in_chinese

        return in_chinese(sentence)

    def refusal(self, error: OarsmanError) -> str:
        """Why something was not done, and what would help."""
        return self.of(error.message) + (f" ({self.of(error.hint)})" if error.hint else "")

    @property
    def other(self) -> str:
        """The language to switch to."""
        return "en" if self.language == "zh" else "zh"


def _catalogue(language: str) -> Mapping[str, str]:
    if language != "zh":
        return {}
    from oarsman.console.chinese import CATALOGUE

    return CATALOGUE


def chosen(cookies: Mapping[str, str], accept_language: str) -> str:
    """A choice made before comes first; then what the browser prefers, in its order."""
    if cookies.get(COOKIE) in LANGUAGES:
        return cookies[COOKIE]
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
