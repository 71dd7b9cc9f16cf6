"""Claim: on Kubernetes, many jobs and large ones start as fast as the API server takes their objects.

Rival: a program of the MPI Operator that `--rival` names, on the same API server, in turns with ours, each with its own
CRD and, unless `--rival-defaults` is said, with its limits wide open. Without it, ours is measured alone.

The API server, etcd and the controllers are real; kwok says of pods that they run. Requests are those that the API
server's audit log has of an operator's user, without its Lease's. `--quick` is for seeing that it works.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import statistics
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import growth
import operators
from cluster.client import Refused
from cluster.cluster import Cluster, start
from cluster.kubectl import until
from cluster.kwok import playing
from judge import Judge, Stuck
from operators import Operator

from oarsman.engines.kube.client import Kube, load_access

Figures = dict[str, float]
Story = Callable[[Judge, int, int], Awaitable[Figures]]


# -- what happens -------------------------------------------------------------------------------------
async def life(judge: Judge, jobs: int, workers: int) -> Figures:
    """From the jobs' creation to the status that says that they succeeded."""
    began = time.monotonic()
    created = await objects(judge, jobs, workers)
    await judge.until_running(_names(jobs))
    running = max(judge.running.values()) - began
    ending = time.monotonic()
    await judge.end()
    return {
        **created,
        "all statuses say Running, s": running,
        "all say Succeeded, after the launchers ended, s": max(judge.ended.values()) - ending,
        "status lag, median, s": statistics.median(judge.lags),
        "status lag, max, s": max(judge.lags),
    }


async def objects(judge: Judge, jobs: int, workers: int) -> Figures:
    """Until the operator has made everything; alone, nobody plays kubelets."""
    began = time.monotonic()
    wanted = dict.fromkeys(_names(jobs), workers)
    await asyncio.gather(judge.create(wanted), judge.until_pods(jobs * (workers + 1)))
    return {"all pods exist, s": time.monotonic() - began}


async def beside(judge: Judge, _: int, workers: int) -> Figures:
    """A job of one worker, alone and while the pods of a large one are being created."""
    alone = await _until_it_runs(judge, "job-alone")
    before = judge.pods
    await judge.create({"job-large": workers})
    await judge.until_pods(before + 1)
    small = await _until_it_runs(judge, "job-small")
    was_created = judge.pods - before
    await judge.until_running(["job-large"])
    return {
        "Running when alone, s": alone,
        "Running when beside, s": small,
        "difference, s": small - alone,
        "pods that existed by then": was_created,
    }


async def _until_it_runs(judge: Judge, name: str) -> float:
    began = time.monotonic()
    await judge.create({name: 1})
    await judge.until_running([name])
    return judge.running[name] - began


def _names(jobs: int) -> list[str]:
    return [f"job-{number}" for number in range(jobs)]


@dataclass(frozen=True)
class Scenario:
    story: Story
    sizes: Sequence[tuple[int, int]]  # jobs, and workers of each
    quick: Sequence[tuple[int, int]]
    rounds: int = 1
    title: str = "{jobs:,} jobs of {workers:,} workers"


ONE = "one job of {workers:,} workers"
SCENARIOS = {
    "jobs": Scenario(life, [(200, 4)], [(3, 2)], rounds=3),
    "large": Scenario(life, [(1, 1000)], [(1, 5)], rounds=3, title=ONE),
    "objects": Scenario(
        objects, [(200, 4), (1, 1000)], [(3, 2)], rounds=3, title="{jobs:,} x {workers:,}, objects only"
    ),
    "many": Scenario(life, [(jobs, 10) for jobs in (100, 300, 1000, 3000, 10_000)], [(1, 2), (3, 2)]),
    "huge": Scenario(life, [(1, 20_000)], [(1, 10)], title=ONE),
    "beside": Scenario(beside, [(1, 5000)], [(1, 20)], title="a job of one worker beside one of {workers:,}"),
}
USUAL = ("jobs", "large")


# -- measuring ----------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Round:
    figures: Figures
    requests: Counter[str]


def measure(cluster: Cluster, operator: Operator, scenario: Scenario, jobs: int, workers: int) -> Round:
    audit = cluster.control_plane.audit
    with cluster.fresh_namespace() as namespace:
        try:
            with operators.running(operator, cluster, namespace) as process:
                since = audit.now()
                figures = asyncio.run(_judged(cluster, namespace, scenario.story, jobs, workers))
                cpu, memory = process.cpu, process.memory
                asked = audit.asked(operator.user, since)
        finally:
            _clear(cluster, namespace)
    requests = Counter({what: count for what, count in asked.items() if not what.endswith(" leases")})
    figures |= {"CPU time, s": cpu, "memory, max, MiB": memory / 2**20}
    if scenario.story is not beside:
        figures |= {"CPU time per job, ms": cpu / jobs * 1e3, "requests per job": requests.total() / jobs}
    return Round(figures, requests)


async def _judged(cluster: Cluster, namespace: str, story: Story, jobs: int, workers: int) -> Figures:
    access = load_access(kubeconfig=cluster.kubeconfig)
    async with Kube(access) as kube, Judge(kube, namespace, kubelets=story is not objects) as judge:
        return await story(judge, jobs, workers)


