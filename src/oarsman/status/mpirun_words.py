"""What launchers say about a process that failed.

Used where no rank report is at hand. Launchers wrap their sentences, frame them with dashes and equal
signs, and name the process each in its own way; Open MPI 4 (mpirun, orterun), Open MPI 5 (prterun),
MPICH and Intel MPI (both Hydra) are understood. Programs may write the same words: a number without end is none.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from oarsman.job.observed import Exit
from oarsman.status.exits import SIGKILL, SIGTERM
from oarsman.text.sentence import Text


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedProcess:
    """The process a launcher blames. Hydra names a host alone, Open MPI's exit codes a rank alone."""

    rank: int | None = None
    host: str | None = None
    exit: Exit
    aborted: bool = False  # it called MPI_Abort
    unfinalized: bool = False  # it ended with 0, and without MPI_Finalize
    unstarted: str = ""  # it never ran, and why; its exit is the launcher's own then


_SIGNALLED: Final = re.compile(
    r"noticed that process rank (?P<rank>\d{1,10}) with PID \d+ on node (?P<host>\S+) "
    r"exited on signal (?P<signal>\d{1,10})"
)
_IMPROPER: Final = re.compile(
    r"has exited due to process rank (?P<rank>\d{1,10}) with PID \d+ on node (?P<host>\S+) exiting improperly"
)
_EXITED: Final = re.compile(
    r"Process name: \[(?:\[\d+,\d+\]|[^\],]+),(?P<rank>\d{1,10})\] Exit code: (?P<code>\d{1,10})"
)
_ABORTED: Final = re.compile(
    r"MPI_ABORT was invoked on rank (?P<rank>\d{1,10}) in communicator "
    r".{0,200}?(?:with errorcode|Errorcode:) (?P<code>-?\d{1,10})"
)
_HYDRA_ABORTED: Final = re.compile(
    r"application called MPI_Abort\(\S+, (?P<code>-?\d{1,10})\) - process (?P<rank>\d{1,10})"
)
_HYDRA: Final = re.compile(
    r"BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES (?:= )?(?:RANK (?P<rank>\d{1,10}) )?"
    r"PID \d+ RUNNING AT (?P<host>\S+) (?:= )?"
    r"(?:EXIT CODE: (?P<code>\d{1,10})|KILLED BY SIGNAL: (?P<signal>\d{1,10})|EXIT STATUS: (?P<status>\d{1,10}))"
)
_HYDRA_SIGNAL: Final = re.compile(r"TERMINATED WITH THE EXIT STRING: .{0,80}?\(signal (?P<signal>\d{1,10})\)")
# The program was not started. Open MPI says the first, of access or of permissions, both where a file is missing and
# where it may not be executed.
_NOT_ACCESSED: Final = re.compile(
    r"was unable to launch the specified application as it "
    r"(?:could not access (?:or execute )?|lacked permissions to execute )an executable: "
    r"Executable: (?P<program>.{1,300}?) Node: (?P<host>\S+) while attempting to start process rank (?P<rank>\d{1,10})"
)
_NOT_FOUND: Final = re.compile(
    r"was unable to find the specified executable file.{1,60}? first reported for process rank (?P<rank>\d{1,10});"
    r".{1,400}? Node: (?P<host>\S+) Executable: (?P<program>.{1,300}?)(?: -{20}|$)"
)
_NOT_EXECUTED: Final = re.compile(
    r'tried to fork a new process via the "execve" system call but failed.{1,400}? Local host: (?P<host>\S+) '
    r"Working dir: .{1,300}? Application name: (?P<program>.{1,300}?) Error: (?P<why>.{1,300}?)(?: -{20}|$)"
)
_HYDRA_NOT_EXECUTED: Final = re.compile(
    r"\[proxy:[\d:]+@(?P<host>[^\]\s]+)\] \S+ \(\S+\): execvp error on file (?P<program>.{1,300}?) \((?P<why>[^)]+)\)"
)
_LAUNCHER_SAYS: Final = re.compile(
    r"(?:There are not enough slots|(?:mpirun|mpiexec|orterun|prterun|prun) (?:was|has|could|cannot|failed)) "
)


