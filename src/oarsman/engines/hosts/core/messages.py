"""What shims, hosts, the job agent and the supervisor say to each other.

Shims, the job agent and the supervisor may be of different versions: the form of their messages in JSON stays. Hosts
are made by their job agent and are always of its version.
"""

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


# -- supervisor to job agent --------------------------------------------------------------------------------------
class StartHost(NamedTuple):
    host: str


class StopHost(NamedTuple):
    host: str


class StartLauncher(NamedTuple):
    attempt: int


class StopLauncher(NamedTuple):
    pass


class Publish(NamedTuple):
    hosts: Sequence[str]
    files: Mapping[str, str]  # hostfile and its kin


class EndJob(NamedTuple):
    pass


class Listen(NamedTuple):
    """From now on be told of every change."""


Order = StartHost | StopHost | StartLauncher | StopLauncher | Publish | EndJob | Listen
_ORDER_KINDS: Mapping[str, type[Order]] = {
    "start-host": StartHost,
    "stop-host": StopHost,
    "start-launcher": StartLauncher,
    "stop-launcher": StopLauncher,
    "publish": Publish,
    "end": EndJob,
    "listen": Listen,
}
ORDERS = Codec[Order](_ORDER_KINDS)
CALLS = Codec[Order | RankMessage]({**_ORDER_KINDS, **RANK_KINDS})  # all that arrives at the job agent's socket


# -- job agent to supervisor --------------------------------------------------------------------------------------
class Done(NamedTuple):
    answer: str  # to which order


class Failed(NamedTuple):
    answer: str
    error: str


class Changed(NamedTuple):
    """There is news in the journal."""

    changed: bool = True


Answer = Done | Failed | Changed
ANSWERS = Codec[Answer]({"error": Failed, "answer": Done, "changed": Changed})


# -- job agent to host --------------------------------------------------------------------------------------------
class Ping(NamedTuple):
    pass


class EndCommands(NamedTuple):
    number: int  # of this sweep


class PublishFiles(NamedTuple):
    """Take the files that are published now."""


class EndHost(NamedTuple):
    grace: float


HostOrder = Ping | EndCommands | PublishFiles | EndHost
HOST_ORDERS = Codec[HostOrder]({"ping": Ping, "sweep": EndCommands, "publish": PublishFiles, "end": EndHost})


# -- host to job agent --------------------------------------------------------------------------------------------
class Up(NamedTuple):
    pass


class InTrouble(NamedTuple):
    reason: str


class Alive(NamedTuple):
    """The answer to a ping."""


class Launching(NamedTuple):
    """A launch line was composed."""

    hosts: Sequence[str]  # by rank, as far as that is known
    by_hydra: bool  # its lines will say which rank wrote them, but not to which stream


class Said(NamedTuple):
    """What a rank wrote, if it does not come through the launcher."""

    data: str  # Base64
    attempt: int
    world: str
    rank: int
    stream: str


class Emptied(NamedTuple):
    """All that ranks wrote before that sweep was said."""

    sweep: int


HostReport = Up | InTrouble | Alive | Launching | Said | Emptied
HOST_REPORTS = Codec[HostReport](
    {"up": Up, "trouble": InTrouble, "alive": Alive, "launching": Launching, "said": Said, "emptied": Emptied}, tag="is"
)
