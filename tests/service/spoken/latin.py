"""Which English words are left in a Chinese sentence."""

from __future__ import annotations

import re
from collections.abc import Iterable

# Commands, paths, options, fields, variables and names with digits or dashes are the same in every language.
_NAMES = re.compile(r"`[^`]*`|'[^']*'|“[^”]*”|\S*[-/_.=\[\]@]\S*|[A-Za-z]*\d\w*|\b[a-z]+[A-Z]\w*|\b[A-Z][A-Za-z]+\b")
_SAME = {
    "mpirun",
    "ssh",
    "sshd",
    "hostfile",
    "kubectl",
    "oarsman",
    "operator",
    "horovodrun",
    "openmpi",
    "mpich",
    "intel",
    "ip",
    "pip",
    "describe",
    "job",
    "apply",
    "metrics",
    "server",
    "medium",
    "env",
    "value",
    "kind",
    "true",
    "false",
    "no",
    "host",
    "slots",
    "shell",
    "sh",
    "x",
    "spec",
    "private",
    "stop",
    "delete",
    "create",
    "namespace",
    "metadata",
    "slot",
    "node",
}


def english_words(chinese: str, foreign: Iterable[str] = ()) -> list[str]:
    for text in foreign:
        chinese = chinese.replace(text, " ")
    return [word for word in re.findall(r"[A-Za-z]{2,}", _NAMES.sub(" ", chinese)) if word not in _SAME]
