"""Racks of SSH hosts in the supervisor: the engine that runs jobs there, and the room they have."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from oarsman.control import host_state
from oarsman.control.admission import RackLedger
from oarsman.control.loop import Ground
from oarsman.engines.hosts.core.engine import BareEngine
from oarsman.engines.hosts.core.job_spec import read_spec
from oarsman.engines.hosts.ssh.host_facts import Recalled, Surveys
from oarsman.engines.hosts.ssh.inventory import Inventory
from oarsman.engines.hosts.ssh.probe import HostFacts
from oarsman.engines.hosts.ssh.transport import OverSsh
from oarsman.engines.hosts.ssh.trouble import Trouble
from oarsman.errors import StoreError
from oarsman.store.paths import Places

log = logging.getLogger("oarsman")


def ground_of_racks(places: Places, concerned: Callable[[str], None]) -> Ground:
    known = surveys(places)

    def placed(uid: str) -> Mapping[str, str]:
        try:
            spec: Mapping[str, Any] = read_spec(str(places.job(uid)))
        except (OSError, ValueError):
            return {}
        return dict(spec.get("placement", {}))

    engine = BareEngine(job_folder=places.job, run_folder=places.job_run, transport=OverSsh(known))
    return Ground(engine, RackLedger(known, concerned, placed))


def surveys(places: Places) -> Surveys:
    """What they find is kept in this state, and recalled from it."""
    return Surveys(
        left_out=partial(host_state.left_out, places=places), keep=partial(_keep, places),
        recall=partial(_recall, places),
    )  # fmt: skip


def _keep(
    places: Places, inventory: Inventory, facts: Mapping[str, HostFacts], troubles: Mapping[str, Trouble]
) -> None:
    try:
        host_state.keep(inventory, facts, troubles, places)
    except StoreError as error:  # it is for people to look at; jobs can do without
        log.warning("%s", error)


def _recall(places: Places, inventory: Inventory) -> Recalled | None:
    """What somebody heard from all the hosts not long ago."""
    known = host_state.known(inventory, places)
    if any(one.at is None for one in known.values()):
        return None
    return Recalled(
        facts={name: one.facts for name, one in known.items() if one.facts is not None and one.trouble is None},
        troubles={name: one.trouble for name, one in known.items() if one.trouble is not None},
        age=time.time() - min(one.at or 0.0 for one in known.values()),
    )
