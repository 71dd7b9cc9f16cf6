"""The launcher: a Job with one pod (v2beta1) or a bare pod (v1), waiting at the start barrier before it runs.

A Job of ours never retries: attempts are counted by the plan, so that a failed one restarts the whole gang
and not the launcher alone, and the deadline and the time to live are the MPIJob's, not the Job's.
"""

from __future__ import annotations

from typing import Final

from oarsman import names
from oarsman.engines.kube.client.resources import JOBS
from oarsman.engines.kube.objects import config_map, gang, secret
from oarsman.engines.kube.objects.common import LAUNCHER, KubeOptions, Object, host, owned
from oarsman.engines.kube.objects.pod import PodDraft
from oarsman.engines.kube.objects.preparation import NOTHING, PodPreparation, barrier_seconds
from oarsman.engines.kube.ssh import known_hosts_files, on_host_network
from oarsman.job import mpi
from oarsman.job.job import Implementation, Job, LauncherKind, Transport
from oarsman.job.launch import rewrite, with_tags
from oarsman.plan import placement

BARRIER: Final = "oarsman-barrier"
_KUBECTL_DIR: Final = "/opt/kube"
_COPY_KUBECTL: Final = 'cp "$(command -v kubectl)" "$TARGET_DIR/kubectl"'
_AGENTS: Final = {Transport.SSH: "ssh.sh", Transport.EXEC: names.KUBEXEC}


def launcher(job: Job, attempt: int, options: KubeOptions, preparation: PodPreparation = NOTHING) -> Object:
    draft = PodDraft(job, None, options, preparation)
    draft.annotations[names.ANNOTATION_ATTEMPT] = str(attempt)
    draft.spec["restartPolicy"] = "Never"  # the plan decides about another try
    draft.main.setdefault("terminationMessagePolicy", "FallbackToLogsOnError")  # its last words, without reading logs
    if draft.spec.get("hostNetwork") and not job.run_launcher_as_worker and job.workers:
        # mpirun takes a worker that shares its address for itself, and would run that worker's ranks in here.
        # A launcher that takes no ranks needs no host network; it reaches its workers, and they reach it, from any.
        del draft.spec["hostNetwork"]
        draft.spec.pop("dnsPolicy", None)
    draft.export(_variables(job, options, preparation))
    _run(draft, options)
    draft.prepare()
    gang.decorate(draft, job, options)
    if job.launcher_kind is LauncherKind.POD:
        return draft.pod()
    # No second pod beside one that is still ending, where the server knows how to promise that.
    spec = {"backoffLimit": 0, "podReplacementPolicy": "Failed", "template": draft.template()}
    made = owned(job, JOBS, job.launcher_host, spec=spec)
    made["metadata"]["annotations"] = {names.ANNOTATION_ATTEMPT: str(attempt)}
    return made


def _variables(job: Job, options: KubeOptions, preparation: PodPreparation) -> dict[str, str]:
    agent = f"{names.MPI_CONFIG_DIR}/{_AGENTS[job.transport]}"
    hostfile = f"{names.MPI_CONFIG_DIR}/{names.HOSTFILE}"
    variables = {
        names.ENV_ROLE: LAUNCHER,
        **mpi.launcher_variables(hostfile=hostfile, agent=agent, slots=job.slots_per_worker),
        # Every daemon is started from here: workers have no key to start others with.
        "OMPI_MCA_plm_rsh_no_tree_spawn": "1",
        "PRTE_MCA_plm_ssh_no_tree_spawn": "1",
        "OARSMAN_AGENT": agent,
        "OARSMAN_LAUNCHER": host(job, job.launcher_host, options),
        "OARSMAN_EXPECTED": _expected(job),
    }
    if not job.workers and _waits(job):
        # No barrier runs for a launcher alone, which may be on a node's network: mpirun looks its name up.
        variables["OARSMAN_OWN_NAME_SECONDS"] = str(barrier_seconds(job, options))
    if first := preparation.before_a_session(job):
        variables["OARSMAN_SESSION"] = first
    if preparation.shim:
        # On the network of a node several workers may be one host to MPI: where ranks ran is no news, and no mistake.
        by_nodes = job.worker is not None and on_host_network(job.worker)
        planned = job.launch is not None and not job.launch.in_shell and expected_hosts(job)
        variables["OARSMAN_SHIM"] = "quiet" if by_nodes else "planned" if planned else "yes"
    if job.implementation is not Implementation.OPENMPI:
        variables["OARSMAN_HYDRA"] = "yes"
    if job.run_launcher_as_worker:
        # PRRTE takes the launcher's full name for another host, and would log in to itself.
        variables["PRTE_MCA_prte_keep_fqdn_hostnames"] = "false"
    if job.transport is Transport.EXEC and job.main_container:
        variables["OARSMAN_CONTAINER"] = job.main_container
    if not job.run_launcher_as_worker and job.workers:
        variables |= {"NVIDIA_VISIBLE_DEVICES": "", "NVIDIA_DRIVER_CAPABILITIES": ""}
    return variables


def _waits(job: Job) -> bool:
    return job.annotation(names.ANNOTATION_BARRIER, "true") != "false"


