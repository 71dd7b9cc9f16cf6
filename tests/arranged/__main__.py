"""Run arranged jobs: see the package."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, closing
from pathlib import Path

from ssh_hosts import rack

from oarsman import names

from .cases import EVERY_MPI, EVERY_PLACE, Case, case
from .judge import Verdict, conduct
from .site import HOSTS, Site


def main() -> int:
    asked = _asked()
    places, mpis = asked.on.split(","), asked.mpi.split(",")
    numbers = asked.only or range(asked.start, asked.start + asked.count)
    cases = [case(asked.seed, number, places, mpis) for number in numbers]
    if asked.kind:
        cases = [one for one in cases if one.kind.removesuffix("-too") in asked.kind.split(",")]
    if asked.show:
        print(*cases, sep="\n")
        return 0
    with ExitStack() as ending:
        folder = Path(ending.enter_context(tempfile.TemporaryDirectory(prefix="arranged-", dir="/tmp")))
        hosts = ending.enter_context(rack(HOSTS)) if names.SSH in places else None
        site = ending.enter_context(closing(Site(folder, hosts)))
        verdicts = conducted(site, cases, asked.at_once)
    print(table(verdicts))
    wrong = [verdict for verdict in verdicts if verdict.wrong]
    for verdict in wrong:
        print(told(verdict, asked.seed, asked.on, asked.mpi))
    return 1 if wrong else 0


def conducted(site: Site, cases: Sequence[Case], at_once: int) -> list[Verdict]:
    began, done = time.monotonic(), []
    with ThreadPoolExecutor(at_once) as pool:
        for work in as_completed([pool.submit(conduct, site, one) for one in cases]):
            verdict = work.result()
            done.append(verdict)
            passed = f"{time.monotonic() - began:4.0f} s, {len(done)} of {len(cases)}"
            one = verdict.case
            said = "; ".join(verdict.wrong).replace("\n", " ")[-300:] if verdict.wrong else "as arranged"
            print(f"{passed}: {one.index} {one.kind} ({one.place}, {one.mpi}): {said}", flush=True)
    return sorted(done, key=lambda verdict: verdict.case.index)


def table(verdicts: Sequence[Verdict]) -> str:
    """How many of each kind, and of each place and MPI; how many are wrong."""
    rows = []
    for what in (_kind, _where):
        run = Counter(what(verdict) for verdict in verdicts)
        wrong = Counter(what(verdict) for verdict in verdicts if verdict.wrong)
        rows += [f"{name:24}{run[name]:5}{wrong[name]:7}" for name in sorted(run)]
        rows.append("")
    total = f"{'all':24}{len(verdicts):5}{sum(bool(verdict.wrong) for verdict in verdicts):7}"
    return "\n".join([f"\n{'':24} jobs  wrong", *rows, total])


def _kind(verdict: Verdict) -> str:
    return verdict.case.kind.removesuffix("-too")


def _where(verdict: Verdict) -> str:
    return f"{verdict.case.place} {verdict.case.mpi}"


def told(verdict: Verdict, seed: int, on: str, mpi: str) -> str:
    again = f"python -m tests.arranged --seed {seed} --on {on} --mpi {mpi} --only {verdict.case.index}"
    return "\n".join([f"\nwrong: {verdict.case}", *verdict.wrong, verdict.log, f"again: {again}"])


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.arranged")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--start", type=int, default=0, help="the number of the first one")
    parser.add_argument("--only", type=int, nargs="*", metavar="INDEX", help="these instead of all")
    parser.add_argument("--kind", default="", help="only those of these kinds")
    parser.add_argument("--on", default=",".join(EVERY_PLACE))
    parser.add_argument("--mpi", default=",".join(EVERY_MPI))
    parser.add_argument("--at-once", type=int, default=6)
    parser.add_argument("--show", action="store_true", help="print the cases and run none")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
