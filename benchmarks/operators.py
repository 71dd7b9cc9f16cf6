"""The operators that are compared: ours and a program of the MPI Operator, each with its own CRD, user and flags."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import yaml
from measure import ROOT, environment, most_memory

sys.path.insert(0, str(ROOT / "tests"))

from cluster.audit import OPERATORS
from cluster.cluster import Cluster
from judge import manifest

OUR_USER, ITS_USER = OPERATORS
CRD = "mpijobs.kubeflow.org"
# Of the MPI Operator, so that nothing but the API server holds it up, and as many jobs at a time as ours.
WIDE_OPEN = (
    "--kube-api-qps=10000",
    "--kube-api-burst=10000",
    "--controller-queue-rate-limit=10000",
    "--controller-queue-burst=10000",
    "--threadiness=16",
)


@dataclass(frozen=True)
class Operator:
    name: str
    user: str
    crd: Path
    program: str
    flags: tuple[str, ...]  # with the places {kubeconfig}, {namespace} and {port}
    ready: str  # the path at the port
    says: str = ""  # in the answer, once it works


def ours() -> Operator:
    flags = (
        "operator",
        "--kubeconfig={kubeconfig}",
        "--namespace={namespace}",
        "--no-leader-elect",
        "--bind-address=127.0.0.1",
        "--health-port={port}",
        "--monitoring-port=0",
        "--log-level=warning",
    )
    return Operator("ours", OUR_USER, ROOT / "deploy" / "crd" / f"{CRD}.yaml", "oarsman", flags, "/readyz")


def rival(program: str, crd: Path, *limits: str) -> Operator:
    """It leads by a Lease whether asked to or not; in a namespace of its own nobody else has it."""
    flags = (
        "--kubeConfig={kubeconfig}",
        "--namespace={namespace}",
        "--lock-namespace={namespace}",
        "--monitoring-port={port}",
        *limits,
    )
    return Operator("rival", ITS_USER, crd, program, flags, "/metrics", "mpi_operator_is_leader 1")


class Running:
    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = psutil.Process(process.pid)
        self._before = self._cpu()

    def _cpu(self) -> float:
        times = self._process.cpu_times()
        return times.user + times.system

    @property
    def cpu(self) -> float:
        """Processor seconds since it was ready."""
        return self._cpu() - self._before

    @property
    def memory(self) -> int:
        return most_memory(self._process)


@contextlib.contextmanager
def running(operator: Operator, cluster: Cluster, namespace: str) -> Iterator[Running]:
    port = _free_port()
    places = {"kubeconfig": cluster.control_plane.user(operator.user), "namespace": namespace, "port": port}
    words = [operator.program, *(flag.format(**places) for flag in operator.flags)]
    surroundings = environment(NO_PROXY="*", no_proxy="*")
    surroundings.pop("KUBECONFIG", None)  # the MPI Operator would take it before its flag
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(words, env=surroundings, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            _until_ready(process, f"http://127.0.0.1:{port}{operator.ready}", operator.says)
            yield Running(process)
        finally:
            process.terminate()
            process.wait()
            if operator.user == OUR_USER or sys.exc_info()[0]:  # the other one talks of everything
                log.seek(0)
                sys.stderr.write(log.read().decode(errors="replace")[-4000:])


def _until_ready(process: subprocess.Popen[bytes], address: str, says: str) -> None:
    deadline = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(OSError), urllib.request.urlopen(address) as answer:
            if says in answer.read().decode():
                return
        time.sleep(0.05)
    raise SystemExit(f"{process.args!r} did not become ready")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        port: int = found.getsockname()[1]
    return port


def exchange_crd(cluster: Cluster, operator: Operator) -> None:
    """The one that is there goes, with all MPIJobs; the operator's comes."""
    cluster.kubectl("delete", "crd", CRD, "--ignore-not-found", "--wait=true")
    definition = yaml.load(operator.crd.read_text(), yaml.CSafeLoader)
    cluster.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
    cluster.kubectl("wait", "--for=condition=established", f"crd/{CRD}")
    # The API server keeps whoever creates the first ones waiting for two seconds.
    path = "/apis/kubeflow.org/v2beta1/namespaces/default/mpijobs?dryRun=All"
    cluster.post(path, manifest("probe", 1, kubelets=False))
