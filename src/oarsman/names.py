"""Every name other programs see: labels, annotations, variables, condition types, reasons, messages.

Names that upstream tools already know are kept letter by letter. A name is defined here, with one
sentence of meaning, or it does not exist.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from oarsman.text.catalogue import N_

# -- API ---------------------------------------------------------------------------------------
GROUP: Final = "kubeflow.org"
KIND: Final = "MPIJob"
PLURAL: Final = "mpijobs"
WRITTEN_AS: Final = "writtenAs"  # in spec, where the server notes it, and in status: the version of the author
VALID_SPEC: Final = "validSpec"  # in status: what is carried out while the spec is not valid
SHORT_NAMES: Final = ("mj", "mpij")
DEFAULT_NAMESPACE: Final = "default"
_TIMES = frozenset({"creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"})
_MARKS = frozenset({"uid", "resourceVersion", "generation", "selfLink", "clusterName"})
# What an API server writes into `metadata` itself
SERVERS_OWN: Final = _TIMES | _MARKS | {"managedFields", "ownerReferences"}

# -- Where jobs run: `--on`, `Client(on=)`, the engine of a job -----------------------------------
LOCAL: Final = "local"  # this machine
SSH: Final = "ssh"  # hosts that an inventory names
KUBE: Final = "kube"  # a Kubernetes cluster
PLACES: Final = (LOCAL, SSH, KUBE)
PLACE_ALIASES: Final = {"embedded": LOCAL}  # what it was called before

# -- Annotations: what a manifest can say to Oarsman alone -----------------------------------------
# "false" keeps the launch line exactly as written (default: single-dash options are made two-dash).
ANNOTATION_REWRITE: Final = "oarsman.dev/rewrite-launch-line"
# "private" (default) gives every host its own address; "host" shares the machine's network.
ANNOTATION_NETWORK: Final = "oarsman.dev/network"
# "true" admits the job although it asks for more CPU or memory than the machine has.
ANNOTATION_OVERSUBSCRIBE: Final = "oarsman.dev/oversubscribe"
# An integer; the higher one is admitted first. Default 0.
ANNOTATION_PRIORITY: Final = "oarsman.dev/priority"
# "node": the workers of a job are spread over the hosts; "slot", the default: one host is filled first.
ANNOTATION_PLACEMENT: Final = "oarsman.dev/placement"
# "none": the folder of the job is not copied to hosts that do not share it.
ANNOTATION_CODE: Final = "oarsman.dev/code"
# A path to, or the kind of, the MPI to use (openmpi, mpich, intel); default: what PATH offers.
ANNOTATION_MPI: Final = "oarsman.dev/mpi"
# Seconds a host may be silent before it counts as lost. Default 10.
ANNOTATION_SILENCE: Final = "oarsman.dev/host-silence-seconds"
# The file with the SSH hosts that a job is for; noted when it is submitted with --on ssh.
ANNOTATION_INVENTORY: Final = "oarsman.dev/inventory"
# What the job is about, in the words of whoever made it; shown by the console.
ANNOTATION_DESCRIPTION: Final = "oarsman.dev/description"
# The environment (a named set of packages) whose programs come first on PATH of the launcher and of every rank.
ANNOTATION_ENVIRONMENT: Final = "oarsman.dev/environment"
# Shell commands that prepare a host before the job starts there; once where all hosts share their files.
ANNOTATION_INSTALL: Final = "oarsman.dev/install"
# -- Annotations: a sweep is its jobs, and they know what they are part of ------------------------
# The name of the sweep (a label too, so that selectors find its jobs), and which point of it this is.
LABEL_SWEEP: Final = "oarsman.dev/sweep"
ANNOTATION_SWEEP_POINT: Final = "oarsman.dev/sweep-point"
# The parameters of this point, as JSON.
ANNOTATION_SWEEP_PARAMETERS: Final = "oarsman.dev/sweep-parameters"
# The whole sweep, as JSON, on its first job: whoever goes on with it reads it there.
ANNOTATION_SWEEP_SPEC: Final = "oarsman.dev/sweep-spec"

# -- Annotations: what faces and the operator say to each other about a job on Kubernetes -----------
# The version the job was written in; a cluster stores every job as v2beta1.
ANNOTATION_API_VERSION: Final = "oarsman.dev/api-version"
# "true" asks the operator to end the job for good.
ANNOTATION_STOP: Final = "oarsman.dev/stop-requested"
# The user who submitted it.
ANNOTATION_SUBMITTED_BY: Final = "oarsman.dev/submitted-by"
# Of an event: what its message was made of, for those who say it in another language.
EVENT_TEXT: Final = "oarsman.dev/text"
# On the launcher and its pods: the attempt they belong to, counted from 1.
ANNOTATION_ATTEMPT: Final = "oarsman.dev/attempt"
# Which run of a job of that name it is, counted from 1; none: the first.
ANNOTATION_RUN: Final = "oarsman.dev/run"
# "true" has mpirun mark every line with the rank that wrote it.
ANNOTATION_TAG_OUTPUT: Final = "oarsman.dev/tag-output"
# "false": ranks are started by mpirun itself, not through a shim.
ANNOTATION_SHIM: Final = "oarsman.dev/shim"
# On a pod: a fingerprint of the template it was made from.
ANNOTATION_TEMPLATE: Final = "oarsman.dev/template"
# On the launcher's pod: changes with the list of hosts, so that the kubelet refreshes the mounted files at once.
ANNOTATION_HOSTS: Final = "oarsman.dev/hosts"
# "true": the pods run as a user the image may not know (one that an admission plugin chooses); it gets a name.
ANNOTATION_ANY_USER: Final = "oarsman.dev/any-user"
# "false": the launcher's command starts at once, whether its workers answer or not.
ANNOTATION_BARRIER: Final = "oarsman.dev/start-barrier"
# Who schedules the pods as a gang: volcano, another scheduler's name, or none. Default: as the operator was told.
ANNOTATION_GANG: Final = "oarsman.dev/gang-scheduler"
# On the lease of an operator: the namespaces whose jobs it looks after; empty: all.
ANNOTATION_WATCHES: Final = "oarsman.dev/watches"

# -- Volumes that pods on Kubernetes get: hosts and scripts, keys. A template may mount them without naming them.
VOLUME_CONFIG: Final = "mpi-job-config"
VOLUME_SSH_AUTH: Final = "ssh-auth"

# -- Labels of what a job consists of on Kubernetes --------------------------------------------------
LABEL_OPERATOR: Final = "training.kubeflow.org/operator-name"
LABEL_JOB: Final = "training.kubeflow.org/job-name"
LABEL_ROLE: Final = "training.kubeflow.org/job-role"  # launcher or worker; a launcher of v1 is the master
ROLE_LAUNCHER: Final = "launcher"
ROLE_MASTER: Final = "master"
LABEL_INDEX: Final = "training.kubeflow.org/replica-index"

# -- Variables set for the user's processes ---------------------------------------------------------
ENV_ROLE: Final = "K_MPI_JOB_ROLE"  # launcher or worker
ENV_JOB: Final = "OARSMAN_JOB"  # uid of the job; every process of a job carries it
ENV_UMASK: Final = "OARSMAN_UMASK"  # of the user who submitted, kept with the environment
ENV_INPUT: Final = "OARSMAN_STDIN"  # likewise: the socket at which its standard input is given out
ENV_LIMITS: Final = "OARSMAN_LIMITS"  # likewise: of resources, niceness, processors
ENV_CONFINED: Final = "OARSMAN_CONFINED"  # likewise: what a job of somebody else than the machine's owner is kept to
ENV_RUNS_KEPT: Final = "OARSMAN_RUNS_KEPT"  # how many earlier runs of a job are kept
ENV_HOST: Final = "OARSMAN_HOST"  # name of the host the process runs on

# -- Paths that manifests refer to ------------------------------------------------------------------
MPI_CONFIG_DIR: Final = "/etc/mpi"
HOSTFILE: Final = "hostfile"
DISCOVER_HOSTS: Final = "discover_hosts.sh"
KUBEXEC: Final = "kubexec.sh"

# -- Condition types --------------------------------------------------------------------------------
CREATED: Final = "Created"
RUNNING: Final = "Running"
RESTARTING: Final = "Restarting"
SUSPENDED: Final = "Suspended"
SUCCEEDED: Final = "Succeeded"
FAILED: Final = "Failed"
QUEUED: Final = "Queued"  # waiting for room; not an upstream condition
OUTDATED: Final = "EditsPending"  # an edit does not reach members that exist; not an upstream condition

CONDITIONS: Final = frozenset({CREATED, RUNNING, RESTARTING, SUSPENDED, SUCCEEDED, FAILED, QUEUED, OUTDATED})

# -- Steps of a job's life, in the timeline of its status -----------------------------------------------
STEP_SUBMITTED: Final = "submitted"
STEP_ADMITTED: Final = "admitted"
STEP_HOSTS_UP: Final = "hostsUp"
STEP_LAUNCHED: Final = "launched"
STEP_FIRST_OUTPUT: Final = "firstOutput"
STEP_ENDED: Final = "ended"
STEPS: Final = (STEP_SUBMITTED, STEP_ADMITTED, STEP_HOSTS_UP, STEP_LAUNCHED, STEP_FIRST_OUTPUT, STEP_ENDED)

# -- Reasons ----------------------------------------------------------------------------------------
REASON_CREATED: Final = N_("MPIJobCreated")
REASON_RUNNING: Final = N_("MPIJobRunning")
REASON_RESTARTING: Final = N_("MPIJobRestarting")
REASON_SUSPENDED: Final = N_("MPIJobSuspended")
REASON_RESUMED: Final = N_("MPIJobResumed")
REASON_SUCCEEDED: Final = N_("MPIJobSucceeded")
REASON_FAILED: Final = N_("MPIJobFailed")
REASON_EVICTED: Final = N_("MPIJobEvicted")
REASON_BACKOFF: Final = N_("BackoffLimitExceeded")
REASON_DEADLINE: Final = N_("DeadlineExceeded")
REASON_STOPPED: Final = N_("StoppedByUser")
REASON_INVALID: Final = N_("ValidationError")
REASON_CONFLICT: Final = N_("ErrResourceExists")
REASON_PLACEMENT: Final = N_("WrongPlacement")
REASON_BARRIER: Final = N_("HostsNotReady")
REASON_HOST_LOST: Final = N_("HostLost")
REASON_WAITING: Final = N_("WaitingForRoom")
REASON_NO_HOSTS: Final = N_("WaitingForHosts")  # without hosts that cannot be used now it does not fit
REASON_CLOSED: Final = N_("HostsNeedAttention")  # nor without those that somebody has to open first
REASON_NEVER_FITS: Final = N_("NeverFits")  # not even if nothing else ran
REASON_ENVIRONMENT: Final = N_("EnvironmentNotReady")  # the set of packages it runs in is being built, or cannot be
REASON_ADMITTED: Final = N_("Admitted")
REASON_UNSUPPORTED: Final = N_("Unsupported")
REASON_TROUBLE: Final = N_("Trouble")  # an action failed and is tried again
REASON_SCALED: Final = N_("MPIJobScaled")
REASON_TTL: Final = N_("TTLExpired")
REASON_REMARK: Final = N_("Remark")
REASON_UNKNOWN: Final = N_("UnknownField")  # of a pod template; whoever makes the pod judges it
REASON_REWRITTEN: Final = N_("LaunchLineRewritten")
REASON_WORKER_REPLACED: Final = N_("WorkerReplaced")
REASON_OUTDATED: Final = N_("EditWithoutEffect")
REASON_EXCEPTION: Final = N_("RankRaisedException")  # and it has not ended
REASON_IDLE_RANK: Final = N_("RankIdle")  # while the others use their CPUs
REASON_OTHER_MPI: Final = N_("RankHasOtherMPI")  # than its launcher
REASON_UNVERIFIED: Final = N_("PlacementNotVerified")  # no rank said where it ran


def role_of(labels: Mapping[str, str]) -> str:
    """What a pod with these labels is: launcher, worker, or, empty, neither."""
    role = labels.get(LABEL_ROLE, "")
    return ROLE_LAUNCHER if role == ROLE_MASTER else role


def launcher_name(job: str) -> str:
    return f"{job}-launcher"


def worker_name(job: str, index: int) -> str:
    return f"{job}-worker-{index}"
