"""Claim: a talkative job keeps its pace, and no line is lost. Rival: mpirun > file, 1,000,000 lines."""

from __future__ import annotations

import re
from itertools import count
from pathlib import Path

from measure import bare, in_turn, oarsman, report

RANKS, LINES, ROUNDS = 2, 1_000_000, 3
PROGRAM = f"""
import os
rank = os.environ.get("OMPI_COMM_WORLD_RANK") or os.environ["PMI_RANK"]
with open(1, "w", buffering=1 << 16, closefd=False) as out:
    for i in range({LINES // RANKS}):
        print("step", i, "of rank", rank, "loss 0.123456 images/sec 154.4", file=out)
"""


def lines_in(path: Path) -> int:
    with path.open("rb") as file:
        return sum(1 for line in file if re.search(rb"step \d+ of rank", line))


def main() -> None:
    with oarsman() as ours:
        command = ["mpirun", "-n", str(RANKS), "python3", "-c", PROGRAM]
        numbers = count()
        live, stored, rival = (ours.folder / name for name in ("live", "stored", "rival"))

        def run() -> None:
            file = ours.manifest(f"talk-{next(numbers)}", command=command)
            with live.open("w") as out:
                ours("run", file, stdout=out)

        def mpirun() -> None:
            with rival.open("w") as out:
                bare("mpirun", "--oversubscribe", *command[1:], stdout=out)

        mine, theirs = in_turn(ROUNDS, run, mpirun)
        with stored.open("w") as out:
            ours("logs", f"talk-{next(numbers) - 1}", stdout=out)
        found = [lines_in(path) for path in (live, stored, rival)]
    report(
        f"{LINES:,} lines from {RANKS} ranks",
        f"oarsman run > file: {mine:.2f} s, {LINES / mine:,.0f} lines/s",
        f"mpirun > file: {theirs:.2f} s, {LINES / theirs:,.0f} lines/s",
        theirs / mine,
        "the ratio is our share of the rival's throughput",
        f"lines that arrived: {found[0]:,} on screen, {found[1]:,} in the stored log, {found[2]:,} from mpirun",
    )


if __name__ == "__main__":
    main()
