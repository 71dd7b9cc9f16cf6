"""SSH hosts in the supervisor: the engine that runs jobs there, and their admission."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from functools import partial

from oarsman.control import host_state
from oarsman.control.admission import AdmissionControl
from oarsman.control.environments import Attaching
from oarsman.engines.hosts.core.engine import HostsEngine
from oarsman.engines.hosts.core.job_spec import find_spec
from oarsman.engines.hosts.ssh.host_facts import KnownInventories, Recalled
from oarsman.engines.hosts.ssh.inventory import Inventory
from oarsman.engines.hosts.ssh.probe import HostFacts
from oarsman.engines.hosts.ssh.transport import SshTransport
from oarsman.engines.hosts.ssh.trouble import Trouble
from oarsman.errors import StoreError
from oarsman.job.job import Job
from oarsman.plan.capacity import hosts
from oarsman.store.paths import Paths

log = logging.getLogger("oarsman")


def ssh_hosts(
    paths: Paths, concerned: Callable[[str], None], environments: Attaching
) -> tuple[HostsEngine, AdmissionControl]:
    known = known_inventories(paths)

    def placed(job: Job) -> Mapping[str, str]:
        spec = find_spec(paths.job(job.uid))
        return spec.placement if spec is not None else {}

    engine = HostsEngine(job_folder=paths.job, run_folder=paths.job_run, transport=SshTransport(known))
    return engine, AdmissionControl(hosts, known.of, concerned, placed, environments)


def known_inventories(paths: Paths) -> KnownInventories:
    """What they find is kept in this state, and recalled from it."""
    return KnownInventories(
        left_out=partial(host_state.left_out, paths=paths),
        keep=partial(_keep, paths),
        recall=partial(_recall, paths),
    )


def _keep(paths: Paths, inventory: Inventory, facts: Mapping[str, HostFacts], troubles: Mapping[str, Trouble]) -> None:
    try:
        host_state.keep(inventory, facts, troubles, paths)
    except StoreError as error:  # it is for people to look at; jobs can do without
        log.warning("%s", error)


def _recall(paths: Paths, inventory: Inventory) -> Recalled | None:
    """What somebody heard from all the hosts not long ago."""
    known = host_state.known(inventory, paths)
    if any(one.at is None for one in known.values()):
        return None
    return Recalled(
        facts={name: one.facts for name, one in known.items() if one.facts is not None and one.trouble is None},
        troubles={name: one.trouble for name, one in known.items() if one.trouble is not None},
        age=time.time() - min(one.at or 0.0 for one in known.values()),
    )
