"""What the cluster says of somebody else's token: whose it is, and whether its owner may get a path."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from oarsman.engines.kube.client.kube import Kube

_LONGEST_TOKEN: Final = 16_384
_TOKEN: Final = re.compile(r"[A-Za-z0-9._~+/-]+=*")  # what may follow "Bearer" in a header
_REVIEWS: Final = "/apis/authentication.k8s.io/v1/tokenreviews"
_RIGHTS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


def is_token(text: str) -> bool:
    """Whether it can be one at all: nothing else is sent to the cluster."""
    return len(text) <= _LONGEST_TOKEN and _TOKEN.fullmatch(text) is not None


async def owner_of(kube: Kube, token: str) -> Mapping[str, Any] | None:
    """As the cluster describes a user; None: the token is nobody's. Raises Forbidden where we may not ask."""
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
    status = (await kube.raw("POST", _REVIEWS, body=body)).get("status") or {}
    user = status.get("user") or {}
    return user if status.get("authenticated") and user.get("username") else None


async def may_get(kube: Kube, user: Mapping[str, Any], path: str) -> bool:
    """Whether that user may `get` a path of a server that is no object, as rules with nonResourceURLs allow it."""
    who = {"user": user["username"], "uid": user.get("uid"), "groups": user.get("groups"), "extra": user.get("extra")}
    asked = {"nonResourceAttributes": {"path": path, "verb": "get"}}
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {name: value for name, value in who.items() if value} | asked,
    }
    status = (await kube.raw("POST", _RIGHTS, body=body)).get("status") or {}
    return status.get("allowed") is True
