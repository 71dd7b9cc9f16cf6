"""What the form asks, step by step. One line per field; `say` is called where it is shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from oarsman.text.catalogue import N_

Kind = Literal["text", "long", "number", "amount", "choice", "words", "pairs", "volumes", "switch"]
KUBE, LOCAL, SSH, HOSTS = ("kube",), ("local",), ("ssh",), ("local", "ssh")
_UNSAID = ("", N_("not said"))
_VERSIONS = (("kubeflow.org/v2beta1", N_("v2beta1")), ("kubeflow.org/v1", N_("v1")))
_IMPLEMENTATIONS = (_UNSAID, ("OpenMPI", N_("Open MPI")), ("MPICH", N_("MPICH")), ("Intel", N_("Intel MPI")))
_NETWORKS = (_UNSAID, ("private", N_("private")), ("host", N_("of this machine")))


@dataclass(frozen=True, slots=True)
class Question:
    field: str
    label: str
    kind: Kind = "text"
    note: str = ""  # under the field, always there
    choices: tuple[tuple[str, str], ...] = ()  # value and what it is called; empty: as it is without being said
    only_on: tuple[str, ...] = ()  # the engines that know this; empty: all of them
    wide: bool = False
    least: int = 0


BASICS = (
    Question("name", N_("Name"), note=N_("lower-case letters, digits and '-'; starts with a letter"), wide=True),
    Question("description", N_("Description"), wide=True),
    Question("namespace", N_("Namespace")),
    Question("api_version", N_("Written as"), "choice", choices=_VERSIONS),
    Question("priority", N_("Priority"), "number", N_("a higher one is let in first"), least=-1_000_000_000),
    Question("queue", N_("Queue"), note=N_("of the cluster's scheduler"), only_on=KUBE),
)
RUN = (
    Question("image", N_("Image"), note=N_("used on Kubernetes; elsewhere the programs of the hosts run"), wide=True),
    Question("environment", N_("Environment"), "choice", N_("a named set of packages")),
    Question("mpi", N_("MPI"), "choice", choices=_IMPLEMENTATIONS),
    Question("command", N_("Launch command"), "words", N_("as in a shell; mpirun starts the ranks"), wide=True),
    Question("args", N_("Arguments"), "words", N_("added behind the command"), wide=True),
    Question("working_dir", N_("Working folder")),
    Question("install", N_("Install commands"), "long", N_("run on each host before the job starts"), wide=True),
)
WORKERS = (
    Question("workers", N_("Number of workers"), "number", least=1),
    Question("slots", N_("Slots per worker"), "number", N_("ranks that one worker takes"), least=1),
    Question("worker_cpu", N_("CPU of a worker"), "amount", N_("such as 2 or 500m")),
    Question("worker_memory", N_("Memory of a worker"), "amount", N_("such as 4Gi")),
    Question("worker_gpu", N_("GPU of a worker"), "amount"),
    Question("worker_vgpu", N_("vGPU of a worker"), "amount"),
    Question("worker_gpu_memory", N_("GPU memory of a worker"), "amount", N_("in MiB, for shared GPUs")),
)
LAUNCHER = (
    Question("launcher_cpu", N_("CPU of the launcher"), "amount"),
    Question("launcher_memory", N_("Memory of the launcher"), "amount"),
    Question("launcher_gpu", N_("GPU of the launcher"), "amount"),
)
ENDING = (
    Question(
        "clean_policy",
        N_("Workers after the end"),
        "choice",
        choices=(_UNSAID, ("None", N_("keep them")), ("Running", N_("end those that run")), ("All", N_("remove all"))),
    ),
    Question("retries", N_("Retries"), "number", N_("how often a failed job is started again")),
    Question("deadline", N_("Deadline in seconds"), "number", N_("a job that runs longer is ended"), least=1),
    Question("ttl", N_("Kept after the end, in seconds"), "number", N_("then it is deleted")),
    Question(
        "restart_policy",
        N_("Launcher that fails"),
        "choice",
        choices=(
            _UNSAID,
            ("Never", N_("is not started again")),
            ("OnFailure", N_("is started again")),
            ("ExitCode", N_("depends on its exit code")),
        ),
    ),
    Question("suspend", N_("Submit without starting"), "switch"),
)
SCHEDULING = (
    Question("elastic_min", N_("Elastic: fewest ranks"), "number", N_("for horovodrun with host discovery"), least=1),
    Question("elastic_max", N_("Elastic: most ranks"), "number", least=1),
    Question(
        "min_available", N_("Started together, at least"), "number", N_("pods, for gang scheduling"), only_on=KUBE
    ),
    Question("schedule_timeout", N_("Seconds to wait for all"), "number", N_("for gang scheduling"), only_on=KUBE),
    Question("priority_class", N_("Priority class"), only_on=KUBE),
    Question("oversubscribe", N_("More ranks than CPUs"), "switch", only_on=LOCAL),
    Question("oversubscribe", N_("More ranks than slots"), "switch", only_on=SSH),
    Question("network", N_("Network"), "choice", choices=_NETWORKS, only_on=LOCAL),
)
SURROUNDINGS = (
    Question("env", N_("Environment variables"), "pairs", N_("one NAME=value per line"), wide=True),
    Question(
        "volumes", N_("Volumes"), "volumes", N_("one /path=source per line; source: a folder or a claim"), wide=True
    ),
    Question("labels", N_("Labels"), "pairs", N_("one name=value per line")),
    Question("annotations", N_("Annotations"), "pairs", N_("one name=value per line")),
)
# Where a mistake in the manifest is shown in the form: the end of its path.
PLACES = {
    "metadata.name": "name",
    "metadata.namespace": "namespace",
    "slotsPerWorker": "slots",
    "Worker.replicas": "workers",
    "cleanPodPolicy": "clean_policy",
    "backoffLimit": "retries",
    "activeDeadlineSeconds": "deadline",
    "ttlSecondsAfterFinished": "ttl",
    "mpiImplementation": "mpi",
    "Launcher.restartPolicy": "restart_policy",
    "schedulingPolicy.minAvailable": "min_available",
    "suspend": "suspend",
}
