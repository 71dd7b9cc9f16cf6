"""Who a token belongs to, and what its owner may do: asked of the cluster, in the owner's own name where possible.

Kubernetes 1.26 and newer tell anybody who they are (SelfSubjectReview). Before that, a service that may create
TokenReviews can ask. Without either, the token asks what every known user may ask: an answer means that the server
accepted it, so what it says of its owner was signed by somebody the server trusts.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from oarsman.backends.kube.backend import KubeBackend
from oarsman.backends.kube.lookups import may
from oarsman.engines.kube.client import Access, Forbidden, Kube, NotFound, Unauthorized
from oarsman.engines.kube.client.credentials import Fixed, bearer
from oarsman.engines.kube.client.reviews import is_token, owner_of

_GROUP: Final = "authentication.k8s.io"
_VERSIONS: Final = ("v1", "v1beta1", "v1alpha1")
_NOBODY: Final = "system:anonymous"
_LONGEST_NAME: Final = 200


@dataclass(frozen=True, slots=True)
class TokenOwner:
    """Somebody whom the cluster knows."""

    name: str
    expires: datetime | None = None  # of the token, if it says so itself


class Reviewer:
    """`access`: the server; its credentials are not used. `own`: who may be allowed to review tokens, if anybody is."""

    def __init__(self, access: Access, own: Access | None = None) -> None:
        self._anybody = KubeBackend(replace(access, credentials=Fixed({})))
        self._own = KubeBackend(own) if own is not None else None
        self._versions: tuple[str, ...] = _VERSIONS  # those the server may have; none is asked for twice in vain

    async def known(self, token: str) -> TokenOwner | None:
        """None: the cluster does not accept it. Raises ClusterError where the cluster does not answer."""
        if not is_token(token):
            return None
        try:
            name = await self._name(token)
        except Unauthorized:
            return None
        return TokenOwner(name[:_LONGEST_NAME], expiry(token)) if name and name != _NOBODY else None

    async def close(self) -> None:
        for backend in (self._anybody, self._own):
            if backend is not None:
                await backend.close()

    async def _name(self, token: str) -> str:
        kube = await self._anybody.kube()
        said = await self._self_review(kube, bearer(token))
        if said is None and self._own is not None:
            said = await _token_review(await self._own.kube(), token)
        if said is None:
            # Unauthorized, if the server does not take the token; the answer itself does not matter.
            await may(kube, "get", None, headers=bearer(token))
            said = str(claims(token).get("sub") or "") or "a token without a name"
        return said

    async def _self_review(self, kube: Kube, headers: Mapping[str, str]) -> str | None:
        """None: the server has no such question, or lets nobody ask it."""
        for version in self._versions:
            body = {"apiVersion": f"{_GROUP}/{version}", "kind": "SelfSubjectReview"}
            path = f"/apis/{_GROUP}/{version}/selfsubjectreviews"
            try:
                answer = await kube.raw("POST", path, body=body, headers=headers)
            except NotFound:
                self._versions = tuple(one for one in self._versions if one != version)
            except Forbidden:
                return None
            else:
                return str(answer["status"]["userInfo"].get("username") or "")
        return None


async def _token_review(kube: Kube, token: str) -> str | None:
    """None: we may not ask; empty: the token is nobody's."""
    try:
        user = await owner_of(kube, token)
    except (Forbidden, Unauthorized):
        return None
    return str(user["username"]) if user is not None else ""


# -- what a token says of itself: only to be believed once the server has accepted it ------------------
def claims(token: str) -> Mapping[str, Any]:
    try:
        payload = token.split(".")[1]
        found = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except (IndexError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def namespace_of(token: str) -> str | None:
    """Where the service account lives whose token it says it is; to look there first, not to believe anything."""
    parts = str(claims(token).get("sub") or "").split(":")
    return parts[2] if len(parts) == 4 and parts[:2] == ["system", "serviceaccount"] else None


def expiry(token: str) -> datetime | None:
    said = claims(token).get("exp")
    if isinstance(said, bool) or not isinstance(said, int | float):
        return None
    try:
        return datetime.fromtimestamp(said, UTC)
    except (ValueError, OverflowError, OSError):
        return None
