"""`hosts check`, whoever asks for it: every host, every way between two of them, a real mpirun over all of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from oarsman.backends.ssh.trial import mpirun_or_job
from oarsman.control import host_state
from oarsman.engines.hosts.ssh.client import Ssh
from oarsman.engines.hosts.ssh.diagnose import OK, Diagnosis, Finding, unfit
from oarsman.engines.hosts.ssh.diagnose.diagnosis import Speed, measure
from oarsman.engines.hosts.ssh.inventory import Inventory, SshHost
from oarsman.errors import NotFoundError
from oarsman.store.paths import Paths
from oarsman.text.sentence import Text


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    findings: Sequence[Finding]
    speeds: Sequence[Speed]
    unfit: Mapping[str, Finding]  # by host: why no job should run there
    left_out: Mapping[str, str]  # by host: why none will


def chosen(inventory: Inventory, names: Sequence[str]) -> list[SshHost]:
    """The hosts of these names; all of them without any."""
    for name in names:
        if inventory.host(name) is None:
            from difflib import get_close_matches

            near = get_close_matches(name, [host.name for host in inventory.hosts], n=1)
            meant = Text("did you mean {names}?", names=near[0]) if near else ""
            wrong = Text("there is no host '{name}' in {file}", name=name, file=inventory.file)
            raise NotFoundError(wrong, hint=meant or Text("`oarsman hosts list` shows the hosts"))
    return [host for host in inventory.hosts if not names or host.name in names]


async def check(
    inventory: Inventory,
    hosts: Sequence[SshHost],
    *,
    leave_out: bool,
    network: bool,
    tell: Callable[[Sequence[Finding]], None],
    stage: Callable[[str], None],
    paths: Paths | None = None,
    clock: Callable[[], float] = time.time,
) -> Checked:
    """`tell` hears of every finding when it is known; `stage`: what is being done. What was found is kept."""
    real_run = partial(mpirun_or_job, paths=paths)
    diagnosis = Diagnosis(Ssh(inventory), hosts, real_run=real_run, tell=tell, stage=stage)
    findings = await diagnosis.run()
    speeds: Sequence[Speed] = ()
    if network and diagnosis.networks is not None:
        stage("network")
        speeds = await _measured(diagnosis, findings)
    bad = unfit([host.name for host in hosts], findings)
    left_out = {name: finding.message for name, finding in bad.items()} if leave_out else {}
    host_state.remember(inventory, diagnosis.seen.values(), clock=clock, paths=paths)
    fit = [host.name for host in hosts if host.name not in bad]
    host_state.checked(inventory, findings, fit=fit, unfit=left_out, clock=clock, paths=paths)
    return Checked(findings=findings, speeds=speeds, unfit=bad, left_out=left_out)


async def _measured(diagnosis: Diagnosis, findings: Sequence[Finding]) -> Sequence[Speed]:
    assert diagnosis.networks is not None
    logins = {(found.host, found.other) for found in findings if found.step == "login" and found.level == OK}
    ends = diagnosis.networks.ends
    hosts = [host for host in diagnosis.hosts if host.name in ends]
    addresses = {name: end.address for name, end in ends.items()}
    return await measure(diagnosis.ssh, hosts, addresses, lambda host, other: (host, other) in logins)
