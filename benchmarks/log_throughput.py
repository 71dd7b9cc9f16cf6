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

        def engine() -> None:
            ours("submit", "--wait", ours.manifest(f"talk-{next(numbers)}", command=command))

        def screen() -> None:
            with live.open("w") as out:
                ours("run", ours.manifest(f"talk-{next(numbers)}", command=command), stdout=out)

        def mpirun() -> None:
            with rival.open("w") as out:
                bare("mpirun", "--oversubscribe", *command[1:], stdout=out)

        mine, shown, theirs = in_turn(ROUNDS, engine, screen, mpirun)
        with stored.open("w") as out:
            ours("logs", f"talk-{next(numbers) - 1}", stdout=out)
        found = [lines_in(path) for path in (stored, live, rival)]
    report(
        f"{LINES:,} lines from {RANKS} ranks",
        f"through the engine, into the log of each rank and the merged one: {mine:.2f} s, {LINES / mine:,.0f} lines/s",
        f"mpirun > file: {theirs:.2f} s, {LINES / theirs:,.0f} lines/s",
        theirs / mine,
        "the ratio is our share of the rival's throughput",
        f"oarsman run > file, every line tagged and shown as well: {shown:.2f} s (share {theirs / shown:.2f})",
        f"lines that arrived: {found[0]:,} in the stored log, {found[1]:,} shown, {found[2]:,} from mpirun",
    )


if __name__ == "__main__":
    main()
