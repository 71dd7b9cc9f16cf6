"""The engine for jobs on hosts without Kubernetes, Docker or root. What a host is, its transport knows.

The engine holds nothing that matters. A job's agent does the work and writes the journal; the engine gives orders,
reads the journal, and can be replaced by another one at any moment.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import time
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Protocol

from oarsman import names, trees
from oarsman.engines.contract import Assignment
from oarsman.engines.hosts.core import agent_lock, job_agent, journal, journal_state, messages, process, shims
from oarsman.engines.hosts.core.job_spec import JobSpec, find_spec, forget_variables, read_spec, write_spec
from oarsman.engines.hosts.core.journal import HostDown, HostGone, JournalReader, LauncherGone, add_note
from oarsman.engines.hosts.core.journal_state import Seen
from oarsman.engines.hosts.local.transport import LocalTransport
from oarsman.errors import PlaceLostError, RetryableError, UnsupportedError
from oarsman.job.confined import confined_by, passed
from oarsman.job.job import Job
from oarsman.job.observed import PATIENCE, Observed, Phase, World
from oarsman.job.state import Status
from oarsman.plan import actions
from oarsman.portal import in_background, in_own_thread
from oarsman.text.sentence import Text

log = logging.getLogger("oarsman")
_ANSWER_WITHIN = 60.0
_CLEAR_AGAIN = 30.0
_TURN_WAITS = 0.5  # for what somebody else's job names; the turns of all others wait meanwhile
_OF_A_RUN = ("logs", "usage.jsonl", "spec.json")  # what is kept in the folder of an earlier run
FolderOf = Callable[[str], Path]  # by a job's uid


class Transport(Protocol):
    """What a host is: the one thing in which this engine's ways of running a job differ."""

    name: str  # of the engine
    far: bool  # its hosts take a while to reach: the launcher's is made with the others

    async def start(self) -> None:
        """Find out what can be had here."""

    def refusal(self, assignment: Assignment) -> str | None:
        """What of this job cannot be honoured, found before anything starts. May take its time."""

    def remarks(self, job: Job) -> list[str]:
        """What is done differently, each in one plain sentence."""

    async def prepare(self, assignment: Assignment, *, folder: Path, run_folder: Path, taken_gpus: set[str]) -> None:
        """Write what the job agent needs, all anew; RetryableError if it cannot be had now."""

    def unusable(self, job: Job, troubled: Mapping[str, float], asked: Callable[[], None]) -> str:
        """Why one of these machines cannot be used, to which there was no way at these times; empty: not known yet, and
        `asked` is called when it may be."""

    def host_files(self, job: Job, hosts: tuple[str, ...], spec: JobSpec) -> dict[str, str]:
        """hostfile and its kin, for the hosts of this moment."""

    def clear_up(self, uid: str, seen: Seen, folder: Path, run_folder: Path) -> list[str]:
        """After a job agent was killed: nothing of its job stays. The machines that could not be reached."""

    def forget(self, uid: str, seen: Seen, folder: Path) -> None:
        """The job is deleted; what lasted longer than its runs goes, too."""


class Watched:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.reader = JournalReader(str(folder))
        self.seen = Seen()
        self.listener: asyncio.Task[None] | None = None
        self.refusal: str | None = None
        self.judged = -1  # generation for which `refusal` holds
        self.asked: tuple[int, asyncio.Future[str | None]] | None = None  # for which generation, while it is judged
        self.refused: str | None = None  # why it could not be prepared where it was to run
        self.lost = ""  # why a machine that it was given cannot be used
        self.lost_after: datetime | None = None  # the status' `retry_at` then: with the next one it is placed anew
        self.rests = False  # it has given its room back, GPUs included, until it is prepared again
        self.told: tuple[process.ProcessId | None, float | None] = None, None  # which job agent, and its deadline
        self.cleared: process.ProcessId | None = None  # the dead job agent we have cleared up after
        self._clock = _time_of_day()

    @property
    def clock_moved(self) -> timedelta:
        """How far the clock was put forward meanwhile: nobody has waited for that long."""
        return timedelta(seconds=max(0, int(_time_of_day() - self._clock)))

    def look(self) -> Seen:
        for fact in self.reader.news():
            self.seen.learn(fact)
        return self.seen

    @property
    def agent_alive(self) -> bool:
        return self.seen.agent is not None and not self.seen.ended and process.alive(self.seen.agent)

    def lose_place(self, why: str, status: Status) -> None:
        self.lost, self.lost_after = why, status.retry_at

    def end_agent(self) -> None:
        if self.seen.agent is not None and self.agent_alive:
            process.send_signal(self.seen.agent, signal.SIGTERM)


