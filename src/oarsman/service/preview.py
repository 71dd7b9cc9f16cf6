"""What a manifest would become, explained: how slots, workers and ranks fit together, and whether it fits."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ParamSpec, TypeGuard, TypeVar

from oarsman import names
from oarsman.backends.base import Backend, HasInventory, Preview, Previews
from oarsman.errors import ManifestError, OarsmanError, Problem, UsageError
from oarsman.job.job import Job
from oarsman.job.mpi import hostfile
from oarsman.job.remarks import remarks
from oarsman.manifest import documents, job_from_document, to_yaml
from oarsman.plan import placement
from oarsman.service import views
from oarsman.service.documents import completed
from oarsman.service.models import Create, FitView, PreviewView, ProblemView
from oarsman.service.models.base import MOST_VALUES, is_small
from oarsman.text import units
from oarsman.text.sentence import Text, sentences

_MOST_COPIES = 1000
_LONGEST_NAME = 63
_MOST_PLACED = 16_384  # ranks that a preview lists
_reading = ThreadPoolExecutor(2, thread_name_prefix="documents")


P = ParamSpec("P")
T = TypeVar("T")


async def apart(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Work on a document, which may be a large one, outside the event loop; and two at a time, so that other work that
    needs a thread does not wait for them all."""
    return await asyncio.get_running_loop().run_in_executor(_reading, partial(work, *args, **kwargs))


def copies(name: str) -> Iterator[str]:
    """x-2, x-3 and so on; of x-7, x-8 and so on."""
    stem, _, number = name.rpartition("-")
    stem, first = (stem, int(number) + 1) if stem and number.isdecimal() and len(number) < 4 else (name, 2)
    for copy in range(first, first + _MOST_COPIES):
        ending = f"-{copy}"
        yield stem[: _LONGEST_NAME - len(ending)].rstrip("-.") + ending


def one_document(wanted: Create) -> dict[str, Any]:
    """The one MPIJob that was sent, as text or as a document. Raises ManifestError with places in the text."""
    if (wanted.manifest is None) == (wanted.document is None):
        raise UsageError(Text("send either a manifest or a document"), field="manifest")
    if wanted.document is not None:
        return dict(job_from_document(wanted.document).document)  # as it is read: of an old version, in today's words
    found = documents(wanted.manifest or "", "manifest")
    if len(found) != 1:
        raise UsageError(
            Text("the manifest has {count} jobs; send one at a time", count=len(found)),
            field="manifest",
            hint=Text("cut it at the lines that are only ---"),
        )
    if not is_small(found[0]):
        raise UsageError(Text("the manifest has more than {most} values", most=MOST_VALUES), field="manifest")
    return found[0]


def read(wanted: Create) -> tuple[dict[str, Any], Job]:
    document = one_document(wanted)
    return document, job_from_document(document)


async def preview(
    jobs: Backend,
    wanted: Create,
    *,
    environment: Mapping[str, str],
    folder: Awaitable[Path],
    owner: str | None = None,
    asks: bool = True,
) -> PreviewView:
    """`owner`: somebody who may not see everybody's jobs; None: one who may. `asks`: the place is asked what the job
    would be given, else it is what the manifest says. A folder that is not there is a problem."""
    try:
        where = await folder
        document, job = await apart(read, wanted)
        launch_line, hosts, placed, warnings = await _given(jobs, job, environment, where, asks=asks)
    except ManifestError as error:
        return _with_problems(error, wanted.manifest or "")
    except UsageError as error:
        return PreviewView(problems=[ProblemView(field=error.field or "", message=error.message, hint=error.hint)])
    view = PreviewView(
        document=document,
        completed=await apart(lambda: to_yaml([completed(job)])),
        total_replicas=job.total_replicas,
        slots=job.slots,
        ranks=views.ranks_asked_for(job),
        arithmetic=arithmetic(job),
        launch_line=launch_line,
        hostfile=hosts,
        placement=views.hosts_with_ranks(dict(list(placed.items())[:_MOST_PLACED])),
        warnings=[
            *(Text("{field}: {problem}", field=p.field, problem=p.message) for p in job.warnings),
            *remarks(job),
            *warnings,
        ],
    )
    try:
        fit = FitView.of(await jobs.fit(document, owner=owner))
    except ManifestError as error:  # valid for every engine, but not for this one
        return _with_problems(error, wanted.manifest or "")
    except OarsmanError as error:  # a cluster that cannot be reached: everything else is still true
        note = Text("whether it fits is not known: {why}", why=error.message)
        return view.model_copy(update={"warnings": [*view.warnings, note]})
    if fit.machines:  # of an inventory: hosts of the job may share one, and mpirun is told their addresses
        placed = dict(enumerate(placement.planned(job, fit.machines)[:_MOST_PLACED]))
        view = view.model_copy(update={"placement": views.hosts_with_ranks(placed), "hostfile": ""})
    refused = jobs.refusals(job) if isinstance(jobs, HasInventory) else ()
    crowded = _on_one_host(jobs) and view.ranks is not None and view.ranks > fit.total.cpus > 0
    crowd = [Text("{ranks} ranks share {cpus} CPUs", ranks=view.ranks, cpus=f"{fit.total.cpus:g}")] if crowded else []
    return view.model_copy(update={"fit": fit, "warnings": [*view.warnings, *refused, *crowd]})


