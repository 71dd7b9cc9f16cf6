"""The job that `run`, `submit` and `plan` are asked for: a manifest, or a command with `-n`.

The options are the same for the three verbs. Those of `JobSettings` also change a manifest's job; those of
`Shape` make a job where there is no manifest. Below: reading the files that are named, or what is piped in.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from oarsman import names
from oarsman.cli import options, render
from oarsman.cli.failures import explained
from oarsman.cli.session import Session
from oarsman.cli.text import note, of, t, why
from oarsman.cli.verbs import Verb, option, together
from oarsman.errors import ConflictError, ManifestError, Problem, UsageError, UserError
from oarsman.manifest import builder
from oarsman.manifest.fields import FIELDS
from oarsman.manifest.problems import cannot_start, more_slots

if TYPE_CHECKING:
    from oarsman.job.job import Job
    from oarsman.service.models import JobView


@dataclass(frozen=True, slots=True, kw_only=True)
class JobInput:
    words: tuple[str, ...]
    settings: builder.JobSettings
    shape: builder.Shape | None  # None: the words are files

    def documents(self, session: Session) -> list[dict[str, Any]]:
        """Every document asked for, valid and in its namespace."""
        if self.shape is None:
            jobs = [job for path in self.words for job in _manifest(path)]
            self._tell([problem for job in jobs for problem in job.warnings], session)
            return [placed(builder.apply(job.document, self.settings), session) for job in jobs]
        if not self.words:
            raise UsageError(t("-n was given but no program"), hint="oarsman run -n 4 -- python3 -m mpi4py train.py")
        if session.place == "kube" and not self.shape.image:
            raise UsageError(
                t("a command on a cluster needs --image: the program and an MPI have to be in it"),
                hint=f"oarsman run --on kube -n {self.shape.processes} --image IMAGE -- {' '.join(self.words)}",
            )
        from oarsman.manifest import job_from_document

        shape = builder.for_ssh_hosts(self.shape) if session.place == "ssh" else self.shape
        made = placed(builder.document(self.words, shape, self.settings, suffix=builder.new_suffix()), session)
        self._tell([_by_option(problem, _FIELD_ENDS) for problem in job_from_document(made).warnings], session)
        return [made]

    @staticmethod
    def _tell(warnings: Sequence[Problem], session: Session) -> None:
        if session.place != "kube" and (hopeless := cannot_start(warnings)):
            raise ManifestError(hopeless)
        for problem in warnings:
            note(explained(problem))

    def document(self, session: Session, purpose: str) -> dict[str, Any]:
        """The one document of a verb that takes only one."""
        if self.shape is None and len(self.words) > 1:
            raise UsageError(
                t("`{purpose}` takes one manifest, or -n and a command", purpose=purpose),
                hint=f"oarsman {purpose} -n 4 -- {' '.join(self.words)}",
            )
        found = self.documents(session)
        if len(found) != 1:
            raise UsageError(
                t(
                    "{path} holds {count} jobs, and `{purpose}` takes one",
                    path=self.words[0],
                    count=len(found),
                    purpose=purpose,
                ),
                hint=t("`oarsman submit` takes several"),
            )
        return found[0]


def hand_in(session: Session, document: dict[str, Any], *, replace: bool) -> JobView:
    """Submit. A job that is handed in here inherits variables and folder; at a server it gets the server's."""
    from oarsman.client.places import current_folder
    from oarsman.service.models import Create

    if session.remote is None:
        current_folder()
    try:
        view = session.run(session.service.create(Create(document=document, replace=replace)))
    except ConflictError as error:
        if not replace:
            error.hint = t("--replace takes the place of a job that has ended; --name gives this one another name")
        raise
    if view.limits:
        session.note(of(view.limits))
    for remark in view.warnings:
        session.note(render.warning(remark))
    return view


