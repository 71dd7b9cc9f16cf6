"""Claim: the command answers as quickly as people are used to. Rival: kubectl, or a bare Python where it is missing."""

from __future__ import annotations

import shutil

from measure import bare, in_turn, report

ROUNDS = 20
LIMIT = 0.150


def main() -> None:
    rival = ["kubectl", "version", "--client"] if shutil.which("kubectl") else ["python3", "-c", "pass"]
    bare("oarsman", "--version")  # files into the cache
    bare(*rival)
    ours, theirs, python = in_turn(
        ROUNDS, lambda: bare("oarsman", "--version"), lambda: bare(*rival), lambda: bare("python3", "-c", "pass")
    )
    report(
        "Start of the command",
        f"oarsman --version: {ours * 1e3:.0f} ms",
        f"{' '.join(rival)}: {theirs * 1e3:.0f} ms",
        ours / theirs,
        f"under {LIMIT * 1e3:.0f} ms: {'yes' if ours < LIMIT else 'NO'}",
        f"python3 -c pass: {python * 1e3:.0f} ms, the least a Python program can take here",
    )


if __name__ == "__main__":
    main()
