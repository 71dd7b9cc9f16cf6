"""One operation of `Service`, and everything that follows from its declaration: its REST route and the request for it.

`Service` (contract.py) declares each operation once: the method says what is asked and answered, `@operation` adds how
that is asked over HTTP. Routes and the remote client are made from this; neither knows any operation by name.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from types import GenericAlias
from typing import Any, TypeVar, get_args, get_origin, get_type_hints
from urllib.parse import quote

from pydantic import BaseModel, TypeAdapter
from pydantic.fields import FieldInfo

from oarsman.errors import UsageError
from oarsman.text.sentence import Text

F = TypeVar("F", bound=Callable[..., Any])
Arguments = Mapping[str, Any]  # by name, as the method takes them
ONE_OF = {"states": "state", "ranks": "rank", "workers": "worker"}  # a parameter that may be given more than once
_NOTHING: tuple[Any, ...] = (None, "", (), [], False)


@dataclass(frozen=True, slots=True)
class Key:
    """Marks an argument "namespace/name", which a path has as two segments. `name`: what a name must look like."""

    what: str
    name: FieldInfo


@dataclass(frozen=True, slots=True)
class OperationRequest:
    method: str
    path: str
    parameters: Mapping[str, Any]
    body: Any
    unsure: str  # what nobody knows if the connection breaks; empty: asking again does no harm


@dataclass(frozen=True, kw_only=True)
class Operation:
    """`about`, `unsure` and `location` are templates that know the arguments and the `answer`."""

    ask: Callable[..., Any]  # the method of Service
    method: str
    path: str
    id: str  # in OpenAPI
    tag: str
    title: str = ""  # in OpenAPI; empty: made from the id
    status: int = 200
    noted: str = ""  # in the audit log, as this; empty: it changes nothing
    about: str = "{key}"
    unsure: str = ""  # asking twice may do it twice; the words say what nobody knows after a break
    location: str = ""  # the path of what was made
    body: type[BaseModel] | None = None  # whose fields are arguments of the method
    at: Mapping[str, Any]  # types of names in the path that are fields of the body
    resumed: Callable[[Arguments, Any], Arguments] | None = None  # how a stream goes on behind an answer, after a break

    @property
    def name(self) -> str:
        return self.ask.__name__

    @property
    def text(self) -> str:
        return inspect.cleandoc(self.ask.__doc__ or "")

    # -- what is asked -------------------------------------------------------------------------------
    @cached_property
    def _types(self) -> Mapping[str, Any]:
        return get_type_hints(self.ask, include_extras=True)

    @cached_property
    def _signature(self) -> inspect.Signature:
        return inspect.signature(self.ask)

    @cached_property
    def arguments(self) -> Mapping[str, inspect.Parameter]:
        found = list(self._signature.parameters.values())[1:]
        return {one.name: one.replace(annotation=self._types[one.name]) for one in found}

    def bind(self, *args: Any, **kwargs: Any) -> Arguments:
        bound = self._signature.bind(None, *args, **kwargs)
        bound.apply_defaults()
        return {name: bound.arguments[name] for name in self.arguments}

    @property
    def key(self) -> Key | None:
        annotation = self._types.get("key")
        return next((mark for mark in get_args(annotation) if isinstance(mark, Key)), None)

    @cached_property
    def whole_body(self) -> str:
        """The argument that is the body; empty: there is none, or several arguments are its fields."""
        if self.method == "GET" or self.body is not None:
            return ""
        kinds = {name: one.annotation for name, one in self.arguments.items()}
        return next((name for name, kind in kinds.items() if inspect.isclass(kind) and issubclass(kind, BaseModel)), "")

    @property
    def query(self) -> Sequence[inspect.Parameter]:
        """Arguments that neither the path nor the body carries."""
        carried = {"key", self.whole_body, *(self.body.model_fields if self.body is not None else ())}
        return [one for name, one in self.arguments.items() if name not in carried and f"{{{name}}}" not in self.path]

    # -- what is answered ----------------------------------------------------------------------------
    @property
    def refuses(self) -> Sequence[int]:
        """With which other statuses than those of every route: not there, not now, too much."""
        absent = self.method != "PUT" and ("{" in self.path or self.noted)  # what is put need not be there
        asked = {404: absent, 409: self.noted, 413: self.body is not None or self.whole_body}
        return [status for status, possible in asked.items() if possible]

    @property
    def answer(self) -> Any:
        """The type of the answer, or of one answer of a stream."""
        kind = self._types["return"]
        if self.streams:
            return get_args(kind)[0]
        return GenericAlias(list, get_args(kind)) if get_origin(kind) is Sequence else kind

    @property
    def streams(self) -> bool:
        return get_origin(self._types["return"]) is AsyncGenerator

    @cached_property
    def _adapter(self) -> TypeAdapter[Any]:
        return TypeAdapter(self.answer)

    def read(self, data: bytes) -> Any:
        """A newer server may say more than is understood here; what is asked of a server stays strict."""
        return self._adapter.validate_json(data, extra="ignore") if self.answer is not type(None) else None

    # -- over HTTP -----------------------------------------------------------------------------------
    def request(self, given: Arguments) -> OperationRequest:
        words = dict(given)
        body: Any = None
        if self.body is not None:
            body = _plain(self.body(**{name: given[name] for name in self.body.model_fields}))
        elif self.whole_body:
            words.update({name: getattr(given[self.whole_body], name) for name in self.at})
            body = _plain(given[self.whole_body])
        if self.key is not None:
            words["namespace"], words["name"] = parts_of(given["key"], self.key.what)
        named = {name: _segment(value) for name, value in words.items() if f"{{{name}}}" in self.path}
        parameters: dict[str, Any] = {}
        for one in self.query:
            parameters.update(_parameters(one.name, given[one.name]))
        return OperationRequest(self.method, self.path.format(**named), parameters, body, self.unsure.format(**given))


def operation(
    method: str, path: str, id: str, *, tag: str | None = None, at: Mapping[str, Any] | None = None, **more: Any
) -> Callable[[F], F]:
    """Declares a method of `Service` to be an operation; `tag`: what it is about, if that is not what its path says."""

    def declared(ask: F) -> F:
        of = tag or path.split("/")[1]
        ask.__dict__["operation"] = Operation(ask=ask, method=method, path=path, id=id, tag=of, at=at or {}, **more)
        return ask

    return declared


def operations_of(service: type) -> Mapping[str, Operation]:
    """The table: every operation by the name of its method, in the order they are declared."""
    found = (getattr(ask, "operation", None) for ask in vars(service).values())
    return {one.name: one for one in found if one is not None}


def parts_of(key: str, what: str) -> tuple[str, str]:
    namespace, slash, name = key.partition("/")
    if not (slash and namespace and name) or "/" in name or {namespace, name} & {".", ".."}:
        raise UsageError(
            Text("'{key}' is not the key of a {what}", key=key, what=what), hint=Text("a key is namespace/name")
        )
    return namespace, name


def _segment(value: str) -> str:
    if value in ("", ".", ".."):
        raise UsageError(Text("'{name}' is not a name", name=value))
    return quote(value, safe="")


def _plain(value: BaseModel) -> Any:
    return value.model_dump(mode="json", by_alias=True, exclude_defaults=True)


def _parameters(name: str, value: Any) -> Mapping[str, Any]:
    if isinstance(value, BaseModel):
        found = value.model_dump(exclude_defaults=True)
        return {ONE_OF.get(name, name): one for name, one in found.items() if one not in _NOTHING}
    if isinstance(value, datetime):
        value = value.isoformat()
    return {name: value} if value not in _NOTHING else {}
