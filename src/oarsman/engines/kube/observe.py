"""From what the API server keeps of a job to what the plan looks at. Pure: views in, `Observed` out."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from oarsman import names
from oarsman.engines.kube import ranks, views
from oarsman.engines.kube.client import Meta
from oarsman.engines.kube.objects import config_map
from oarsman.engines.kube.objects.launcher import BARRIER, expected_hosts
from oarsman.engines.kube.objects.pod import fingerprint
from oarsman.engines.kube.objects.preparation import FAILURES, RANK, impossible
from oarsman.job.job import Implementation, Job, LauncherKind, Role
from oarsman.job.launch import with_tags
from oarsman.job.observed import Admission, Exit, Member, Observed, Phase, RankReport
from oarsman.job.state import Status
from oarsman.plan.policies.replacement import VANISHED
from oarsman.status.tags import Spoken, Tags
from oarsman.text.catalogue import N_
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
_OF_SCRIPTS: Final = (N_("there is no sshd in this image: install openssh-server"),)  # can be said in other languages
_ENDS: Final = {"Failed": Phase.FAILED, "Complete": Phase.SUCCEEDED}  # conditions of a Job
_POD_FAILED: Final = "BackoffLimitExceeded"  # of a Job that makes no second pod
_LONGEST_MESSAGE: Final = 2040  # bytes; kubelets keep the last 2,048, less what is no character
_KILLED: Final = 137
_SIGNALS: Final = 128  # codes from here on are those of signals
_CLOCKS_DIFFER: Final = timedelta(seconds=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobObjects:
    status: Status
    pods: Collection[views.Pod] = ()
    launcher_job: views.BatchJob | None = None
    config: views.ConfigMap | None = None
    has_service: bool = True
    conflict: str | None = None
    refused: str | None = None
    waits_for: str = ""  # why its environment cannot be used yet
    stop_requested: bool = False
    patience: timedelta = timedelta(minutes=5)
    gang_asks: bool = False
    barrier_says: str = ""  # the last line of a launcher that still waits


def observe(job: Job, seen: JobObjects) -> Observed:
    workers = sorted((_worker(job, pod) for pod in seen.pods if _is_worker(job, pod)), key=lambda w: w.index)
    pod = launcher_pod(job, seen.pods, seen.launcher_job)
    launcher = _launcher(job, pod, seen)
    spoken, tagged = _last_lines(job, pod)
    reports, said = ranks.apart(spoken)
    memory = tuple(each.text.removeprefix(_OUT_OF_MEMORY) for each in said if each.text.startswith(_OUT_OF_MEMORY))
    said = [each for each in said if not each.text.startswith(_OUT_OF_MEMORY)]
    return Observed(
        status=seen.status,
        workers=tuple(workers),
        launcher=launcher,
        ranks=tuple(_by_memory(report, memory) for report in reports),
        launcher_lines=tuple(each.text for each in said),
        launcher_relays=True,
        launcher_ranks=tuple(each.rank for each in said) if tagged else (),
        out_of_memory=memory,
        published_hosts=config_map.published(seen.config.data) if seen.config is not None else None,
        prepared=seen.config is not None,
        gang_asks=seen.gang_asks,
        incomplete=seen.config is not None and not seen.has_service,
        conflict=seen.conflict,
        refused=seen.refused,
        unsupported=impossible(job),
        admission=Admission(admitted=not seen.waits_for, reason=seen.waits_for, about=names.REASON_ENVIRONMENT),
        stop_requested=seen.stop_requested,
        patience=seen.patience,
        launcher_holds=job.annotation(names.ANNOTATION_BARRIER, "true") != "false",
        ranks_report=False,
        unverified=_unverified(job, seen, launcher),
        outdated=_outdated(job, seen, pod),
    )


def _unverified(job: Job, seen: JobObjects, launcher: Member | None) -> bool:
    shim = seen.config is not None and RANK in seen.config.data
    return shim and launcher is not None and launcher.phase is Phase.SUCCEEDED and not expected_hosts(job)


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


def end_unheard(job: Job, pods: Collection[views.Pod], launcher_job: views.BatchJob | None) -> bool:
    """Whether the launcher's Job counts its pod as ended and `pods` do not say so yet: two watches, one is behind."""
    verdict = _verdict(launcher_job) if launcher_job is not None else None
    if verdict is None or (_ENDS[verdict.type] is Phase.FAILED and verdict.reason != _POD_FAILED):
        return False
    pod = launcher_pod(job, pods, launcher_job)
    return pod is None or not _phase(pod, _main(pod, job.launcher).terminated).ended


