"""What a sentence is in Chinese, and which English words are left in it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from oarsman.text.catalogue import Translator
from oarsman.text.sentence import dump, load

in_chinese = Translator("zh").of

# Commands, paths, options, fields, variables and names with digits or dashes are the same in every language.
_NAMES = re.compile(r"`[^`]*`|'[^']*'|“[^”]*”|\S*[-/_.=\[\]@]\S*|[A-Za-z]*\d\w*|\b[a-z]+[A-Z]\w*|\b[A-Z][A-Za-z]+\b")
_SAME = {
    "mpirun",
    "cgroup",
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
    "launcher",
    "worker",
    "rank",
    "chmod",
    "memlock",
    "sysctl",
}


def english_words(chinese: str, foreign: Iterable[str] = ()) -> list[str]:
    for text in foreign:
        chinese = chinese.replace(text, " ")
    return [word for word in re.findall(r"[A-Za-z]{2,}", _NAMES.sub(" ", chinese)) if word not in _SAME]


def spoken(sentence: str, *foreign: str) -> str:
    """The Chinese, once it is known that there is some, that it is all of it, and that it can be kept as JSON."""
    said = in_chinese(sentence)
    assert said != sentence, sentence
    assert english_words(said, foreign) == [], said
    assert all(text in said for text in foreign), said
    kept = load(json.loads(json.dumps(dump(sentence))))
    assert (kept, in_chinese(kept)) == (sentence, said)
    return said
