"""What travels to a host: shell scripts and files, as one line that any login shell passes on unchanged."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

# What ssh is asked to run: plain enough for every login shell. The first line of input is the script itself.
RECEIVER = """exec /bin/sh -c 'IFS= read -r s; eval "$(printf %b "$s")"'"""

_HERE = Path(__file__).parent
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


def command(argv: Sequence[str], *, run: str, number: int, folder: str, variables: Mapping[str, str]) -> str:
    """A command of the job, as a script: in its folder, with its variables, known by its number.

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
        f"{words(argv)} </dev/null\n"
        f"code=$?; rm -f {run}/p/{number}; exit $code\n"
    )


def exports(variables: Mapping[str, str]) -> str:
    """Assignments for a shell to read; a name that no shell can have is left out."""
    return "".join(
        f"export {name}={shlex.quote(value)}\n" for name, value in variables.items() if _NAME.fullmatch(name)
    )


def words(argv: Sequence[str]) -> str:
    return " ".join(shlex.quote(word) for word in argv)


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
        agent = (
            '#!/bin/sh\nexec /bin/sh "$OARSMAN_RUN/agent" "$@"\n'  # daemons insist that it is there, and use it nowhere
        )
        lines.append(f'printf %b {shlex.quote(packed(agent))} >"$BASE/ssh" && chmod 700 "$BASE/ssh" &&')
        lines.append('rm -f "$BASE/run" && ln -s "$RUN" "$BASE/run" &&')
    return "write_files() {\n" + "\n".join([*lines, ":"]) + "\n}\n"
