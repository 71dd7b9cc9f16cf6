"""What shims say and hear. Those of one version may meet a job agent of another: the form in JSON stays."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from oarsman.engines.hosts.core.framing import Codec


# -- who wants a command run on a host, and the host ------------------------------------------------------------
class RunCommand(NamedTuple):
    """With its input, output and errors beside it. Its end is told; if the connection ends first, it ends, too."""

    argv: Sequence[str]
    env: Mapping[str, str] = {}  # beyond those of the host


class SignalCommand(NamedTuple):
    signal: int


class Exited(NamedTuple):
    exit: int  # as a shell has it
    signal: int | None = None


COMMANDS = Codec[RunCommand | SignalCommand]({"argv": RunCommand, "signal": SignalCommand})
RESULTS = Codec[Exited]({"exit": Exited})


# -- a rank to the job agent ------------------------------------------------------------------------------------
class RankStarted(NamedTuple):
    rank: int
    size: int  # of its world
    local: int  # its number on its host
    host: str
    attempt: int
    world: str  # one per launch of an attempt
    survives: bool = False  # the others go on if it fails
    pid: int = 0  # 0: the kernel tells


class FirstOutput(NamedTuple):
    output: bool
    attempt: int


class RankEnded(NamedTuple):
    exit: int
    signal: int | None = None
    lines: Sequence[str] = ()  # the last it wrote
    reason: str = ""  # what was amiss with it, besides
    at: float | None = None


RankMessage = RankStarted | FirstOutput | RankEnded
RANK_KINDS: Mapping[str, type[RankMessage]] = {"rank": RankStarted, "output": FirstOutput, "exit": RankEnded}
RANKS = Codec[RankMessage](RANK_KINDS)