def retired(job: Job, pods: Collection[views.Pod]) -> list[views.Pod]:
    """Launchers of earlier attempts, oldest first."""
    old = [p for p in pods if _owner(p) == job.uid and _role(p) == "launcher"]
    return sorted((p for p in old if p.metadata.name != job.launcher_host), key=_created)


def left_over(job: Job, pods: Collection[views.Pod], status: Status) -> views.Pod | None:
    """A living launcher pod of a Job that is no longer there. A copy that somebody made of one has its labels, too."""
    served = {attempt.launcher for attempt in status.attempts}
    for pod in pods:
        owner = pod.metadata.controller
        of_job = owner.kind == "Job" and owner.name == job.launcher_host if owner else pod.metadata.name in served
        if of_job and _role(pod) == "launcher" and not _phase(pod, _main(pod, job.launcher).terminated).ended:
            return pod
    return None


def _owner(pod: views.Pod) -> str:
    owner = pod.metadata.controller
    return owner.uid if owner is not None else ""


def _role(pod: views.Pod) -> str:
    return names.role_of(pod.metadata.labels)


def _created(pod: views.Pod) -> str:
    at = pod.metadata.creation_timestamp
    return at.isoformat() if at is not None else ""


# -- members -------------------------------------------------------------------------------------
def _worker(job: Job, pod: views.Pod) -> Member:
    role = job.worker or job.launcher  # an edit may have taken all workers away, and these are still there
    _, _, index = pod.metadata.name.rpartition("-")
    return _member(pod, role, pod.metadata.name, index=int(index) if index.isdigit() else 0)


def _launcher(job: Job, pod: views.Pod | None, seen: JobObjects) -> Member | None:
    verdict = _verdict(seen.launcher_job) if seen.launcher_job is not None else None
    if pod is not None:
        # Pods of a Job have a suffix; the launcher is known by the name it has as a host.
        attempt = _attempt(pod.metadata)
        member = _member(pod, job.launcher, job.launcher_host, attempt=attempt, says=seen.barrier_says)
        return _as_its_job_says(member, verdict) if verdict is not None else member
    if seen.launcher_job is not None:
        return _launcher_without_pod(job, seen.launcher_job, verdict)
    stray = left_over(job, seen.pods, seen.status)
    if stray is None:
        return None
    # Its Job is gone and it has not ended yet. It serves no attempt, and none may start beside it.
    going = stray.metadata.deletion_timestamp is not None
    return Member(name=job.launcher_host, phase=Phase.PENDING, attempt=0, terminating=going)


def _attempt(meta: Meta) -> int:
    written = meta.annotations.get(names.ANNOTATION_ATTEMPT, "1")
    return int(written) if written.isdigit() else 1


def _verdict(found: views.BatchJob) -> views.ObjectCondition | None:
    return next((c for c in found.status.conditions if c.type in _ENDS and c.status == "True"), None)


def _as_its_job_says(member: Member, end: views.ObjectCondition) -> Member:
    """A Job that is over decides. Its pod may lag behind, or be on a node that will never tell what became of it."""
    phase = _ENDS[end.type]
    tells_how = phase is Phase.SUCCEEDED or end.reason == _POD_FAILED or bool(member.reason)
    if member.phase is phase and tells_how:
        return member
    at = member.finished_at or end.last_transition_time
    return replace(member, phase=phase, ready=False, finished_at=at, reason=end.reason, message=end.message)


def _launcher_without_pod(job: Job, found: views.BatchJob, end: views.ObjectCondition | None) -> Member:
    """A Job whose pod is not there yet, or will not come."""
    member = Member(
        name=job.launcher_host,
        phase=_ENDS[end.type] if end else Phase.PENDING,
        attempt=_attempt(found.metadata),
        terminating=found.metadata.deletion_timestamp is not None,
        started_at=found.metadata.creation_timestamp,
    )
    if end is None:
        told = Text("its Job has created no pod yet; see kubectl describe job {name}", name=job.launcher_host)
        return replace(member, not_ready_because=told, waits_for_room=True)
    member = replace(member, finished_at=end.last_transition_time)
    if end.reason == _POD_FAILED:
        return replace(member, reason=VANISHED, message=Text("its pod has ended and is gone"))
    return replace(member, reason=end.reason, message=end.message)


