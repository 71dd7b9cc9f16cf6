"""What travels to a host: shell scripts and files, as one line that any login shell passes on unchanged; and what the
launcher there is to be called with."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from oarsman import names
from oarsman.engines.hosts.core.job_spec import LaunchFacts
from oarsman.engines.hosts.core.shims.mpirun import SHAPES_OUTPUT, SHARES_INPUT, corrected, has, survives
from oarsman.job import launch

# What ssh is asked to run: plain enough for every login shell. The first line of input is the script itself.
RECEIVER = """exec /bin/sh -c 'IFS= read -r s; eval "$(printf %b "$s")"'"""

_HERE = Path(__file__).parent
_PYTHON = _HERE.parents[1] / "python" / "sitecustomize.py"  # what every Python of a rank reads first
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def script(name: str) -> str:
    return (_HERE / f"{name}.sh").read_text()


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def packed(text: str) -> str:
    """One word on one line, which `printf %b` turns into the text again."""
    return _escaped(text).replace("\t", "\\t").replace(" ", "\\0040").replace("\0", "\\0000")


def line(text: str) -> bytes:
    """For RECEIVER."""
    return (_escaped(text) + "\n").encode("utf-8", "surrogateescape")


def command(
    argv: Sequence[str], *, run: str, number: int, folder: str, variables: Mapping[str, str], reads: bool = False
) -> str:
    """A command of the job, as a script: in its folder, with its variables, known by its number; and with what comes
    behind the script as its input, if it reads.

    The shell stays to tell how the command ended: of a signal ssh itself says nothing.
    """
    return (
        f"cd {shlex.quote(folder)} || exit 126\n"
        f"echo $$ >{run}/p/{number} || exit 143\n"
        f"[ ! -e {run}/p/{number}.end ] && [ ! -e {run}/p/end ] || exit 143\n"
        f". {run}/env\n"
        f"{exports(variables)}"
        'export OARSMAN_OUT="$(readlink /proc/$$/fd/1)" OARSMAN_ERR="$(readlink /proc/$$/fd/2)"\n'
        "trap : TERM INT HUP\n"
        f"{shlex.join(argv)}{'' if reads else ' </dev/null'}\n"
        f"code=$?; rm -f {run}/p/{number}; exit $code\n"
    )


def assignments(variables: Mapping[str, str]) -> str:
    """What a script is told, for a shell to read before it."""
    return "".join(f"{name}={shlex.quote(value)}\n" for name, value in variables.items())


def exports(variables: Mapping[str, str]) -> str:
    """Assignments for a shell to read; a name that no shell can have is left out."""
    known = (f"export {name}={shlex.quote(value)}\n" for name, value in variables.items() if _NAME.fullmatch(name))
    return "".join(known)


def writing(files: Mapping[str, str], *, seats: str) -> str:
    """The shell function write_files: these files, by their names below the host's folder; whoever leads on its machine
    also brings what ranks of any host of the job find at the same place on every machine, and `seats`, see rank.sh."""
    modes = {True: "700", False: "600"}
    lines = [
        f"write_file {shlex.quote(name)} {modes[text.startswith('#!')]} {shlex.quote(packed(text))} &&"
        for name, text in files.items()
    ]
    if seats:
        lines.append(f'printf %b {shlex.quote(packed(seats + script("rank")))} >"$BASE/rank.sh" &&')
        lines.append(f'printf %b {shlex.quote(packed(_PYTHON.read_text()))} >"$BASE/sitecustomize.py" &&')
        agent = '#!/bin/sh\nexec /bin/sh "$OARSMAN_RUN/agent" "$@"\n'  # daemons insist on it, and use it nowhere
        # At once: another host of this machine tries whether it can be started.
        lines.append(f'printf %b {shlex.quote(packed(agent))} >"$BASE/ssh.new" && chmod 700 "$BASE/ssh.new" &&')
        lines.append('mv -f "$BASE/ssh.new" "$BASE/ssh" &&')
        lines.append('rm -f "$BASE/run" && ln -s "$RUN" "$BASE/run" &&')
    return "write_files() {\n" + "\n".join([*lines, ":"]) + "\n}\n"


# -- the launch line of a job whose launcher runs on another machine: made right here, where all is known ---------
_HOST_OPTIONS = ("host", "hosts", "H")
# Hydra's own -prepend-rank puts "[3] " before each piece of a line, and a program may well write that itself. Tags like
# Open MPI's cannot be mistaken.
_HYDRA_TAGS = ("-prepend-pattern", "[1,%r]<stdout>: ")


@dataclass(frozen=True, slots=True)
class Composed:
    words: list[str]  # after the launcher's name
    machines: tuple[str, ...]  # where each rank goes; none: that cannot be told beforehand
    by_hydra: bool  # its lines will say which rank wrote them, but not to which stream
    asked: tuple[str, ...] = ()  # the launcher and its options, as they were before all this


def compose(
    name: str, words: Sequence[str], facts: LaunchFacts, *, attempt: str, world: str, port: str, own: str
) -> Composed:
    """`own` names the streams ("o", "e") that end in the job's log; what goes elsewhere is left as it is. It also says
    how rank 0 gets its input: "f" from the job agent, "n" not at all, and otherwise the launcher hands it on."""
    hydra = not facts.family.startswith("Open MPI")
    words = corrected(name, words, family=facts.family, rewrite=facts.rewrite)
    asked = launch.words_that_place(
        launch.parse([name, *(word.replace(facts.etc, names.MPI_CONFIG_DIR) for word in words)])
    )
    words = _with_known_hosts(name, words, facts.names)
    words = [word.replace(facts.etc, names.MPI_CONFIG_DIR) for word in words]
    line = launch.parse([name, *words])
    words = [word.replace(names.MPI_CONFIG_DIR, facts.etc) for word in words]
    options = line.options if line is not None else ()
    placement = launch.expected_placement(line, facts.machines, facts.slots, hydra=hydra or None) if line else None
    master = (placement or facts.machines)[0]
    label = f"{attempt}:{world}:{int(survives(options))}"
    given = "all" if has(options, SHARES_INPUT) else {"f": "feed", "n": "none"}.get(own[-1:], "first")
    words = launch.with_wrapper(words, [*facts.rank, label, f"input={given}", master, port])
    if facts.family.startswith("Intel"):
        words = _by_machinefile(line, words, f"{facts.etc}/{names.HOSTFILE}")
    tagged = own.startswith("oe") and line is not None and not has(options, SHAPES_OUTPUT)
    if tagged and facts.output:
        words = ["--output-filename", f"{facts.output}/{world}:nocopy", *words]
    elif tagged:
        words = [*(_HYDRA_TAGS if hydra else ("--tag-output",)), *words]
    return Composed(words, placement or (), tagged and hydra, asked)


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
