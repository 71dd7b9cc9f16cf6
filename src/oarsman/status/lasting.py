"""Failures that the next attempt would only repeat: a misspelt program does not appear by itself.

A code alone is no evidence. Programs may end with 126 and 127 for reasons of their own, and some of what keeps a file
from being executed passes (it is being written, memory is short), so the words have to say the same.

What Python says counts only as the last word of the rank that is the cause: programs also write of modules and files
that they can do without. A file that a program reads may come later; only its script is the program itself. A module
may be missing on one of several hosts, and the next attempt may get others; this machine stays the same.
"""

from __future__ import annotations

import re
from typing import Final

from oarsman import names
from oarsman.job.job import Job, Role
from oarsman.job.observed import Observed
from oarsman.job.state import Cause
from oarsman.status import mpirun_words
from oarsman.text.sentence import Text

_NOT_THERE: Final = Text("the program is not there")
_WORDS_OF_CODES: Final = {
    127: (re.compile(r"\bnot found\b|No such file or directory|bad interpreter"), _NOT_THERE),
    126: (
        re.compile(r"Permission denied|Exec format error|cannot execute|Is a directory|Not a directory"),
        Text("the program cannot be executed"),
    ),
}
_SCRIPT: Final = re.compile(r"\S*(?:python|pypy)[\d.]*: can't open file '.+': \[Errno 2\] No such file or directory")
# The same, of python3 -m mpi4py: the last frame is where runpy opens the script.
_RUNPY: Final = re.compile(r'File "[^"]*runpy[^"]*", line \d+, in _get_code_from_file')
_NO_FILE: Final = re.compile(r"FileNotFoundError: \[Errno 2\] No such file or directory: '.+'")
_FRAME: Final = re.compile(r'\s*File "')
_MODULE: Final = re.compile(r"(?:ModuleNotFoundError|\S*(?:python|pypy)[\d.]*): No module named '?[\w.]+'?")


def why(job: Job, seen: Observed, cause: Cause) -> str:
    """Why trying again is of no use; empty if it may be of some."""
    if not (seen.ranks_report or _same_in_the_next_pod(job)):
        return ""
    words, reason = _WORDS_OF_CODES.get(cause.exit_code or 0, (None, ""))
    if words is not None and any(words.search(line) for line in cause.last_lines):
        return reason
    if told := _told_by_python(job, seen, cause):
        return told
    if seen.ranks:  # a script may call mpirun twice; one of the two did start something
        return ""
    if mpirun_words.misses_the_program(seen.launcher_lines):
        return _NOT_THERE
    if mpirun_words.refuses_its_command_line(seen.launcher_lines):
        return Text("mpirun does not take its command line")
    return ""


def _told_by_python(job: Job, seen: Observed, cause: Cause) -> str:
    """Elsewhere the lines may be another rank's; commands that run before each attempt may bring what is missing."""
    whose = cause.rank is not None or not seen.ranks
    if not (seen.ranks_report and whose) or job.annotation(names.ANNOTATION_INSTALL):
        return ""
    last = mpirun_words.own_last_word(cause.last_lines) or ""
    if cause.exit_code == 2 and _SCRIPT.fullmatch(last):
        return _NOT_THERE
    if cause.exit_code != 1:
        return ""
    if _NO_FILE.fullmatch(last) and _RUNPY.search(next((x for x in reversed(cause.last_lines) if _FRAME.match(x)), "")):
        return _NOT_THERE
    one_machine = not job.annotation(names.ANNOTATION_INVENTORY)
    return Text("a Python module is missing") if one_machine and _MODULE.fullmatch(last) else ""


def _same_in_the_next_pod(job: Job) -> bool:
    """Hosts keep their programs from one attempt to the next. A pod is made anew: a tag may name another image by then,
    a volume may have been filled, an init container may have more luck with what it fetches. Only an image that is
    named by its digest, with nothing beside it to hold a program, is the same again."""
    prepared = any(job.annotation(name) for name in (names.ANNOTATION_INSTALL, names.ANNOTATION_ENVIRONMENT))
    roles = [job.launcher] if job.worker is None else [job.launcher, job.worker]
    return not prepared and all(_fixed(role) for role in roles)


def _fixed(role: Role) -> bool:
    by_digest = all("@sha256:" in container.image for container in role.containers)
    alone = not role.init_containers and len(role.containers) == 1
    return by_digest and alone and all(volume.kind == "emptyDir" for volume in role.volumes)