def expected_hosts(job: Job) -> list[str]:
    """Workers that mpirun must go to, where its words tell so."""
    if job.launch is None or job.elastic or job.launch.launcher == "horovodrun":
        return []
    if any("plm_rsh_agent" in word or "plm_ssh_agent" in word for word in job.launch.options) or _goes_another_way(job):
        return []
    planned = placement.expected(job, job.hosts) or ()
    return [name for name in dict.fromkeys(planned) if name != job.launcher_host]


def _expected(job: Job) -> str:
    """How many of the hostfile's workers, if they are the first ones: a variable does not hold thousands of names."""
    found = expected_hosts(job)
    first = [job.worker_host(index) for index in range(len(found))]
    return str(len(found)) if found and found == first else " ".join(found)


def _goes_another_way(job: Job) -> bool:
    """Whether the user's own variables may lead mpirun past our agent, which writes down where it went."""
    ours = mpi.launcher_variables(hostfile="", agent="", slots=1)
    container = job.launcher.container
    return bool(container.env_from) or any(variable.name in ours for variable in container.env)


def _run(draft: PodDraft, options: KubeOptions) -> None:
    job = draft.job
    before = _barrier(draft, options)
    files = {names.HOSTFILE: 0o444, names.DISCOVER_HOSTS: 0o555, _AGENTS[job.transport]: 0o555}
    files |= dict.fromkeys(("passwd.sh", "barrier.sh", "launch.sh"), 0o555)
    if job.transport is Transport.SSH:
        files["ssh_config"] = 0o444
    if draft.preparation.shim:
        files |= dict.fromkeys((config_map.MPIRUN, "ranks.sh"), 0o555)
    draft.mount_config(files, *before, draft.main)
    draft.mount_run(*before, draft.main)
    argv = _argv(job)
    if argv:
        draft.main["command"] = ["/bin/sh", f"{names.MPI_CONFIG_DIR}/launch.sh", *argv]
        draft.main.pop("args", None)


def _argv(job: Job) -> tuple[str, ...]:
    if not job.launcher.container.command:
        return ()  # what the image starts is not known here
    argv = job.launcher.container.argv
    if job.rewrites_launch_line:
        argv = rewrite(argv).argv
    tagged = job.annotation(names.ANNOTATION_TAG_OUTPUT) == "true"
    return with_tags(argv, hydra=job.implementation is not Implementation.OPENMPI) if tagged else argv


def _barrier(draft: PodDraft, options: KubeOptions) -> list[Object]:
    """What runs before the command: name the user, fetch kubectl, wait for the workers."""
    job = draft.job
    users = draft.name_the_user()
    before = list(users)
    if job.transport is Transport.SSH:
        own = {secret.PRIVATE: "id_rsa", secret.PUBLIC: "authorized_keys", secret.KNOWN_HOSTS: "known_hosts"}
        sources = {
            secret.shard_name(job, shard): {secret.KNOWN_HOSTS: file}
            for shard, file in zip(secret.shards(job), known_hosts_files(job), strict=True)
        }
        sources[secret.name(job)][secret.PRIVATE] = "id"
        draft.mount_keys(sources, draft.main)
        draft.mount_ssh_auth({secret.name(job): own})
    else:
        _deliver_kubectl(draft, options)
    if job.workers:
        variables = _variables(job, options, draft.preparation) | {
            "OARSMAN_BARRIER_SECONDS": str(barrier_seconds(job, options)) if _waits(job) else ""
        }
        wanted = {name: text for name, text in variables.items() if name.startswith("OARSMAN_")}
        waiting = draft.before(BARRIER, ["/bin/sh", f"{names.MPI_CONFIG_DIR}/barrier.sh"], wanted)
        if job.transport is Transport.SSH:
            draft.mount_keys(sources, waiting)
        else:
            draft.mount(_KUBECTL_VOLUME, _KUBECTL_DIR, (waiting,))
        before.append(waiting)
        if users:
            draft.mount_passwd(waiting)
    if users:
        draft.mount_passwd(draft.main)
    return before


_KUBECTL_VOLUME: Final[Object] = {"name": "mpi-job-kubectl", "emptyDir": {}}


def _deliver_kubectl(draft: PodDraft, options: KubeOptions) -> None:
    job = draft.job
    amounts = {"cpu": "100m", "memory": "512Mi", "ephemeral-storage": "5Gi"}
    container = {
        "name": "kubectl-delivery",
        "image": options.kubectl_image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["/bin/sh", "-c", _COPY_KUBECTL],
        "env": [{"name": "TARGET_DIR", "value": _KUBECTL_DIR}, {"name": "NAMESPACE", "value": job.namespace}],
        "resources": {"requests": amounts, "limits": amounts},
    }
    if "securityContext" in draft.main:
        container["securityContext"] = draft.main["securityContext"]
    draft.spec.setdefault("initContainers", []).append(container)
    draft.mount(_KUBECTL_VOLUME, _KUBECTL_DIR, (container, draft.main))
    draft.spec.setdefault("serviceAccountName", job.launcher_host)
    draft.spec["automountServiceAccountToken"] = True