_PEER_GONE: Final = re.compile(
    r"An error occurred in Socket closed|(?:readv|recv|writev|send)\S* failed: Connection reset by peer|"
    r"\bpeer (?:has )?closed\b|Socket closed by peer|Connection closed by peer|lost connection (?:to|with) peer|"
    r"MPI communication peer process has unexpectedly disconnected",
    re.IGNORECASE,
)
_REPORTED_PEER_GONE: Final = re.compile(
    r"An error occurred in Socket closed.{0,120}?reported by process \[\d+,(?P<rank>\d{1,10})\]"
)
_MPI_ERROR: Final = re.compile(
    r"\*\*\* (?P<call>An error occurred in MPI_\w+) .{0,80}?reported by process \[\d+,(?P<rank>\d{1,10})\].{0,160}?"
    r"\*\*\* (?P<error>MPI_ERR_\w+: .{1,80}?|Unknown error) (?:\[\S+ )?\*\*\* MPI_ERRORS_ARE_FATAL"
)
_DYING_WORDS: Final = re.compile(
    r"Assertion .+ failed|free\(\): |double free|corrupted |stack smashing|terminate called|^what\(\): |"
    r"^Fatal Python error|^panic"
)
_TRACEBACK: Final = "Traceback (most recent call last)"
_EXCEPTION: Final = re.compile(r"(?:\w+\.)*\w*(?:Error|Exception|Interrupt|Exit)(?::|$)")
_FRAME: Final = re.compile(r"-{20,}")
# What launchers write whenever a rank fails. It tells that one did, and nothing about why.
_BOILERPLATE: Final = re.compile(
    r"Primary job\s+terminated normally, but|a non-zero exit code\. Per user-direction|"
    r"(?:mpirun|mpiexec|orterun|prterun|prun) (?:detected|noticed) that (?:one or more )?process|"
    r"(?:thus causing )?the job to be terminated\. The first process|thus causing the job to be terminated|"
    r"Process name:\s+\[|Exit code:\s+-?\d+$|"
    r"\[\S+:\d+\] \d+ more process(?:es)? (?:has|have) sent help message|"
    r"(?:\[\S+:\d+\] )?Set MCA parameter \"?\w*help_aggregate|"
    r"(?:\[\S+:\d+\] )?plm:[rsh|]+: Warning: setpgid\(|"  # Open MPI's quarrel with its own child, now and then
    r"=|YOUR APPLICATION TERMINATED|This typically refers to|Please see the FAQ",
)
# The lines in which Hydra's own programs, Open MPI's libraries and the launcher's own script report, whoever failed.
_LIBRARY_SAYS: Final = re.compile(r"oarsman: |\[(?:mpiexec|proxy:\S+)@[^\]]+\] |\[\S+:\d+\] (?:\*\*\* |PMIX ERROR)")

_MISSES_HOST: Final = re.compile(r"\[mpiexec@[^\]]+\] .*Launch proxy failed")


def _on_one_line(lines: Sequence[str]) -> str:
    """Launchers wrap their sentences."""
    return re.sub(r"\s+", " ", " ".join(lines))


def _says(pattern: str) -> Callable[[Sequence[str]], bool]:
    """Whether the launcher says that, on however many lines."""
    words = re.compile(pattern)
    return lambda lines: words.search(_on_one_line(lines)) is not None


