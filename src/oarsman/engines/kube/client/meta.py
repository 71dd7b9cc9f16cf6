"""The part all objects share."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

import msgspec


class Owner(msgspec.Struct, frozen=True, rename="camel"):
    kind: str
    name: str
    uid: str
    api_version: str = ""
    controller: bool | None = None


class Meta(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    labels: dict[str, str] = {}  # an empty one is made anew for each object by msgspec
    annotations: dict[str, str] = {}
    owner_references: list[Owner] = []

    @property
    def controller(self) -> Owner | None:
        """The one owner that manages the object."""
        return next((owner for owner in self.owner_references if owner.controller), None)


class HasMeta(Protocol):
    """What a view needs to be kept by an informer."""

    @property
    def metadata(self) -> Meta: ...


class PartialObject(msgspec.Struct, frozen=True):
    """An object of any kind; with `metadata_only` the server sends no more than this."""

    metadata: Meta
