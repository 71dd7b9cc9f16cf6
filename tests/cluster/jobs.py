"""MPIJobs for tests: how one is written, submitted and waited for, and its whole story when a wait was in vain."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cluster.kubectl import Kubectl
from cluster.operator import NAMESPACE as OPERATOR_NAMESPACE

Object = dict[str, Any]

V1, V2BETA1 = "kubeflow.org/v1", "kubeflow.org/v2beta1"
FINISHED = ("Succeeded", "Failed")
PATIENCE = 240.0  # seconds; a pod needs five to eight of them until it runs, and many more on a busy machine

# What a rank does in most tests: it says where it is, and that it can talk to all others.
WHERE = """
from mpi4py import MPI
world = MPI.COMM_WORLD
total = world.allreduce(1)
print("rank", world.rank, "of", total, "on", MPI.Get_processor_name(), flush=True)
"""
HELLO = ("python3", "-c", WHERE)
AS_ROOT = [{"name": name, "value": "1"} for name in ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM")]
# What the restricted profile of the pod security standards asks for, with a user no image knows.
RESTRICTED_POD = {"runAsNonRoot": True, "runAsUser": 12345, "seccompProfile": {"type": "RuntimeDefault"}}
RESTRICTED_CONTAINER = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


class InVain(AssertionError):
    """Waited in vain. The message has the job's whole story."""

    tells_all = True


