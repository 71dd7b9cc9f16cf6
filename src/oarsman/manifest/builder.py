"""An MPIJob document made from a command, for those who have a program and no manifest.

The document is what a careful person would write by hand: it can be printed, kept and submitted anywhere.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Any

from oarsman.errors import UsageError
from oarsman.job.launch import parse
from oarsman.manifest import fields
from oarsman.manifest.field_kinds import amount
from oarsman.manifest.places import unshared
from oarsman.text.sentence import Text

_ROOT_IS_FINE = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
_LONGEST_STEM = 40  # leaves room for a suffix, "-worker-" and the number within a DNS label
_INTERPRETER = re.compile(r"(python|pypy|perl|ruby|julia|node|bash|sh|zsh|dash|ksh|env|Rscript)[\d.]*(\.exe)?")
_SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"  # no vowels: no words by accident


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSettings:
    """What can be said of any job, one with a manifest of its own included. Each is a field of `fields.FIELDS`."""

    name: str | None = None
    deadline: float | None = None  # seconds
    mpi: str | None = None  # openmpi, mpich, intel, or a path
    network: str | None = None  # private, host
    code: str | None = None  # copy, none: what becomes of the folder on SSH hosts
    oversubscribe: bool = False
    priority: int | None = None
    environment: str | None = None  # the name of a set of packages
    install: str | None = None  # shell commands that run before the job


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How many ranks, where, and with what. Amounts are per worker."""

    processes: int
    workers: int | None = None
    slots: int | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    cpus: str | None = None
    memory: str | None = None
    gpus: int | None = None
    gpu_resource: str = "nvidia.com/gpu"
    keep: bool = False  # leave the workers in place after the end
    image: str | None = None  # on Kubernetes; one machine uses its own programs
    spread: bool = False  # over as many machines of an inventory as there are workers

    @property
    def hosts_and_slots(self) -> tuple[int, int]:
        """Two workers where there are two ranks (a job that works there works on more), and slots to match."""
        if self.workers is None and self.slots is not None:
            return ceil(self.processes / self.slots), self.slots
        workers = self.workers or min(self.processes, 2)
        return workers, self.slots or ceil(self.processes / workers)


def for_ssh_hosts(shape: Shape) -> Shape:
    """On hosts of which one does not know how large they are: a worker for each rank goes wherever there is a slot; and
    whoever names a number of workers wants as many hosts."""
    if shape.workers is None and shape.slots is None:
        return replace(shape, workers=shape.processes, slots=1)
    return replace(shape, spread=shape.workers is not None)


def document(command: Sequence[str], shape: Shape, settings: JobSettings, *, suffix: str = "") -> dict[str, Any]:
    """The job that starts `command` on every rank. `suffix` makes a generated name unique."""
    _refuse_launcher(command, shape.processes)
    workers, slots = shape.hosts_and_slots
    stem = name_stem(command)
    # Most images run as root, and a container is no machine to protect.
    env = {**_ROOT_IS_FINE, **shape.env} if shape.image else shape.env
    # A manifest writes $$ where it means $; in a command that somebody typed, $$ is the number of the process.
    words = [word.replace("$$", "$$$$") for word in command]
    made = fields.blank()
    said = {
        "name": f"{stem}-{suffix}" if suffix else stem,
        "placement": "node" if shape.spread else None,
        "slots": slots,
        "clean_policy": "None" if shape.keep else "Running",
        "launchers": 1,
        "restart_policy": "Never",
        "workers": workers,
        "command": ["mpirun", "-n", str(shape.processes), *words],
        "image": shape.image,
        "env": env,
        "worker_cpu": shape.cpus,
        "worker_memory": shape.memory,
    }
    fields.write(made, said)
    amount("worker_gpu", "Worker", shape.gpu_resource).write(made, shape.gpus)
    return apply(made, settings)


def _refuse_launcher(command: Sequence[str], processes: int) -> None:
    """Every rank would start an MPI of its own: pasted by whoever comes from a hostfile."""
    line = parse(command)
    if line is None:
        return
    hint = Text("a launch line of your own goes into the launcher's command of a manifest")
    if line.program and not line.in_shell:
        shown = shlex.join(line.program)
        hint = Text("oarsman run -n {count} -- {program}", count=line.processes or processes, program=shown)
    raise UsageError(Text("the ranks are started for you: leave {launcher} out", launcher=line.launcher), hint=hint)


def apply(document: Mapping[str, Any], settings: JobSettings) -> dict[str, Any]:
    """A copy of the document with the settings written into it."""
    made: dict[str, Any] = unshared(dict(document))
    given = {name: getattr(settings, name) for name in JobSettings.__slots__}
    given |= {"name": settings.name or None, "oversubscribe": settings.oversubscribe or None}
    fields.write(made, given)
    return made


def new_suffix() -> str:
    """What makes a generated name unique."""
    import secrets

    return "".join(secrets.choice(_SUFFIX_ALPHABET) for _ in range(5))


def name_stem(command: Sequence[str]) -> str:
    """A DNS label that reminds of the program: `python -m pkg.train` and `./train.py` are both "train"."""
    command = list(command)
    for position, word in enumerate(command):
        base = word.replace("\\", "/").rstrip("/").rpartition("/")[2]
        started = command[position + 2 :]
        if word == "-m" and started and started[0] != "-c" and command[position + 1] == "mpi4py":
            return name_stem(started)  # mpi4py only starts the program, and sees to it that a failed rank ends all
        if word == "-m" and position + 1 < len(command):
            return _label(command[position + 1].rpartition(".")[2])
        if word == "-c":
            break
        if not word.startswith("-") and "=" not in word and not _INTERPRETER.fullmatch(base):
            return _label(re.sub(r"\.(py|sh|pl|rb|jl|js|R|exe|out)$", "", base))
    return _label(command[0].rpartition("/")[2] if command else "")


def _label(text: str) -> str:
    label = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    label = label if label[:1].isalpha() else f"job-{label}"
    return label[:_LONGEST_STEM].strip("-")
