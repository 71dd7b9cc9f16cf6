"""The command itself on a real API server: two of them, one leads, the other takes over."""

from __future__ import annotations

import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cluster.cluster import Cluster


class Process:
    def __init__(self, api: Cluster, namespace: str, log: Path, *options: str) -> None:
        with socket.create_server(("127.0.0.1", 0)) as found:
            self.port = found.getsockname()[1]
        self.log = log
        with log.open("w") as file:
            self.process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "oarsman.cli",
                    "operator",
                    "-alsologtostderr",
                    f"--lock-namespace={namespace}",
                    "--kubeConfig",
                    str(api.kubeconfig),
                    f"--namespace={namespace}",
                    f"--health-port={self.port}",
                    "--bind-address=127.0.0.1",
                    "--log-format=json",
                    *(options or (f"--monitoring-port={self.port}", "--no-monitoring-auth")),
                ],
                stderr=file,
            )

    def ask(self, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()
        except OSError as error:
            assert self.process.poll() is None, self.log.read_text()
            return 0, str(error)

    @property
    def leads(self) -> bool:
        return "mpi_operator_is_leader 1.0\n" in self.ask("/metrics")[1]


@pytest.fixture
def start(served: Cluster, api_namespace: str, tmp_path: Path) -> Iterator[Callable[..., Process]]:
    started: list[Process] = []

    def start(*options: str) -> Process:
        started.append(Process(served, api_namespace, tmp_path / f"{len(started)}.log", *options))
        return started[-1]

    yield start
    for each in started:
        each.process.kill()
        each.process.wait()


def until(condition: Callable[[], bool], patience: float = 120.0) -> None:
    deadline = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)


def test_one_leads_the_other_is_ready_and_takes_over_as_soon_as_the_first_is_told_to_stop(
    api: Cluster, api_namespace: str, start: Callable[..., Process]
) -> None:
    one = start()
    until(lambda: one.leads)
    two = start()
    until(lambda: two.ask("/readyz")[0] == 200)
    until(lambda: one.ask("/readyz")[0] == 200)
    assert [each.ask("/healthz") for each in (one, two)] == [(200, "ok\n")] * 2
    assert [each.leads for each in (one, two)] == [True, False]
    one.process.terminate()
    assert one.process.wait(120) == 0, one.log.read_text()
    until(lambda: two.leads)
    found = api.get("lease", "mpi-operator", api_namespace)["spec"]
    assert found["leaseTransitions"] == 1
    two.process.terminate()
    assert two.process.wait(120) == 0
    assert api.get("lease", "mpi-operator", api_namespace)["spec"]["holderIdentity"] == ""
    assert all(line.startswith("{") for line in one.log.read_text().splitlines())


def test_unless_it_is_told_otherwise_metrics_are_for_nobody_without_a_token(start: Callable[..., Process]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as found:
        port = found.getsockname()[1]
    operator = start(f"--monitoring-port={port}")
    until(lambda: operator.ask("/healthz")[0] == 200)
    anybodys = ssl.create_default_context()
    anybodys.check_hostname, anybodys.verify_mode = False, ssl.CERT_NONE
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"https://127.0.0.1:{port}/metrics", timeout=60, context=anybodys)
    assert refused.value.code == 401
    refused.value.close()
