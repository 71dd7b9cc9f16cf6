"""What every model on the wire has in common, and how one is derived from a dataclass of the job's state."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import GenericAlias
from typing import Annotated, Any, Self, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WrapValidator, create_model
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from oarsman.job.state import Described, described
from oarsman.text.sentence import Text

Name = Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$", max_length=253)]
Label = Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$", max_length=63)]


def _kept(value: Any, validate: Callable[[Any], str]) -> str:
    return value if isinstance(value, Text) else validate(value)


# A string to programs. In this process it stays what it was made of, and pages say it in the reader's language.
Sentence = Annotated[str, WrapValidator(_kept)]


def _number(value: Any) -> Any:
    if isinstance(value, bool):
        raise PydanticCustomError("int_type", "Input should be a valid integer")
    return value


NUMBER = BeforeValidator(_number)  # of what is sent: true is no 1


def few(most: int, *kinds: type) -> BeforeValidator:
    """Of what is sent: at most so many items, each of these kinds. By itself each of a hundred thousand would be a
    mistake of its own, or four, which takes the event loop a minute to tell."""

    def check(value: Any) -> Any:
        items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        if len(items) > most:
            raise PydanticCustomError("too_many", "there are more than {most} items", {"most": most})
        if kinds and not all(isinstance(item, kinds) for item in items):
            raise PydanticCustomError("kind", "there is an item of another kind")
        return value

    return BeforeValidator(check)


MOST_VALUES = 20_000


def is_small(document: Any) -> bool:
    """Whether a document has few enough values to be gone through: of a hundred thousand each writing takes seconds."""
    left, parts = MOST_VALUES, [document]
    while parts and left >= 0:
        part = parts.pop()
        items = part.values() if isinstance(part, Mapping) else part if isinstance(part, list) else ()
        left -= len(items)
        parts += items
    return left >= 0


def _small(document: Any) -> Any:
    if not is_small(document):
        raise PydanticCustomError("too_many", "there are more than {most} values", {"most": MOST_VALUES})
    return document


Document = Annotated[Mapping[str, Any], BeforeValidator(_small)]


class Value(BaseModel):
    # Built when first used: a call of the command imports all models, and uses a few.
    model_config = ConfigDict(
        frozen=True, alias_generator=to_camel, populate_by_name=True, extra="forbid", defer_build=True
    )

    @classmethod
    def of(cls, found: object) -> Self:
        """Of something that has attributes with the names of the fields."""
        return cls.model_validate(found, from_attributes=True)


def build_all(cls: type[Value] = Value) -> None:
    """Now, and whatever is made of them at once, too: FastAPI counts on it."""
    for model in cls.__subclasses__():
        model.model_config["defer_build"] = False
        model.model_rebuild()
        build_all(model)


def derived(name: str, cls: type, models: Mapping[type, type[Value]], *, module: str) -> Any:
    """A model with the fields of a described dataclass; `models`: which ones stand for the dataclasses in it."""
    fields: dict[str, Any] = {one.name: _field(one, models) for one in described(cls) if one.says.api}
    return create_model(name, __base__=Value, __module__=module, **fields)


def _field(one: Described, models: Mapping[type, type[Value]]) -> tuple[Any, Any]:
    if one.optional:
        return (Sentence if one.says.sentence else models.get(one.type, one.type)) | None, None
    type_ = GenericAlias(Sequence, get_args(one.type)[:1]) if get_origin(one.type) is tuple else one.type
    type_ = Sentence if one.says.sentence else type_
    return type_, one.field.default if one.has_default else ...
