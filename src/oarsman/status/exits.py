"""What exit codes and signals mean, in the words a person needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from oarsman.job.observed import Exit
from oarsman.text.sentence import Text

SIGABRT: Final = 6
SIGKILL: Final = 9
SIGTERM: Final = 15
CRASHES: Final = (4, 6, 7, 8, 11)  # by a mistake of the program's own

_SIGNALS: Final = {
    1: Text("Hangup"),
    2: Text("Interrupt"),
    3: Text("Quit"),
    4: Text("Illegal instruction"),
    5: Text("Trace trap"),
    6: Text("Aborted"),
    7: Text("Bus error"),
    8: Text("Floating point exception"),
    9: Text("Killed"),
    10: Text("User signal 1"),
    11: Text("Segmentation fault"),
    12: Text("User signal 2"),
    13: Text("Broken pipe"),
    14: Text("Alarm clock"),
    15: Text("Terminated"),
    24: Text("CPU time limit exceeded"),
    25: Text("File size limit exceeded"),
    31: Text("Bad system call"),
}
_MEMORY_HINT: Final = Text("raise the memory limit of the role that ran it, or use less memory per rank")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """An exit, told: `words` continue a sentence that begins with who ended."""

    code: int
    signal: int | None
    words: str
    hint: str | None = None
    memory_limit_hit: bool = False


def signal_of(code: int, signal: int | None = None) -> int | None:
    """The signal, also where only the shell's number (128 + signal) is left, if it is one of those that end programs:
    launchers have codes of their own up there."""
    return signal or (code - 128 if code - 128 in _SIGNALS else None)


def with_code(code: int) -> str:
    return Text("exited with code {code}", code=code)


def tell(exit_: Exit) -> Ending:
    signal = signal_of(exit_.code, exit_.signal)
    if signal is None:
        return Ending(code=exit_.code, signal=None, words=with_code(exit_.code))
    name = _SIGNALS.get(signal, Text("unknown"))
    words = Text("was killed by signal {number} ({name})", number=signal, name=name)
    if exit_.memory_limit_hit:
        words = Text("{what}: {why}", what=words, why=Text("its memory limit was reached"))
        return Ending(code=exit_.code, signal=signal, words=words, hint=_MEMORY_HINT, memory_limit_hit=True)
    if signal == SIGKILL:
        words = Text("{what}; who sent it is not known", what=words)
    return Ending(code=exit_.code, signal=signal, words=words)
