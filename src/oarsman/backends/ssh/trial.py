"""A real job over hosts that were just checked: what a plain mpirun cannot do where hosts do not trust each other."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import uuid
from collections.abc import Collection, Sequence
from contextlib import aclosing
from dataclasses import asdict
from pathlib import Path
from typing import Any

from oarsman import names
from oarsman.backends.ssh.backend import SshBackend
from oarsman.engines.hosts.ssh.diagnose.diagnosis import STEP, Diagnosis, plain_mpirun
from oarsman.engines.hosts.ssh.diagnose.judge import FAIL, OK, SKIPPED, Finding
from oarsman.engines.hosts.ssh.inventory import SshHost
from oarsman.errors import OarsmanError
from oarsman.manifest.builder import JobSettings, Shape, document
from oarsman.store.paths import Paths
from oarsman.text.sentence import Text

_SECONDS = 120.0


async def mpirun_or_job(diagnosis: Diagnosis, paths: Paths | None = None) -> Finding:
    """mpirun as a person would type it; where hosts do not trust each other, through a job."""
    plain = await plain_mpirun(diagnosis)
    if plain.level != SKIPPED or not diagnosis.passed:
        return plain
    try:
        hostnames = [
            own.facts.hostname for host in diagnosis.passed if (own := diagnosis.seen[host.name]).facts is not None
        ]
        return await _by_job(diagnosis.passed, hostnames, diagnosis.ssh.config, paths)
    except (OarsmanError, OSError, TimeoutError) as error:
        return _finding(FAIL, Text("a job over all hosts failed: {why}", why=error))


async def _by_job(hosts: Sequence[SshHost], hostnames: Sequence[str], ssh_config: str, paths: Paths | None) -> Finding:
    with tempfile.TemporaryDirectory(prefix="oarsman-check-") as folder:
        inventory = Path(folder) / "hosts.yaml"
        inventory.write_text(json.dumps(_inventory(hosts, ssh_config)))
        jobs = SshBackend(str(inventory), paths)
        key = (await jobs.submit(_job(len(hosts)), environment=dict(os.environ), folder=Path(folder))).job.key
        try:
            async with aclosing(jobs.watch(key, timeout=_SECONDS)) as records:
                async for record in records:
                    if record.status.finished:
                        break
            if record.status.is_true(names.SUCCEEDED):
                return _judged(hostnames, {line.text async for lines in jobs.logs(key) for line in lines})
            cause = record.status.cause.summary if record.status.cause else names.FAILED
            return _finding(FAIL, Text("a job over all hosts failed: {why}", why=cause))
        finally:
            with contextlib.suppress(OarsmanError, TimeoutError):
                await jobs.delete(key)
                async for _ in jobs.watch(key, timeout=_SECONDS):
                    pass


def _judged(hostnames: Sequence[str], said: Collection[str]) -> Finding:
    busy = [name for name in hostnames if name not in said]
    if not busy:
        many = Text("a job started a process on each of {n} hosts", n=len(hostnames))
        return _finding(OK, many if len(hostnames) != 1 else Text("a job started a process on the host"))
    message = Text("a job ran, but not on {names}: others keep the slots there busy", names=", ".join(busy))
    return _finding(SKIPPED, message)


def _finding(level: str, message: str) -> Finding:
    return Finding(host="", step=STEP, level=level, message=message)


def _inventory(hosts: Sequence[SshHost], ssh_config: str) -> dict[str, Any]:
    fields = ("name", "address", "user", "port", "jump", "key", "interface", "folder", "environment", "mpi")
    return {
        **({"sshConfig": ssh_config} if ssh_config else {}),
        "hosts": [
            {key: value for key, value in asdict(host).items() if key in fields and value} | {"slots": 1}
            for host in hosts
        ],
    }


def _job(hosts: int) -> dict[str, Any]:
    """One rank on each, whoever else is there."""
    shape = Shape(processes=hosts, workers=hosts, slots=1, spread=True)
    settings = JobSettings(name=f"hosts-check-{uuid.uuid4().hex[:8]}", code="none", oversubscribe=True)
    return document(["uname", "-n"], shape, settings)
