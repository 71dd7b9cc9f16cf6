"""Which rank wrote a line: read from the tags that mpirun puts before lines when it is asked to.

    [1,3]<stderr>:text      Open MPI 4, --tag-output
    [1,3]<stderr>: text     Open MPI 5, --output tag; one space more
    [3] text                MPICH and Intel MPI, -prepend-rank; says nothing about the stream

Open MPI 4 tags every piece of output as it arrives, so a line that was written in pieces has tags in its middle;
the pieces are put together again per rank and stream. With --timestamp-output the time comes before the tag and is
part of it.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

_TIME = r"(?:\[?[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}\]?)?"
_OPEN_MPI = re.compile(_TIME + r"\[(?:[^\[\],@ ]+@)?\d+,(\d{1,9})\]<std(out|err)>:")
_HYDRA = re.compile(r"\[(\d{1,9})\] ?")


class Spoken(NamedTuple):
    rank: int | None  # None: no rank is known to have written it
    stream: str
    text: str


class Tags:
    """Reads lines in their order. `hydra`: they may begin with a plain [rank]; `ranks`: how many, if known."""

    def __init__(self, *, hydra: bool = False, ranks: int | None = None) -> None:
        self._hydra, self._ranks = hydra, ranks
        self._spaced = True  # until a tag without a space was seen
        self._pieces: dict[tuple[int, str], str] = {}
        self.seen = False  # whether any tag was there at all

    def read(self, line: str) -> Spoken | None:
        """What was said with this line; None for pieces of a line that is not complete yet."""
        if line.startswith("["):
            if "]<std" in line:
                return self._open_mpi(line)
            if self._hydra and (found := _HYDRA.match(line)) is not None:
                rank = int(found[1])
                if self._ranks is None or rank < self._ranks:
                    self.seen = True
                    return Spoken(rank, "out", line[found.end() :])
        elif "]<std" in line and (self.seen or _OPEN_MPI.match(line)):
            return self._open_mpi(line)
        return Spoken(None, "out", line)

    def _open_mpi(self, line: str) -> Spoken | None:
        found = list(_OPEN_MPI.finditer(line))
        if not found or (found[0].start() > 0 and not self.seen):
            return Spoken(None, "out", line)
        self.seen = True
        ends = [tag.start() for tag in found[1:]] + [len(line)]
        pieces = [self._piece(tag, line[tag.end() : end]) for tag, end in zip(found, ends, strict=True)]
        for rank, stream, text in pieces[:-1]:
            self._pieces[rank, stream] = self._pieces.get((rank, stream), "") + text
        rank, stream, text = pieces[-1]
        return Spoken(rank, stream, line[: found[0].start()] + self._pieces.pop((rank, stream), "") + text)

    def _piece(self, tag: re.Match[str], text: str) -> tuple[int, str, str]:
        if self._spaced and not text.startswith(" "):
            self._spaced = False
        return int(tag[1]), tag[2], text[1:] if self._spaced else text

    def rest(self) -> Iterator[Spoken]:
        """Pieces of lines that never ended."""
        for (rank, stream), text in self._pieces.items():
            yield Spoken(rank, stream, text)
        self._pieces.clear()