class WithCommand(Verb):
    """Takes `-n 4 python train.py --lr 3` too: after -n, the first plain word begins the user's command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        own = args[: args.index("--")] if "--" in args else args
        ctx.allow_interspersed_args = not any(a.startswith(("-n", "--processes")) for a in own)
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return [t("[OPTIONS] FILE | [OPTIONS] -n N [--] COMMAND...")]


def _complete_file(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(incomplete, type="file")]


def _pairs(ctx: click.Context, param: click.Parameter, values: Sequence[str]) -> dict[str, str]:
    import os

    found = {}
    for value in values:
        name, equals, text = value.partition("=")
        if not name or (not equals and name not in os.environ):
            raise UsageError(t("--env {value}: write NAME=VALUE, or the NAME of a variable that is set", value=value))
        found[name] = text if equals else os.environ[name]
    return found


_job_options = together(
    click.argument("words", nargs=-1, type=click.UNPROCESSED, shell_complete=_complete_file),
    option(
        "-n, -np, --processes N", t("Run the COMMAND on N ranks, without a manifest."), "processes", type=options.COUNT
    ),
    option(
        "--workers N", t("Hosts to spread the ranks over; default 2, on SSH hosts what is needed."), type=options.COUNT
    ),
    option("--slots N", t("Ranks per host; default: as many as needed."), type=options.COUNT),
    option("--env NAME=VALUE", t("A variable for every rank; repeatable."), multiple=True, callback=_pairs),
    option("--cpus AMOUNT", t("CPUs per worker: 2, 500m.")),
    option("--memory AMOUNT", t("Memory per worker: 4Gi.")),
    option("--gpus N", t("GPUs per worker."), type=options.FROM_ZERO),
    option("--image IMAGE", t("The container image; needed with --on kube.")),
    option("--keep", t("Keep the workers after the job has finished.")),
    option("--name NAME", t("The job's name; default: the manifest's, or from the program.")),
    option("--mpi KIND|PATH", t("openmpi, mpich, intel, or a path; default: found on PATH.")),
    option(
        "--network",
        t("An address for every host, or the machine's own network."),
        type=click.Choice(FIELDS["network"].choices),
    ),
    option(
        "--code",
        t("On SSH hosts: copy this folder to them (the default), or nothing."),
        type=click.Choice(FIELDS["code"].choices),
    ),
    option("--oversubscribe", t("Start the job even if it asks for more CPU or memory than there is.")),
    option("--priority N", t("The higher one starts first; default 0."), type=int),
    option("--timeout TIME", t("End the job after: 90s, 10m."), "deadline", callback=options.seconds),
    option("--environment NAME", t("The environment to run in, as `oarsman env list` shows them.")),
    option("--install COMMANDS", t("Shell commands that run before the job starts.")),
)
_SHAPE_NAMES = ("processes", "workers", "slots", "env", "cpus", "memory", "gpus", "keep", "image")


def job_asked_for(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the words and the options; hand them to the verb as one `asked`."""

    @functools.wraps(command)
    def wrapper(*args: Any, words: tuple[str, ...], **kwargs: Any) -> Any:
        shape = {name: kwargs.pop(name) for name in _SHAPE_NAMES}
        settings = builder.JobSettings(**{name: kwargs.pop(name) for name in builder.JobSettings.__slots__})
        given = {name for name, value in {**shape, **asdict(settings)}.items() if value not in (None, False)}
        try:
            return command(*args, asked=_asked(words, shape, settings), **kwargs)
        except ManifestError as error:
            raise ManifestError([_by_option(problem, given) for problem in error.problems]) from None

    return _job_options(wrapper)


# Where a mistake in an option shows in the document that is made of it: the ends of fields, by option.
_FIELD_ENDS = {
    "processes": "Launcher.template.spec.containers[0].command[2]",
    "name": "metadata.name",
    "workers": "Worker.replicas",
    "slots": "spec.slotsPerWorker",
    "cpus": "limits.cpu",
    "memory": "limits.memory",
    "gpus": 'limits["nvidia.com/gpu"]',
    "image": ".image",
    "deadline": ".activeDeadlineSeconds",
    "mpi": f'["{names.ANNOTATION_MPI}"]',
    "environment": f'["{names.ANNOTATION_ENVIRONMENT}"]',
    "install": f'["{names.ANNOTATION_INSTALL}"]',
}


