"""A job in the foreground: its log lines as they come, its end, and what signals do to it.

One thread watches the job, one brings its lines; both only put into a queue what is to be done. The main thread, the
only one that Python interrupts, does it. A signal is one more thing in the queue, so nothing is ever cut off in the
middle of an answer.
"""

from __future__ import annotations

import re
import signal
import threading
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import partial
from queue import Empty, SimpleQueue
from types import FrameType
from typing import Any, NoReturn

from oarsman import names
from oarsman.cli.logview import Printer
from oarsman.cli.session import Session, short
from oarsman.cli.text import note, of, t
from oarsman.cli.waiting import (
    Reasons,
    ShownJob,
    StatusLine,
    closed_hosts,
    controller,
    told_if_nothing_happens,
    waiting_for,
    waits_for_hosts,
)
from oarsman.errors import ConflictError, NotFoundError, OarsmanError
from oarsman.text.sentence import Text

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_TICK_SECONDS = 0.2
_UNATTENDED_SECONDS = 5.0  # a stop takes an operator less; then it is asked whether there is one
_RECORD_SECONDS = 5.0  # for whoever is to stop a job to take note of that, when nobody waits any more
_UNKNOWN_LOOKS = 6  # how often, where that cannot be known


class Signals:
    """Tells of SIGINT, SIGTERM and SIGHUP within a `with`. Ignored signals (nohup) stay ignored."""

    def __init__(self, tell: Callable[[int], None]) -> None:
        self._tell = tell
        self._before: dict[int, Any] = {}
        self.waiting = True  # nobody reads the queue yet: a second signal must not be lost on a slow start
        self._seen = 0

    def __enter__(self) -> Signals:
        for number in _SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _handle(self, number: int, _: FrameType | None) -> None:
        self._seen += 1
        if self.waiting and self._seen > 1:
            raise KeyboardInterrupt
        self._tell(number)


def in_thread(work: Callable[[], None], failed: Callable[[BaseException], None]) -> None:
    def guarded() -> None:
        try:
            work()
        except BaseException as error:
            failed(error)

    threading.Thread(target=guarded, name=work.__name__, daemon=True).start()


