"""`hosts trust` for a face that nobody types passwords into: hosts that a key opens take part, the others are named.

What would be changed is looked at first. To do it, the mark of what was seen is handed back: where the hosts, their
keys or their files are others by then, nothing is done.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from oarsman.control import host_state
from oarsman.engines.hosts.ssh.inventory import Inventory
from oarsman.engines.hosts.ssh.trouble import Trouble
from oarsman.engines.hosts.ssh.trust.changes import TrustChange
from oarsman.engines.hosts.ssh.trust.files import PublicKey
from oarsman.engines.hosts.ssh.trust.trust import Pair, Trust, TrustPlan
from oarsman.errors import ConflictError
from oarsman.store.paths import Paths
from oarsman.text.sentence import Text


@dataclass(frozen=True, slots=True, kw_only=True)
class Trusting:
    seen: str  # the mark of all that follows, but for what was done and tried
    inventory: Path
    new_host_keys: Mapping[str, PublicKey]
    changes: Sequence[tuple[str, TrustChange]]  # each with its file
    refused: Sequence[tuple[str, str]]  # on which host which other one has another key
    left_out: Sequence[tuple[str, Trouble]]
    need_password: Sequence[str]
    done: Sequence[tuple[str, TrustChange]] = ()
    logins: Sequence[Pair] = ()


async def trust_hosts(
    inventory: Inventory, *, undo: bool, seen: str | None = None, home: Path | None = None, paths: Paths | None = None
) -> Trusting:
    """`seen`: do it, if it is still what had that mark; None: only look."""
    with Trust(inventory, home=home or Path.home()) as trust:
        await trust.look()
        plan = await (trust.plan_undo() if undo else trust.plan())
        found = _told(trust, plan)
        if seen is None:
            return found
        if seen != found.seen:
            raise ConflictError(
                Text("what would be changed is not what you have seen any more"), hint=Text("look at it again")
            )
        try:
            if plan.changes:
                await (trust.carry_out_undo(plan) if undo else trust.carry_out(plan))
            return _told(trust, plan, () if undo else await trust.verify())
        finally:
            host_state.forget(inventory, paths)  # whoever could not be logged in to perhaps can be now


def _told(trust: Trust, plan: TrustPlan, logins: Sequence[Pair] = ()) -> Trusting:
    locked = {host.name for host in trust.locked}
    changes = [(_file(trust, change), change) for change in plan.changes]
    refused = [(place, name) for place, work in plan.work.items() for name in work.refused]
    keys = {name: str(key) for name, key in trust.learned.items()}
    mark = [trust.mark, keys, [(file, asdict(change)) for file, change in changes], refused]
    return Trusting(
        seen=hashlib.sha256(json.dumps(mark, sort_keys=True).encode()).hexdigest()[:32],
        inventory=trust.inventory.file,
        new_host_keys=dict(trust.learned),
        changes=changes,
        refused=refused,
        left_out=[(name, found) for name, found in trust.troubles.items() if name not in locked],
        need_password=sorted(locked),
        done=[(_file(trust, change), change) for change in trust.done],
        logins=logins,
    )


def _file(trust: Trust, change: TrustChange) -> str:
    return f"~/.ssh/{change.file}" if change.place else trust.file_here(change.file)
