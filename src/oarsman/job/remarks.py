"""What is said of a job before it starts: nothing is wrong with it, and yet it is hardly what was meant."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from oarsman.job.job import Job
from oarsman.job.launch_options import SHELLS
from oarsman.job.launch_words import base_name, skip_prefixes
from oarsman.text.sentence import Text

# Programs that start others on hosts, and words by which one may be started that is not in sight.
_MAY_START_RANKS: Final = re.compile(
    r"mpi(?:run|exec)|(?:orte|prte|horovod|torch)run|\bsrun\b|distributed\.(?:run|launch)|\b(?:deepspeed|accelerate)\b|"
    r"\b(?:charmrun|jsrun|aprun|pdsh|parallel|ssh|kubectl|make)\b|\.sh\b|[$`]",
    re.IGNORECASE,
)


def remarks(job: Job) -> tuple[str, ...]:
    if not job.workers or not job.launcher.container.argv or job.launch is not None:
        return ()
    if _may_start_ranks(job.launcher.container.argv):
        return ()
    said = Text(
        "the command does not start MPI, so it runs once, on the launcher; the workers are used only if the program "
        "starts mpirun itself. To run it in every rank, write mpirun before it"
    )
    return (said,)


def _may_start_ranks(argv: Sequence[str]) -> bool:
    """Whether a launcher may be behind these words: one that we do not know, or a script that nobody has read."""
    at = skip_prefixes(argv)
    runs_script = base_name(argv[at]) in SHELLS and "-c" not in argv if at < len(argv) else True
    return runs_script or any(map(_MAY_START_RANKS.search, argv))
