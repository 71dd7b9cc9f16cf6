"""What a job's agent is told about the job: a file in the job's folder, written anew by each preparation.

Its form stays as it is: an agent of an earlier version reads what we write, and we read what an earlier version wrote.
"""

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from oarsman.engines.hosts.core.cgroups import Slices
from oarsman.engines.hosts.core.limits import Limits

_FILE = "spec.json"


class Separation(NamedTuple):
    """How far hosts can be separated from one another on this machine."""

    user: bool = False  # a user namespace is needed (not root) and can be had
    names: bool = False  # own host name: the one thing Open MPI cannot do without
    processes: bool = False  # own process numbers: nothing outlives its host
    mounts: bool = False  # own /dev/shm, volumes
    etc: bool = False  # own /etc/mpi and /etc/hosts
    network: bool = False  # own address on a private bridge
    trouble: str = ""  # the first refusal, in the kernel's words
    confines: bool = False  # what a host sees of the files here can be chosen


class Confinement(NamedTuple):
    """What a job is kept to that comes from others than the owner of this machine. Folders may lie in one another."""

    hidden: Sequence[str]  # it finds empty ones in their place
    shown: Sequence[str] = ()  # what it can read all the same
    writable: Sequence[str] = ()  # what it can write all the same
    sealed: bool = True  # all else is there to be read only
    uid: int = -1  # its own user; -1: ours
    gid: int = -1
    groups: Sequence[int] = ()


class Mount(NamedTuple):
    source: str
    target: str
    read_only: bool
    memory: bool  # a file system in memory, with these options
    options: str
    make: bool  # the folder is made if it is not there


class LocalHostSpec(NamedTuple):
    role: str
    index: int  # type: ignore[assignment]  # hides a method of tuples that nobody needs
    temp: str
    folder: str  # in which commands start
    environment: Mapping[str, str]
    own: Mapping[str, str]  # what of it differs from host to host
    umask: int  # the user's own; ours lets nobody else read
    mounts: Sequence[Mount]
    memory: int | None = None
    cpus: float | None = None
    machine: str = ""
    hands_on: bool = False

    @property
    def launcher(self) -> bool:
        return self.role == "launcher"


class SshAddress(NamedTuple):
    """A host as the inventory has it."""

    name: str
    address: str
    user: str
    port: int | None
    jump: str


class SshWay(NamedTuple):
    """How ssh is called for one host."""

    control: str
    follows: bool  # another host opens the connection
    host_agent: Sequence[str]
    command: Sequence[str]
    typed: str = ""  # what somebody would type to try it
    config: str = ""


class LaunchFacts(NamedTuple):
    """What is to be known to make a launch line right."""

    family: str
    rewrite: bool
    machines: Sequence[str]  # those of the hostfile, in its order
    slots: Sequence[int]  # on each
    members: Mapping[str, Sequence[tuple[str, int]]]  # by machine
    rank: Sequence[str]  # the words that start one
    etc: str  # where the files are that a manifest looks for in /etc/mpi
    names: Mapping[str, str]  # machine by whatever it may be called
    output: str  # the folder on each machine from which output is handed on; empty: it comes through the launcher


class SshHostSpec(NamedTuple):
    role: str
    index: int  # type: ignore[assignment]
    temp: str  # a folder here
    folder: str  # on its machine, in which commands start
    machine: str
    way: SshAddress
    ssh: SshWay
    host_agent: str  # a script
    run: str  # the host's folder on its machine
    usage_every: int  # pings
    members: Sequence[tuple[str, int]]  # all hosts of the job on its machine, with their slots; the first one leads
    launch: LaunchFacts | None = None  # None: no launcher
    aliases: Mapping[str, str] = {}  # whatever a launcher may call a machine -> host
    memory: int | None = None
    cpus: float | None = None
    hands_on: bool = False  # what its ranks write comes from itself, not through the launcher
    mpirun: str = ""  # the launcher of the job's MPI

    @property
    def launcher(self) -> bool:
        return self.role == "launcher"


