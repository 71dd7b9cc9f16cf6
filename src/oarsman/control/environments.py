"""Environments of this machine: built in the state folder by processes of their own, and resolved for jobs by name."""

from __future__ import annotations

import codecs
import json
import os
import signal
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from oarsman import names
from oarsman.engines.contract import Assignment
from oarsman.engines.hosts.core import process
from oarsman.errors import ConflictError, ManifestError, NotFoundError, Problem, RetryableError
from oarsman.job.confined import Confined
from oarsman.job.environment import BuildLog, EnvironmentRecord, EnvironmentWanted, State, digest_of, without_secrets
from oarsman.job.job import Job
from oarsman.job.observed import Admission
from oarsman.portal import in_thread
from oarsman.store.environments import INTERRUPTED, Contents, NamedEnvironment, Result, Shelf, check_name, pin, pinned
from oarsman.store.jobs import StoredJob
from oarsman.store.paths import Paths
from oarsman.text.sentence import Text

_LOG_PIECE = 256 << 10
_END_WITHIN = 20.0
_LOOK_EVERY = 0.05

Users = dict[str, list[str]]  # name -> keys of the jobs that have not ended and name it


class LocalEnvironments:
    """Any number of threads and processes may use these at the same time; all that changes is on disk."""

    def __init__(self, paths: Paths, unsettled: Callable[[], Iterable[StoredJob]], user: Callable[[], str]) -> None:
        self._paths = paths
        self._shelf = Shelf(paths.state)
        self._unsettled = unsettled
        self._user = user

    # -- looking -------------------------------------------------------------------------------------
    @in_thread
    def list(self) -> Sequence[EnvironmentRecord]:
        users = self._users()
        return [self._record(named, users) for named in self._shelf.all()]

    @in_thread
    def get(self, name: str) -> EnvironmentRecord:
        return self._record(self._named(name), self._users())

    @in_thread
    def log(self, name: str, *, after: int = 0) -> BuildLog:
        contents = self._shelf.contents(self._named(name).digest)
        under_way = state_of(contents)[0] in ("Waiting", "Building")  # asked first: what is read then is all there is
        try:
            with contents.log.open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                begin = file.seek(after if 0 <= after <= size else 0)  # a new build has a new log
                piece = file.read(_LOG_PIECE)
        except FileNotFoundError:
            return BuildLog(text="", after=0, ended=not under_way)
        last = not under_way and begin + len(piece) >= size
        text, taken = _whole_letters(piece, last=last)
        return BuildLog(text=text, after=begin + taken, ended=last)

    def _named(self, name: str) -> NamedEnvironment:
        named = self._shelf.get(name)
        if named is None:
            raise NotFoundError(Text("there is no environment {name}", name=name), hint=self.known())
        return named

    def known(self) -> str:
        """A hint: those that there are."""
        found = [named.name for named in self._shelf.all()]
        none = Text("there are none yet; `oarsman env build` makes one")
        return Text("there are: {names}", names=", ".join(found)) if found else none

    def _users(self) -> Users:
        users: Users = {}
        for stored in self._unsettled():
            annotations = (stored.document.get("metadata") or {}).get("annotations") or {}
            users.setdefault(str(annotations.get(names.ANNOTATION_ENVIRONMENT, "")), []).append(stored.key)
        return users

    def _record(self, named: NamedEnvironment, users: Users) -> EnvironmentRecord:
        state, result = state_of(self._shelf.contents(named.digest))
        ready = state == "Ready"
        return EnvironmentRecord(
            wanted=EnvironmentWanted(**named.wanted),
            state=state,
            owner=named.owner,
            digest=named.digest,
            message=result.message,
            created_at=datetime.fromisoformat(named.created_at),
            built_at=datetime.fromisoformat(result.built_at) if ready else None,
            python=result.python,
            packages=result.packages,
            size_bytes=result.size_bytes if ready else None,
            used_by=tuple(users.get(named.name, ())),
        )

    # -- changing ------------------------------------------------------------------------------------
    @in_thread
    def put(
        self, wanted: EnvironmentWanted, *, owner: str | None = None, confined: Confined | None = None
    ) -> EnvironmentRecord:
        from oarsman.control import environment_build  # costly to load, and every call of the command loads this file

        check_name(wanted.name)
        python = environment_build.find(wanted.python)
        by = f"account {confined.user}" if confined is not None else ""  # who could have changed what is built
        digest = digest_of(replace(wanted, image=None), by)  # images are not run here
        with self._shelf.alone():
            before = self._shelf.get(wanted.name)
            named = NamedEnvironment(
                name=wanted.name,
                digest=digest,
                wanted=asdict(without_secrets(wanted)),
                owner=before.owner if before is not None else owner or self._user(),
                created_at=before.created_at if before is not None else datetime.now(UTC).isoformat(),
            )
            contents = self._shelf.contents(digest)
            lock = contents.seize()
            try:
                self._shelf.put(named)  # while the lock is held, so that nobody sees it without its build
                result = contents.result()
                if lock is not None and not (result is not None and result.ready):
                    environment_build.start(
                        contents,
                        lock,
                        python=python,
                        requirements=wanted.requirements,
                        mpi=wanted.mpi,
                        confined=confined,
                    )
            finally:
                if lock is not None:
                    os.close(lock)
            self._tidy()
        return self._record(named, self._users())

    @in_thread
    def delete(self, name: str) -> None:
        with self._shelf.alone():
            self._named(name)
            users = self._users().get(name)
            if users:
                template = Text("environment {name} is used by {count} of the jobs that have not ended")
                hint = Text("stop them, or wait for their end")
                raise ConflictError(Text(template, name=name, count=len(users)), hint=hint)
            self._shelf.remove(name)
            self._tidy()

    def _tidy(self) -> None:
        """Contents that no name means and no job runs in are removed; a build of such contents ends."""
        used = {named.digest for named in self._shelf.all()}
        used |= {pinned(self._paths.job(stored.uid)) or "" for stored in self._unsettled()}
        for contents in self._shelf.all_contents():
            if contents.digest not in used:
                _end_build(contents)
                contents.remove()