def _by_option(problem: Problem, given: Collection[str]) -> Problem:
    """Whoever has written no document is told of the option instead."""
    if problem.line:
        return problem
    if "processes" in given and (more := more_slots(problem.hint)) is not None:
        slots, workers = more
        problem = replace(problem, hint=t("--slots {slots} or --workers {workers}", slots=slots, workers=workers))
    found = next((name for name, end in _FIELD_ENDS.items() if name in given and problem.field.endswith(end)), None)
    if found is None and problem.field == "metadata.namespace":
        found = "namespace"
    if found is None:
        return problem
    option = {"deadline": "--timeout", "processes": "-n"}.get(found, f"--{found}")
    return replace(problem, source=option, field="")


def _asked(words: tuple[str, ...], shape: dict[str, Any], settings: builder.JobSettings) -> JobInput:
    if shape["processes"] is not None:
        return JobInput(words=words, settings=settings, shape=builder.Shape(**shape))
    for name in _SHAPE_NAMES[1:]:
        if shape[name]:
            raise UsageError(
                t("{option} needs -n: a manifest says this itself", option=f"--{name}"),
                hint=f"oarsman run -n 4 --{name} ... -- python3 -m mpi4py train.py",
            )
    if not words:
        raise UsageError(
            t("a manifest is missing"),
            hint=t("oarsman run job.yaml, or oarsman run -n 4 -- python3 -m mpi4py train.py"),
        )
    return JobInput(words=words, settings=settings, shape=None)


LARGEST = 16 * 1024 * 1024  # no manifest is this long; a device or a mistaken data file is


def read(path: str) -> tuple[bytes, str]:
    """The bytes, and the name to call them by in messages. What they mean is for `manifest` to find out."""
    source = "<stdin>" if path == "-" else path
    try:
        if path == "-":
            raw = sys.stdin.buffer.read(LARGEST + 1)
        else:
            with open(path, "rb") as stream:
                raw = stream.read(LARGEST + 1)
    except (OSError, ValueError) as error:
        raise UserError(t("cannot read {source}: {reason}", source=source, reason=why(error))) from error
    if len(raw) > LARGEST:
        raise UserError(t("{source} is too large to be a manifest", source=source))
    if raw.startswith((b"\x7fELF", b"#!")):
        raise UsageError(
            t("{source} is a program, not a manifest", source=source),
            hint=t("to run it in four ranks: oarsman run -n 4 -- {source}", source=source),
        )
    return raw, source


def load(path: str) -> list[Job]:
    """The jobs of a manifest, all valid; otherwise ManifestError with every problem."""
    from oarsman import manifest

    return manifest.load(*read(path))


def _manifest(path: str) -> list[Job]:
    """The same, where a program can be meant as well."""
    try:
        return load(path)
    except UserError as error:
        if isinstance(error.__cause__, FileNotFoundError) and not path.endswith((".yaml", ".yml", ".json")):
            error.hint = t("to run it in four ranks: oarsman run -n 4 -- {source}", source=path)
        raise


def placed(document: dict[str, Any], session: Session) -> dict[str, Any]:
    """The document in the namespace that was asked for."""
    wanted = session.namespace
    metadata = dict(document.get("metadata") or {})
    if wanted is None or metadata.get("namespace") == wanted:
        return document
    if metadata.get("namespace"):
        raise UsageError(
            t(
                "the manifest says namespace '{theirs}', --namespace says '{ours}'",
                theirs=metadata["namespace"],
                ours=wanted,
            ),
            field="metadata.namespace",
        )
    return {**document, "metadata": {**metadata, "namespace": wanted}}
