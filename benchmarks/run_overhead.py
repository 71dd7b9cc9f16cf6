"""Claim: hosts, logs, placement check and status cost little over mpirun alone. Rival: mpirun, same program, 2 ranks.

Both wheels of Open MPI spend a second in their `ofi` component unless told not to. Oarsman tells them; so the rival is
told too, and the time of the untold one is a note.
"""

from __future__ import annotations

from itertools import count

from measure import bare, in_turn, oarsman, report, seconds

ROUNDS = 7
PROGRAM = ["python3", "-m", "mpi4py", "examples/hello/hello.py"]


def main() -> None:
    with oarsman() as ours:
        numbers = count()

        def run() -> None:
            file = ours.manifest(f"overhead-{next(numbers)}", command=["mpirun", "-n", "2", *PROGRAM])
            ours("run", file)

        first = seconds(run)  # starts the supervisor as well
        mine, tuned, plain = in_turn(
            ROUNDS,
            run,
            lambda: bare("mpirun", "--oversubscribe", "--mca", "btl", "^ofi", "-n", "2", *PROGRAM),
            lambda: bare("mpirun", "--oversubscribe", "-n", "2", *PROGRAM),
        )
    report(
        "Wall time of a short job of 2 ranks",
        f"oarsman run: {mine:.2f} s",
        f"mpirun --mca btl ^ofi: {tuned:.2f} s",
        mine / tuned,
        f"oarsman run minus mpirun: {mine - tuned:.2f} s, {(mine - tuned) / tuned:.2f} of the rival's time",
        f"mpirun without that option: {plain:.2f} s (ratio {mine / plain:.2f})",
        f"the first oarsman run, which starts the supervisor: {first:.2f} s",
    )


if __name__ == "__main__":
    main()