def _member(pod: views.Pod, role: Role, name: str, *, index: int = 0, attempt: int = 1, says: str = "") -> Member:
    main = _main(pod, role)
    ended, running = main.terminated, main.running
    phase = _phase(pod, ended)
    going = pod.metadata.deletion_timestamp is not None
    disruption = _disruption(pod, ended) if going or phase.ended else None
    reason, message = (disruption.reason, pod.status.message) if disruption else _reason(pod, main, phase)
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
        created_at=pod.metadata.creation_timestamp,
        started_at=(running.started_at if running else ended.started_at if ended else None) or placed,
        finished_at=ended.finished_at if ended else (ready.last_transition_time if phase.ended and ready else None),
        exit=_exit(ended),
        reason=reason,
        message=message,
        disrupted=disruption is not None,
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


def _disruption(pod: views.Pod, ended: views.Terminated | None) -> views.ObjectCondition | None:
    """Why the cluster takes a pod away, if it does. What had ended by itself before that is not excused by it."""
    found = pod.status.condition("DisruptionTarget")
    if found is None or found.status != "True":
        return None
    when, since = ended.finished_at if ended else None, found.last_transition_time
    return None if when and since and when < since - _CLOCKS_DIFFER else found


def _reason(pod: views.Pod, main: views.State, phase: Phase) -> tuple[str, str]:
    ended = main.terminated
    if pod.status.reason == "NodeLost":
        return "HostLost", pod.status.message or Text("node {node} does not answer", node=pod.spec.node_name)
    if not phase.ended:
        return "", ""
    failed = _state(pod.status.init_container_statuses, BARRIER).terminated
    if failed is not None and _by_itself(failed, pod):
        return names.REASON_BARRIER, failed.message.strip() or Text(
            "the start barrier ended with code {code}", code=failed.exit_code
        )
    if pod.status.reason:
        return pod.status.reason, pod.status.message
    other = _failed_init(pod) if ended is None and main.running is None else None
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
        said = own[-1].removeprefix(_OWN_WORDS)
        return names.REASON_BARRIER, Text(said) if said in _OF_SCRIPTS else said
    return "", ""


def _failed_init(pod: views.Pod) -> str | None:
    """The last one that ended badly: they run one by one. Those before it that are sidecars are ended with the pod."""
    for container in reversed(pod.status.init_container_statuses):
        ended = container.state.terminated
        if ended is not None and _by_itself(ended, pod):
            what = Text("init container {name} ended with code {code}", name=container.name, code=ended.exit_code)
            said = ended.message.strip().splitlines()
            return Text("{what}: {why}", what=what, why=said[-1]) if said else what
    return None


def _by_itself(failed: views.Terminated, pod: views.Pod) -> bool:
    """Whether it failed, and was not only ended with a pod that somebody deletes."""
    return failed.exit_code != 0 and (pod.metadata.deletion_timestamp is None or failed.exit_code < _SIGNALS)


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
    # A code alone does not tell whose signal it was: mpirun and shells end with the number of what they ran.
    return Exit(code=ended.exit_code, signal=ended.signal or None, memory_limit_hit=ended.reason == "OOMKilled")


def _last_lines(job: Job, pod: views.Pod | None) -> tuple[Sequence[Spoken], bool]:
    """And whether what ranks wrote is marked."""
    ended = _main(pod, job.launcher).terminated if pod is not None else None
    if ended is None:
        return (), False
    lines = ended.message.splitlines()
    tags = Tags(hydra=job.implementation is not Implementation.OPENMPI, ranks=job.slots)
    spoken = [tags.read(line) for line in lines]
    tagged = tags.seen or _asks_for_tags(job)
    if tagged and len(lines) > 1 and len(ended.message.encode()) >= _LONGEST_MESSAGE:
        del spoken[0]  # it is the end of one, and lacks its tag
    return [said for said in (*spoken, *tags.rest()) if said is not None], tagged


def _asks_for_tags(job: Job) -> bool:
    argv = job.launcher.container.argv
    return job.annotation(names.ANNOTATION_TAG_OUTPUT) == "true" and with_tags(argv) != argv


def _by_memory(report: RankReport, hosts: Collection[str]) -> RankReport:
    """A rank that was killed on a host where memory was exhausted."""
    if report.exit is None or report.exit.code != _KILLED or report.host not in hosts:
        return report
    return replace(report, exit=replace(report.exit, memory_limit_hit=True))


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
