"""A document whose shape is right becomes a Job: versions disappear, defaults are filled in.

v1 starts a bare launcher pod and reaches workers through the API server; v2beta1 starts a Job and
logs in over SSH. v1 lets the launcher take ranks when it holds a GPU; v2beta1 asks explicitly.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from oarsman.job import job, launch
from oarsman.job.references import References
from oarsman.manifest import document as doc
from oarsman.manifest.quantity import parse as parse_quantity

DEFAULT_SSH_PATH = "/root/.ssh"


def build_job(model: doc.AnyMPIJob, document: Mapping[str, Any]) -> job.Job:
    metadata, roles = model.metadata, model.spec.mpi_replica_specs
    v1 = model.spec if isinstance(model, doc.MPIJobV1) else None
    v2 = model.spec if isinstance(model, doc.MPIJobV2beta1) else None
    main = (v1.main_container or None) if v1 else None
    launcher = _role(roles.launcher, job.RestartPolicy.NEVER if v1 else job.RestartPolicy.ON_FAILURE, main)
    worker = _role(roles.worker, job.RestartPolicy.NEVER, main) if roles.worker is not None else None
    implementation = v2.mpi_implementation if v2 else None
    return job.Job(
        name=metadata.name,
        namespace=metadata.namespace,
        uid=metadata.uid or "",
        generation=metadata.generation or 1,
        created_at=time_of(metadata.creation_timestamp),
        labels=metadata.labels,
        annotations=metadata.annotations,
        api_version=job.ApiVersion(model.api_version),
        slots_per_worker=model.spec.slots_per_worker or 1,
        launcher=launcher,
        worker=worker,
        run_policy=_run_policy(model),
        implementation=job.Implementation(implementation or job.Implementation.OPENMPI),
        implementation_stated=implementation is not None,
        transport=job.Transport.EXEC if v1 else job.Transport.SSH,
        launcher_kind=job.LauncherKind.POD if v1 else job.LauncherKind.JOB,
        launcher_creation=job.LauncherCreation(v2.launcher_creation_policy) if v2 else job.LauncherCreation.AT_STARTUP,
        run_launcher_as_worker=v2.run_launcher_as_worker if v2 else has_gpu_limit(launcher),
        main_container=main,
        ssh_auth_mount_path=v2.ssh_auth_mount_path if v2 else DEFAULT_SSH_PATH,
        launch=launch_line(launcher.container),
        document=document,
    )


def has_gpu_limit(role: job.Role) -> bool:
    return any("gpu" in name for container in role.containers for name in container.resources.limits)


def launch_line(container: job.Container) -> launch.LaunchLine | None:
    """What the container starts. $(NAME) is replaced as a kubelet does, where the value is in the manifest."""
    values: dict[str, str] = {}
    references = References()
    for variable in container.env:
        if variable.field_path is None and variable.other_source is None:
            values[variable.name] = references.replaced(variable.value, values)
    return launch.parse([references.replaced(word, values) for word in container.argv], values)


def _role(spec: doc.ReplicaV1 | doc.ReplicaV2beta1, restarts: job.RestartPolicy, main: str | None) -> job.Role:
    pod = spec.template["spec"]
    containers = tuple(_container(c) for c in pod["containers"])
    return job.Role(
        replicas=1 if spec.replicas is None else spec.replicas,
        restart_policy=job.RestartPolicy(spec.restart_policy) if spec.restart_policy else restarts,
        containers=containers,
        init_containers=tuple(_container(c) for c in pod.get("initContainers") or ()),
        volumes=tuple(_volume(v) for v in pod.get("volumes") or ()),
        main=next((i for i, c in enumerate(containers) if c.name == main), 0),
        template=spec.template,
    )


def _container(value: Mapping[str, Any]) -> job.Container:
    resources = value.get("resources") or {}
    return job.Container(
        name=value["name"],
        image=value.get("image") or "",
        command=tuple(value.get("command") or ()),
        args=tuple(value.get("args") or ()),
        working_dir=value.get("workingDir"),
        env=tuple(_variable(v) for v in value.get("env") or ()),
        env_from=tuple(
            str((source.get("configMapRef") or source.get("secretRef") or {}).get("name") or "")
            for source in value.get("envFrom") or ()
        ),
        resources=job.Resources(requests=_amounts(resources.get("requests")), limits=_amounts(resources.get("limits"))),
        mounts=tuple(_mount(m) for m in value.get("volumeMounts") or ()),
    )


def _variable(value: Mapping[str, Any]) -> job.EnvVar:
    source = {k: v for k, v in (value.get("valueFrom") or {}).items() if v is not None}
    if not source:
        return job.EnvVar(name=value["name"], value=value.get("value") or "")
    if "fieldRef" in source:
        return job.EnvVar(name=value["name"], field_path=source["fieldRef"]["fieldPath"])
    return job.EnvVar(name=value["name"], other_source=next(iter(source)))


def _mount(value: Mapping[str, Any]) -> job.VolumeMount:
    return job.VolumeMount(
        name=value["name"],
        mount_path=value["mountPath"],
        sub_path=value.get("subPath") or "",
        read_only=value.get("readOnly") or False,
    )


def _volume(value: Mapping[str, Any]) -> job.Volume:
    kind = next((name for name, part in value.items() if name != "name" and part is not None), "")
    part = value.get(kind) or {}
    limit = part.get("sizeLimit") if kind == "emptyDir" else None
    return job.Volume(
        name=value["name"],
        kind=kind,
        host_path=part.get("path") if kind == "hostPath" else None,
        host_path_type=(part.get("type") or "") if kind == "hostPath" else "",
        medium=(part.get("medium") or "") if kind == "emptyDir" else "",
        size_limit=parse_quantity(limit) if limit is not None else None,
    )


def _amounts(value: Mapping[str, Any] | None) -> dict[str, Decimal]:
    return {name: parse_quantity(amount) for name, amount in (value or {}).items()}


def _run_policy(model: doc.AnyMPIJob) -> job.RunPolicy:
    policy, scheduling = model.spec.run_policy, model.spec.run_policy.scheduling_policy
    clean = policy.clean_pod_policy
    if isinstance(model, doc.MPIJobV1):  # its older field, at the top of the spec, speaks where runPolicy is silent
        clean = clean or model.spec.clean_pod_policy
    return job.RunPolicy(
        clean_pod_policy=job.CleanPodPolicy(clean or job.CleanPodPolicy.NONE),
        ttl_seconds_after_finished=policy.ttl_seconds_after_finished,
        active_deadline_seconds=policy.active_deadline_seconds,
        backoff_limit=policy.backoff_limit,
        suspend=policy.suspend,
        managed_by=job.ManagedBy(policy.managed_by) if policy.managed_by is not None else None,
        scheduling=_scheduling(scheduling) if scheduling is not None else None,
    )


def _scheduling(policy: doc.SchedulingFields) -> job.SchedulingPolicy:
    return job.SchedulingPolicy(
        min_available=policy.min_available,
        queue=policy.queue,
        min_resources=_amounts(policy.min_resources) if policy.min_resources is not None else None,
        priority_class=policy.priority_class,
        schedule_timeout_seconds=policy.schedule_timeout_seconds,
    )


def time_of(text: str | None) -> datetime | None:
    """None for what is none; one that mentions no zone is meant in UTC."""
    try:
        time = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)
