"""Send fuzzed manifests and calls: see the package."""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path

from . import calls, manifests
from .judge import Judge, Verdict, slowest
from .site import Site


def main() -> int:
    asked = _asked()
    began = time.monotonic()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the server ends too
    names = asked.only or [
        *(f"manifest:{number}" for number in range(asked.start, asked.start + asked.manifests)),
        *(f"call:{number}" for number in range(asked.start, asked.start + asked.calls)),
    ]
    with tempfile.TemporaryDirectory(prefix="fuzz-", dir="/tmp") as folder, closing(Site(Path(folder))) as site:
        verdicts = judged(site, asked.seed, names, show=bool(asked.only))
    answers = Counter(str(status or "none") for verdict in verdicts for status in verdict.answers)
    wrong = [verdict for verdict in verdicts if verdict.wrong]
    print("\nanswers:", ", ".join(f"{count} x {status}" for status, count in sorted(answers.items())))
    print("slowest:", ", ".join(f"{name} {seconds:.2f} s" for name, seconds in slowest(verdicts).items()))
    print(f"seed {asked.seed}: {len(verdicts)} cases, {len(wrong)} findings, {time.monotonic() - began:.0f} s")
    return int(bool(wrong))


def judged(site: Site, seed: int, names: Iterable[str], *, show: bool = False) -> list[Verdict]:
    """Those of the user come last: what a page of theirs starts, a while later, is not of anybody else."""
    judge, verdicts, began = Judge(site), [], time.monotonic()
    for number, name in enumerate(sorted(names, key=lambda name: _caller(seed, name) == "user"), 1):
        kind, _, index = name.partition(":")
        if kind == "manifest":
            verdict = judge.manifest(manifests.case(seed, int(index)))
        else:
            verdict = judge.call(calls.case(seed, int(index)))
        verdicts.append(verdict)
        if verdict.wrong or show:
            print(told(verdict, seed), flush=True)
        if judge.hung:
            print("the server does not answer: nothing more is sent to it")
            break
        if number % 500 == 0:
            print(f"{time.monotonic() - began:5.0f} s, {number} cases", flush=True)
    return verdicts


def _caller(seed: int, name: str) -> str:
    kind, _, index = name.partition(":")
    return (manifests if kind == "manifest" else calls).caller_of(seed, int(index))


def told(verdict: Verdict, seed: int) -> str:
    lines = [f"\n{'wrong: ' if verdict.wrong else ''}{verdict.name} ({verdict.about}) -> {verdict.answers}"]
    lines += [f"  {what}" for what in verdict.wrong]
    lines += [f"  sent {sent}" for sent in verdict.sent]
    return "\n".join([*lines, f"again: python -m tests.fuzz --seed {seed} --only {verdict.name}"])


def findings(verdicts: Sequence[Verdict], seed: int) -> str:
    return "\n".join(told(verdict, seed) for verdict in verdicts if verdict.wrong)


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--manifests", type=int, default=5000)
    parser.add_argument("--calls", type=int, default=5000)
    parser.add_argument("--start", type=int, default=0, help="the number of the first one of each")
    parser.add_argument("--only", nargs="*", metavar="KIND:INDEX", help="these instead of all: manifest:17 call:4711")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
