"""What is done in a pod before it does its part: the job's environment is put on PATH, its install commands are run.

It is decided once and written into the job's ConfigMap, so that every pod of the job has the same, also those that come
later, whatever becomes of the environment or the annotation meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from oarsman import names
from oarsman.engines.kube import environments
from oarsman.engines.kube.objects.common import KubeOptions
from oarsman.engines.kube.ssh import server_of
from oarsman.job.job import Job, Transport
from oarsman.text.sentence import Text

SCRIPT: Final = "prepare.sh"
COMMANDS: Final = "install.sh"
ENVIRONMENT: Final = "environment"  # in the ConfigMap: the digest
RANK: Final = "rank.sh"
PYTHON: Final = "sitecustomize.py"  # what every Python of a rank reads first
# How the script begins what it says when it cannot go on.
FAILURES: Final = ("oarsman: the install commands failed", "oarsman: the environment is not ")
_LONGEST_INSTALL: Final = 1800  # seconds; until then nobody can log in, and that is as it should be
_NOT_YET: Final = (
    f"[ -e /run/oarsman/prepared ] || {{ echo '{Text('its install commands have not ended')}' >&2; exit 96; }};"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PodPreparation:
    environment: str = ""  # digest
    commands: str = ""
    many_hosts: bool = False  # their list of the moment has a ConfigMap of its own
    shim: bool = False  # ranks are started through one
    ends_ranks: bool = (
        False  # of which a Python that failed does not wait for the others; earlier operators knew no way
    )

    def __bool__(self) -> bool:
        return bool(self.environment or self.commands)

    @property
    def path(self) -> str:
        return environments.folder(self.environment)

    @property
    def files(self) -> dict[str, int]:
        """What pods mount of the ConfigMap, beside their own scripts."""
        return {
            **({SCRIPT: 0o555} if self else {}),
            **({COMMANDS: 0o444} if self.commands else {}),
            **({RANK: 0o555} if self.shim else {}),
            **({PYTHON: 0o444} if self.ends_ranks else {}),
        }

    @property
    def data(self) -> dict[str, str]:
        kept = {ENVIRONMENT: self.environment, COMMANDS: self.commands}
        return {key: text for key, text in kept.items() if text}

    def before_a_session(self, job: Job) -> str:
        """What the launcher's agent has a worker's shell do first: not every sshd is ours, and exec has none."""
        waits = _NOT_YET if self.commands and job.transport is Transport.EXEC else ""
        first = f"{self.path}/bin"
        attached = f"export VIRTUAL_ENV={self.path} PATH={first}:${{PATH#{first}:}};" if self.environment else ""
        return f"{waits} {attached}".strip()


NOTHING: Final = PodPreparation()


def recorded(data: Mapping[str, str]) -> PodPreparation:
    many = bool(data) and names.DISCOVER_HOSTS not in data
    environment, commands = data.get(ENVIRONMENT, ""), data.get(COMMANDS, "")
    shim = {"shim": RANK in data, "ends_ranks": PYTHON in data}
    return PodPreparation(environment=environment, commands=commands, many_hosts=many, **shim)


def wants_shim(job: Job) -> bool:
    return job.annotation(names.ANNOTATION_SHIM, "true") != "false"


def commands_of(job: Job) -> str:
    said = job.annotation(names.ANNOTATION_INSTALL)
    return f"{said.rstrip()}\n" if said.strip() else ""


def barrier_seconds(job: Job, options: KubeOptions) -> int:
    return options.barrier_seconds + (_LONGEST_INSTALL if commands_of(job) else 0)


def impossible(job: Job) -> str | None:
    """Nothing can be put before a command that only an image knows."""
    said = (names.ANNOTATION_ENVIRONMENT, names.ANNOTATION_INSTALL)
    wanted = [name for name in said if job.annotation(name).strip()]
    if wanted and not job.launcher.container.command:
        return _needs(wanted[0], "launcher")
    worker = job.worker if job.transport is Transport.SSH else None  # to be reached by exec, it gets a command of ours
    if worker is not None and not server_of(worker).ours and not worker.container.command and commands_of(job):
        return _needs(names.ANNOTATION_INSTALL, "worker")
    return None


def _needs(annotation: str, role: str) -> str:
    template = Text("{annotation} needs the {role}'s command in the manifest: what the image starts is not known here")
    return Text(template, annotation=annotation, role=role)
