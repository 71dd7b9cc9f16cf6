"""Environments: named sets of packages, built once, that jobs run in."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from oarsman.service.models.base import Label, Sentence, Value


class EnvironmentSpec(Value):
    """What is in it. The same contents are never built twice."""

    name: Label
    description: Annotated[str, Field(max_length=500)] = ""
    requirements: Annotated[str, Field(max_length=500_000)] = ""  # as pip reads them; a lock file is one too
    python: Annotated[str | None, Field(pattern=r"^3\.\d{1,2}(\.\d{1,3})?$")] = None  # None: the one at hand
    mpi: Literal["openmpi", "mpich"] | None = None  # None: the one of the machine or the image
    image: Annotated[str | None, Field(max_length=500)] = None  # on Kubernetes: the image of the jobs, which builds it


class EnvironmentView(Value):
    spec: EnvironmentSpec
    state: Literal["Waiting", "Building", "Ready", "Failed"]
    message: Sentence = ""  # why it failed, in one line
    owner: str = ""
    created: datetime
    built: datetime | None = None
    digest: str = ""  # of the contents
    python: str = ""  # the version it really has
    packages: Sequence[str] = ()  # "numpy==2.1.0", when it is ready
    size_bytes: int | None = None
    used_by: Sequence[str] = ()  # keys of jobs that have not ended


class BuildLogView(Value):
    text: str
    after: int  # hand it back to read on
    ended: bool  # nothing more will come