def mpijob(
    name: str,
    image: str,
    command: Sequence[str] = (),
    *,
    version: str = V2BETA1,
    program: Sequence[str] = HELLO,
    workers: int = 2,
    slots: int = 1,
    ranks: int | None = None,
    worker_command: Sequence[str] = (),
    annotations: Mapping[str, str] | None = None,
    policy: Mapping[str, Any] | None = None,
    pod: Mapping[str, Any] | None = None,
    container: Mapping[str, Any] | None = None,
    launcher_pod: Mapping[str, Any] | None = None,
    launcher: Mapping[str, Any] | None = None,
    worker_pod: Mapping[str, Any] | None = None,
    worker: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Object:
    """A job that runs the command in the launcher; without one, `mpirun -n RANKS PROGRAM`, one rank per slot.

    policy: the run policy. pod, container: added to the pods' spec and their container, of both roles;
    launcher_pod, launcher, worker_pod and worker to those of one role. spec: the rest of the MPIJob's spec.
    """
    every = ranks if ranks is not None else slots * max(workers + bool(spec.get("runLauncherAsWorker")), 1)
    argv = list(command) or ["mpirun", "-n", str(every), *program]
    launching = {
        "name": "mpi",
        "image": image,
        "command": argv,
        "env": AS_ROOT,
        **(container or {}),
        **(launcher or {}),
    }
    working = {"name": "mpi", "image": image, **(container or {}), **(worker or {})}
    if worker_command:
        working["command"] = list(worker_command)

    def role(replicas: int, main: Object, more: Mapping[str, Any] | None) -> Object:
        # Grace periods end early in tests: nothing here has anything to put in order when it is ended.
        inside = {"terminationGracePeriodSeconds": 1, **(pod or {}), **(more or {})}
        return {"replicas": replicas, "template": {"spec": {**inside, "containers": [main]}}}

    roles = {"Launcher": role(1, launching, launcher_pod)}
    if workers:
        roles["Worker"] = role(workers, working, worker_pod)
    return {
        "apiVersion": version,
        "kind": "MPIJob",
        "metadata": {"name": name, "annotations": dict(annotations or {})},
        "spec": {"slotsPerWorker": slots, "runPolicy": dict(policy or {}), "mpiReplicaSpecs": roles, **spec},
    }


class Submitted:
    """A job in the cluster."""

    def __init__(self, cluster: Kubectl, namespace: str, manifest: Mapping[str, Any]) -> None:
        self.cluster = cluster
        self.namespace = namespace
        self.name: str = manifest["metadata"]["name"]
        self.resource = "mpijobs.v1.kubeflow.org" if manifest["apiVersion"] == V1 else "mpijobs.v2beta1.kubeflow.org"

    def kubectl(self, *words: str, check: bool = True, stdin: str | None = None) -> str:
        return self.cluster.kubectl(f"--namespace={self.namespace}", *words, check=check, stdin=stdin).stdout

    # -- what is there -------------------------------------------------------------------------------------
    def get(self) -> Object:
        return self.cluster.get(self.resource, self.name, self.namespace)

    @property
    def status(self) -> Object:
        found: Object = self.get().get("status", {})
        return found

    def condition(self, type_: str) -> Object:
        """Empty if the job does not have it."""
        return condition(self.status, type_)

    def pods(self, role: str = "") -> list[Object]:
        """Those there are, of launcher, worker or both; a launcher that was retried has had several."""
        found = self.cluster.get("pods", namespace=self.namespace, labels=self.selector(role))["items"]
        return sorted(found, key=lambda pod: str(pod["metadata"]["creationTimestamp"]))

    def pod_names(self, role: str = "") -> list[str]:
        return sorted(pod["metadata"]["name"] for pod in self.pods(role))

    def selector(self, role: str = "") -> str:
        of_job = f"training.kubeflow.org/job-name={self.name}"
        called = " in (launcher,master)" if role == "launcher" else f"={role}"
        return f"{of_job},training.kubeflow.org/job-role{called}" if role else of_job

    def worker(self, index: int) -> str:
        return f"{self.name}-worker-{index}"

    def log(self, container: str = "", check: bool = True) -> str:
        """What the launcher wrote; of several attempts, the newest that is still there."""
        newest = self.pods("launcher")[-1]
        chosen = container or newest["spec"]["containers"][0]["name"]
        return self.kubectl("logs", newest["metadata"]["name"], f"--container={chosen}", check=check)

    def run_in(self, pod: str, *command: str) -> str:
        return self.cluster.run_in(self.namespace, pod, *command)

    def tell(self, pod: str, file: str) -> None:
        """Makes the file that the pod's command waits for. What ends with that may take `touch` with it."""
        self.cluster.run_in(self.namespace, pod, "touch", file, check=False)

    # -- what is done to it --------------------------------------------------------------------------------
    def patch(self, patch: str) -> None:
        self.kubectl("patch", self.resource, self.name, "--type=merge", f"--patch={patch}")

    # -- waiting -------------------------------------------------------------------------------------------
    def wait_for(self, phase: str, timeout: float = PATIENCE) -> Object:
        """Until its phase is this one; the status then. A job that ended otherwise is not waited for any longer."""

        def arrived(job: Object) -> bool:
            now = job.get("status", {}).get("phase")
            if now in FINISHED and now != phase:
                raise InVain(f"{self.name} is {now}, not {phase}\n{self.story()}")
            return bool(now == phase)

        found: Object = self.until(arrived, f"to be {phase}", timeout).get("status", {})
        return found

    def wait_for_condition(self, type_: str, status: str = "True", timeout: float = PATIENCE) -> Object:
        def has(job: Object) -> bool:
            return condition(job.get("status", {}), type_).get("status") == status

        return condition(self.until(has, f"for {type_}={status}", timeout)["status"], type_)

    def wait_for_end(self, timeout: float = PATIENCE) -> Object:
        """Until it has succeeded or failed; the status then."""
        found: Object = self.until(lambda job: job.get("status", {}).get("phase") in FINISHED, "to end", timeout)[
            "status"
        ]
        return found

    def until(self, holds: Callable[[Object], bool], what: str, timeout: float = PATIENCE) -> Object:
        """Until that holds of the job; the job then."""
        found: list[Object] = []

        def look() -> bool:
            found[:] = [self.get()]
            return holds(found[0])

        self.poll(look, what, timeout)
        return found[0]

    def until_gone(self, timeout: float = PATIENCE) -> None:
        self.poll(lambda: not self.cluster.has(self.resource, self.name, self.namespace), "to go", timeout)

    def until_pods(
        self, holds: Callable[[list[Object]], bool], what: str, role: str = "", timeout: float = PATIENCE
    ) -> None:
        self.poll(lambda: holds(self.pods(role)), f"for {what}", timeout)

    def poll(self, holds: Callable[[], bool], what: str, timeout: float = PATIENCE) -> None:
        deadline = time.monotonic() + timeout
        while not holds():
            if time.monotonic() > deadline:
                raise InVain(f"waited {timeout:.0f} s in vain for {self.name} {what}\n{self.story()}")
            time.sleep(0.5)

    # -- when something went wrong -------------------------------------------------------------------------
    def story(self) -> str:
        """All that can be known of it, for whoever reads the failed test."""
        chapters = [
            ("job", ("get", self.resource, self.name, "-o", "yaml")),
            ("objects", ("get", "pods,jobs,configmaps,secrets,services", "-o", "wide")),
            ("pods", ("describe", "pods", f"--selector={self.selector()}")),
            ("events", ("get", "events", "--sort-by=.lastTimestamp")),
        ]
        told = [f"--- {title}\n{self._asked(*words)}" for title, words in chapters]
        told += [
            f"--- log of {name}\n{self._asked('logs', name, '--all-containers', '--prefix', '--tail=60')}"
            for name in self._asked("get", "pods", f"--selector={self.selector()}", "-o", "name").split()
        ]
        operator = self.cluster.kubectl(
            f"--namespace={OPERATOR_NAMESPACE}",
            "logs",
            "--selector=app.kubernetes.io/name=oarsman",
            "--tail=-1",
            check=False,
        ).stdout
        lines = [line for line in operator.splitlines() if self.name in line] or operator.splitlines()
        return "\n".join([*told, "--- log of the operator", *lines[-60:]])

    def _asked(self, *words: str) -> str:
        done = self.cluster.kubectl(f"--namespace={self.namespace}", *words, check=False)
        return done.stdout + done.stderr


def submit(cluster: Kubectl, namespace: str, *manifests: Mapping[str, Any]) -> list[Submitted]:
    """All at once."""
    cluster.apply(*manifests, namespace=namespace)
    return [Submitted(cluster, namespace, manifest) for manifest in manifests]


def submit_one(cluster: Kubectl, namespace: str, manifest: Mapping[str, Any]) -> Submitted:
    (submitted,) = submit(cluster, namespace, manifest)
    return submitted


def condition(status: Mapping[str, Any], type_: str) -> Object:
    return next((each for each in status.get("conditions", ()) if each["type"] == type_), {})


def hosts_in(log: str) -> list[str]:
    """Where the ranks of WHERE were, by rank."""
    ranks = sorted(
        (int(words[1]), words[5].split(".")[0])
        for words in (line.split() for line in log.splitlines() if line.startswith("rank "))
    )
    return [host for _, host in ranks]