@dataclass
class Foreground:
    """Follow one job to its end. Afterwards the fields say how it went."""

    session: Session
    printer: Printer
    progress: StatusLine
    key: str = ""
    shown: ShownJob | None = None  # as last seen
    gone: bool = False
    signalled: int | None = None  # the signal that stopped it
    left: bool = False  # a second signal: the supervisor finishes alone
    unheard: bool = False  # nobody took note of the stop before we left
    unattended: bool = False  # nobody acts on the stop
    lost_output: OSError | None = None
    wait_for_hosts: bool = True  # also for those that stay closed until somebody acts
    closed: str = ""  # why it did not start, where it was not waited for that
    _todo: SimpleQueue[Callable[[], bool | None]] = field(default_factory=SimpleQueue)  # True: there is nothing more
    _attempts: SimpleQueue[tuple[int, Mapping[str, str]] | None] = field(default_factory=SimpleQueue)
    _followed: int = 0
    _whispered: str = ""  # why it waits, without the numbers
    _reasons: Reasons = field(default_factory=Reasons)
    _over: threading.Event = field(default_factory=threading.Event)  # it has ended, or nobody waits any more
    _stopping: bool = False
    _on_record: bool = False  # it will be stopped, whatever becomes of us
    _leaving: bool = False

    def signals(self) -> Signals:
        return Signals(lambda number: self._todo.put(lambda: self._interrupt(number)))

    def follow(self, key: str) -> None:
        self.key = key
        in_thread(self._watch, self._fail)
        in_thread(self._bring_lines, self._fail)
        try:
            with told_if_nothing_happens(self.session, key, lambda why: self._todo.put(lambda: self._say(why))):
                while not self._next()():
                    pass
        finally:
            self._over.set()
            self.progress.end()
            try:
                self.printer.close()
            except OSError as error:
                self.lost_output = self.lost_output or error

    def _next(self) -> Callable[[], bool | None]:
        """Wake up now and then: a signal that comes just before the wait begins would not end it."""
        while True:
            with suppress(Empty):
                return self._todo.get(timeout=_TICK_SECONDS)

    @property
    def _finished(self) -> bool:
        return self.shown is not None and self.shown.status.finished

    def _miss(self) -> None:
        """The watch is over without an end having been seen: the job was deleted."""
        self.gone = not self._finished
        self._end_lines()

    def _give_up(self) -> bool:
        """The job is to be stopped, and nobody is there who would do it."""
        self.unattended = not self._finished
        return self.unattended

    def _see(self, shown: ShownJob) -> bool:
        before, self.shown = self.shown, shown
        status = shown.status
        if not self.wait_for_hosts and not self._stopping and (closed := closed_hosts(status)):
            self.closed = closed
            return True
        for number in [a.number for a in status.attempts if a.number > self._followed]:
            self._followed = number
            self._attempts.put((number, status.machines))
        for text in [] if self.session.quiet else self._reasons.news(shown):
            self._say(text)
        if status.is_true(names.SUSPENDED) and not (before and before.status.is_true(names.SUSPENDED)):
            self._say(t("{name} is suspended; `oarsman resume {name}` starts it again", name=short(self.key)))
        waiting = waiting_for(shown)
        self.progress.show(waiting)
        if waiting and status.queue and not self.progress.visible and not waits_for_hosts(status):
            kind = re.sub(r"[0-9]+", "#", waiting)  # a place in the queue that moves up is no news
            if kind != self._whispered and not self.session.quiet:
                self._say(waiting)
            self._whispered = kind
        if status.finished:
            self._end_lines()
        # The record tells it before the supervisor has answered.
        return self._note_stop() if self._stopping and shown.stopping else False

    def _interrupt(self, number: int) -> bool:
        if self.signalled is None:
            self.signalled = number
            if not self._stopping:
                self._stop()
            return False
        if self._on_record or self._leaving:
            return self._leave()
        self._leaving = True  # as soon as it is on record; a server that does not answer gets a moment
        timer = threading.Timer(_RECORD_SECONDS, lambda: self._todo.put(self._leave))
        timer.daemon = True
        timer.start()
        return False

    def _leave(self) -> bool:
        self.left, self.unheard = True, not self._on_record
        return True

    def _note_stop(self) -> bool:
        """The wish is on record: only now may anybody rely on it."""
        if not self._on_record:
            self._on_record = True
            if self.signalled is not None and not self._leaving:
                template = Text("stopping {name} and cleaning up; once more leaves that to {controller}")
                self._say(of(Text(template, name=short(self.key), controller=controller(self.session))))
        self.left = self._leaving
        return self.left

    def _stop(self) -> None:
        """In a thread of its own: a server that does not answer must not keep a second signal waiting."""
        self._stopping = True
        in_thread(self._see_to_the_stop, self._fail)

    def _see_to_the_stop(self) -> None:
        service = self.session.service
        with suppress(ConflictError, NotFoundError):  # it ended by itself, or was deleted, a moment ago
            self.session.run(service.stop(self.key))
        self._todo.put(self._note_stop)
        if self.session.place != "kube":  # the supervisor is started where there is none
            return
        looks = 0
        while not self._over.wait(_UNATTENDED_SECONDS):
            looks += 1
            served = None
            with suppress(OarsmanError, OSError):
                served = self.session.run(service.attention(self.key)).served
            if served is False or (served is None and looks >= _UNKNOWN_LOOKS):
                self._todo.put(self._give_up)
                return

    def _end_lines(self) -> None:
        if not self._over.is_set():
            self._over.set()
            self._attempts.put(None)

    def _say(self, text: str) -> None:
        self.progress.pause()
        self.printer.pause()
        note(text)
        self.printer.go_on()

    # -- the two threads ---------------------------------------------------------------------------
    def _fail(self, error: BaseException) -> None:
        self._todo.put(partial(_throw, error))

    def _watch(self) -> None:
        last: Callable[[], bool | None] = self._miss
        with closing(self.session.iterate(self.session.service.watch(self.key))) as views:
            for view in views:
                shown = ShownJob.of(view)
                if shown.status.finished:
                    last = partial(self._see, shown)
                    break
                self._todo.put(partial(self._see, shown))
        self._todo.put(last)  # when nothing is open any more: the command may end at once

    def _bring_lines(self) -> None:
        """Attempt after attempt, each asked for by number: no line twice, none skipped."""
        from oarsman.service.models import LogFilter
        from oarsman.store.live_lines import LiveLines

        service = self.session.service
        while (found := self._attempts.get()) is not None:
            attempt, machines = found
            self.printer.place(machines)
            with suppress(NotFoundError):  # deleted meanwhile
                only, live = LogFilter(attempt=attempt), self.printer.shows_live
                for block in self.session.iterate(service.lines(self.key, only, follow=True, live=live)):
                    self.progress.end()
                    if isinstance(block, LiveLines):
                        self.printer.show_live(block)
                        continue
                    for line in block:
                        self._write(line)
                    self.printer.go_on()
        self._todo.put(lambda: True)  # every line of every attempt was written

    def _write(self, line: Any) -> None:
        if self.lost_output is not None:
            return
        try:
            self.printer.write(line)
        except OSError as error:
            self.lost_output = error
            self._todo.put(self._stop)


def _throw(error: BaseException) -> NoReturn:
    raise error
