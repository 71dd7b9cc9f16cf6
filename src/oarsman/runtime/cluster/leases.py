"""Whether an operator is there: it holds a lease and renews it every few seconds."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from oarsman import names
from oarsman.engines.kube.client import Forbidden, Kube, resources
from oarsman.runtime.operator_settings import LEASE_NAME

_INSTALL = "`oarsman install --image IMAGE` sets one up; `oarsman doctor --on kube` looks closer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Leader:
    holder: str
    namespace: str
    silent_seconds: float
    lasts_seconds: float
    watches: tuple[str, ...] = ()  # namespaces; none: all

    @property
    def alive(self) -> bool:
        return bool(self.holder) and self.silent_seconds <= self.lasts_seconds

    def serves(self, namespace: str) -> bool:
        return not self.watches or namespace in self.watches


async def leaders(kube: Kube) -> list[Leader]:
    """Every operator's lease, the liveliest first. Raises Forbidden if this user may not look."""
    found = await kube.list(resources.LEASES, fields=f"metadata.name={LEASE_NAME}")
    return sorted((_leader(item) for item in found), key=lambda leader: leader.silent_seconds)


def _leader(item: dict[str, Any]) -> Leader:
    spec = item.get("spec") or {}
    renewed = spec.get("renewTime")
    silent = (datetime.now(UTC) - datetime.fromisoformat(renewed)).total_seconds() if renewed else float("inf")
    watches = (item["metadata"].get("annotations") or {}).get(names.ANNOTATION_WATCHES) or ""
    return Leader(
        holder=spec.get("holderIdentity") or "", namespace=item["metadata"]["namespace"], silent_seconds=silent,
        lasts_seconds=float(spec.get("leaseDurationSeconds") or 15),
        watches=tuple(name for name in watches.split(",") if name),
    )  # fmt: skip


async def served(kube: Kube, namespace: str) -> bool | None:
    """Whether an operator is there that looks after jobs of the namespace; None if this user may not look."""
    try:
        return any(leader.alive and leader.serves(namespace) for leader in await leaders(kube))
    except Forbidden:
        return None


async def why_silent(kube: Kube, namespace: str) -> str:
    """For a job that nobody has looked at."""
    try:
        found = await leaders(kube)
    except Forbidden:
        return f"no operator has looked at the job yet; {_INSTALL}"
    alive = [leader for leader in found if leader.alive]
    if serving := [leader for leader in alive if leader.serves(namespace)]:
        return f"the operator ({serving[0].holder}) has not looked at the job yet"
    if alive:
        return (
            f"{alive[0].holder} looks after jobs in {', '.join(alive[0].watches)} alone, not in {namespace}; {_INSTALL}"
        )
    if found and found[0].holder:
        return (
            f"no operator is running: {found[0].holder} has been silent for {found[0].silent_seconds:.0f}s; {_INSTALL}"
        )
    return f"no operator seems to be running on this cluster; {_INSTALL}"