# Whether Open MPI 4 says that a rank failed. It leaves out which one if it hears that all ranks run only after one has
# failed: "running" overwrites "failed".
tells_of_a_rank: Final = _says(r"Primary job terminated normally, but \d+ process(?:es)? returned a non-zero exit code")
# It tells what it could not do: the code that follows is one of its own, and no signal's.
gives_up: Final = _says(
    r"\b(?:mpirun|mpiexec|orterun|prterun|prun) (?:was unable|could not|cannot|failed) |"
    r"(?:Open MPI|PRTE) tried to fork a new process"
)
# The program it was to start is not there.
misses_the_program: Final = _says(
    r"(?:mpirun|mpiexec|orterun|prterun|prun) was unable to find the specified executable|"
    r"execvp error on file .{1,300}? \(No such file or directory\)"
)
# It was called in a way it does not accept, and has not started anything.
refuses_its_command_line: Final = _says(
    r"\b(?:mpirun|mpiexec|orterun|prterun|prun)(?:\.real)?: Error: unknown option|"
    r"An unrecognized option was included on the (?:mpirun|mpiexec|orterun|prterun|prun) command line|"
    r"\[mpiexec@[^\]]+\] .{0,120}?unrecognized argument|"
    r"There are not enough slots available in the system|"
    r"(?:mpirun|mpiexec|orterun|prterun|prun) has detected an attempt to run as root"
)


def misses_host(lines: Sequence[str]) -> bool:
    """Whether Hydra's own program did not come up on some host. It kills the ranks that ran elsewhere by then."""
    return any(_MISSES_HOST.search(line) for line in lines)


def blamed(lines: Sequence[str], ended: Exit | None = None) -> NamedProcess | None:
    """The process that the launcher names as the one that failed first. ended: how the launcher itself did."""
    text = _on_one_line(lines)
    if found := _ABORTED.search(text) or _HYDRA_ABORTED.search(text):
        return NamedProcess(rank=int(found["rank"]), exit=Exit(code=int(found["code"]) & 0xFF), aborted=True)
    if found := _SIGNALLED.search(text):
        return NamedProcess(rank=int(found["rank"]), host=found["host"], exit=_signalled(int(found["signal"])))
    if found := _EXITED.search(text):
        return NamedProcess(rank=int(found["rank"]), exit=Exit(code=int(found["code"])))
    if found := _IMPROPER.search(text):
        return NamedProcess(rank=int(found["rank"]), host=found["host"], exit=Exit(code=0), unfinalized=True)
    return _hydra(text) or _unstarted(text, ended or Exit(code=1))


def _unstarted(text: str, ended: Exit) -> NamedProcess | None:
    if found := _NOT_FOUND.search(text):
        why = Text("there is no program {program}", program=found["program"])
    elif found := _NOT_ACCESSED.search(text):
        why = Text("there is no program {program}, or it may not be executed", program=found["program"])
    elif found := _NOT_EXECUTED.search(text) or _HYDRA_NOT_EXECUTED.search(text):
        told = found["why"].rstrip(".")
        why = Text("{program} cannot be executed ({why})", program=found["program"], why=told)
    else:
        return None
    rank = found.groupdict().get("rank")
    return NamedProcess(rank=int(rank) if rank else None, host=found["host"], exit=ended, unstarted=why)


def is_hydra(lines: Sequence[str]) -> bool:
    """Whether the launcher's words are those of MPICH's or Intel MPI's."""
    begins = ("[mpiexec@", "[proxy:")
    return any(line.startswith(begins) or "BAD TERMINATION OF ONE OF YOUR" in line for line in lines)


def last_word(lines: Sequence[str]) -> str | None:
    """The last line that tells something: of the program, or else the first of the launcher's own report."""
    program, report = _apart(lines)
    return program[-1] if program else next(iter(report), None)


def whole(lines: Sequence[str], line: str) -> str:
    """The sentence that begins with this line, if it is the launcher's, which breaks them into lines."""
    said = [each.strip() for each in lines]
    if line not in said or line.endswith((".", ":")) or not _LAUNCHER_SAYS.match(line):
        return line
    text = " ".join(itertools.takewhile(bool, said[said.index(line) :]))
    return re.split(r"(?<=\w)[.:](?:\s|$)", text, maxsplit=1)[0]


