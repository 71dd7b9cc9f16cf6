"""Dataclasses that say what their fields are, so that other forms of them are derived and not written again.

A field is `Annotated[type, Says(...)]`, or just its type where that says it all. What Kubernetes keeps
(`status/codec.py`), its schema (`manifest/crd_status.py`) and the models of the REST API (`service/models/`)
are derived from it.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, MISSING, Field, dataclass, fields
from functools import cache
from types import NoneType
from typing import Annotated, Any, get_args, get_origin, get_type_hints


@dataclass(frozen=True, slots=True)
class Says:
    what: str = ""  # the description; of a dataclass: where its docstring is not
    _: KW_ONLY
    wire: str = ""  # the name in Kubernetes, where it is not the camelCase of its own; a.b: b in the mapping a
    always: bool = False  # written when it is empty, too
    required: bool = False  # nothing that lacks it is one of these
    filled: bool = False  # of a text: never empty
    words: tuple[str, ...] = ()  # the only ones that it may be; of a bool: it is written as True or False, in words
    bits: int = 32  # of a number
    key: str = ""  # of a list: the field that tells its items apart
    otherwise: str = ""  # the wire name of the field that stands in for it where it is missing
    api: bool = True  # the REST API shows it
    sentence: bool = False  # of a text: it is made of a template and arguments, which are kept beside it


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """One field: its dataclass, its type and what it says, taken together."""

    name: str
    wire: str
    type: Any  # without None
    says: Says
    field: Field[Any]

    @property
    def has_default(self) -> bool:
        return self.field.default is not MISSING or self.field.default_factory is not MISSING

    @property
    def optional(self) -> bool:
        return self.field.default is None


@cache
def described(cls: type) -> tuple[Described, ...]:
    hints = get_type_hints(cls, include_extras=True)
    return tuple(_described(field, hints[field.name]) for field in fields(cls))


def _described(field: Field[Any], hint: Any) -> Described:
    type_, says = get_args(hint) if get_origin(hint) is Annotated else (hint, Says())
    kinds = [kind for kind in get_args(type_) if kind is not NoneType]
    bare = kinds[0] if NoneType in get_args(type_) else type_
    return Described(name=field.name, wire=says.wire or camel(field.name), type=bare, says=says, field=field)


def camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
