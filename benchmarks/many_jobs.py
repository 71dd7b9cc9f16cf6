"""Claim: a queue of many short jobs drains steadily with a small supervisor. Rival: a shell loop of mpirun.

The loop has no queue, no logs, no hosts and no record; it is the least that anything can take.
"""

from __future__ import annotations

import psutil
from measure import Oarsman, bare, most_memory, oarsman, report, seconds

JOBS, LOOP = 200, 50
COMMAND = ["mpirun", "-n", "2", "true"]


def supervisor(ours: Oarsman) -> psutil.Process:
    """The process with our state and "supervisor" in its command line."""
    for process in psutil.process_iter():
        try:
            mine = process.environ().get("OARSMAN_STATE") == ours.environment["OARSMAN_STATE"]
            if mine and any("supervisor" in word for word in process.cmdline()):
                return process
        except psutil.Error:
            continue
    raise SystemExit("no supervisor was found")


def main() -> None:
    with oarsman() as ours:
        ours("run", ours.manifest("first", command=COMMAND))
        process = supervisor(ours)
        before = process.memory_info().rss
        names = [f"short-{i}" for i in range(JOBS)]
        file = ours.manifest(*names, command=COMMAND)
        submitted = seconds(lambda: ours("submit", file))
        total = submitted + seconds(lambda: ours("wait", *names, "--for", "succeeded", "--timeout", "10m"))
        peak = most_memory(process)
    loop = seconds(lambda: [bare("mpirun", "--oversubscribe", *COMMAND[1:]) for _ in range(LOOP)])
    report(
        f"{JOBS} short jobs, queued at once",
        f"{total / JOBS * 1e3:.0f} ms per job, {total:.1f} s in all",
        f"shell loop of {' '.join(COMMAND)}: {loop / LOOP * 1e3:.0f} ms per job",
        (total / JOBS) / (loop / LOOP),
        f"submitting took {submitted / JOBS * 1e3:.1f} ms per job",
        f"supervisor's memory: {before / 2**20:.0f} MiB before, {peak / 2**20:.0f} MiB at most",
    )


if __name__ == "__main__":
    main()
