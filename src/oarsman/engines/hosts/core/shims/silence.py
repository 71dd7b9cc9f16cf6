"""How much CPU a rank uses that writes nothing. Whoever waits in MPI uses all of one; who sleeps or reads uses none."""

from __future__ import annotations

import os

_SECONDS = float(os.environ.get("OARSMAN_SILENT_SECONDS", "60"))
_BUSY = 20  # percent of one CPU, at least; many ranks may share it


class Silence:
    """Of a program, since it wrote last."""

    def __init__(self, program: int) -> None:
        self.program = program
        self.seconds = _SECONDS  # in which the CPU that it uses is measured
        self.patience = _SECONDS  # how long it writes nothing until that is told
        self.since = 0.0
        self.looks: list[tuple[float, float]] = []  # when, and the seconds of CPU that it had used
        self.told: int | None = None  # percent: 0, or `_BUSY` and more; None: it writes, or is neither

    def look(self, now: float) -> bool:
        """Whether there is news in `told`. Who often pauses is told of later each time, and so seldom, however long it
        runs."""
        used = cpu_seconds(self.program)
        if used is None or (self.looks and used < self.looks[-1][1]):  # a child went that nobody waited for
            return self.over()
        if not self.looks:
            self.since = now
        self.looks.append((now, used))
        while self.looks[1:] and self.looks[1][0] <= now - self.seconds:
            del self.looks[0]
        begun, before = self.looks[0]
        if now - begun < self.seconds:
            return False
        percent = int(100 * (used - before) / (now - begun))
        if self.told is not None:
            as_told = percent >= _BUSY if self.told else percent == 0
            return not as_told and self.over()
        if 0 < percent < _BUSY or now - self.since < self.patience:
            return False
        self.told = percent
        self.patience *= 2
        return True

    def over(self) -> bool:
        """It wrote, or is not what it was. Likewise."""
        told, self.told, self.looks = self.told, None, []
        return told is not None


def cpu_seconds(program: int) -> float | None:
    """Of a process and all below it; None: the kernel does not tell."""
    ticks, below = 0, [program]
    while below:
        pid = below.pop()
        try:
            ticks += sum(map(int, _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()[11:15]))
            threads = os.listdir(f"/proc/{pid}/task")
        except OSError:
            if pid == program:
                return None
            continue  # it has ended, and is counted with who waited for it
        for thread in threads:
            try:
                below += map(int, _read(f"/proc/{pid}/task/{thread}/children").split())
            except OSError:
                if thread == str(program):
                    return None
    return ticks / os.sysconf("SC_CLK_TCK")


def _read(file: str) -> bytes:
    with open(file, "rb") as opened:
        return opened.read()
