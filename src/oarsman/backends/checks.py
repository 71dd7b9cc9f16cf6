"""What can be asked of a place itself: whether jobs can run there, whether its hosts are well, who logs in where."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from oarsman.backends.base import Backend, DoctorFinding
from oarsman.backends.ssh.backend import SshBackend
from oarsman.backends.ssh.check import Checked, check, chosen
from oarsman.backends.ssh.trusting import Trusting
from oarsman.backends.ssh.trusting import trust_hosts as trust
from oarsman.errors import UsageError
from oarsman.text.sentence import Text


async def examine(jobs: Backend) -> Sequence[DoctorFinding]:
    """What is there to run jobs with, what is missing, and what would help."""
    if jobs.place == "kube":
        from oarsman.backends.kube.backend import KubeBackend  # late, here and below: one place needs one of them
        from oarsman.backends.kube.doctor import examine as examine_cluster

        assert isinstance(jobs, KubeBackend)
        return await examine_cluster(jobs)
    from oarsman.backends.local import doctor

    if isinstance(jobs, SshBackend):
        return await doctor.examine_ssh_hosts(str(jobs.inventory))
    return await asyncio.to_thread(doctor.examine)


def _of_ssh(jobs: Backend) -> SshBackend:
    if not isinstance(jobs, SshBackend):
        raise UsageError(Text("only SSH hosts can be checked"))
    return jobs


async def check_hosts(jobs: Backend, names: Sequence[str], **how: Any) -> Checked:
    inventory, paths = await _of_ssh(jobs).read()
    return await check(inventory, chosen(inventory, names), paths=paths, **how)


async def trust_hosts(jobs: Backend, *, undo: bool, seen: str | None = None) -> Trusting:
    inventory, paths = await _of_ssh(jobs).read()
    return await trust(inventory, undo=undo, seen=seen, paths=paths)
