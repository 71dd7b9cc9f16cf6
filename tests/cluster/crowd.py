"""Many small jobs at once, and what has to be true of them whatever was killed while they ran."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cluster.client import Refused
from cluster.cluster import Cluster
from cluster.jobs import FINISHED, V2BETA1, Submitted
from cluster.kubectl import until
from cluster.ledger import Ledger

# What belongs to a job, as etcd's keys have the kinds; launchers' pods have names that nobody knows before.
ONE_PER_JOB = {"jobs": "{}-launcher", "configmaps": "{}-config", "secrets": "{}-ssh", "specs": "{}"}
OF_A_NAMESPACE = ("default-token-", "kube-root-ca.crt", "default")  # there in every namespace, with or without jobs


class Crowd:
    """Jobs that are submitted one by one, so that only so many are there at a time which have not ended."""

    def __init__(self, cluster: Cluster, namespace: str, manifests: Sequence[Mapping[str, Any]], at_once: int) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._waiting = deque(manifests)
        self.at_once = at_once
        self._names: list[str] = []
        self.phases: dict[str, str] = {}
        self.statuses: dict[str, dict[str, Any]] = {}

    @property
    def ended(self) -> int:
        return sum(phase in FINISHED for phase in self.phases.values())

    def step(self) -> None:
        """Look, and submit as many as there is room for. A server that does not answer is asked again next time."""
        try:
            found = self._cluster.client.get(f"/apis/kubeflow.org/v2beta1/namespaces/{self._namespace}/mpijobs")
        except (OSError, Refused):
            return
        self.statuses = {job["metadata"]["name"]: job.get("status", {}) for job in found["items"]}
        self.phases = {name: self.statuses.get(name, {}).get("phase", "") for name in self._names}
        room = self.at_once - (len(self._names) - self.ended)
        wanted = [self._waiting[index] for index in range(min(room, len(self._waiting)))]
        if wanted and self._submitted(wanted):
            for manifest in wanted:
                self._waiting.popleft()
                self._names.append(manifest["metadata"]["name"])

    def _submitted(self, manifests: Sequence[Mapping[str, Any]]) -> bool:
        """apply may be said again: what an answer that was lost has brought about is only found there."""
        try:
            self._cluster.apply(*manifests, namespace=self._namespace)
        except (OSError, RuntimeError):
            return False
        return True

    def until(self, holds: Callable[[], bool], patience: float) -> None:
        deadline = time.monotonic() + patience
        while True:
            self.step()
            if holds():
                return
            if time.monotonic() > deadline:
                raise AssertionError(f"waited {patience:.0f} s in vain; {self.story()}")
            time.sleep(0.3)

    def until_ended(self, patience: float) -> None:
        self.until(lambda: not self._waiting and self.ended == len(self._names), patience)

    def story(self, *names: str) -> str:
        """Of these, or of the first that has not ended."""
        late = list(names) or [name for name in self._names if self.phases.get(name) not in FINISHED][:1]
        manifests = [{"metadata": {"name": name}, "apiVersion": V2BETA1} for name in late]
        told = [Submitted(self._cluster, self._namespace, manifest).story() for manifest in manifests]
        return "\n".join([str(self.phases), *told])


def nothing_was_made_twice(
    ledger: Ledger, manifests: Sequence[Mapping[str, Any]], *, server_killed: bool = False
) -> None:
    """With `server_killed`, a launcher's one Job may have had one pod too many: if the API server dies before it has
    answered, Kubernetes' own controller of Jobs makes the pod again, and takes the surplus away unless it has ended."""
    made = {kind: ledger.made(kind) for kind in (*ONE_PER_JOB, "pods")}
    for manifest in manifests:
        name = manifest["metadata"]["name"]
        roles = manifest["spec"]["mpiReplicaSpecs"]
        for kind, pattern in ONE_PER_JOB.items():
            if kind == "specs" and "Worker" not in roles:
                continue
            assert made[kind][pattern.format(name)] == 1, (kind, name, made[kind])
        launchers = [pod for pod in made["pods"].elements() if pod.rpartition("-")[0] == f"{name}-launcher"]
        assert 1 <= len(launchers) <= 1 + server_killed, (name, launchers)
        for index in range(roles.get("Worker", {}).get("replicas", 0)):
            assert made["pods"][f"{name}-worker-{index}"] == 1, (name, made["pods"])


def nothing_is_left(cluster: Cluster, namespace: str) -> None:
    """Deletes every MPIJob; whatever was made for one has to follow it."""
    where = f"--namespace={namespace}"
    cluster.delete_all("mpijobs.v2beta1.kubeflow.org", namespace)
    kinds = "mpijobs,pods,jobs,services,configmaps,secrets,serviceaccounts,roles,rolebindings"

    def left() -> list[str]:
        found = cluster.kubectl(where, "get", kinds, "-o", "name", check=False).stdout.split()
        return [name for name in found if not name.partition("/")[2].startswith(OF_A_NAMESPACE)]

    until(lambda: not left(), lambda: f"these outlive their jobs: {left()}")
