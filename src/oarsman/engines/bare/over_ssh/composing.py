"""The launch line of a job whose launcher runs on another machine, made right here, where all is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from oarsman.engines.bare.stand_ins.mpirun import corrected, shapes_output, survives
from oarsman.job import launch


@dataclass(frozen=True, slots=True)
class Composed:
    words: list[str]  # after the launcher's name
    machines: tuple[str, ...]  # where each rank goes; none: that cannot be told beforehand
    by_hydra: bool  # its lines will say which rank wrote them, as MPICH's and Intel's launchers do


def compose(
    name: str, words: Sequence[str], facts: Mapping[str, Any], *, attempt: str, world: str, port: str, own: str
) -> Composed:
    """`own` names the streams ("o", "e") that end in the job's log; what goes elsewhere is left as it is.

    facts: family, rewrite, machines and slots (those of the hostfile, in its order), rank (words that start one).
    """
    hydra = not facts["family"].startswith("Open MPI")
    words = corrected(name, words, family=facts["family"], rewrite=facts["rewrite"])
    line = launch.parse([name, *words])
    options = line.options if line is not None else ()
    machines: list[str] = facts["machines"]
    placement = launch.expected_placement(line, machines, facts["slots"], hydra=hydra or None) if line else None
    master = (placement or machines)[0]
    label = f"{attempt}:{world}:{int(survives(options))}"
    words = launch.with_wrapper(words, [*facts["rank"], label, master, port])
    tagged = own == "oe" and line is not None and not shapes_output(options)
    if tagged:
        words = ["-prepend-rank" if hydra else "--tag-output", *words]
    return Composed(words, placement or (), tagged and hydra)
