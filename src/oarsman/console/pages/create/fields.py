"""What the form asks, step by step. One line per field; `say` is called where it is shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["text", "long", "number", "amount", "choice", "words", "pairs", "volumes", "switch"]
CLUSTER, MACHINE, RACK, BARE = ("kube",), ("local",), ("ssh",), ("local", "ssh")
_UNSAID = ("", "not said")
_VERSIONS = (("kubeflow.org/v2beta1", "v2beta1"), ("kubeflow.org/v1", "v1"))
_IMPLEMENTATIONS = (_UNSAID, ("OpenMPI", "Open MPI"), ("MPICH", "MPICH"), ("Intel", "Intel MPI"))
_NETWORKS = (_UNSAID, ("private", "private"), ("host", "of this machine"))


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
    Question("name", "Name", note="lower-case letters, digits and '-'; starts with a letter", wide=True),
    Question("description", "Description", wide=True),
    Question("namespace", "Namespace"),
    Question(
        "api_version", "Written as", "choice", choices=(("kubeflow.org/v2beta1", "v2beta1"), ("kubeflow.org/v1", "v1"))
    ),
    Question("priority", "Priority", "number", "a higher one is let in first", least=-1_000_000_000),
    Question("queue", "Queue", note="of the cluster's scheduler", only_on=CLUSTER),
)
RUN = (
    Question("image", "Image", note="used on Kubernetes; elsewhere the programs of the hosts run", wide=True),
    Question("environment", "Environment", "choice", "a named set of packages"),
    Question("mpi", "MPI", "choice", choices=_IMPLEMENTATIONS),
    Question("command", "Launch command", "words", "as in a shell; mpirun starts the ranks", wide=True),
    Question("args", "Arguments", "words", "added behind the command", wide=True),
    Question("working_dir", "Working folder"),
    Question("install", "Install commands", "long", "run on each host before the job starts", wide=True),
)
WORKERS = (
    Question("workers", "Number of workers", "number", least=1),
    Question("slots", "Slots per worker", "number", "ranks that one worker takes", least=1),
    Question("worker_cpu", "CPU of a worker", "amount", "such as 2 or 500m"),
    Question("worker_memory", "Memory of a worker", "amount", "such as 4Gi"),
    Question("worker_gpu", "GPU of a worker", "amount"),
    Question("worker_vgpu", "vGPU of a worker", "amount"),
    Question("worker_gpu_memory", "GPU memory of a worker", "amount", "in MiB, for shared GPUs"),
)
LAUNCHER = (
    Question("launcher_cpu", "CPU of the launcher", "amount"),
    Question("launcher_memory", "Memory of the launcher", "amount"),
    Question("launcher_gpu", "GPU of the launcher", "amount"),
)
ENDING = (
    Question(
        "clean_policy",
        "Workers after the end",
        "choice",
        choices=(_UNSAID, ("None", "keep them"), ("Running", "end those that run"), ("All", "remove all")),
    ),
    Question("retries", "Retries", "number", "how often a failed job is started again"),
    Question("deadline", "Deadline in seconds", "number", "a job that runs longer is ended", least=1),
    Question("ttl", "Kept after the end, in seconds", "number", "then it is deleted"),
    Question(
        "restart_policy",
        "Launcher that fails",
        "choice",
        choices=(
            _UNSAID,
            ("Never", "is not started again"),
            ("OnFailure", "is started again"),
            ("ExitCode", "depends on its exit code"),
        ),
    ),
    Question("suspend", "Submit without starting", "switch"),
)
SCHEDULING = (
    Question("elastic_min", "Elastic: fewest ranks", "number", "for horovodrun with host discovery", least=1),
    Question("elastic_max", "Elastic: most ranks", "number", least=1),
    Question("min_available", "Started together, at least", "number", "pods, for gang scheduling", only_on=CLUSTER),
    Question("schedule_timeout", "Seconds to wait for all", "number", "for gang scheduling", only_on=CLUSTER),
    Question("priority_class", "Priority class", only_on=CLUSTER),
    Question("oversubscribe", "More ranks than CPUs", "switch", only_on=MACHINE),
    Question("oversubscribe", "More ranks than slots", "switch", only_on=RACK),
    Question(
        "network",
        "Network",
        "choice",
        choices=(_UNSAID, ("private", "private"), ("host", "of this machine")),
        only_on=MACHINE,
    ),
)
SURROUNDINGS = (
    Question("env", "Environment variables", "pairs", "one NAME=value per line", wide=True),
    Question(
        "volumes",
        "Volumes",
        "volumes",
        "one /path=source per line; source: a folder or a claim",
        wide=True,
    ),
    Question("labels", "Labels", "pairs", "one name=value per line"),
    Question("annotations", "Annotations", "pairs", "one name=value per line"),
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
