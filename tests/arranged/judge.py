"""Whether a job ended as it was arranged. Strict: whatever is not as expected is named."""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from oarsman.backends.base import LogQuery
from oarsman.job.state import Cause, Status
from oarsman.status import known_errors, words

from . import meanwhile
from .cases import Blame, Case
from .site import Site

# Where a hint names somebody: {host} is that of the cause, {python} what the ranks were started with.
HINTS = {known.name: str(known.hint) for known in known_errors.KNOWN} | {
    **{f"{known.name}-here": str(known.on_one_machine) for known in known_errors.KNOWN if known.on_one_machine},
    "misspelt-launcher": "did you mean 'mpirun'?",
    "python-module": "install arranged_nowhere in the Python that ran on {host}, with {python} -m pip",
    "missing-there": "{host} lacks the program, {others} started it: install it there as well, at the same path",
}


@dataclass(frozen=True)
class Verdict:
    case: Case
    wrong: Sequence[str]
    log: str = ""  # of a job that is wrong


def conduct(site: Site, case: Case) -> Verdict:
    """Run it, do to it what is arranged, and compare."""
    case = site.settled(case)
    with site.alone(case):
        try:
            status, exit_status = _run(site, case)
            wrong = [*_differences(case, status), *_of_the_command(case, exit_status), *_of_the_lines(site, case)]
        except Exception:
            wrong = [f"it could not be arranged: {traceback.format_exc()}"]
        log = "\n".join([*_shown(site, case)]) if wrong else ""
        _remove(site, case)
    return Verdict(case, wrong, log)


def _run(site: Site, case: Case) -> tuple[Status, int | None]:
    machine, doing, exit_status = site.machine_of(case), meanwhile.begin(meanwhile.At(site, case)), None
    try:
        next(doing)
        if case.in_foreground:
            exit_status = site.run(case).returncode
        else:
            site.submit(case)
            next(doing, None)
        return machine.until_finished(case.key).status, exit_status
    finally:
        doing.close()  # type: ignore[attr-defined]


def _remove(site: Site, case: Case) -> None:
    """It would not end by itself if it is not what it should be."""
    machine = site.machine_of(case)
    for record in machine.jobs.list():
        if record.job.name in (case.name, case.name.replace(case.kind, f"{case.kind}-holder")):
            machine.jobs.delete(record.job.key)
            if case.on_victims:
                machine._remove(record)


# -- comparing ------------------------------------------------------------------------------------------------
def _differences(case: Case, status: Status) -> Iterator[str]:
    expected = case.expected
    outcome = expected.state if expected.blame is None else "Failed"
    attempts = tuple(attempt.outcome for attempt in status.attempts)
    yield from _told("state", words.state(status), expected.state)
    yield from _told("reason", words.reason(status), expected.reason)
    yield from _told("attempts", attempts, expected.attempts or (outcome,))
    yield from _of_the_cause("", case, status.cause, expected.blame)
    if expected.first_blame is not None and status.attempts:
        yield from _of_the_cause("first attempt: ", case, status.attempts[0].cause, expected.first_blame)


def _of_the_cause(whose: str, case: Case, cause: Cause | None, blame: Blame | None) -> Iterator[str]:
    if cause is None or blame is None:
        yield from _told(f"{whose}cause", cause and cause.summary, blame)
        return
    if blame.or_nobody and cause.rank is None:
        yield from _told(f"{whose}host", cause.host, f"{case.name}-launcher")
    elif blame.ranks and not blame.host:
        yield from _one_of(f"{whose}rank", cause.rank, blame.ranks)
        yield from _one_of(f"{whose}host", cause.host, case.hosts_of(cause.rank or 0))
    else:
        yield from _told(f"{whose}rank", cause.rank, blame.ranks[0] if blame.ranks else None)
        yield from _told(f"{whose}host", cause.host, f"{case.name}-{blame.host}" if blame.host else None)
    yield from _told(f"{whose}exit code", cause.exit_code, blame.code)
    yield from _told(f"{whose}signal", cause.signal, blame.signal)
    yield from _told(f"{whose}memory limit hit", cause.memory_limit_hit, False)
    yield from _of_the_hint(whose, case, cause, blame)
    if blame.says not in cause.summary:
        yield f"{whose}summary: {cause.summary!r} does not say {blame.says!r}"


def _of_the_hint(whose: str, case: Case, cause: Cause, blame: Blame) -> Iterator[str]:
    others = (f"{case.name}-worker-{worker}" for worker in range(case.workers) if worker != case.worker)
    about = {"host": cause.host, "python": next(iter(case.command), ""), "others": ", ".join(others)}
    hints = [HINTS[name].format(**about) for name in blame.hint.split(" or ")] if blame.hint else [None]
    yield from _one_of(f"{whose}hint", cause.hint, hints)


def _of_the_command(case: Case, exit_status: int | None) -> Iterator[str]:
    if case.in_foreground:
        yield from _told("exit status of the command", exit_status, case.expected.exit_status)


def _of_the_lines(site: Site, case: Case) -> Iterator[str]:
    written: dict[int, list[str]] = {}
    for line in site.machine_of(case).jobs.logs(case.key, LogQuery(stream="out")):
        if line.rank is not None:
            written.setdefault(line.rank, []).append(line.text)
    if case.expected.lines:
        yield from _told("lines", written, {rank: list(said) for rank, said in case.expected.lines.items()})


def _told(what: str, found: Any, wanted: Any) -> Iterator[str]:
    if found != wanted:
        yield f"{what}: {_short(found)}, expected {_short(wanted)}"


def _one_of(what: str, found: Any, wanted: Sequence[Any]) -> Iterator[str]:
    if found not in wanted:
        yield f"{what}: {found!r}, expected {' or '.join(map(repr, wanted))}"


def _short(value: Any) -> str:
    return str(dict(sorted(value.items()))) if isinstance(value, Mapping) else repr(value)


def _shown(site: Site, case: Case) -> Iterator[str]:
    machine = site.machine_of(case)
    try:
        record = machine.jobs.get(case.key)
        yield f"cause: {record.status.cause}"
        yield f"placement: {dict(record.status.placement)} {dict(record.status.machines)}"
        yield from (
            f"attempt {attempt.number}: {attempt.outcome} {attempt.cause}" for attempt in record.status.attempts
        )
        for line in machine.jobs.logs(case.key):
            yield f"  [{line.rank if line.rank is not None else 'launcher'}] {line.text}"
        for event in machine.jobs.events(case.key):
            yield f"  event {event.reason}: {event.message}"
        journal = machine.paths.job(machine.uid(case.key)) / "journal.jsonl"
        yield from (f"  journal {line}" for line in journal.read_text().splitlines())
    except Exception as error:
        yield f"no log: {error}"
