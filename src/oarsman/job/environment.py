"""Environments, whichever engine has them: named sets of packages that are built once and that jobs run in.

A job names its environment in an annotation (names.ANNOTATION_ENVIRONMENT), so the same manifest runs anywhere
that has one of that name. Where it is attached, its programs come first on PATH of the launcher and of every rank.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, Literal

from oarsman.text.secrets import masked

State = Literal["Waiting", "Building", "Ready", "Failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentWanted:
    """What is in it. Two with the same contents have the same digest, and are built once."""

    name: str
    description: str = ""
    requirements: str = ""  # as pip reads them
    python: str | None = None  # "3.11"; None: the one at hand
    mpi: str | None = None  # openmpi, mpich; None: the one of the machine or the image
    image: str | None = None  # on Kubernetes: the image of the jobs, which builds it


def without_secrets(wanted: EnvironmentWanted) -> EnvironmentWanted:
    """As it is kept and shown: everybody sees environments, and pip needs credentials only while it builds."""
    whole = joined(wanted.requirements)
    shown = masked(whole)
    return wanted if shown == whole else replace(wanted, requirements=shown)


def joined(requirements: str) -> str:
    """As pip reads them: no secret hides behind the end of a line."""
    return re.sub(r"\\\r?\n", "", requirements)


def digest_of(wanted: EnvironmentWanted, built_by: str = "") -> str:
    """Of what would be built: name and description do not matter, nor do empty lines, nor with whose credentials it is
    fetched; those could be guessed by their digest. `built_by`: with whose rights, if those are not ours."""
    wanted = without_secrets(wanted)
    lines = [line.rstrip() for line in wanted.requirements.splitlines() if line.strip()]
    contents = json.dumps([lines, wanted.python, wanted.mpi, wanted.image, *filter(None, [built_by])])
    return hashlib.sha256(contents.encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentRecord:
    wanted: EnvironmentWanted
    state: State
    message: str = ""  # why it failed, in one line
    owner: str = ""
    created_at: datetime
    built_at: datetime | None = None
    digest: str = ""
    python: str = ""  # the version it really has
    packages: tuple[str, ...] = ()  # "numpy==2.1.0"
    size_bytes: int | None = None
    used_by: tuple[str, ...] = ()  # keys of jobs that have not ended


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildLog:
    text: str
    after: int  # hand it back to read on
    ended: bool  # nothing more will come


# -- commands that prepare a host before the launcher starts (names.ANNOTATION_INSTALL) --------------------------
FAILED: Final = "oarsman: the install commands failed with code"  # what the cause of the failure is known by
_SCRIPT: Final = f'/bin/sh -e -c "$1" || {{ code=$?; echo "{FAILED} $code" >&2; exit "$code"; }}; shift; exec "$@"'


def with_install(commands: str, argv: Sequence[str]) -> list[str]:
    """The launcher's words, with the commands run before them; the first that fails ends it all."""
    if not commands.strip():
        return list(argv)
    return ["/bin/sh", "-c", _SCRIPT, "install", commands, *argv]
