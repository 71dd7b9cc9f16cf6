"""What a plain word in YAML means: the YAML 1.2 core rules, which agree with what JSON can hold.

YAML 1.1, as PyYAML reads it, turns `on` into true, `12:30:45` into 45045 and `2019-07-09` into a
date. Pod templates are full of such words, always meant as text.
"""

from __future__ import annotations

import math
import re

from oarsman.text.sentence import Text

_NULLS = frozenset(("", "~", "null", "Null", "NULL"))
_BOOLEANS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_DECIMAL = re.compile(r"[-+]?[0-9]+\Z")
_BASED = re.compile(r"0o[0-7]+\Z|0x[0-9a-fA-F]+\Z")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z")
_NOT_FINITE = re.compile(r"([-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))\Z")
_LEADING_ZERO = re.compile(r"[-+]?0[0-9]+\Z")
_INT64 = range(-(2**63), 2**64)
_LONGEST_NUMBER = 64

# Fields of core/v1 whose values are file modes. There, and only there, 0644 is octal by custom.
MODE_FIELDS = frozenset(("defaultMode", "mode"))

_TAG = "tag:yaml.org,2002:"
_TYPES = {"int": Text("int"), "float": Text("float"), "bool": Text("bool"), "null": Text("null")}
_STANDARD_TAGS = frozenset(_TAG + t for t in ("str", *_TYPES))


class ScalarError(ValueError):
    """The word cannot be read; the text says why and what to write."""


def resolve(word: str, *, field: str = "") -> object:
    """The value of a plain word: None, bool, int, float or str."""
    if word in _NULLS:
        return None
    if word[0] not in "+-.0123456789":
        return _BOOLEANS.get(word, word)
    if _LEADING_ZERO.match(word):
        if field in MODE_FIELDS and set(word) <= set("01234567") and len(word) < 12:
            return int(word, 8)
        template = Text(
            "{word} starts with a zero, which some readers take as octal; leave it out, or quote it if it is text"
        )
        raise ScalarError(Text(template, word=word[:40]))
    if _DECIMAL.match(word) or _BASED.match(word):
        return _integer(word)
    if _FLOAT.match(word):
        return _float(word)
    if _NOT_FINITE.match(word):
        raise ScalarError(Text("{word} is not a number JSON can hold; quote it if it is text", word=word))
    return word


def resolve_tagged(word: str, tag: str) -> object:
    """A scalar with an explicit tag such as !!str; only those with a meaning in JSON are taken."""
    if tag in ("!", f"{_TAG}str"):
        return word
    if tag not in _STANDARD_TAGS:
        shown = f"{tag.replace(_TAG, '!!')!a}"
        raise ScalarError(Text("the tag {tag} has no meaning in a manifest; leave it out", tag=shown))
    value = resolve(word)
    wanted = {f"{_TAG}int": int, f"{_TAG}float": float, f"{_TAG}bool": bool, f"{_TAG}null": type(None)}[tag]
    if wanted is float and type(value) is int:
        return float(value)
    if type(value) is not wanted:
        raise ScalarError(Text("{given} is not a {type}", given=f"{word[:40]!r}", type=_TYPES[tag.removeprefix(_TAG)]))
    return value


def _integer(word: str) -> int:
    if len(word) > _LONGEST_NUMBER:
        raise ScalarError(Text("the number is too large; quote it if it is text"))
    value = int(word, 0) if word[:2] in ("0o", "0x") else int(word)
    if value not in _INT64:
        raise ScalarError(Text("{word} is too large for a 64-bit number; quote it if it is text", word=word))
    return value


def _float(word: str) -> float:
    value = float(word) if len(word) < 1000 else math.inf
    if math.isinf(value):
        raise ScalarError(Text("{word} is too large a number; quote it if it is text", word=word[:40]))
    return value
