"""What tests do to objects of a real API server."""

from __future__ import annotations

from oarsman.engines.kube.client import Kube, PartialObject, Resource


async def delete(kube: Kube, resource: Resource, name: str, namespace: str | None = None) -> bool:
    """Whatever has the name now; the program itself only deletes what it has looked at before."""
    found = await kube.get(resource, name, namespace, view=PartialObject)
    return await kube.delete(resource, name, namespace, uid=found.metadata.uid)