HostSpec = LocalHostSpec | SshHostSpec


class JobSpec(NamedTuple):
    uid: str
    job: str
    run_folder: str
    implementation: str
    mpi: str
    launcher_host: str
    launcher_argv: Sequence[str]
    launcher_is_mpirun: bool
    grace: float
    silence: float
    hosts: Mapping[str, HostSpec]
    gpus: Mapping[str, Sequence[str]] = {}  # by host
    transport: str = "local"
    stdin: str = ""  # the socket at which its standard input is given out, once; nobody is there: it has none
    # on this machine
    separation: Separation = Separation()
    network: str = "host"  # or "private"
    ip: str | None = None  # the command
    cgroups: Slices = Slices(0)
    master_port: int = 0
    limits: Limits | None = None  # None: those of the job agent
    limits_told: Any = ""  # about them, a sentence as it is dumped
    confinement: Confinement | None = None
    # on others
    placement: Mapping[str, str] = {}  # host -> machine
    addresses: Mapping[str, str] = {}  # by machine
    cleanup: Mapping[str, Sequence[str]] = {}  # machine -> how ssh is called
    copies: Mapping[str, str] = {}  # machine -> the copy of the job's folder there

    @property
    def elsewhere(self) -> bool:
        """Whether its hosts are other machines."""
        return self.transport == "ssh"


def read_spec(folder: str) -> JobSpec:
    """OSError if there is none, ValueError if it makes no sense."""
    with open(f"{folder}/{_FILE}") as file:
        facts = json.load(file)
    try:
        return _known(
            JobSpec,
            facts,
            separation=_known(Separation, facts["separation"]),
            cgroups=_known(Slices, facts["cgroups"]),
            limits=_known(Limits, facts["limits"]) if facts.get("limits") else None,
            confinement=_known(Confinement, facts["confinement"]) if facts.get("confinement") else None,
            hosts={name: _host(host, facts.get("transport")) for name, host in facts["hosts"].items()},
        )
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"{folder}/{_FILE}: {error!r}") from error


def find_spec(folder: os.PathLike[str]) -> JobSpec | None:
    """None if the job was not prepared yet."""
    try:
        return read_spec(str(folder))
    except (OSError, ValueError):
        return None


def write_spec(folder: os.PathLike[str], spec: JobSpec) -> None:
    replace_file(f"{os.fspath(folder)}/{_FILE}", json.dumps(_plain(spec)))


def forget_variables(folder: os.PathLike[str]) -> None:
    """Nothing of the job runs any more; before it does again, all is written anew."""
    spec = find_spec(folder)
    if spec is not None and not spec.elsewhere:
        local = {name: host for name, host in spec.hosts.items() if isinstance(host, LocalHostSpec)}
        bare = {name: host._replace(environment={}) for name, host in local.items()}
        write_spec(folder, spec._replace(hosts=bare))


def replace_file(path: str, text: str, *, mode: int = 0o600) -> None:
    new = f"{path}.new"
    with open(new, "w") as file:
        file.write(text)
    os.chmod(new, mode)
    os.replace(new, path)


_T = TypeVar("_T")


def _known(kind: type[_T], facts: Mapping[str, Any], **typed: Any) -> _T:
    """What an earlier version did not write has a default, what a later one adds is passed over."""
    return kind(**{name: facts[name] for name in kind.__annotations__ if name in facts} | typed)


def _plain(value: Any) -> Any:
    """With mappings in place of named tuples, which would become lists."""
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, (list, tuple)) else value


def _host(facts: Mapping[str, Any], transport: str | None) -> HostSpec:
    if transport == "ssh":
        launch = _known(LaunchFacts, facts["launch"]) if facts["launch"] else None
        way, ssh = _known(SshAddress, facts["way"]), _known(SshWay, facts["ssh"])
        return _known(SshHostSpec, facts, way=way, ssh=ssh, launch=launch)
    return _known(LocalHostSpec, facts, mounts=[_known(Mount, mount) for mount in facts["mounts"]])
