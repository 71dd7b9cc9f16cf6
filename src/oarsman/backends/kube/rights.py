"""What somebody may do with jobs, asked of the cluster in their own name."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

from oarsman import names
from oarsman.engines.kube.client import Kube

_CHANGES: Final = ("create", "patch", "delete")


async def may(kube: Kube, verb: str, namespace: str | None, *, headers: Mapping[str, str] | None = None) -> bool:
    """Whether the asker may do that with MPIJobs there; without a namespace: in all of them."""
    attributes = {"group": names.GROUP, "resource": names.PLURAL, "verb": verb}
    if namespace:
        attributes["namespace"] = namespace
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    answer = await kube.raw("POST", path, body=body, headers=headers)
    return bool(answer.get("status", {}).get("allowed"))


async def may_change(kube: Kube, namespaces: Sequence[str | None]) -> bool:
    """Anything at all, in any of them. What exactly is refused says why when it is tried."""
    asked = [may(kube, verb, namespace) for namespace in namespaces for verb in _CHANGES]
    return any(await asyncio.gather(*asked))