def _clear(cluster: Cluster, namespace: str) -> None:
    """What is left would take the processors from who comes next. One request is too short for 100,000 pods."""
    kinds = ("/apis/kubeflow.org/v2beta1/{}/mpijobs", "/apis/batch/v1/{}/jobs", "/api/v1/{}/pods")
    paths = [path.format(f"namespaces/{namespace}") for path in kinds]

    def gone() -> bool:
        with contextlib.suppress(OSError, Refused):
            for path in paths:
                cluster.client.ask("DELETE", f"{path}?gracePeriodSeconds=0&propagationPolicy=Background")
            return not cluster.client.get(f"{paths[-1]}?limit=1")["items"]
        return False

    until(gone, "the pods are gone", patience=3600)


# -- telling ------------------------------------------------------------------------------------------
def show(title: str, rounds: Mapping[str, Sequence[Round]], medians: Mapping[str, Figures]) -> None:
    """A table: of each figure the median, and in brackets every round's."""
    print(f"| {title} | {' | '.join(rounds)} | ratio |\n|---|{'---|' * (len(rounds) + 1)}")
    for label in next(iter(medians.values())):
        middle = [found[label] for found in medians.values()]
        cells = [_shown(value) + _each(label, those) for value, those in zip(middle, rounds.values(), strict=True)]
        ratio = f"{middle[0] / middle[1]:.2f}" if middle[1:] and middle[1] > 0 else ""
        print(f"| {label} | {' | '.join(cells)} | {ratio} |")
    for name, those in rounds.items():
        asked = ", ".join(f"{count} {what}" for what, count in those[-1].requests.most_common())
        print(f"  note   {name} asked for: {asked}")
    sys.stdout.flush()


def _medians(rounds: Sequence[Round]) -> Figures:
    return {label: statistics.median(each.figures[label] for each in rounds) for label in rounds[0].figures}


def _each(label: str, rounds: Sequence[Round]) -> str:
    return f" ({', '.join(_shown(each.figures[label]) for each in rounds)})" if rounds[1:] else ""


def _shown(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def run(
    cluster: Cluster, compared: Sequence[Operator], scenario: Scenario, times: int, *, quick: bool
) -> growth.Growth:
    """Prints it size by size; the medians of each."""
    grown: growth.Growth = {}
    for jobs, workers in scenario.quick if quick else scenario.sizes:
        title = scenario.title.format(jobs=jobs, workers=workers)
        rounds: dict[str, list[Round]] = {}
        for operator in [*compared] * times:
            operators.exchange_crd(cluster, operator)
            try:
                measured = measure(cluster, operator, scenario, jobs, workers)
            except Stuck as why:
                print(f"  note   {title}: {operator.name} does not get there: {why}", flush=True)
            else:
                rounds.setdefault(operator.name, []).append(measured)
        medians = {name: _medians(those) for name, those in rounds.items()}
        if medians:
            show(title, rounds, medians)
        for name, found in medians.items():
            grown.setdefault(name, []).append((jobs, found))
    return grown


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "scenarios", nargs="*", metavar="SCENARIO", help=f"of {', '.join(SCENARIOS)}; {', '.join(USUAL)}"
    )
    parser.add_argument("--rival", metavar="PROGRAM", help="an mpi-operator of the MPI Operator; it takes port 8080")
    parser.add_argument("--rival-crd", metavar="FILE", type=Path, help="the definition of MPIJobs that goes with it")
    parser.add_argument("--rival-defaults", action="store_true", help="with its own limits of requests")
    parser.add_argument("--rounds", type=int, help="how often each is measured")
    parser.add_argument("--plot", metavar="FILE", type=Path, help="an SVG of the growth that `many` shows")
    parser.add_argument("--quick", action="store_true", help="the smallest sizes, once")
    asked = parser.parse_args()
    if unknown := set(asked.scenarios) - SCENARIOS.keys():
        parser.error(f"no such scenario: {', '.join(unknown)}")
    if bool(asked.rival) != bool(asked.rival_crd):
        parser.error("--rival and --rival-crd go together")
    return asked


def main() -> None:
    asked = _asked()
    compared = [operators.ours()]
    if asked.rival:
        compared.append(
            operators.rival(asked.rival, asked.rival_crd, *([] if asked.rival_defaults else operators.WIDE_OPEN))
        )
    os.environ.setdefault("GOGC", "100")  # the API server of 100,000 pods would not fit with what tests use
    try:
        cluster = start("bench", pods=False, audited=True)
    except RuntimeError as error:
        sys.exit(f"kube_operator: {error}")
    try:
        with playing(cluster):
            for name in asked.scenarios or USUAL:
                scenario = SCENARIOS[name]
                rounds = 1 if asked.quick else asked.rounds or scenario.rounds
                grown = run(cluster, compared, scenario, rounds, quick=asked.quick)
                if name == "many" and asked.plot and grown:
                    asked.plot.write_text(growth.svg(grown))
    finally:
        cluster.stop()
    if not asked.rival:
        print("no rival was measured: name a program of the MPI Operator with --rival and its CRD with --rival-crd")


if __name__ == "__main__":
    main()
