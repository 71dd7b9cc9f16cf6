"""SSH hosts in a state folder: what was last found of those of an inventory, one file for each inventory; and in the
supervisor: the engine that runs jobs there, and their admission.

Where nobody says which state folder, it is the user's own.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import logging
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from oarsman.control.admission import AdmissionControl
from oarsman.control.environments import Attaching
from oarsman.engines.hosts.core.engine import HostsEngine
from oarsman.engines.hosts.core.job_spec import find_spec
from oarsman.engines.hosts.ssh.diagnose.judge import Finding, HostSeen
from oarsman.engines.hosts.ssh.host_facts import KnownInventories, Recalled
from oarsman.engines.hosts.ssh.inventory import Inventory
from oarsman.engines.hosts.ssh.probe import HostFacts
from oarsman.engines.hosts.ssh.transport import SshTransport
from oarsman.engines.hosts.ssh.trouble import Trouble
from oarsman.errors import StoreError
from oarsman.job.job import Job
from oarsman.plan.capacity import hosts
from oarsman.store.paths import ELSEWHERE, Paths
from oarsman.text.sentence import Text, dump, load

_VERSION = 1
Clock = Callable[[], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownHost:
    """One host: what it said last, or what was in the way, and whether its owner wants it left out."""

    host: str
    at: float | None = None  # seconds of the epoch; None: it was never asked
    facts: HostFacts | None = None
    trouble: Trouble | None = None
    left_out: str = ""  # why
    left_out_at: float | None = None

    @property
    def ready(self) -> bool:
        return self.facts is not None and not self.trouble and not self.left_out


def known(inventory: Inventory, paths: Paths | None = None) -> dict[str, KnownHost]:
    """Every host of the inventory, in its order."""
    kept = _read(_file(inventory, paths)).get("hosts", {})
    return {host.name: _known(host.name, kept.get(host.name, {})) for host in inventory.hosts}


def left_out(inventory: Inventory, paths: Paths | None = None) -> dict[str, str]:
    """Hosts that get no jobs, and why."""
    return {name: one.left_out for name, one in known(inventory, paths).items() if one.left_out}


def keep(
    inventory: Inventory, facts: Mapping[str, HostFacts], troubles: Mapping[str, Trouble], paths: Paths | None = None
) -> None:
    """What somebody heard who asks hosts for reasons of their own."""
    hosts = {host.name: host for host in inventory.hosts}
    seen = [HostSeen(host=hosts[name], facts=own) for name, own in facts.items() if name in hosts]
    seen += [HostSeen(host=hosts[name], trouble=own) for name, own in troubles.items() if name in hosts]
    try:
        remember(inventory, seen, paths=paths)
    except StoreError as error:  # it is for people to look at; jobs can do without
        log.warning("%s", error)


def forget(inventory: Inventory, paths: Paths | None = None) -> None:
    """What hosts said lately no longer holds, because somebody changed how they are reached."""
    if not _file(inventory, paths).exists():
        return
    with _changing(inventory, paths) as document:
        for record in document["hosts"].values():
            record["at"] = None


def remember(
    inventory: Inventory, seen: Iterable[HostSeen], *, clock: Clock = time.time, paths: Paths | None = None
) -> None:
    with _changing(inventory, paths) as document:
        for one in seen:
            record = document["hosts"].setdefault(one.host.name, {})
            record["at"] = clock()
            record["trouble"] = _written(one.trouble) if one.trouble else None
            if one.facts is not None:  # what a host said before it vanished is worth keeping
                record["facts"] = one.facts.to_json()


def checked(
    inventory: Inventory,
    findings: Iterable[Finding],
    *,
    fit: Iterable[str],
    unfit: Mapping[str, str],
    clock: Clock = time.time,
    paths: Paths | None = None,
) -> None:
    """The outcome of a check: who is fit takes part again, who is unfit does not; nothing changes for others."""
    with _changing(inventory, paths) as document:
        hosts = document["hosts"]
        for name in fit:
            hosts.setdefault(name, {}).update(left_out="", left_out_at=None)
        for name, why in unfit.items():
            hosts.setdefault(name, {}).update(left_out=dump(why), left_out_at=clock())
        document["check"] = {"at": clock(), "findings": [_written(finding) for finding in findings]}


def last_check(inventory: Inventory, paths: Paths | None = None) -> tuple[float, list[Finding]] | None:
    """When it was, and all that it found."""
    check = _read(_file(inventory, paths)).get("check")
    return (check["at"], [Finding(**_read_texts(finding)) for finding in check["findings"]]) if check else None


def _file(inventory: Inventory, paths: Paths | None) -> Path:
    name = hashlib.sha256(os.fsencode(inventory.file.absolute())).hexdigest()[:16]
    state = (paths or Paths.default()).state
    folder = state / "inventories"
    if not folder.exists():
        with suppress(OSError):
            (state / "racks").rename(folder)  # what it was called before
    return folder / f"{name}.json"


def _read(file: Path) -> dict[str, Any]:
    """Nothing, where there is nothing that can be read: it is all found out again."""
    try:
        found = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) and found.get("version") == _VERSION else {}


@contextmanager
def _changing(inventory: Inventory, paths: Paths | None) -> Iterator[dict[str, Any]]:
    """What is kept; all that was changed in it is there at once or not at all."""
    file = _file(inventory, paths)
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with (file.parent / "lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            empty = {"version": _VERSION, "inventory": str(inventory.file.absolute()), "hosts": {}}
            document = _read(file) or empty
            yield document
            handle, name = tempfile.mkstemp(dir=file.parent, prefix=".", suffix=".json")
            try:
                with os.fdopen(handle, "w", encoding="utf-8") as new:
                    json.dump(document, new)
                os.replace(name, file)
            except BaseException:
                os.unlink(name)
                raise
    except OSError as error:
        message = Text("what was found of the hosts cannot be kept: {why}", why=error)
        raise StoreError(message, hint=ELSEWHERE) from error


def _written(one: Trouble | Finding) -> dict[str, Any]:
    return {name: dump(value) if isinstance(value, str) else value for name, value in asdict(one).items()}


def _read_texts(written: Mapping[str, Any]) -> dict[str, Any]:
    return {name: load(value) if isinstance(value, dict) else value for name, value in written.items()}


def _known(name: str, record: Mapping[str, Any]) -> KnownHost:
    left_out = KnownHost(host=name, left_out=load(record.get("left_out", "")), left_out_at=record.get("left_out_at"))
    try:
        facts = HostFacts.from_json(record["facts"]) if record.get("facts") else None
    except (KeyError, TypeError, ValueError):  # by an Oarsman that knew other facts
        return left_out
    trouble = Trouble(**_read_texts(record["trouble"])) if record.get("trouble") else None
    return replace(left_out, at=record.get("at"), facts=facts, trouble=trouble)


log = logging.getLogger("oarsman")


def ssh_hosts(
    paths: Paths, concerned: Callable[[str], None], environments: Attaching
) -> tuple[HostsEngine, AdmissionControl]:
    known = known_inventories(paths)
    transport = SshTransport(known, paths.secrets)
    engine = HostsEngine(job_folder=paths.job, run_folder=paths.job_run, transport=transport)
    return engine, AdmissionControl(hosts, known.of, concerned, partial(placement_of, paths), environments)


def placement_of(paths: Paths, job: Job) -> Mapping[str, str]:
    """Where its members were when it was last prepared."""
    spec = find_spec(paths.job(job.uid))
    return spec.placement if spec is not None else {}


def known_inventories(paths: Paths) -> KnownInventories:
    """What they find is kept in this state, and recalled from it."""
    return KnownInventories(
        left_out=partial(left_out, paths=paths), keep=partial(keep, paths=paths), recall=partial(_recall, paths)
    )


def _recall(paths: Paths, inventory: Inventory) -> Recalled | None:
    """What somebody heard from all the hosts not long ago."""
    found = known(inventory, paths)
    if any(one.at is None for one in found.values()):
        return None
    return Recalled(
        facts={name: one.facts for name, one in found.items() if one.facts is not None and one.trouble is None},
        troubles={name: one.trouble for name, one in found.items() if one.trouble is not None},
        age=time.time() - min(one.at or 0.0 for one in found.values()),
    )