def programs_last_word(lines: Sequence[str]) -> str | None:
    """The last line that a program wrote, or None where only the launcher spoke."""
    program, _ = _apart(lines)
    return program[-1] if program else None


def report(lines: Sequence[str]) -> Sequence[str]:
    """What launcher and libraries themselves wrote, whoever failed."""
    _, told = _apart(lines)
    return told


def exception(lines: Sequence[str]) -> str | None:
    """The exception that a Python program ended with: the end of the last traceback."""
    begun = [at for at, line in enumerate(lines) if line.startswith(_TRACEBACK)]
    after = lines[begun[-1] + 1 :] if begun else ()
    return next((line.strip() for line in after if _EXCEPTION.match(line)), None)


def _apart(lines: Sequence[str]) -> tuple[list[str], list[str]]:
    """What programs wrote, and what of the launcher's own report says more than that a rank failed."""
    program: list[str] = []
    report: list[str] = []
    framed = False
    for line in (line.strip() for line in lines):
        if _FRAME.fullmatch(line):
            framed = not framed
        elif any(c.isalnum() for c in line) and not _BOILERPLATE.match(line):
            (report if framed or _LIBRARY_SAYS.match(line) else program).append(line)
    return program, report


def abort_code(lines: Sequence[str], rank: int) -> int | None:
    """The code this rank itself says it called MPI_Abort with (MPICH and Intel MPI do so)."""
    for line in lines:
        found = _HYDRA_ABORTED.search(line)
        if found is not None and int(found["rank"]) == rank:
            return int(found["code"]) & 0xFF
    return None


def lost_its_peer(lines: Sequence[str]) -> bool:
    """Whether a rank says that it ended because another one was gone."""
    return any(_PEER_GONE.search(line) for line in lines)


def lost_their_peers(lines: Sequence[str]) -> frozenset[int]:
    """The ranks of which Open MPI 5 reports that they ended because another one was gone."""
    return frozenset(int(found["rank"]) for found in _REPORTED_PEER_GONE.finditer(_on_one_line(lines)))


def mpi_error(lines: Sequence[str], rank: int) -> str | None:
    """What Open MPI says a rank's own call of MPI ended it with: through the launcher, for many ranks at once."""
    text = _on_one_line(lines)
    for_more = "sent help message help-mpi-errors" in text
    found = (each for each in _MPI_ERROR.finditer(text) if int(each["rank"]) == rank or for_more)
    return next((f"{each['call']}: {each['error']}" for each in found), None)


def dying_words(lines: Sequence[str]) -> str | None:
    """What a process that aborted itself wrote about it, which backtraces may follow."""
    return next((line.strip() for line in lines if _DYING_WORDS.search(line.strip())), None)


def own_last_word(lines: Sequence[str]) -> str | None:
    """The last line of a rank's own that says something: the library's remark that it was told to abort explains
    nothing, nor do frames of dashes and equal signs."""
    own = (line.strip() for line in reversed(lines) if not _HYDRA_ABORTED.search(line))
    return next((line for line in own if any(c.isalnum() for c in line)), None)


def _hydra(text: str) -> NamedProcess | None:
    """Intel MPI names every process it ended; the first that was not simply killed is the one."""
    signal = said["signal"] if (said := _HYDRA_SIGNAL.search(text)) else None
    named = [_hydra_process(found, signal) for found in _HYDRA.finditer(text)]
    by_itself = (n for n in named if n.exit.signal not in (SIGKILL, SIGTERM))
    return next(by_itself, named[0] if named else None)


def _hydra_process(found: re.Match[str], said_later: str | None) -> NamedProcess:
    signal = found["signal"] or said_later
    ended = _signalled(int(signal)) if signal else Exit(code=int(found["code"] or found["status"]))
    return NamedProcess(rank=int(found["rank"]) if found["rank"] else None, host=found["host"], exit=ended)


def _signalled(signal: int) -> Exit:
    return Exit(code=128 + signal, signal=signal)
