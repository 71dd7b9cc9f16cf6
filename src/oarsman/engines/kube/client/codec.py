"""Bytes to values and back. Only what a view names is kept."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, Literal, Protocol, TypedDict

import msgspec
from typing_extensions import TypeVar

from oarsman.engines.kube.client.errors import Refusal, Unavailable, Unreadable, from_refusal
from oarsman.text.sentence import Text, plain

_SHARED: dict[str, str] = {}
_MOST_SHARED = 20_000
_SHORT = 64
_ALL_THERE = "k8s.io/initial-events-end"


def shared(text: str) -> str:
    """What many objects say alike is kept once. Those of a job come together, so it may be forgotten now and then."""
    if len(_SHARED) >= _MOST_SHARED:
        _SHARED.clear()
    return _SHARED.setdefault(text, text)


def _if_short(text: str) -> str:
    return shared(text) if len(text) <= _SHORT else text


class Owner(msgspec.Struct, frozen=True, rename="camel", gc=False):
    kind: str
    name: str
    uid: str
    controller: bool | None = None

    def __post_init__(self) -> None:
        for field in ("kind", "name", "uid"):
            msgspec.structs.force_setattr(self, field, shared(getattr(self, field)))


class Meta(msgspec.Struct, frozen=True, rename="camel", gc=False):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    labels: dict[str, str] = {}  # an empty one is made anew for each object by msgspec
    annotations: dict[str, str] = {}
    owner_references: tuple[Owner, ...] = ()

    def __post_init__(self) -> None:
        keep = msgspec.structs.force_setattr
        keep(self, "namespace", shared(self.namespace))
        keep(self, "labels", {shared(name): shared(value) for name, value in self.labels.items()})
        keep(self, "annotations", {shared(name): _if_short(value) for name, value in self.annotations.items()})

    @property
    def controller(self) -> Owner | None:
        """The one owner that manages the object."""
        return next((owner for owner in self.owner_references if owner.controller), None)


class HasMeta(Protocol):
    """What a view needs to be kept by an informer."""

    @property
    def metadata(self) -> Meta: ...


class PartialObject(msgspec.Struct, frozen=True):
    """An object of any kind: what all of them have in common."""

    metadata: Meta


T = TypeVar("T", default=dict[str, Any])
WHOLE: Any = dict  # the view that keeps everything

_log = logging.getLogger(__name__)


class Selection(TypedDict, total=False):
    """Which objects of a resource are meant; all, if nothing is said."""

    labels: str
    fields: str


@dataclass(frozen=True, slots=True)
class Listed(Generic[T]):
    """A part of all there is. `first`: what was listed before no longer counts; `last`: what was not listed is gone.

    `restored`: the cluster went back in time, as it does when a backup is restored.
    """

    items: list[T]
    version: str
    first: bool = False
    last: bool = False
    restored: bool = False


@dataclass(frozen=True, slots=True)
class WatchChange(Generic[T]):
    """What a watch tells. A bookmark has no object, only the version up to which everything was told.

    `all_there`: a watch that begins with what is there has told all of it.
    """

    type: Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]
    object: T | None
    version: str = ""
    all_there: bool = False


class ListMeta(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class Listing(msgspec.Struct, Generic[T], frozen=True):
    items: list[T] | None
    metadata: ListMeta = ListMeta()


class _Event(msgspec.Struct, frozen=True):
    type: str
    object: msgspec.Raw  # what it is depends on the type


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, str):
        return plain(value)
    raise TypeError(f"{type(value).__name__} has no place in a document")


_decoder: Callable[[Any], msgspec.json.Decoder[Any]] = functools.cache(msgspec.json.Decoder)
_EVENTS = msgspec.json.Decoder(_Event)
encode = msgspec.json.Encoder(enc_hook=_plain).encode


def decode(trying: str, body: bytes | msgspec.Raw, view: type[T]) -> T:
    try:
        found: T = _decoder(view).decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Unreadable(
            trying, Text("the answer cannot be read: {why}", why=error), hint=Text("is this a Kubernetes API server?")
        ) from error
    return found


def decode_list(trying: str, body: bytes, view: Any) -> Listing[Any]:
    """Objects that the view does not fit are left out: one odd object must not hide all the others."""
    try:
        found: Listing[Any] = _decoder(Listing[view]).decode(body)
    except msgspec.ValidationError:
        raw = decode(trying, body, Listing[msgspec.Raw])
        readable = [item for one in raw.items or () if (item := _readable(trying, one, view)) is not None]
        return Listing(items=readable, metadata=raw.metadata)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Unreadable(trying, Text("the answer cannot be read: {why}", why=error)) from error
    return found


def decode_change(trying: str, line: bytes, view: type[T]) -> WatchChange[T] | None:
    """None: nothing that the view can show."""
    try:
        event = _EVENTS.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Unavailable(trying, Text("the stream broke: {why}", why=error)) from error
    match event.type:
        case "ADDED" | "MODIFIED" | "DELETED":
            item = _readable(trying, event.object, view)
            return None if item is None else WatchChange(event.type, item)
        case "BOOKMARK":
            meta = decode(trying, event.object, PartialObject).metadata
            all_there = meta.annotations.get(_ALL_THERE) == "true"
            return WatchChange("BOOKMARK", None, meta.resource_version, all_there)
        case "ERROR":
            raise from_refusal(trying, 0, decode(trying, event.object, Refusal))
    return None


def _readable(trying: str, raw: msgspec.Raw, view: type[T]) -> T | None:
    try:
        found: T = _decoder(view).decode(raw)
    except msgspec.ValidationError as error:
        meta = decode(trying, raw, PartialObject).metadata
        _log.warning("%s: %s/%s cannot be read and is left out: %s", trying, meta.namespace, meta.name, error)
        return None
    return found
