"""What the supervisor, the job agent and its hosts say to each other.

Supervisor and job agent may be of different versions: the form of their messages in JSON stays. Hosts are made by their
job agent and are always of its version.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from oarsman.engines.hosts.core.framing import Codec
from oarsman.engines.hosts.core.messages import RANK_KINDS, RankMessage


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
