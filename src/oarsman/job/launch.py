"""The launch line: which words start MPI, what they ask for, and how to change them with care.

A manifest says twice how many processes there are: in slots and in the words after mpirun. Reading
the second is what lets Oarsman compare the two before anything starts, tell where each rank should
land, and put its own words before the user's program.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from oarsman.job.launch_options import HYDRA_ONLY, LAUNCHERS, NEEDS_TWO_DASHES, UNPREDICTABLE, WITHOUT_MPI
from oarsman.job.launch_words import FoundLauncher, base_name, find, skip_prefixes


@dataclass(frozen=True, slots=True)
class HostSlots:
    host: str
    slots: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchLine:
    launcher: str  # mpirun, mpiexec, orterun, horovodrun, ...: the base name
    path: str  # as written, perhaps with folders
    options: tuple[str, ...] = ()  # its own options, as written
    program: tuple[str, ...] = ()  # what every rank runs
    in_shell: bool = False  # found inside `sh -c '...'`
    processes: int | None = None
    per_node: int | None = None
    per_socket: int | None = None
    hosts: tuple[HostSlots, ...] = ()
    hostfile: str | None = None
    exports: tuple[str, ...] = ()
    map_by: str = ""  # slot, node, ppr:2:node, ... as written, lower case
    rank_by: str = ""
    oversubscribe: bool = False
    min_processes: int | None = None
    max_processes: int | None = None
    host_discovery_script: str | None = None
    contexts: int = 1  # programs started together, separated by `:`
    unclear: tuple[str, ...] = ()  # options whose effect only the launcher knows, at run time
    decisive_word: int | None = None  # which word of argv says how many processes

    @property
    def elastic(self) -> bool:
        return self.host_discovery_script is not None or self.min_processes is not None


@dataclass(frozen=True, slots=True)
class Rewrite:
    argv: tuple[str, ...]
    changes: tuple[str, ...] = ()  # "-bind-to became --bind-to", in order


def parse(argv: Sequence[str], variables: Mapping[str, str] | None = None) -> LaunchLine | None:
    """What the words ask for, or None when they do not visibly start MPI.

    `variables` are those that a shell among the words would see.
    """
    found = find(argv, variables)
    if found is None:
        return None
    launcher = base_name(found.words[0])
    asked = _Asked(launcher)
    contexts = _contexts(found.words, launcher, in_shell=found.shell is not None)
    for options, _ in contexts:
        asked.counts.append(None)
        for option in options:
            asked.take(option, found.index if found.shell is not None else found.index + option.value_at)
    _, program = contexts[0]
    start = program.start if program else len(found.words)
    while program and start > 1 and _is_variable(found.words[start - 1]):
        start -= 1  # `$PYTHON train.py`: most likely part of the program
    return LaunchLine(
        launcher=launcher,
        path=found.words[0],
        options=found.words[1:start],
        program=found.words[start : program.stop],
        in_shell=found.shell is not None,
        contexts=len(contexts),
        **asked.result(),
    )


def starts_ranks_without_mpi(argv: Sequence[str]) -> bool:
    """Whether these words visibly start ranks of which MPI knows nothing."""
    words = list(argv[skip_prefixes(argv) :])
    module = words[1:3] in (["-m", "torch.distributed.run"], ["-m", "torch.distributed.launch"])
    return bool(words) and (base_name(words[0]) in WITHOUT_MPI or module)


def rewrite(argv: Sequence[str]) -> Rewrite:
    """The same line in words that both generations of Open MPI understand. Only for Open MPI."""
    found = _changeable(argv)
    if found is None:
        return Rewrite(tuple(argv))
    wrong = [
        option.at
        for options, _ in _contexts(found.words, base_name(found.words[0]))
        for option in options
        if option.name in NEEDS_TWO_DASHES and not option.word.startswith("--")
    ]
    changed = list(argv)
    changes = []
    for at in reversed(wrong):
        word = found.words[at]
        if found.shell is None:
            changed[found.index + at] = f"-{word}"
        else:
            place = found.shell[at]
            text = changed[found.index]
            # A word that is quoted, or comes from a variable, is not there letter by letter.
            if place.start < 0 or text[place.start : place.end] != word:
                continue
            changed[found.index] = f"{text[: place.start]}-{text[place.start :]}"
        changes.append(f"{word.partition('=')[0]} became -{word.partition('=')[0]}")
    return Rewrite(tuple(changed), tuple(reversed(changes)))


def _changeable(argv: Sequence[str]) -> FoundLauncher | None:
    """The mpirun among the words, if it is one whose words can be changed."""
    found = find(argv)
    if found is None or found.nested or base_name(found.words[0]) not in ("mpirun", "orterun", "mpiexec"):
        return None
    return found


def with_tags(argv: Sequence[str], *, hydra: bool = False) -> tuple[str, ...]:
    """The same line, with every line of output marked with its rank. Unchanged where the launcher is not mpirun."""
    found = _changeable(argv)
    if found is None:
        return tuple(argv)
    option = "-prepend-rank" if hydra else "--tag-output"
    changed = list(argv)
    if found.shell is None:
        changed.insert(found.index + 1, option)
    else:
        place, text = found.shell[0], changed[found.index]
        if place.start < 0 or text[place.start : place.end] != found.words[0]:
            return tuple(argv)
        changed[found.index] = f"{text[: place.end]} {option}{text[place.end :]}"
    return tuple(changed)


def with_wrapper(words: Sequence[str], wrapper: Sequence[str], launcher: str = "mpirun") -> list[str]:
    """The words after the launcher, with `wrapper` before each program. Unchanged where there is none."""
    contexts = _contexts(("", *words), launcher)
    result = list(words)
    for _, program in reversed(contexts):
        if program:
            at = program.start - 1
            result[at:at] = wrapper
    return result


# -- options ------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class _Option:
    word: str  # as written
    name: str  # without dashes and without =value
    values: tuple[str, ...]
    at: int
    value_at: int


def _contexts(words: Sequence[str], launcher: str, *, in_shell: bool = False) -> list[tuple[list[_Option], range]]:
    """Per program: its options, and where its words are."""
    found: list[tuple[list[_Option], range]] = []
    end = 0
    while end < len(words):
        options, at = _options(words, end + 1, launcher, in_shell)
        end = next((index for index in range(at, len(words)) if words[index] == ":"), len(words))
        found.append((options, range(at, end)))
    return found


def _options(words: Sequence[str], at: int, launcher: str, in_shell: bool) -> tuple[list[_Option], int]:
    """The options from `at` on, and the index of the first word that is not one."""
    table = LAUNCHERS.get(launcher, LAUNCHERS["mpirun"])
    options: list[_Option] = []
    while at < len(words):
        word = words[at]
        if in_shell and _is_variable(word):  # it may hold options, the program, or nothing
            options.append(_Option(word, word, (), at, at))
            at += 1
            continue
        if word == ":" or len(word) < 2 or word[0] != "-":
            break
        if word == "--":
            return options, at + 1
        name, equals, value = word.lstrip("-").partition("=")
        takes = table.get(name, 0)
        if name in ("env", "genv") and at + 1 < len(words) and "=" in words[at + 1]:
            takes = 1
        values = ((value,) if equals else ()) + tuple(words[at + 1 : at + 1 + max(0, takes - bool(equals))])
        # A missing value would swallow the separator of the next program.
        values = values[: values.index(":")] if ":" in values else values
        options.append(_Option(word, name, values, at, at if equals or not values else at + 1))
        at += 1 + len(values) - bool(equals)
    return options, at


def _is_variable(word: str) -> bool:
    return word.startswith(("$", "`"))


def _number(text: str) -> int | None:
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdigit() and len(digits) < 10 else None


_COUNTS = frozenset(("np", "n", "c", "num-proc"))
# Options that say one thing each, and the field of the `LaunchLine` that says the same.
_NUMBERS = {**dict.fromkeys(("npernode", "ppn", "perhost", "N"), "per_node"), "npersocket": "per_socket"}
_BOUNDS = {
    **dict.fromkeys(("min-np", "min-num-proc"), "min_processes"),
    **dict.fromkeys(("max-np", "max-num-proc"), "max_processes"),
}
_VALUES = {
    **dict.fromkeys(("hostfile", "machinefile", "machine", "default-hostfile", "f"), "hostfile"),
    "host-discovery-script": "host_discovery_script",
}


class _Asked:
    """Gathers what options ask for, over all programs of one line."""

    def __init__(self, launcher: str) -> None:
        self.horovod = launcher == "horovodrun"
        self.counts: list[int | None] = []  # of processes, one per program
        self.hosts: list[HostSlots] = []
        self.exports: list[str] = []
        self.unclear: list[str] = []
        self.fields: dict[str, Any] = {}  # others of the `LaunchLine`

    def take(self, option: _Option, word: int) -> None:
        name, value = option.name, option.values[0] if option.values else ""
        if name in UNPREDICTABLE or _is_variable(name):
            self.unclear.append(option.word)
        if name in _COUNTS:
            self.counts[-1] = self._count(option, value, word)
        elif name in _BOUNDS and self.horovod:
            self.fields[_BOUNDS[name]] = self._count(option, value, word)
        elif name in _NUMBERS and not (name == "N" and self.horovod):
            self.fields[_NUMBERS[name]] = self._count(option, value, word)
        elif name in _VALUES:
            self.fields[_VALUES[name]] = value
        elif name == "pernode":
            self.fields["per_node"] = 1
        elif name in ("host", "H", "hosts"):
            self._take_hosts(option, value)
        elif name == "x":
            self.exports.append(value)
        elif name == "map-by":
            self._map_by(option, value.lower(), word)
        elif name in ("bynode", "byslot"):
            self.fields["map_by"] = name[2:]
        elif name == "rank-by":
            self.fields["rank_by"] = value.lower()
        elif name == "oversubscribe":
            self.fields["oversubscribe"] = True
        elif name in ("mca", "gmca", "omca", "gomca", "prtemca", "gprtemca") and value.startswith("rmaps"):
            setting = " ".join(option.values).lower()
            if "oversubscribe" in setting and not setting.endswith((" 0", " false")):
                self.fields["oversubscribe"] = True
            else:
                self.unclear.append(option.word)

    def _take_hosts(self, option: _Option, value: str) -> None:
        for part in value.split(","):
            host, colon, slots = part.strip().partition(":")
            number = _number(slots) if colon else None
            if host and ("$" in part or (colon and number is None)):
                self.unclear.append(option.word)
            if host:
                self.hosts.append(HostSlots(host, number))

    def _map_by(self, option: _Option, value: str, word: int) -> None:
        self.fields["map_by"] = value
        parts = value.replace(",", ":").split(":")
        if "oversubscribe" in parts:
            self.fields["oversubscribe"] = True
        if parts[0] == "ppr" and len(parts) >= 3:
            count = self._count(option, parts[1], word)
            if parts[2] == "node":
                self.fields["per_node"] = count
            elif parts[2] in ("socket", "package"):
                self.fields["per_socket"] = count

    def _count(self, option: _Option, value: str, word: int) -> int | None:
        number = _number(value)
        if number is None:
            self.unclear.append(option.word)
        elif option.name in _COUNTS or (option.name not in _BOUNDS and "decisive_word" not in self.fields):
            self.fields["decisive_word"] = word
        return number

    def result(self) -> dict[str, Any]:
        """The fields of a `LaunchLine` that options decide."""
        known = [count for count in self.counts if count is not None]
        return {
            **self.fields,
            "processes": sum(known) if known and len(known) == len(self.counts) else None,
            "hosts": tuple(self.hosts),
            "exports": tuple(self.exports),
            "unclear": tuple(dict.fromkeys(self.unclear)),
        }


# -- placement ------------------------------------------------------------------------------------------
_LARGEST_WORLD = 100_000  # ranks; beyond it a placement is no use to anybody


def expected_placement(
    line: LaunchLine,
    hosts: Sequence[str],
    slots: int | Sequence[int] | Mapping[str, int],
    *,
    hydra: bool | None = None,
) -> tuple[str, ...] | None:
    """Rank -> host by the launcher's documented rules, or None where they do not settle it.

    `hosts` and `slots` are those of the hostfile: one number for all, one each in the hosts' order, or by name.
    `hydra` says that a plain mpirun is MPICH's or Intel's.
    """
    settled = line.contexts == 1 and not (line.elastic or line.oversubscribe or line.unclear or line.per_socket)
    if not settled or line.launcher == "horovodrun":
        return None
    if line.hostfile is not None and not line.hostfile.startswith("/etc/mpi/"):
        return None
    room = _room(line, _slots_of(hosts, slots))
    if room is None:
        return None
    if hydra or (hydra is None and line.launcher in HYDRA_ONLY):
        return _place_hydra(line, room)
    return _place_openmpi(line, room)


def words_that_place(line: LaunchLine | None) -> tuple[str, ...]:
    """The launcher and its options, for `parse` to read again; none where placement cannot be known from them."""
    return (line.launcher, *line.options) if line is not None and line.contexts == 1 else ()


def _slots_of(hosts: Sequence[str], slots: int | Sequence[int] | Mapping[str, int]) -> dict[str, int]:
    if isinstance(slots, int):
        return dict.fromkeys(hosts, slots)
    if isinstance(slots, Mapping):
        return {host: slots[host] for host in hosts}
    return dict(zip(hosts, slots, strict=True))


def _room(line: LaunchLine, slots: dict[str, int]) -> dict[str, int] | None:
    """Host -> slots. --host chooses and orders: a name without a number has one slot, a name given twice two."""
    if not line.hosts:
        return slots
    known = {name: host for host in slots for name in (host, host.split(".", 1)[0])}
    named: dict[str, int] = {}
    for item in line.hosts:
        if item.host not in known:
            return None
        host = known[item.host]
        named[host] = named.get(host, 0) + (item.slots if item.slots is not None else 1)
    # Above the hostfile's number generation 4 obeys and generation 5 refuses.
    return named if all(0 < count <= slots[host] for host, count in named.items()) else None


def _place_openmpi(line: LaunchLine, room: dict[str, int]) -> tuple[str, ...] | None:
    mapping = line.map_by.removesuffix(":nooversubscribe")
    if mapping not in ("", "slot", "node", f"ppr:{line.per_node}:node") or line.rank_by not in ("", "slot", "node"):
        return None
    if line.per_node is not None:
        if mapping == "node" or not all(0 < line.per_node <= count for count in room.values()):
            return None
        room = dict.fromkeys(room, line.per_node)
    total = sum(room.values())
    wanted = total if line.processes is None else line.processes
    if not 0 < wanted <= total or total > _LARGEST_WORLD:
        return None
    mapped = (_round_robin(room) if mapping == "node" else _filled(room))[:wanted]
    taken = Counter(mapped)
    counts = {host: taken[host] for host in room}
    by_node = (line.rank_by or mapping) == "node"
    return tuple(_round_robin(counts) if by_node else _filled(counts))


def _filled(counts: dict[str, int]) -> list[str]:
    return [host for host, count in counts.items() for _ in range(count)]


def _round_robin(counts: dict[str, int]) -> list[str]:
    placed: list[str] = []
    turn, left = 0, dict(counts)
    while left := {host: count for host, count in left.items() if turn < count}:  # who has had all is not asked again
        placed += left
        turn += 1
    return placed


def _place_hydra(line: LaunchLine, room: dict[str, int]) -> tuple[str, ...] | None:
    if line.per_node is not None:  # Hydra's -map-by is about cores, not hosts
        if line.per_node < 1:
            return None
        room = dict.fromkeys(room, line.per_node)
    if sum(room.values()) > _LARGEST_WORLD:
        return None
    once = _filled(room)
    wanted = len(once) if line.processes is None else line.processes
    if not once or wanted < 1 or wanted > _LARGEST_WORLD:
        return None
    return tuple((once * (wanted // len(once) + 1))[:wanted])
