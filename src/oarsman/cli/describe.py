"""`oarsman describe`: one job on one page, from what was asked to why it ended."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import asdict
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING

import click

from oarsman import names as words
from oarsman.cli import options, render
from oarsman.cli.look import events_of
from oarsman.cli.session import Session, short
from oarsman.cli.text import local, of, t
from oarsman.cli.verbs import verb
from oarsman.cli.waiting import ShownJob, never_started
from oarsman.text import units
from oarsman.text.catalogue import N_

if TYPE_CHECKING:
    from decimal import Decimal

    from oarsman.job.state import Status
    from oarsman.service.models import EventView, JobSummary

STEPS = {
    "submitted": N_("submitted"),
    "admitted": N_("admitted"),
    "hostsUp": N_("hosts up"),
    "launched": N_("launched"),
    "firstOutput": N_("first output"),
    "ended": N_("ended"),
}


@verb(
    "describe",
    t("Show one job on one page: what was asked, how it went, where its ranks ran and, if it failed, why."),
    "oarsman describe pi",
    ("oarsman describe other/pi", t("a job in the namespace `other`")),
    ("oarsman describe pi --run 2", t("its second run")),
)
@options.jobs
@options.run
@options.place
def command(session: Session, names: tuple[str, ...], run: int | None) -> None:
    for number, name in enumerate(names):
        if number:
            click.echo("\n" + "─" * 40 + "\n")
        key = session.key(name)
        shown = ShownJob.of(session.run(session.service.job(key, run=run)))
        asks = shown.status.finished and run is None
        left = session.run(session.service.attention(key)).workers_left if asks else 0
        page(shown, [event for _, event in events_of(session, [key], run)], session.now(), workers_left=left)


def page(shown: ShownJob, happened: list[EventView], now: datetime, *, workers_left: int = 0) -> None:
    status, said = shown.status, _Said()
    cause = said.once(status.cause.summary) if status.cause is not None else ""
    says = said.once(render.message(shown.summary))
    told = [event.model_copy(update={"message": said.before(event.message)}) for event in happened]
    said.note(event.message for event in told)
    render.pairs(_head(shown, now, says=says if not cause else ""))
    render.heading(t("Asked for"))
    render.pairs(_asked_for(shown), indent="  ")
    _conditions(status, now, said)
    _timeline(status)
    _attempts(status, now, said)
    _placement(shown)
    if workers_left:
        click.echo(f"  {render.kept_workers(workers_left, short(shown.summary.key))}")
    if status.cause is not None:
        click.echo()
        render.cause_card(status.cause)
        if waited := _waited_for(status, happened):
            click.echo(t("Before that it waited: {what}", what=render.shown(waited)))
    if told:
        render.heading(t("Events"))
        render.event_table([("", event) for event in told], now, with_job=False, indent="  ")


class _Said:
    """What is on the page: a sentence that is there is not shown again, nor where it ends a longer one."""

    def __init__(self) -> None:
        self._said: list[str] = []

    def once(self, text: str) -> str:
        shown = self.before(text)
        self.note([of(text)])
        return shown

    def before(self, text: str) -> str:
        """Without what was said already."""
        shown = of(text)
        for one in self._said:
            rest = shown.removesuffix(one).rstrip()
            if not rest or (rest != shown and rest.endswith((":", "："))):
                shown = rest[:-1]
        return shown

    def note(self, texts: Iterable[str]) -> None:
        self._said += filter(None, texts)


def _waited_for(status: Status, happened: list[EventView]) -> str:
    """What a job waited for that was stopped before it ever ran: its end has taken the words out of the status."""
    ended = status.condition(words.FAILED)
    if ended is None or ended.reason != words.REASON_STOPPED or not never_started(status):
        return ""
    reasons = (
        words.REASON_WAITING,
        words.REASON_NO_HOSTS,
        words.REASON_CLOSED,
        words.REASON_ENVIRONMENT,
        words.REASON_BARRIER,
        words.REASON_TROUBLE,
    )
    return next((of(event.message) for event in reversed(happened) if event.reason in reasons), "")


def _submitted(row: JobSummary, now: datetime) -> str:
    time, since = local(row.created), units.age(row.created, now)
    if not row.owner:  # made with another tool, which leaves no name
        return t("{time} ({age} ago)", time=time, age=since)
    return t("{time} ({age} ago) by {owner}", time=time, age=since, owner=row.owner)


def _head(shown: ShownJob, now: datetime, *, says: str) -> list[tuple[str, str]]:
    row, job, retry_at = shown.summary, shown.job, shown.status.retry_at
    return [
        (t("Name"), row.name),
        (t("Namespace"), row.namespace),
        (t("Run"), str(row.run) if row.run > 1 else ""),
        (t("State"), row.state),
        (t("Says"), says),
        (t("Submitted"), _submitted(row, now)),
        (t("Folder"), shown.view.folder or ""),
        (t("Limits"), of(shown.view.limits)),
        (t("Engine"), row.engine),
        (t("Duration"), units.took(row.started, row.ended, now)),
        (t("Next try"), local(retry_at) if retry_at else ""),
        (t("Labels"), ", ".join(f"{name}={value}" for name, value in job.labels.items())),
        (t("Annotations"), ", ".join(f"{name}={value}" for name, value in job.annotations.items())),
    ]


def _mpi(shown: ShownJob) -> str:
    job = shown.job
    if shown.view.mpi:
        return shown.view.mpi
    if shown.summary.engine == "kube":  # whatever the image has
        return job.implementation.value + ("" if job.implementation_stated else t(" (default)"))
    stated = job.implementation.value if job.implementation_stated else ""
    return job.annotation(words.ANNOTATION_MPI) or stated or t("not chosen yet")


def _asked_for(shown: ShownJob) -> list[tuple[str, str]]:
    job, policy = shown.job, shown.job.run_policy
    deadline, kept = policy.active_deadline_seconds, policy.ttl_seconds_after_finished
    limit = "" if policy.backoff_limit is None else t(", at most {n} times", n=policy.backoff_limit)
    ranks = job.launch.processes if job.launch is not None else None
    resources = job.worker.container.resources if job.worker is not None else job.launcher.container.resources
    amounts = {**resources.requests, **resources.limits}
    return [
        *render.size_of(job),
        (t("Ranks"), f"-np {ranks}" if ranks is not None else ""),
        ("MPI", _mpi(shown)),
        (t("Command"), shlex.join(job.launcher.container.argv)),
        (t("Image"), job.launcher.container.image),
        (t("Per worker"), ", ".join(f"{name} {_amount(name, amount)}" for name, amount in amounts.items())),
        (t("Restart"), job.launcher.restart_policy.value + limit),
        (t("Clean-up"), policy.clean_pod_policy.value),
        (t("Deadline"), units.duration(float(deadline)) if deadline else ""),
        (t("Kept after the end"), "" if kept is None else units.duration(float(kept))),
    ]


def _amount(name: str, amount: Decimal) -> str:
    return units.size(int(amount)) if name in ("memory", "ephemeral-storage") else f"{float(amount):g}"


def _conditions(status: Status, now: datetime, said: _Said) -> None:
    rows = [[c.type, str(c.status), units.age(c.since, now), c.reason, said.once(c.message)] for c in status.conditions]
    render.section(t("Conditions"), [t("TYPE"), t("STATUS"), t("SINCE"), t("REASON"), t("MESSAGE")], rows)


def _timeline(status: Status) -> None:
    """Each step with the time it took from the one before."""
    order = list(STEPS)
    seen = sorted(status.timeline.items(), key=lambda step: (step[1], order.index(step[0]) if step[0] in STEPS else 0))
    took = ["", *(f"+{units.duration(later - earlier)}" for (_, earlier), (_, later) in pairwise(seen))]
    rows = [[of(STEPS.get(name, name)), local(moment), gap] for (name, moment), gap in zip(seen, took, strict=False)]
    render.section(t("Timeline"), [t("STEP"), t("TIME"), t("TOOK")], rows)


def _attempts(status: Status, now: datetime, said: _Said) -> None:
    if len(status.attempts) > 1:
        rows = []
        for one in status.attempts:
            took, cause = units.took(one.started, one.ended, now), said.once(one.cause.summary) if one.cause else ""
            rows.append([str(one.number), local(one.started), took, one.outcome or t("running"), cause])
        headers = [t("ATTEMPT"), t("STARTED"), t("DURATION"), t("OUTCOME"), t("CAUSE")]
        render.section(t("Attempts"), headers, rows)


def _placement(shown: ShownJob) -> None:
    """Hosts with the ranks seen on them; a host without ranks is shown too."""
    ranks, machines = render.by_host(shown.job.hosts, shown.status.placement), shown.status.machines
    counts = t("{active} active, {ready} ready, {succeeded} succeeded, {failed} failed")
    roles = {t("Launcher"): shown.status.launcher, t("Workers"): shown.status.worker}
    render.heading(t("Hosts"))
    render.pairs([(role, counts.format(**asdict(count))) for role, count in roles.items()], indent="  ")
    if machines:  # the launcher comes first
        ranks = {shown.job.launcher_host: ranks.pop(shown.job.launcher_host, "")} | ranks
    render.host_table([t("RANKS")], {host: [found] for host, found in ranks.items()}, machines)