def _time_of_day() -> float:
    """The same as long as nobody sets the clock, and the machine does not sleep."""
    return time.time() - time.monotonic()


class HostsEngine:
    def __init__(self, *, job_folder: FolderOf, run_folder: FolderOf, transport: Transport | None = None) -> None:
        self._transport = transport or LocalTransport()
        self.name = self._transport.name
        self._job_folder = job_folder
        self._run_folder = run_folder
        self._watched: dict[str, Watched] = {}
        self._notify: Callable[[str], None] = lambda _uid: None

    async def start(self, notify: Callable[[str], None]) -> None:
        self._notify = notify
        await self._transport.start()

    async def adopt(self, assignment: Assignment) -> None:
        watched = self._of(assignment.job)
        watched.look()
        if watched.agent_alive:
            self._listen(assignment.job.uid, watched)

    async def close(self) -> None:
        for watched in self._watched.values():
            if watched.listener is not None:
                watched.listener.cancel()

    async def observe(self, assignment: Assignment) -> Observed:
        job = assignment.job
        watched = self._of(job)
        seen = watched.look()
        alive = watched.agent_alive
        if not alive:
            watched.look()  # it may have noted the end of the job between our look and its own end
        if seen.agent is not None and not alive and not seen.ended and watched.cleared != seen.agent:
            await self._clear_up(job.uid, watched)
        if alive:
            await self._tell_deadline(assignment, watched)
        launcher = journal_state.launcher_member(assignment, seen, alive)
        workers = journal_state.worker_members(assignment, seen, alive)
        between_runs = assignment.status.retry_at is not None or assignment.status.is_true(names.SUSPENDED)
        watched.rests = between_runs and launcher is None and not workers
        waits = launcher is None or launcher.phase is Phase.PENDING
        if not waits or watched.lost_after != assignment.status.retry_at:
            watched.lost = ""
        if waits and alive and not watched.lost:
            watched.lose_place(self._unusable(job, seen), assignment.status)
        worlds = journal_state.worlds(seen) if launcher is not None else (World(ranks=()),)
        return Observed(
            status=assignment.status,
            workers=workers,
            launcher=launcher,
            ranks=worlds[-1].ranks,
            line=worlds[-1].line,
            world_hosts=worlds[-1].hosts,
            earlier_worlds=worlds[:-1],
            launcher_lines=seen.launcher.lines if seen.launcher is not None else (),
            published_hosts=(seen.published or ()) if alive else None,
            first_output_at=seen.first_output.get(seen.launcher.attempt) if seen.launcher is not None else None,
            admission=assignment.admission,
            unsupported=await self._judge(assignment, watched),
            refused=watched.refused,
            taken_away=dict(seen.taken_away),
            place_lost=watched.lost,
            remarks=tuple(self._transport.remarks(job)),
            machines=dict(seen.machines),
            stop_requested=assignment.stop_requested,
            prepared=alive,
            keeps_idle_members=False,
            patience=PATIENCE + watched.clock_moved,
        )

    def _unusable(self, job: Job, seen: Seen) -> str:
        """Before anything runs: why hosts that never came up will not."""
        never_up = [host for host in seen.hosts.values() if not host.up and host.down_at is None]
        troubled = {host.machine: host.trouble_at.timestamp() for host in never_up if host.machine and host.trouble_at}
        return self._transport.unusable(job, troubled, lambda: self._notify(job.uid)) if troubled else ""

    async def _clear_up(self, uid: str, watched: Watched) -> None:
        """After a job agent that was killed; never under the feet of one that starts in its place."""
        with agent_lock.no_agent(str(watched.folder)) as nobody:
            if nobody:
                run_folder = self._run_folder(uid)
                away = await asyncio.to_thread(self._transport.clear_up, uid, watched.seen, watched.folder, run_folder)
                watched.cleared = watched.seen.agent
                if away:
                    log.warning("%s: %s cannot be reached to clear up after it; tried again", uid, ", ".join(away))
                    asyncio.get_running_loop().call_later(_CLEAR_AGAIN, self._clear_again, uid, watched)

    def _clear_again(self, uid: str, watched: Watched) -> None:
        watched.cleared = None
        self._notify(uid)

    async def _tell_deadline(self, assignment: Assignment, watched: Watched) -> None:
        """The job agent keeps it by itself: our turns come late on a starved machine, or after trouble."""
        seconds, start = assignment.job.run_policy.active_deadline_seconds, assignment.status.start_time
        due = start.timestamp() + seconds if seconds is not None and start is not None else None
        if watched.told != (watched.seen.agent, due) and (due is not None or watched.told[1] is not None):
            with contextlib.suppress(RetryableError):  # an earlier version cannot; else it is tried again
                await self._order(assignment.job, messages.KeepDeadline(due))
                watched.told = watched.seen.agent, due

    async def _judge(self, assignment: Assignment, watched: Watched) -> str | None:
        """What cannot be honoured. Asked once per version of the job, and only before it has run."""
        if assignment.admission.about == names.REASON_ENVIRONMENT or assignment.stop_requested:
            return None  # the MPI that is looked for may be in the environment that is being built
        if watched.judged != assignment.job.generation and watched.seen.agent is None:
            generation = assignment.job.generation
            if watched.asked is None or watched.asked[0] != generation:
                watched.asked = generation, in_own_thread(partial(self._transport.refusal, assignment))
                watched.asked[1].add_done_callback(lambda _: self._notify(assignment.job.uid))
                own = confined_by(assignment.environment) is None
                await asyncio.wait([watched.asked[1]], timeout=None if own else _TURN_WAITS)
            if not watched.asked[1].done():  # it names programs that may answer when they like
                raise RetryableError(Text("what it needs is still being looked for"))
            refusal, watched.asked = watched.asked[1], None
            watched.refusal, watched.judged = refusal.result(), generation
        return watched.refusal

    async def apply(self, assignment: Assignment, action: actions.Action) -> None:
        job = assignment.job
        watched = self._of(job)
        try:
            match action:
                case actions.Prepare():
                    await self._prepare(assignment, watched)
                case actions.CreateWorker(index):
                    await self._order(job, messages.StartHost(job.worker_host(index)))
                case actions.DeleteWorker(index):
                    await self._delete_worker(job, watched, index)
                case actions.CreateLauncher(attempt):
                    await self._order(job, messages.StartHost(job.launcher_host))
                    await self._order(job, messages.StartLauncher(attempt))
                case actions.DeleteLauncher(attempt):
                    add_note(str(watched.folder), LauncherGone(attempt))
                    if watched.agent_alive:
                        await self._order(job, messages.StopLauncher())
                case actions.PublishHosts(hosts):
                    files = self._transport.host_files(job, hosts, read_spec(str(watched.folder)))
                    await self._order(job, messages.Publish(hosts, files))
                case actions.Dismantle():
                    with contextlib.suppress(RetryableError):  # it is on its way out already
                        await self._order(job, messages.EndJob())
                    forget_variables(watched.folder)
                case actions.DeleteJob():
                    pass  # the runtime removes the record and calls forget()
        except UnsupportedError as error:  # only known now that its places are
            watched.refused = error.message
        except PlaceLostError as error:
            watched.lose_place(error.message, assignment.status)
            raise
        except (OSError, RetryableError) as error:
            if assignment.status.finished:
                watched.end_agent()  # its socket may have been swept from the disk; a signal still reaches it
            what = Text("{key}: {action}: {why}", key=job.key, action=type(action).__name__, why=error)
            raise RetryableError(what) from error
        self._notify(job.uid)

    async def _prepare(self, assignment: Assignment, watched: Watched) -> None:
        """Write the specification anew and have a job agent running. Cheap when both are there."""
        uid = assignment.job.uid
        if not watched.agent_alive:
            with agent_lock.no_agent(str(watched.folder)) as nobody:
                if not nobody:  # one that ends would take what we prepare with it
                    raise RetryableError(agent_lock.TAKEN)
        watched.rests = False
        others = [other for key, other in self._watched.items() if key != uid and other.agent_alive]
        specs = filter(None, (find_spec(other.folder) for other in others if not other.rests))
        taken = {device for spec in specs for devices in spec.gpus.values() for device in devices}
        await self._transport.prepare(
            assignment, folder=watched.folder, run_folder=self._run_folder(uid), taken_gpus=taken
        )
        if not watched.agent_alive:
            words = [*shims.starter(), "job-agent", str(watched.folder)]
            spec = find_spec(watched.folder)
            confined = spec is not None and spec.confinement is not None  # of our variables nothing may be left there
            agent = await asyncio.create_subprocess_exec(
                *words,
                stdin=DEVNULL,
                stdout=DEVNULL,
                stderr=PIPE,
                start_new_session=True,
                env=passed(os.environ) if confined else None,
            )
            _, trouble = await agent.communicate()
            if agent.returncode != 0:
                raise RetryableError(Text("the job agent could not start: {why}", why=trouble.decode(errors="replace")))
            watched.look()
        self._listen(uid, watched)
        if self._transport.far:
            await self._order(assignment.job, messages.StartHost(assignment.job.launcher_host))

    async def _delete_worker(self, job: Job, watched: Watched, index: int) -> None:
        name = job.worker_host(index)
        host = watched.seen.hosts.get(name)
        runs = host is not None and host.down_at is None
        if runs and watched.agent_alive:
            await self._order(job, messages.StopHost(name))
            return
        if runs:  # it died with its job agent, which could not say so
            add_note(str(watched.folder), HostDown(name, reason=Text("its job agent died"), memory=False))
        add_note(str(watched.folder), HostGone(name))

    async def _order(self, job: Job, order: messages.Order) -> None:
        """Have it done, or RetryableError with the job agent's words."""
        try:
            async with asyncio.timeout(_ANSWER_WITHIN):
                reader, writer = await asyncio.open_unix_connection(self._control(job.uid))
                with contextlib.closing(writer):
                    writer.write(messages.CALLS.encode(order))
                    await writer.drain()
                    answer = await _receive(reader)
        except (OSError, asyncio.IncompleteReadError, TimeoutError) as error:
            raise RetryableError(Text("the job agent does not answer ({why})", why=f"{error!r}")) from error
        if isinstance(answer, messages.Failed):
            raise RetryableError(Text("the job agent could not {do}: {why}", do=answer.answer, why=answer.error))

    async def forget(self, uid: str, *, keeps_log: bool = False) -> None:
        watched = self._watched.pop(uid, None) or Watched(self._job_folder(uid))
        if watched.listener is not None:
            watched.listener.cancel()
        watched.look()
        watched.end_agent()  # nobody will find it again
        await asyncio.to_thread(self._transport.forget, uid, watched.seen, watched.folder)
        await asyncio.to_thread(_leave_the_log if keeps_log else trees.remove, self._job_folder(uid))
        await asyncio.to_thread(trees.remove, self._run_folder(uid))

    def _of(self, job: Job) -> Watched:
        if job.uid not in self._watched:
            self._watched[job.uid] = Watched(self._job_folder(job.uid))
        return self._watched[job.uid]

    def _control(self, uid: str) -> Path:
        """Where its agent takes orders."""
        hidden = self._run_folder(uid) / job_agent.ORDERS
        return (hidden if hidden.is_dir() else self._run_folder(uid)) / job_agent.CONTROL

    def _listen(self, uid: str, watched: Watched) -> None:
        if watched.listener is None or watched.listener.done():
            watched.listener = in_background(self._hear(uid), f"listening to the job agent of {uid}")

    async def _hear(self, uid: str) -> None:
        """Notify after every fact the job agent noted, and once more when it is gone."""
        try:
            reader, writer = await asyncio.open_unix_connection(self._control(uid))
            with contextlib.closing(writer):
                writer.write(messages.CALLS.encode(messages.Listen()))
                while True:
                    await _receive(reader)
                    self._notify(uid)
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            self._notify(uid)


def _leave_the_log(folder: Path) -> None:
    """And what the job was prepared with, without the hosts that it was on. The journal goes last: while it is there,
    this was not done."""
    if not folder.is_dir():  # it never began
        return
    if (spec := find_spec(folder)) is not None:
        write_spec(folder, spec._replace(hosts={}, copies={}, cleanup={}))
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name == journal.FILE):
        if entry.name not in _OF_A_RUN:
            (trees.remove if entry.is_dir(follow_symlinks=False) else os.unlink)(entry.path)


async def _receive(reader: asyncio.StreamReader) -> messages.Answer | messages.Unknown:
    (size,) = messages.LENGTH.unpack(await reader.readexactly(messages.LENGTH.size))
    return messages.ANSWERS.decode(await reader.readexactly(size))
