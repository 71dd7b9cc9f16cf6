"""Hosts that are other machines: how a job for them is made ready, and what is left of one is cleared away."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import shlex
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from oarsman import names, trees
from oarsman.engines.contract import Assignment
from oarsman.engines.hosts.core import limits
from oarsman.engines.hosts.core.host_specs import hand_out_gpus, members_of
from oarsman.engines.hosts.core.job_spec import JobSpec, SshHostSpec, find_spec, write_spec
from oarsman.engines.hosts.core.journal_state import Seen
from oarsman.engines.hosts.core.process import send_signal
from oarsman.engines.hosts.ssh import host_facts, scripts
from oarsman.engines.hosts.ssh.client import Ssh, on_all
from oarsman.engines.hosts.ssh.code import copy
from oarsman.engines.hosts.ssh.host_facts import InventoryFacts, KnownInventories
from oarsman.engines.hosts.ssh.host_spec import SshHostSpecs, base_folder
from oarsman.engines.hosts.ssh.inventory import SshHost
from oarsman.engines.hosts.ssh.probe import HostFacts
from oarsman.engines.hosts.ssh.trouble import SSH_FAILED, Trouble
from oarsman.errors import PlaceLostError, RetryableError, UnsupportedError, UserError
from oarsman.job.job import Implementation, Job, Role
from oarsman.job.mpi import discover_hosts, hostfile
from oarsman.portal import in_background
from oarsman.text.sentence import Text

_SWEEP_SECONDS = 15.0  # a machine that cannot be reached clears itself
_COPY_SECONDS = 600.0
_SHOWN = 5  # secrets that are named


class SshTransport:
    name = "ssh"
    far = True

    def __init__(self, known_inventories: KnownInventories, secrets: Callable[[], Iterable[str]] = tuple) -> None:
        """secrets: files that Oarsman was given as such."""
        self._known_inventories = known_inventories
        self._secrets = secrets
        self._left_out: dict[str, tuple[str, ...]] = {}  # secrets in the folders of jobs, by uid

    async def start(self) -> None:
        pass

    # -- what can be had -----------------------------------------------------------------------------------
    def refusal(self, assignment: Assignment) -> str | None:
        if reason := refused(assignment.job):
            return reason
        hosts = self._facts_of(assignment.job).inventory.hosts
        return _refused_packages(assignment.packages, hosts) or self._refused_code(assignment, hosts)

    def _refused_code(self, assignment: Assignment, hosts: Sequence[SshHost]) -> str | None:
        """Whether its folder can be copied at all; looked at once, and not each time that a host is to be had."""
        here, stays = assignment.folder, assignment.job.annotation(names.ANNOTATION_CODE) == "none"
        try:
            if not stays and not all(copy.is_shared(here, host) for host in hosts):
                self._left_out[assignment.job.uid] = self._tree(assignment).left_out
        except UserError as error:
            return Text("{what}: {why}", what=error.message, why=error.hint) if error.hint else error.message
        return None

    def _tree(self, assignment: Assignment) -> copy.Tree:
        ssh = self._facts_of(assignment.job).ssh
        named = [os.environ.get("KUBECONFIG", ""), assignment.environment.get("KUBECONFIG", "")]
        files = [file for value in named for file in value.split(os.pathsep) if file]
        return copy.plan_copy(assignment.folder, secrets=[*self._secrets(), *ssh.keys, *files])

    def _facts_of(self, job: Job) -> InventoryFacts:
        return self._known_inventories.of(job.annotation(names.ANNOTATION_INVENTORY))

    def remarks(self, job: Job) -> list[str]:
        notes: list[str] = []
        if image := job.launcher.container.image:
            notes.append(Text("image {image} is not pulled: the programs of the hosts run", image=image))
        if left_out := self._left_out.get(job.uid):
            template = Text(
                "secrets are not copied to the hosts: {names}; a line such as !{name} in {file} takes one along"
            )
            shown = ", ".join([*left_out[:_SHOWN], *(["..."] if len(left_out) > _SHOWN else [])])
            notes.append(Text(template, names=shown, name=left_out[0], file=copy.IGNORE_FILE))
        if said := limits.not_kept(job, None):
            notes.append(said)
        with contextlib.suppress(RetryableError):
            inventory_facts = self._facts_of(job)
            notes += [m.why_left_out for m in inventory_facts.machines() if m.left_out and inventory_facts.fresh]
        return notes

    # -- making it ready -----------------------------------------------------------------------------------
    async def prepare(self, assignment: Assignment, *, folder: Path, run_folder: Path, taken_gpus: set[str]) -> None:
        job = assignment.job
        inventory_facts = self._facts_of(job)
        previous = find_spec(folder)
        places = _places(assignment, previous, inventory_facts)
        machines = {host.name: host for host in places.values()}
        if not all(name in inventory_facts.facts for name in machines):
            await inventory_facts.look()
        _all_answer(machines, inventory_facts)
        facts = await inventory_facts.for_mpi_of(job, {name: inventory_facts.facts[name] for name in machines})
        mpi = host_facts.choose_mpi(job, facts)
        if isinstance(mpi, str):
            if all(found.complete for found in facts.values()):
                raise UnsupportedError(mpi)
            inventory_facts.stale()  # a busy host did not say all in time
            raise RetryableError(mpi)
        networks = host_facts.network_of(machines, facts)
        if isinstance(networks, Trouble):
            raise UnsupportedError(str(networks))
        try:
            folders, copies = await self._bring_code(assignment, inventory_facts.ssh, machines, facts)
        except RetryableError:
            await inventory_facts.look()  # it may be away by now: then everybody is to know
            _all_answer(machines, inventory_facts)
            raise
        host_specs = SshHostSpecs(
            job=job,
            environment=assignment.environment,
            places=places,
            facts=facts,
            mpi=mpi,
            networks=networks,
            ssh=inventory_facts.ssh,
            run_folder=str(run_folder),
            folders=folders,
            gpus=_gpus(job, places, inventory_facts, taken_gpus, previous),
            packages=str(assignment.packages) if assignment.packages else "",
        )
        for needed in (folder / "logs", *(run_folder / name for name in ("c", "etc/mpi", "u"))):
            needed.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_spec(folder, host_specs.specification()._replace(copies=copies))

    async def _bring_code(
        self, assignment: Assignment, ssh: Ssh, machines: Mapping[str, SshHost], facts: Mapping[str, HostFacts]
    ) -> tuple[dict[str, str], dict[str, str]]:
        """Where commands start on each machine: in the folder itself if it is shared, else in a copy of it; and the
        copies alone."""
        here, job = assignment.folder, assignment.job
        if job.annotation(names.ANNOTATION_CODE) == "none":
            return {name: facts[name].home or "/" for name in machines}, {}
        shared = {name: str(here) for name, host in machines.items() if copy.is_shared(here, host)}
        others = [host for name, host in machines.items() if name not in shared]
        if not others:
            return shared, {}
        tree = await asyncio.to_thread(self._tree, assignment)

        async def bring(host: SshHost) -> str:
            target = copy.remote_folder(host, here, job.owner)
            if target.startswith("~/"):
                target = os.path.join(facts[host.name].home, target[2:])
            await copy.copy(ssh, host, tree, target, timeout=_COPY_SECONDS, job=job.uid)
            return target

        try:
            copies = await on_all(others, bring)
        except UserError as error:  # a host on which somebody has to make room, for one: then it goes on
            raise RetryableError(error.message, hint=error.hint) from error
        return shared | copies, copies

    def host_files(self, job: Job, hosts: tuple[str, ...], spec: JobSpec) -> dict[str, str]:
        """Machines by their addresses; the slots of members that share one are added up."""
        slots: Counter[str] = Counter()
        for member in hosts:
            if (machine := spec.placement.get(member)) is not None:
                slots[spec.addresses[machine]] += job.slots_per_worker
        launcher = spec.hosts[spec.launcher_host]
        assert isinstance(launcher, SshHostSpec)
        return {
            names.HOSTFILE: hostfile(Implementation(spec.implementation), slots, slots),
            names.DISCOVER_HOSTS: discover_hosts(slots, slots),
            names.KUBEXEC: f'#!/bin/sh\nexec {launcher.run}/bin/ssh "$@"\n',
        }

    def unusable(self, job: Job, troubled: Mapping[str, float], asked: Callable[[], None]) -> str:
        inventory_facts = self._facts_of(job)
        for name in troubled:
            if found := inventory_facts.troubles.get(name):
                return found.message
        if inventory_facts.asked_at < max(troubled.values(), default=float("-inf")):
            looking = in_background(inventory_facts.look(), f"asking the hosts of {job.key}")
            looking.add_done_callback(lambda _: asked())
        return ""

    # -- what is left --------------------------------------------------------------------------------------
    def clear_up(self, uid: str, seen: Seen, folder: Path, run_folder: Path) -> list[str]:
        """Its connections ended with the job agent, and the host agents at their other ends with them. In case one of
        those was killed, too, each machine that can be reached is looked at."""
        for host in seen.hosts.values():
            send_signal(host.process, 9)
        spec = find_spec(folder)
        ways = spec.cleanup if spec else {}
        with _alone(folder) as lock, ThreadPoolExecutor(len(ways) or 1) as pool:
            reached = list(pool.map(partial(_sweep, line=_cleanup(uid), held=(lock,)), ways.values()))
        trees.remove(run_folder)
        return [name for name, there in zip(ways, reached, strict=True) if not there]

    def forget(self, uid: str, seen: Seen, folder: Path) -> None:
        """Copies on machines that cannot be reached stay; `hosts clean` removes them. Where a host was lost, whoever
        would have cleared up after it may have been killed as well."""
        self._left_out.pop(uid, None)
        if (spec := find_spec(folder)) is None:
            return
        lost = seen.lost_machines & spec.cleanup.keys()
        with ThreadPoolExecutor(len(spec.copies) + len(lost) or 1) as pool:
            for machine in lost:
                pool.submit(_sweep, spec.cleanup[machine], _cleanup(uid))
            for machine, target in spec.copies.items():
                pool.submit(_sweep, spec.cleanup[machine], copy.script(target, uid, _SWEEP_SECONDS, drop=True))


def _cleanup(uid: str) -> bytes:
    """Ends what is left of a job on a machine, and removes its folder there."""
    script = f"MARK={shlex.quote(f'{names.ENV_JOB}={uid}')}\nBASE={base_folder(uid)}\n"
    return scripts.line(script + scripts.script("cleanup"))


def refused(job: Job) -> str | None:
    """The first thing in this job that no SSH host can honour, or None."""
    if not job.launcher.container.argv:
        return Text(
            "the launcher has no command. Images are not run on SSH hosts, so there is no entry point to fall back "
            "on: add {field}",
            field="spec.mpiReplicaSpecs.Launcher.template.spec.containers[0].command",
        )
    roles = [("Launcher", job.launcher)] + ([("Worker", job.worker)] if job.worker is not None else [])
    return next((reason for name, role in roles for reason in _refusals(name, role)), None)


def _refused_packages(packages: Path | None, hosts: Sequence[SshHost]) -> str | None:
    """An environment is built here and knows its own place; only hosts that have it there, too, can use it."""
    apart = next((host.name for host in hosts if packages and not copy.is_shared(packages, host)), None)
    if apart is None:
        return None
    template = Text(
        "its environment is in {folder}, which {host} does not share: put OARSMAN_STATE into a "
        "folder that all hosts have, and name that folder under shared in the inventory"
    )
    return Text(template, folder=packages, host=apart)


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[int]:
    """Sweeps go on when the supervisor that began them is killed, and would end what the next one starts: they hold a
    lock, on the folder itself, since there may be no room for a file."""
    lock = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        deadline = time.monotonic() + _SWEEP_SECONDS
        while True:
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            if time.monotonic() > deadline:
                raise RetryableError(Text("its remains on the hosts are still being removed"))
            time.sleep(0.05)
        yield lock
    finally:
        os.close(lock)


def _sweep(argv: Sequence[str], line: bytes, held: Sequence[int] = ()) -> bool:
    """Whether the machine could be reached."""
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        done = subprocess.run(
            [*argv, scripts.RECEIVER],
            input=line,
            timeout=_SWEEP_SECONDS,
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=held,
        )
        return done.returncode != SSH_FAILED
    return False


def _refusals(name: str, role: Role) -> Iterator[str]:
    where = f"spec.mpiReplicaSpecs.{name}.template.spec"
    if role.init_containers:
        template = Text("{field}: only the MPI container runs on SSH hosts; do it in the launch command")
        yield Text(template, field=f"{where}.initContainers")
    if len(role.containers) > 1:
        yield Text("{field}: only the MPI container runs on SSH hosts; remove the others", field=f"{where}.containers")
    main = f"{where}.containers[{role.main}]"
    for variable in role.container.env:
        if variable.other_source:
            why = Text("{source} exists on Kubernetes only; give the value", source=variable.other_source)
            yield Text("{field}: {problem}", field=f"{main}.env[{variable.name}]", problem=why)
    if role.container.env_from:
        why = Text("exists on Kubernetes only; give the variables under env")
        yield Text("{field}: {problem}", field=f"{main}.envFrom", problem=why)
    paths = {volume.name: volume.host_path for volume in role.volumes if volume.kind == "hostPath"}
    for mount in role.container.mounts:
        if paths.get(mount.name) != mount.mount_path or mount.sub_path:
            yield Text(
                "{field}: nothing is mounted on SSH hosts; use a hostPath whose path is the mountPath, a folder that "
                "the hosts have",
                field=f"{where}.volumes[{mount.name}]",
            )


def _places(assignment: Assignment, previous: JobSpec | None, inventory_facts: InventoryFacts) -> dict[str, SshHost]:
    """Member -> machine, as admitted, or as it was when an earlier supervisor prepared it."""
    job = assignment.job
    given = {place.member: place.machine for place in assignment.admission.placement}
    given = given or dict(previous.placement if previous is not None else {})
    places: dict[str, SshHost] = {}
    for member in members_of(job):
        host = inventory_facts.inventory.host(given.get(member, ""))
        if host is None:
            gone = assignment.admission.reason
            if member in given:
                gone = Text("{host} is no longer in the inventory", host=given[member])
            raise RetryableError(Text("{member} has no place: {why}", member=member, why=gone))
        places[member] = host
    return places


def _all_answer(machines: Iterable[str], inventory_facts: InventoryFacts) -> None:
    """Or PlaceLostError, with the first that does not."""
    for name in machines:
        if name not in inventory_facts.facts:
            found = inventory_facts.troubles.get(name)
            raise PlaceLostError(found.message if found else Text("{host} does not answer", host=name))


def _gpus(
    job: Job, places: Mapping[str, SshHost], inventory_facts: InventoryFacts, taken: set[str], previous: JobSpec | None
) -> dict[str, tuple[str, ...]]:
    """Devices ("machine:0") for each member that asks for some, unless it has moved those that it had."""
    counts = {machine.name: machine.capacity.gpus for machine in inventory_facts.machines()}
    there = {name: [f"{name}:{index}" for index in range(count)] for name, count in counts.items()}
    kept: dict[str, Sequence[str]] = {}
    if previous is not None:
        stay = {member for member, host in places.items() if previous.placement.get(member) == host.name}
        kept = {member: had for member, had in previous.gpus.items() if member in stay}
    return hand_out_gpus(job, lambda member: there.get(places[member].name, ()), kept=kept, taken=taken)
