"""The launch line of a job whose launcher runs on another machine, made right here, where all is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from oarsman import names
from oarsman.engines.hosts.core.job_spec import LaunchFacts
from oarsman.engines.hosts.core.shims.mpirun import corrected, shapes_output, survives
from oarsman.job import launch

_HOST_OPTIONS = ("host", "hosts", "H")

# Hydra's own -prepend-rank puts "[3] " before each piece of a line, and a program may well write that itself. Tags like
# Open MPI's cannot be mistaken.
_HYDRA_TAGS = ("-prepend-pattern", "[1,%r]<stdout>: ")


@dataclass(frozen=True, slots=True)
class Composed:
    words: list[str]  # after the launcher's name
    machines: tuple[str, ...]  # where each rank goes; none: that cannot be told beforehand
    by_hydra: bool  # its lines will say which rank wrote them, but not to which stream


def compose(
    name: str, words: Sequence[str], facts: LaunchFacts, *, attempt: str, world: str, port: str, own: str
) -> Composed:
    """`own` names the streams ("o", "e") that end in the job's log; what goes elsewhere is left as it is."""
    hydra = not facts.family.startswith("Open MPI")
    words = corrected(name, words, family=facts.family, rewrite=facts.rewrite)
    words = _with_known_hosts(name, words, facts.names)
    words = [word.replace(facts.etc, names.MPI_CONFIG_DIR) for word in words]
    line = launch.parse([name, *words])
    words = [word.replace(names.MPI_CONFIG_DIR, facts.etc) for word in words]
    options = line.options if line is not None else ()
    placement = launch.expected_placement(line, facts.machines, facts.slots, hydra=hydra or None) if line else None
    master = (placement or facts.machines)[0]
    label = f"{attempt}:{world}:{int(survives(options))}"
    words = launch.with_wrapper(words, [*facts.rank, label, master, port])
    if facts.family.startswith("Intel"):
        words = _by_machinefile(line, words, f"{facts.etc}/{names.HOSTFILE}")
    tagged = own == "oe" and line is not None and not shapes_output(options)
    if tagged and facts.output:
        words = ["--output-filename", f"{facts.output}/{world}:nocopy", *words]
    elif tagged:
        words = [*(_HYDRA_TAGS if hydra else ("--tag-output",)), *words]
    return Composed(words, placement or (), tagged and hydra)


def _by_machinefile(line: launch.LaunchLine | None, words: list[str], hostfile: str) -> list[str]:
    """Of a hostfile Intel's launcher reads the names alone, and gives each as many ranks as it has cores."""
    if line is None or line.hosts or line.per_node is not None:
        return words
    if line.hostfile is None:
        return ["-machinefile", hostfile, *words]
    at = words.index(hostfile) if hostfile in words else 0
    return [*words[: at - 1], "-machinefile", *words[at:]] if at else words


def _with_known_hosts(name: str, words: Sequence[str], known: Mapping[str, str]) -> list[str]:
    """Launchers know machines by their addresses, people call them by the names of workers, too."""
    line = launch.parse([name, *words])
    result = list(words)
    for at in range(1, len(line.options) if line is not None else 0):
        if words[at - 1].startswith("-") and words[at - 1].lstrip("-") in _HOST_OPTIONS:
            named = [part.partition(":") for part in words[at].split(",")]
            result[at] = ",".join(known.get(host, host) + colon + slots for host, colon, slots in named)
    return result
