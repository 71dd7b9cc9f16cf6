"""Claim: on Kubernetes, many jobs and large ones start as fast as the API server takes their objects.

Rival: the arithmetic floor of the MPI Operator's defaults, 5 requests a second with a burst of 10 and one creation per
request: the time its objects alone must take, without a single status, event or retry.

The API server and etcd are real. Pods only seem to run: this process says of them what kubelets would say. The operator
is a process of its own, so the processor time and the memory are its own; requests are read from its metrics.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import psutil
import yaml
from measure import MANIFEST, ROOT, environment, most_memory, report

sys.path.insert(0, str(ROOT / "tests"))

from cluster.cluster import Cluster, start
from cluster.pretend import SCHEDULER, Pretended, has_job_controller

from oarsman import names
from oarsman.engines.kube import views
from oarsman.engines.kube.client import Informer, Kube, load_access
from oarsman.engines.kube.client.resources import MPIJOBS

RATE, BURST = 5, 10  # of the MPI Operator
OTHER_OBJECTS = 4  # Service, ConfigMap, Secret and the launcher
PATIENCE = 600.0


# -- the operator -----------------------------------------------------------------------------------
class Operator:
    def __init__(self, process: subprocess.Popen[bytes], port: int) -> None:
        self._process = psutil.Process(process.pid)
        self._port = port
        self._before = self._numbers()

    def _numbers(self) -> tuple[float, dict[str, float]]:
        times = self._process.cpu_times()
        return times.user + times.system, _metrics(f"http://127.0.0.1:{self._port}/metrics")

    def spent(self) -> tuple[float, dict[str, float]]:
        """Processor seconds and counts since it was ready."""
        (cpu_before, before), (cpu, now) = self._before, self._numbers()
        return cpu - cpu_before, {name: count - before.get(name, 0) for name, count in now.items()}

    @property
    def memory(self) -> int:
        return most_memory(self._process)


def _metrics(address: str) -> dict[str, float]:
    """Requests by verb and resource, turns, status writes."""
    with urllib.request.urlopen(address) as answer:
        text = answer.read().decode()
    found: dict[str, float] = {}
    for name, labels, value in re.findall(r"^(\w+)(?:\{(.*)\})? ([\d.e+]+)$", text, re.MULTILINE):
        label = dict(re.findall(r'(\w+)="(.*?)"', labels))
        if name == "oarsman_api_requests_total":
            name = f"{label['verb']} {label['resource']}"
        elif name not in ("oarsman_reconcile_seconds_count", "oarsman_status_writes_total"):
            continue
        found[name] = found.get(name, 0) + float(value)
    return found


@contextlib.contextmanager
def operator(cluster: Cluster, namespace: str, *command: str) -> Iterator[Operator]:
    health, monitoring = _free_ports(2)
    words = [
        *(command or ("oarsman",)),
        "operator",
        f"--kubeconfig={cluster.kubeconfig}",
        f"--namespace={namespace}",
        "--no-leader-elect",
        "--bind-address=127.0.0.1",
        f"--health-port={health}",
        f"--monitoring-port={monitoring}",
        "--no-monitoring-auth",
        "--log-level=warning",
    ]
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(words, env=environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            _until_ready(process, f"http://127.0.0.1:{health}/readyz")
            yield Operator(process, monitoring)
        finally:
            process.terminate()
            process.wait()
            log.seek(0)
            sys.stderr.write(log.read().decode())


def _until_ready(process: subprocess.Popen[bytes], address: str) -> None:
    deadline = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(OSError), urllib.request.urlopen(address):
            return
        time.sleep(0.05)
    raise SystemExit("the operator did not become ready")


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [found.getsockname()[1] for found in sockets]
    for found in sockets:
        found.close()
    return ports


# -- the jobs -----------------------------------------------------------------------------------------
def manifest(name: str, workers: int) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load(
        MANIFEST.format(name=name, command='["mpirun", "true"]', workers=workers, slots=1)
    )
    for role in document["spec"]["mpiReplicaSpecs"].values():
        role["template"]["spec"]["schedulerName"] = SCHEDULER
    return document


@dataclass
class Watched:
    """When the status of each job said so for the first time."""

    workers: int
    running: dict[str, float] = field(default_factory=dict)
    succeeded: dict[str, float] = field(default_factory=dict)

    def changed(self, _: views.MPIJobView | None, new: views.MPIJobView | None) -> None:
        status = (new.status or {}) if new is not None else {}
        for said in status.get("conditions", ()):
            if said["status"] == "True" and new is not None:
                if said["type"] == names.RUNNING and self._all_ready(status):
                    self.running.setdefault(new.metadata.name, time.monotonic())
                if said["type"] == names.SUCCEEDED:
                    self.succeeded.setdefault(new.metadata.name, time.monotonic())

    def _all_ready(self, status: dict[str, Any]) -> bool:
        return bool(status["replicaStatuses"]["Worker"].get("ready", 0) == self.workers)


@dataclass(frozen=True)
class Result:
    jobs: int
    workers: int
    objects: float  # seconds until the last one was there
    running: float  # seconds until every status was right
    lags: list[float]  # of each job, from the watch telling of the last change of a pod to a status that says so
    cpu: float
    memory: int
    counts: dict[str, float]

    @property
    def floor(self) -> float:
        return (self.jobs * (self.workers + OTHER_OBJECTS) - BURST) / RATE


async def measure(cluster: Cluster, jobs: int, workers: int, *command: str) -> Result:
    with cluster.fresh_namespace() as namespace, operator(cluster, namespace, *command) as ours:
        access = load_access(kubeconfig=cluster.kubeconfig)
        real = has_job_controller(cluster)
        async with Kube(access) as kube, Pretended(kube, namespace, workers=workers, job_controller=real) as pods:
            watched = Watched(workers)
            statuses = Informer(kube, MPIJOBS, views.MPIJobView, namespaces=[namespace], changed=watched.changed)
            following = asyncio.create_task(statuses.run())
            await statuses.synced.wait()
            all_names = [f"job-{number}" for number in range(jobs)]
            began = time.monotonic()
            creating = [asyncio.create_task(kube.create(MPIJOBS, manifest(n, workers), namespace)) for n in all_names]
            await _until(lambda: len(pods.jobs.all()) >= jobs and len(pods.pods.all()) >= jobs * (workers + 1))
            objects = time.monotonic() - began
            await asyncio.gather(*creating)
            await _until(lambda: len(watched.running) >= jobs)
            lags = [max(watched.running[name] - pods.seen[name], 0) for name in all_names]
            await asyncio.gather(*(pods.end(name) for name in all_names))
            await _until(lambda: len(watched.succeeded) >= jobs)
            lags += [max(watched.succeeded[name] - pods.seen[name], 0) for name in all_names]
            cpu, counts = ours.spent()
            memory = ours.memory
            following.cancel()
    running = max(watched.running.values()) - began
    return Result(jobs, workers, objects, running, lags, cpu, memory, counts)


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110  # what is waited for happens in other processes
            await asyncio.sleep(0.02)


def show(result: Result) -> None:
    requests = {name: count for name, count in result.counts.items() if " " in name and count}
    most = sorted(requests.items(), key=lambda pair: -pair[1])
    per_job = ", ".join(f"{name} {count / result.jobs:.4g}" for name, count in most)
    plural = "s" if result.jobs > 1 else ""
    report(
        f"{result.jobs} job{plural} with {result.workers} workers, from creation to the status that says they run",
        f"all objects after {result.objects:.2f} s, all statuses right after {result.running:.2f} s",
        f"the MPI Operator's {RATE} requests per second, objects alone: {result.floor:.0f} s",
        result.running / result.floor,
        f"requests per job, to its end: {sum(requests.values()) / result.jobs:.1f} ({per_job})",
        f"turns per job: {result.counts['oarsman_reconcile_seconds_count'] / result.jobs:.1f}, "
        f"status writes per job: {result.counts['oarsman_status_writes_total'] / result.jobs:.1f}",
        f"status lag: {statistics.median(result.lags) * 1e3:.0f} ms median, {max(result.lags) * 1e3:.0f} ms at most",
        f"operator: {result.cpu:.2f} s of processor time, {result.memory / 2**20:.0f} MiB at most",
    )


def main() -> None:
    try:
        cluster = start("bench", pods=False)
    except RuntimeError as error:
        sys.exit(f"kube_operator: {error}")
    try:
        cluster.kubectl("apply", "-f", str(ROOT / "deploy" / "crd" / "mpijobs.kubeflow.org.yaml"))
        cluster.kubectl("wait", "--for=condition=established", "crd/mpijobs.kubeflow.org")
        for jobs, workers in ((200, 4), (1, 1000)):
            show(asyncio.run(measure(cluster, jobs, workers)))
    finally:
        cluster.stop()


if __name__ == "__main__":
    main()