def state_of(contents: Contents) -> tuple[State, Result]:
    """The lock is looked at before the result: a build that ends between the two looks has written it."""
    for _ in range(2):  # twice, because a build that begins between them has taken the result away
        building_now = contents.building()
        result = contents.result()
        if result is not None and result.ready:
            return "Ready", result
        if building_now:
            return ("Building" if contents.builder.exists() else "Waiting"), Result(ready=False)
        if result is not None:
            return "Failed", result
    return "Failed", Result(ready=False, message=INTERRUPTED)


def _end_build(contents: Contents) -> None:
    deadline = time.monotonic() + _END_WITHIN
    while contents.building():
        try:
            builder = json.loads(contents.builder.read_text())
            process.send_signal(process.ProcessId(builder["pid"], builder["started"]), signal.SIGKILL)
        except (FileNotFoundError, ValueError):
            pass  # it has not said who it is yet
        if time.monotonic() > deadline:
            raise RetryableError(Text("the build in {folder} does not end", folder=contents.folder))
        time.sleep(_LOOK_EVERY)


def _whole_letters(piece: bytes, *, last: bool) -> tuple[str, int]:
    """The text, and how many bytes it is of: the beginning of a letter at its end is left for the next piece."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text = decoder.decode(piece, final=last)
    return text, len(piece) - len(decoder.getstate()[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    tree: Path | None = None  # its folder, once it is there
    digest: str = ""
    admission: Admission | None = None  # why the job does not start yet, or never will

    def equip(self, assignment: Assignment) -> Assignment:
        """As activating a virtual environment does."""
        if self.tree is None:
            return assignment
        given = {name: value for name, value in assignment.environment.items() if name != "PYTHONHOME"}
        path = os.pathsep.join([str(self.tree / "bin"), given.get("PATH", os.defpath)])
        return replace(
            assignment, packages=self.tree, environment={**given, "VIRTUAL_ENV": str(self.tree), "PATH": path}
        )


NOTHING = Attachment()
FIELD = f"metadata.annotations[{names.ANNOTATION_ENVIRONMENT}]"


def refuse_impossible(job: Job, attachment: Attachment, known: str) -> None:
    """Raises why nobody should hand in a job like this; `known` is the hint where there is no such environment."""
    answer = attachment.admission
    if answer is None or not answer.impossible:
        return
    name = job.annotation(names.ANNOTATION_ENVIRONMENT)
    hint = known if answer.reason.startswith("there is no") else Text("`oarsman env log {name}` tells more", name=name)
    raise ManifestError([Problem(source=job.name, line=0, column=0, field=FIELD, message=answer.reason, hint=hint)])


class Attaching:
    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self._shelf = Shelf(paths.state)

    def of(self, job: Job) -> Attachment:
        """As things are. A job that has started has what it started with."""
        name = job.annotation(names.ANNOTATION_ENVIRONMENT)
        if not name:
            return NOTHING
        kept = pinned(self._paths.job(job.uid)) if job.uid else None
        if kept is not None:
            contents = self._shelf.contents(kept)
            whole = contents.result()
            if whole is not None and whole.ready:
                return Attachment(tree=contents.tree(whole.tree), digest=kept)
            return _never(Text("environment {name} is gone", name=name))
        named = self._shelf.get(name)
        if named is None:
            return _never(Text("there is no environment {name}", name=name))
        contents = self._shelf.contents(named.digest)
        state, result = state_of(contents)
        if state == "Ready":
            return Attachment(tree=contents.tree(result.tree), digest=named.digest)
        if state == "Failed":
            return _never(Text("environment {name} could not be built: {why}", name=name, why=result.message))
        return _waits(Text("environment {name} is being built", name=name))

    def keep(self, job: Job) -> Attachment:
        """The same when the job starts: nobody takes it away, or makes something else of it, from now on."""
        with self._shelf.alone():
            found = self.of(job)
            if found.tree is not None:
                pin(self._paths.job(job.uid), found.digest)
        return found


def _waits(reason: str, *, impossible: bool = False) -> Attachment:
    admission = Admission(admitted=False, reason=reason, impossible=impossible, about=names.REASON_ENVIRONMENT)
    return Attachment(admission=admission)


_never = partial(_waits, impossible=True)
