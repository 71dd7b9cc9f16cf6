"""From what the API server keeps of a job to what the plan looks at. Pure: views in, `Observed` out."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from oarsman import names
from oarsman.engines.kube import views
from oarsman.engines.kube.client import Meta
from oarsman.engines.kube.objects import config_map
from oarsman.engines.kube.objects.launcher import BARRIER
from oarsman.engines.kube.objects.pod import fingerprint
from oarsman.engines.kube.objects.preparation import FAILURES, impossible
from oarsman.job.job import Implementation, Job, LauncherKind, Role
from oarsman.job.observed import Admission, Exit, Member, Observed, Phase
from oarsman.job.state import Status
from oarsman.status.tags import Tags
from oarsman.text.sentence import Text

# A container that waits for one of these will not come up by waiting alone.
_STUCK: Final = frozenset(
    {
        *("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError"),
        *("CreateContainerConfigError", "CreateContainerError", "RunContainerError", "CrashLoopBackOff"),
    }
)
_EXIT_MISPLACED: Final = 69  # of launch.sh
_OUT_OF_MEMORY: Final = "oarsman: memory limit reached on "
_OWN_WORDS: Final = "oarsman: "


@dataclass(frozen=True, slots=True, kw_only=True)
class JobObjects:
    status: Status
    pods: Collection[views.Pod] = ()
    launcher_job: views.BatchJob | None = None
    config: views.ConfigMap | None = None
    conflict: str | None = None
    refused: str | None = None
    waits_for: str = ""  # why its environment cannot be used yet
    stop_requested: bool = False
    patience: timedelta = timedelta(minutes=5)
    barrier_says: str = ""  # the last line of a launcher that still waits


def observe(job: Job, seen: JobObjects) -> Observed:
    workers = sorted((_worker(job, pod) for pod in seen.pods if _is_worker(job, pod)), key=lambda w: w.index)
    pod = launcher_pod(job, seen.pods, seen.launcher_job)
    launcher = _launcher(job, pod, seen)
    lines = _last_lines(job, pod)
    return Observed(
        status=seen.status,
        workers=tuple(workers),
        launcher=launcher,
        launcher_lines=tuple(line for line in lines if not line.startswith(_OUT_OF_MEMORY)),
        out_of_memory=tuple(line.removeprefix(_OUT_OF_MEMORY) for line in lines if line.startswith(_OUT_OF_MEMORY)),
        published_hosts=config_map.published(seen.config.data) if seen.config is not None else None,
        prepared=seen.config is not None,
        conflict=seen.conflict,
        refused=seen.refused,
        unsupported=impossible(job),
        admission=Admission(admitted=not seen.waits_for, reason=seen.waits_for, about=names.REASON_ENVIRONMENT),
        stop_requested=seen.stop_requested,
        patience=seen.patience,
        launcher_holds=job.annotation(names.ANNOTATION_BARRIER, "true") != "false",
        ranks_report=False,
        outdated=_outdated(job, seen, pod),
    )


# -- which pod is which --------------------------------------------------------------------------
def _is_worker(job: Job, pod: views.Pod) -> bool:
    return _owner(pod) == job.uid and _role(pod) == "worker"


def launcher_pod(job: Job, pods: Collection[views.Pod], launcher_job: views.BatchJob | None) -> views.Pod | None:
    """The pod that serves the present attempt. Those of earlier ones have been handed to the MPIJob itself."""
    if job.launcher_kind is LauncherKind.POD:
        found = [p for p in pods if p.metadata.name == job.launcher_host and _owner(p) == job.uid]
    else:
        found = [p for p in pods if launcher_job is not None and _owner(p) == launcher_job.metadata.uid]
    return min(found, key=lambda p: (p.metadata.deletion_timestamp is not None, _created(p)), default=None)


def retired(job: Job, pods: Collection[views.Pod]) -> list[views.Pod]:
    """Launchers of earlier attempts, oldest first."""
    old = [p for p in pods if _owner(p) == job.uid and _role(p) == "launcher"]
    return sorted((p for p in old if p.metadata.name != job.launcher_host), key=_created)


def left_over(job: Job, pods: Collection[views.Pod]) -> views.Pod | None:
    """A living launcher pod of a Job that is no longer there."""
    for pod in pods:
        owner = pod.metadata.controller
        of_job = owner is None or (owner.kind == "Job" and owner.name == job.launcher_host)
        if of_job and _role(pod) == "launcher" and not _phase(pod, _main(pod, job.launcher).terminated).ended:
            return pod
    return None


def _owner(pod: views.Pod) -> str:
    owner = pod.metadata.controller
    return owner.uid if owner is not None else ""


def _role(pod: views.Pod) -> str:
    return pod.metadata.labels.get(names.LABEL_ROLE, "")


def _created(pod: views.Pod) -> str:
    at = pod.metadata.creation_timestamp
    return at.isoformat() if at is not None else ""


# -- members -------------------------------------------------------------------------------------
def _worker(job: Job, pod: views.Pod) -> Member:
    assert job.worker is not None
    _, _, index = pod.metadata.name.rpartition("-")
    return _member(pod, job.worker, pod.metadata.name, index=int(index) if index.isdigit() else 0)


def _launcher(job: Job, pod: views.Pod | None, seen: JobObjects) -> Member | None:
    if pod is not None:
        # Pods of a Job have a suffix; the launcher is known by the name it has as a host.
        attempt = _attempt(pod.metadata)
        return _member(pod, job.launcher, job.launcher_host, attempt=attempt, says=seen.barrier_says)
    if seen.launcher_job is not None:
        return _launcher_without_pod(job, seen.launcher_job)
    stray = left_over(job, seen.pods)
    if stray is None:
        return None
    # Its Job is gone and it has not ended yet. It serves no attempt, and none may start beside it.
    going = stray.metadata.deletion_timestamp is not None
    return Member(name=job.launcher_host, phase=Phase.PENDING, attempt=0, terminating=going)


def _attempt(meta: Meta) -> int:
    written = meta.annotations.get(names.ANNOTATION_ATTEMPT, "1")
    return int(written) if written.isdigit() else 1


def _launcher_without_pod(job: Job, found: views.BatchJob) -> Member:
    """A Job whose pod is not there yet, or will not come."""
    ends = {"Failed": Phase.FAILED, "Complete": Phase.SUCCEEDED}
    end = next((c for c in found.status.conditions if c.type in ends and c.status == "True"), None)
    member = Member(
        name=job.launcher_host,
        phase=ends[end.type] if end else Phase.PENDING,
        attempt=_attempt(found.metadata),
        terminating=found.metadata.deletion_timestamp is not None,
        started_at=found.metadata.creation_timestamp,
    )
    if end is None:
        told = Text("its Job has created no pod yet; see kubectl describe job {name}", name=job.launcher_host)
        return replace(member, not_ready_because=told, waits_for_room=True)
    return replace(member, finished_at=end.last_transition_time, reason=end.reason, message=end.message)


def _member(pod: views.Pod, role: Role, name: str, *, index: int = 0, attempt: int = 1, says: str = "") -> Member:
    main = _main(pod, role)
    ended, running = main.terminated, main.running
    phase = _phase(pod, ended)
    reason, message = _reason(pod, ended, phase)
    going = pod.metadata.deletion_timestamp is not None
    if going and not phase.ended and not message and pod.spec.node_name:
        # Only its node can end it. One that lost its power never will, and Kubernetes waits for it for ever.
        way_out = f"kubectl delete pod --force {pod.metadata.name}"
        message = Text(
            "it is going away from node {node}; if that is lost for good: {way}", node=pod.spec.node_name, way=way_out
        )
    scheduled = pod.status.condition("PodScheduled")
    placed = scheduled.last_transition_time if scheduled is not None and scheduled.status == "True" else None
    because, for_room = _not_ready_because(pod, scheduled) if phase is Phase.PENDING else ("", False)
    ready = pod.status.condition("Ready")
    return Member(
        name=name,
        phase=phase,
        index=index,
        attempt=attempt,
        ready=ready is not None and ready.status == "True" and phase is Phase.RUNNING,
        terminating=going,
        started_at=(running.started_at if running else ended.started_at if ended else None) or placed,
        finished_at=ended.finished_at if ended else (ready.last_transition_time if phase.ended and ready else None),
        exit=_exit(ended),
        reason=reason,
        message=message,
        not_ready_because=says or because,
        waits_for_room=for_room and not says,
        instance=pod.metadata.name,
    )


def _state(statuses: Collection[views.ContainerStatus], name: str) -> views.State:
    """Of the container of that name; an empty one where nothing is known of it."""
    return next((container.state for container in statuses if container.name == name), views.State())


def _main(pod: views.Pod, role: Role) -> views.State:
    return _state(pod.status.container_statuses, role.container.name)


def _phase(pod: views.Pod, ended: views.Terminated | None) -> Phase:
    """What the MPI container does decides: a sidecar that never ends does not keep a launcher alive."""
    phase = Phase(pod.status.phase) if pod.status.phase in Phase._value2member_map_ else Phase.PENDING
    if _role(pod) == "launcher" and not phase.ended and ended is not None:
        return Phase.SUCCEEDED if ended.exit_code == 0 else Phase.FAILED
    return phase


def _reason(pod: views.Pod, ended: views.Terminated | None, phase: Phase) -> tuple[str, str]:
    if pod.status.reason == "NodeLost":
        return "HostLost", pod.status.message or Text("node {node} does not answer", node=pod.spec.node_name)
    if not phase.ended:
        return "", ""
    failed = _state(pod.status.init_container_statuses, BARRIER).terminated
    if failed is not None and failed.exit_code:
        return names.REASON_BARRIER, failed.message.strip() or Text(
            "the start barrier ended with code {code}", code=failed.exit_code
        )
    if pod.status.reason:
        return pod.status.reason, pod.status.message
    other = _failed_init(pod)
    if other is not None:
        return "InitContainerFailed", other
    if ended is None:
        return "", pod.status.message
    if ended.reason == "OOMKilled":
        return "OOMKilled", ""
    if ended.exit_code == _EXIT_MISPLACED and f"{_OWN_WORDS}no rank was started" in ended.message:
        lines = [line for line in ended.message.splitlines() if line.startswith(f"{_OWN_WORDS}no rank was started")]
        return names.REASON_PLACEMENT, "; ".join(line.removeprefix(_OWN_WORDS) for line in lines[:3])
    own = [line for line in ended.message.splitlines() if line.startswith(_OWN_WORDS)]
    if own and own[-1].startswith(FAILURES) and _role(pod) == "launcher":
        host = names.launcher_name(pod.metadata.labels.get(names.LABEL_JOB, ""))
        return names.REASON_BARRIER, Text("{host}: {why}", host=host, why=own[-1].removeprefix(_OWN_WORDS))
    if own and _role(pod) == "worker":
        return names.REASON_BARRIER, own[-1].removeprefix(_OWN_WORDS)
    return "", ""


def _failed_init(pod: views.Pod) -> str | None:
    for container in pod.status.init_container_statuses:
        ended = container.state.terminated
        if ended is not None and ended.exit_code:
            what = Text("init container {name} ended with code {code}", name=container.name, code=ended.exit_code)
            said = ended.message.strip().splitlines()
            return Text("{what}: {why}", what=what, why=said[-1]) if said else what
    return None


def _not_ready_because(pod: views.Pod, scheduled: views.ObjectCondition | None) -> tuple[str, bool]:
    """Why it is not up yet, and whether that may rightly take any time."""
    if scheduled is not None and scheduled.status == "False":
        return Text("not scheduled: {why}", why=scheduled.message or scheduled.reason), True
    for container in (*pod.status.init_container_statuses, *pod.status.container_statuses):
        waiting = container.state.waiting
        if waiting is not None and waiting.reason in _STUCK:
            what, why = waiting.reason, waiting.message
            return Text("{what}: {why}", what=what, why=why) if why else what, False
    return "", not _state(pod.status.init_container_statuses, BARRIER).running


def _exit(ended: views.Terminated | None) -> Exit | None:
    if ended is None:
        return None
    signal = ended.signal or (ended.exit_code - 128 if 128 < ended.exit_code < 193 else 0)
    return Exit(code=ended.exit_code, signal=signal or None, memory_limit_hit=ended.reason == "OOMKilled")


def _last_lines(job: Job, pod: views.Pod | None) -> Sequence[str]:
    ended = _main(pod, job.launcher).terminated if pod is not None else None
    if ended is None:
        return ()
    tags = Tags(hydra=job.implementation is not Implementation.OPENMPI, ranks=job.slots)
    spoken = [tags.read(line) for line in ended.message.splitlines()]
    return [said.text for said in (*spoken, *tags.rest()) if said is not None]


# -- edits ---------------------------------------------------------------------------------------
def _outdated(job: Job, seen: JobObjects, launcher: views.Pod | None) -> tuple[str, ...]:
    """Templates edited since living pods were made from them."""
    if seen.status.finished or job.run_policy.suspend:
        return ()
    launchers = [launcher] if launcher is not None else []
    workers = [pod for pod in seen.pods if _is_worker(job, pod)]
    made = (("Launcher", job.launcher, launchers), ("Worker", job.worker, workers))
    edited = []
    for name, role, pods in made:
        marks = {pod.metadata.annotations.get(names.ANNOTATION_TEMPLATE, "") for pod in pods}
        if role is not None and not marks <= {"", fingerprint(role.template)}:
            edited.append(f"spec.mpiReplicaSpecs.{name}.template")
    return tuple(edited)