async def planned(
    jobs: Backend, document: Mapping[str, Any], environment: Mapping[str, str], folder: Path, *, trusts: bool
) -> Preview:
    """Everything it would be, in full. Raises ManifestError for what is no valid job there."""
    if isinstance(jobs, Previews):
        return await jobs.preview(document, environment=environment, folder=folder)
    from oarsman.backends.local.capacity import preview as on_this_machine  # late: it imports the whole engine

    job = await apart(job_from_document, document)
    if job.annotation(names.ANNOTATION_ENVIRONMENT):
        await jobs.fit(document)
    return await asyncio.to_thread(partial(on_this_machine, job, environment, folder, trusts=trusts))


def _with_problems(error: ManifestError, text: str) -> PreviewView:
    return PreviewView(problems=[ProblemView.of(_placed(found, text)) for found in error.problems])


def _placed(problem: Problem, text: str) -> Problem:
    """An engine knows documents only; where the text has the annotation it speaks of, its line is shown."""
    if problem.line:
        return problem
    name = problem.field.rpartition("[")[2].rstrip("]")
    lines = text.splitlines()
    number = next((n for n, line in enumerate(lines) if name and name in line), None)
    if number is None:
        return problem
    snippet = lines[number]
    return replace(problem, line=number + 1, column=snippet.index(name) + 1, snippet=snippet)


def _on_one_host(jobs: Backend) -> TypeGuard[Previews]:
    """Where there is no choice of hosts, what a job would be given is known before it is asked where it fits."""
    return isinstance(jobs, Previews) and not isinstance(jobs, HasInventory)


async def _given(
    jobs: Backend, job: Job, environment: Mapping[str, str], folder: Path, *, asks: bool
) -> tuple[str, str, Mapping[int, str], list[str]]:
    """Launch line, hostfile, rank -> host, and what will not be honoured."""
    if not (asks and _on_one_host(jobs)):
        line = shlex.join(job.launcher.container.argv)
        hosts = hostfile(job.implementation, job.hosts, job.slots_per_worker)
        return line, hosts, dict(enumerate(placement.planned(job))), []
    found = await jobs.preview(job.document, environment=environment, folder=folder)
    warnings = list(found.not_honoured)
    if not found.mpi and not job.mpi_path and not job.annotation(names.ANNOTATION_ENVIRONMENT):  # which may have one
        warnings.append(Text("no MPI was found on this machine; `oarsman doctor` says what to install"))
    return found.rewritten, found.hostfile, found.ranks, warnings


def arithmetic(job: Job) -> str:
    """One sentence: how many slots there are and why, and what the launch line does with them."""
    each, every = units.slots(job.slots_per_worker), units.slots(job.slots)
    slots = Text("{hosts} x {each} = {all}", hosts=_hosts(job), each=each, all=every)
    line = job.launch
    if line is None:
        return Text(
            "{slots}; the command does not visibly start MPI, so the number of ranks is not known",
            slots=slots,
        )
    ranks = views.ranks_asked_for(job)
    if line.elastic:
        least = line.min_processes or 1
        if line.max_processes is None:
            template = Text("{slots}; {launcher} is elastic: {least} or more ranks, as hosts come and go")
            return Text(template, slots=slots, launcher=line.launcher, least=least)
        template = Text("{slots}; {launcher} is elastic: {least} to {most} ranks, as hosts come and go")
        return Text(template, slots=slots, launcher=line.launcher, least=least, most=line.max_processes)
    if ranks is None:
        return Text(
            "{slots}; the number of ranks depends on options that only {launcher} can evaluate",
            slots=slots,
            launcher=line.launcher,
        )
    return sentences([slots, _starts(job, ranks)])


def _starts(job: Job, ranks: int) -> str:
    line = job.launch
    assert line is not None
    started = Text("{n} rank", n=1) if ranks == 1 else Text("{n} ranks", n=ranks)
    if line.processes is not None:
        said = Text("{launcher} starts {ranks}", launcher=line.launcher, ranks=started)
    elif line.per_node:
        template = Text("{launcher} starts {ranks}, {each} on each host")
        said = Text(template, launcher=line.launcher, ranks=started, each=line.per_node)
    else:
        template = Text("{launcher} starts {ranks} because it is not told a number (-np)")
        said = Text(template, launcher=line.launcher, ranks=started)
    return Text("{said}, {fill}", said=said, fill=_fill(ranks - job.slots, oversubscribe=line.oversubscribe))


def _fill(more: int, *, oversubscribe: bool) -> str:
    if more == 0:
        return Text("which fills them")
    if more < 0:
        return Text("which leaves {n} free", n=-more)
    if oversubscribe:
        return Text("{n} more than there are: it may start more than one per slot", n=more)
    return Text("{n} more than there are: it would refuse to start", n=more)


def _hosts(job: Job) -> str:
    if not job.workers:
        return Text("1 launcher")
    workers = units.workers(job.workers)
    return Text("({workers} + 1 launcher)", workers=workers) if job.run_launcher_as_worker else workers
