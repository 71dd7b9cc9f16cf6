"""A document whose shape is right becomes a Job: versions disappear, defaults are filled in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from oarsman.job import launch
from oarsman.job.job import (
    Container,
    EnvVar,
    Job,
    ManagedBy,
    Resources,
    RestartPolicy,
    Role,
    RunPolicy,
    SchedulingPolicy,
    Volume,
    VolumeMount,
)
from oarsman.manifest import defaults
from oarsman.manifest import document as doc
from oarsman.manifest.quantity import parse as parse_quantity

_REFERENCE = re.compile(r"\$\$|\$\(([^)]*)\)")


def build_job(model: doc.AnyMPIJob, document: Mapping[str, Any]) -> Job:
    version = defaults.api_version(model)
    facts = defaults.FACTS[version]
    roles = model.spec.mpi_replica_specs
    main = defaults.main_container(model)
    launcher = _role(roles.launcher, facts.launcher_restarts, main)
    worker = _role(roles.worker, facts.worker_restarts, main) if roles.worker is not None else None
    implementation, stated = defaults.implementation(model)
    metadata = model.metadata
    return Job(
        name=metadata.name,
        namespace=metadata.namespace,
        uid=metadata.uid or "",
        generation=metadata.generation or 1,
        created_at=_time(metadata.creation_timestamp),
        labels=metadata.labels,
        annotations=metadata.annotations,
        api_version=version,
        slots_per_worker=model.spec.slots_per_worker or 1,
        launcher=launcher,
        worker=worker,
        run_policy=_run_policy(model),
        implementation=implementation,
        implementation_stated=stated,
        transport=facts.transport,
        launcher_kind=facts.launcher_kind,
        launcher_creation=defaults.launcher_creation(model),
        run_launcher_as_worker=defaults.launcher_takes_ranks(model, launcher.containers),
        main_container=main,
        ssh_auth_mount_path=defaults.ssh_auth_mount_path(model),
        launch=launch_line(launcher.container),
        document=document,
    )


def launch_line(container: Container) -> launch.LaunchLine | None:
    """What the container starts. $(NAME) is replaced as a kubelet does, where the value is in the manifest."""
    values: dict[str, str] = {}
    for variable in container.env:
        if variable.field_path is None and variable.other_source is None:
            values[variable.name] = _expand(variable.value, values)
    return launch.parse([_expand(word, values) for word in container.argv], values)


def _expand(word: str, values: Mapping[str, str]) -> str:
    return _REFERENCE.sub(lambda m: "$" if m[1] is None else values.get(m[1], m[0]), word) if "$" in word else word


def _role(spec: doc.ReplicaV1 | doc.ReplicaV2beta1, restarts: RestartPolicy, main: str | None) -> Role:
    pod = spec.template["spec"]
    containers = tuple(_container(c) for c in pod["containers"])
    return Role(
        replicas=1 if spec.replicas is None else spec.replicas,
        restart_policy=RestartPolicy(spec.restart_policy) if spec.restart_policy else restarts,
        containers=containers,
        init_containers=tuple(_container(c) for c in pod.get("initContainers") or ()),
        volumes=tuple(_volume(v) for v in pod.get("volumes") or ()),
        main=next((i for i, c in enumerate(containers) if c.name == main), 0),
        template=spec.template,
    )


def _container(value: Mapping[str, Any]) -> Container:
    resources = value.get("resources") or {}
    return Container(
        name=value["name"],
        image=value.get("image") or "",
        command=tuple(value.get("command") or ()),
        args=tuple(value.get("args") or ()),
        working_dir=value.get("workingDir"),
        env=tuple(_variable(v) for v in value.get("env") or ()),
        env_from=tuple(_source_name(v) for v in value.get("envFrom") or ()),
        resources=Resources(requests=_amounts(resources.get("requests")), limits=_amounts(resources.get("limits"))),
        mounts=tuple(_mount(m) for m in value.get("volumeMounts") or ()),
    )


def _variable(value: Mapping[str, Any]) -> EnvVar:
    source = {k: v for k, v in (value.get("valueFrom") or {}).items() if v is not None}
    if not source:
        return EnvVar(name=value["name"], value=value.get("value") or "")
    if "fieldRef" in source:
        return EnvVar(name=value["name"], field_path=source["fieldRef"]["fieldPath"])
    return EnvVar(name=value["name"], other_source=next(iter(source)))


def _source_name(value: Mapping[str, Any]) -> str:
    source = value.get("configMapRef") or value.get("secretRef") or {}
    return str(source.get("name") or "")


def _mount(value: Mapping[str, Any]) -> VolumeMount:
    return VolumeMount(
        name=value["name"],
        mount_path=value["mountPath"],
        sub_path=value.get("subPath") or "",
        read_only=value.get("readOnly") or False,
    )


def _volume(value: Mapping[str, Any]) -> Volume:
    kind = next((name for name, part in value.items() if name != "name" and part is not None), "")
    part = value.get(kind) or {}
    limit = part.get("sizeLimit") if kind == "emptyDir" else None
    return Volume(
        name=value["name"],
        kind=kind,
        host_path=part.get("path") if kind == "hostPath" else None,
        host_path_type=(part.get("type") or "") if kind == "hostPath" else "",
        medium=(part.get("medium") or "") if kind == "emptyDir" else "",
        size_limit=parse_quantity(limit) if limit is not None else None,
    )


def _amounts(value: Mapping[str, Any] | None) -> dict[str, Decimal]:
    return {name: parse_quantity(amount) for name, amount in (value or {}).items()}


def _run_policy(model: doc.AnyMPIJob) -> RunPolicy:
    policy = model.spec.run_policy
    return RunPolicy(
        clean_pod_policy=defaults.clean_pod_policy(model),
        ttl_seconds_after_finished=policy.ttl_seconds_after_finished,
        active_deadline_seconds=policy.active_deadline_seconds,
        backoff_limit=policy.backoff_limit,
        suspend=policy.suspend,
        managed_by=ManagedBy(policy.managed_by) if policy.managed_by is not None else None,
        scheduling=_scheduling(policy.scheduling_policy) if policy.scheduling_policy is not None else None,
    )


def _scheduling(policy: doc.SchedulingFields) -> SchedulingPolicy:
    return SchedulingPolicy(
        min_available=policy.min_available,
        queue=policy.queue,
        min_resources=_amounts(policy.min_resources) if policy.min_resources is not None else None,
        priority_class=policy.priority_class,
        schedule_timeout_seconds=policy.schedule_timeout_seconds,
    )


def _time(text: str | None) -> datetime | None:
    try:
        time = datetime.fromisoformat(text) if text else None
    except ValueError:
        return None
    if time is not None and time.tzinfo is None:
        return time.replace(tzinfo=UTC)
    return time
