"""Secrets in texts, and stars in their place: credentials in addresses, and values by their names.

Nothing here can know every secret. What it can tell: credentials in front of the host of a URL, parameters of a URL and
assignments whose names say what they are. What only names a variable, such as ${TOKEN}, is no secret.

Repetitions have limits where a text could make them take long: what is looked through is what anybody sent.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

MASK = "****"
_TOKEN = (
    r"(?:(?<![A-Za-z])|(?<=[a-z])(?=[A-Z]))(?i:token)(?!(?i:s|iz)|[a-z])"  # max_tokens and tokenizer are no secrets
)
_WORD = r"(?i:secret|passwo?r?d|passphrase|(?:api|access|private)[_-]?key|credential|signature|authorization)"
_NAME = rf"(?:{_WORD}|{_TOKEN})"
# Also a password with a slash in it, which no program takes for one: it was meant to be. host:80/path@x has none.
_URL = re.compile(
    r"(?P<before>\b(?P<scheme>[A-Za-z][A-Za-z0-9+.-]{0,20}):/{2})"
    r"(?P<secret>[^\s/?#]+|[^\s/?#:@]*:(?!\d+[/?#])\S{1,64})@"
)
_PARAMETER = re.compile(
    rf"(?P<before>[?&;][\w.~-]{{0,60}}(?:{_NAME}|\b(?i:auth|key|sig|pwd))[\w.~-]{{0,60}}=)(?P<secret>[^\s&;#\"'<>]+)"
)
_ASSIGNMENT = re.compile(
    rf"(?P<before>(?<![\w.?&;-])(?:--[\w-]{{0,60}}{_NAME}[\w-]{{0,60}}(?:=|\s+)|[\w.-]{{0,60}}{_NAME}[\w.-]{{0,60}}=))"
    r"(?P<secret>\"[^\"]*\"|'[^']*'|[^\s\"',;]+)"
)
_HEADER = re.compile(r"(?P<before>\b(?i:authorization:\s*\w+|bearer)\s+)(?P<secret>[^\s\"',;]+)")
_TELLING = re.compile(rf"{_NAME}|(?<![A-Za-z])(?i:pass|key|pat|auth|cookie)(?![A-Za-z])|_(?i:pwd)\b")
_OPTION = re.compile(rf"--?[\w-]{{0,60}}{_NAME}[\w-]{{0,60}}")
_DOCUMENT = re.compile(r"\s*[\[{]")
_VARIABLES = re.compile(r"(?:\$\{\w+\}|\$\(\w+\)|:)+")
_SHORTEST = 4  # of what is looked for elsewhere: a shorter one is part of many words


def masked(text: str) -> str:
    """Without credentials in URLs. Nothing is left of them that could be used, the name of a user neither: with many
    servers that is the token."""
    text = _URL.sub(lambda url: f"{url['before']}{MASK}@" if _opens(url) else url[0], text)
    return _PARAMETER.sub(_starred, text)


def secrets_in(text: str) -> frozenset[str]:
    """What `masked` takes out, and its parts, also as they are before they are quoted."""
    found = set()
    for match in (*filter(_opens, _URL.finditer(text)), *_PARAMETER.finditer(text)):
        whole = match["secret"]
        if not _VARIABLES.fullmatch(whole):
            found |= {whole, *(whole.split(":") if match.re is _URL else ())}
    return frozenset(
        each for said in found for each in (said, unquote(said)) if len(each) >= _SHORTEST and each != MASK
    )


def hidden(value: Any, name: str = "") -> Any:
    """A document without what its names call secret, and without such assignments, options and URLs in its texts.

    One within an annotation, as sweeps and kubectl keep theirs, is not looked through: nothing of it is left.
    """
    if isinstance(value, Mapping):
        names = {"value": str(value.get("name", ""))}
        if name in ("annotations", "labels"):
            names = {key: "secret" if _DOCUMENT.match(str(item)) else key for key, item in value.items()}
        return {key: _starred_if(names.get(key, ""), item) or hidden(item, key) for key, item in value.items()}
    if isinstance(value, list | tuple):
        options = ["", *(each if isinstance(each, str) and _OPTION.fullmatch(each) else "" for each in value)]
        return [_starred_if(option, item) or hidden(item) for option, item in zip(options, value, strict=False)]
    return _HEADER.sub(_starred, _ASSIGNMENT.sub(_starred, masked(value))) if isinstance(value, str) else value


def _starred_if(name: str, value: object) -> str:
    return MASK if value and isinstance(value, str) and _TELLING.search(name) else ""


def _opens(url: re.Match[str]) -> bool:
    """The name of a user for ssh is none: ssh://git@host asks for a key."""
    named_alone = url["scheme"].lower().endswith("ssh") and ":" not in url["secret"]
    return not named_alone and not _VARIABLES.fullmatch(url["secret"])


def _starred(match: re.Match[str]) -> str:
    return match[0] if _VARIABLES.fullmatch(match["secret"]) else f"{match['before']}{MASK}"
