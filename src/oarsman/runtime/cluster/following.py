"""Objects as they are now and after each change, for as long as somebody looks.

A watch that the server ends is taken up where it was; history that the server forgot is read anew; a server that
went away is asked again, for a while.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any, Final

from oarsman.engines.kube.client import Gone, Kube, Resource, TooManyRequests, Unavailable
from oarsman.engines.kube.client.pace import Pauses

Document = dict[str, Any]
_PAUSES: Final = Pauses(first=0.2, most=3.0)
_PATIENCE_SECONDS: Final = 120.0  # without a server; the first question is asked without any


async def objects(
    kube: Kube, resource: Resource, namespace: str | None, *, labels: str = "", fields: str = ""
) -> AsyncGenerator[Mapping[str, Document]]:
    """Every object of the selection by its name. Never ends by itself."""
    known: dict[str, Document] = {}
    version, failures, silent_since = "", 0, time.monotonic()
    while True:
        try:
            if not version:
                found, version = await _all(kube, resource, namespace, labels, fields)
                known = {item["metadata"]["name"]: item for item in found}
                yield dict(known)
            failures, silent_since = 0, time.monotonic()
            changes = kube.watch(resource, namespace, labels=labels, fields=fields, since=version)
            async with aclosing(changes):
                async for change in changes:
                    failures, silent_since = 0, time.monotonic()
                    if change.object is None:
                        version = change.version
                        continue
                    metadata = change.object["metadata"]
                    version = metadata["resourceVersion"]
                    if change.type == "DELETED":
                        known.pop(metadata["name"], None)
                    else:
                        known[metadata["name"]] = change.object
                    yield dict(known)
        except Gone:
            version = ""
        except (Unavailable, TooManyRequests):
            failures += 1
            if (not known and not version) or time.monotonic() - silent_since > _PATIENCE_SECONDS:
                raise
            await asyncio.sleep(_PAUSES.after(failures))


async def one(kube: Kube, resource: Resource, namespace: str | None, name: str) -> AsyncGenerator[Document]:
    """One object until it is gone. Another one of the same name is not the same."""
    uid = None
    async with aclosing(objects(kube, resource, namespace, fields=f"metadata.name={name}")) as states:
        async for state in states:
            found = state.get(name)
            if found is None or uid not in (None, found["metadata"]["uid"]):
                return
            uid = found["metadata"]["uid"]
            yield found


async def _all(
    kube: Kube, resource: Resource, namespace: str | None, labels: str, fields: str
) -> tuple[list[Document], str]:
    items: list[Document] = []
    version = ""
    async for page in kube.pages(resource, namespace, labels=labels, fields=fields):
        items = page.items if page.first else items + page.items
        version = page.version
    return items, version
