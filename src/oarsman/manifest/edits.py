"""Changes to an MPIJob document, one function per thing that can be said. They change the document they are given."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import ceil
from typing import Any

from oarsman import names
from oarsman.errors import UsageError
from oarsman.manifest.parts import (
    RANKS,
    Document,
    keep_filling_slots,
    main_container,
    main_containers,
    resource_key,
    role_of,
    total_slots,
    volume_name,
    volume_source,
    within,
)


def at_least(least: int, value: int, field: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise UsageError(f"{field} must be a whole number of at least {least}, not {value!r}", field=field)
    return value


def _workers(document: Document) -> Document:
    found = role_of(document, "Worker")
    if found is None:
        raise UsageError("the job has no workers", field="spec.mpiReplicaSpecs.Worker")
    return found


# -- what can be changed ----------------------------------------------------------------------------
def _name(document: Document, value: str) -> None:
    within(document, "metadata")["name"] = value


def _namespace(document: Document, value: str) -> None:
    within(document, "metadata")["namespace"] = value


def _image(document: Document, value: str) -> None:
    for container in main_containers(document):
        container["image"] = value


def _command(document: Document, value: Sequence[str]) -> None:
    if isinstance(value, str) or not value:
        raise UsageError("a command is a list of words", field="command", hint='["python", "train.py"]')
    container = main_container(document, "Launcher")
    if container is None:
        raise UsageError("the job has no launcher", field="spec.mpiReplicaSpecs.Launcher")
    before = container.get("command") or []
    ours = len(before) >= 3 and before[0] == "mpirun" and before[1] in RANKS
    start = list(before[:3]) if ours else ["mpirun", "-n", str(total_slots(document))]
    container["command"] = [*start, *map(str, value)]
    container.pop("args", None)


def _replicas(document: Document, value: int) -> None:
    before = total_slots(document)
    _workers(document)["replicas"] = at_least(1, value, "workers")
    keep_filling_slots(document, before)


def _slots(document: Document, value: int) -> None:
    before = total_slots(document)
    within(document, "spec")["slotsPerWorker"] = at_least(1, value, "slots")
    keep_filling_slots(document, before)


def _env(document: Document, value: Mapping[str, object]) -> None:
    for container in main_containers(document):
        kept = [item for item in container.get("env") or [] if item.get("name") not in value]
        added = [{"name": name, "value": str(given)} for name, given in value.items() if given is not None]
        if kept or added:
            container["env"] = [*kept, *added]
        else:
            container.pop("env", None)


def _limit(resource: str) -> Callable[[Document, Any], None]:
    def edit(document: Document, value: Any) -> None:
        _workers(document)
        container = main_container(document, "Worker")
        assert container is not None
        limits = within(container, "resources", "limits")
        key = resource_key(limits, resource)
        if value is None or value == 0:
            limits.pop(key, None)
        else:
            limits[key] = str(value)
        requests = container["resources"].get("requests")
        if isinstance(requests, dict):  # one that says otherwise would be a mistake, or keep the old amount
            requests.pop(key, None)

    return edit


def _policy(field: str) -> Callable[[Document, Any], None]:
    def edit(document: Document, value: Any) -> None:
        policy = within(document, "spec", "runPolicy")
        if value is None:
            policy.pop(field, None)
        else:
            policy[field] = ceil(value) if isinstance(value, float) else value

    return edit


def _clean_pod_policy(document: Document, value: str) -> None:
    spec = within(document, "spec")
    if "cleanPodPolicy" in spec:  # the older place of v1, which wins
        spec["cleanPodPolicy"] = value
    else:
        _policy("cleanPodPolicy")(document, value)


def _marks(kind: str) -> Callable[[Document, Mapping[str, Any]], None]:
    def edit(document: Document, value: Mapping[str, Any]) -> None:
        kept = {k: v for k, v in within(document, "metadata", kind).items() if k not in value}
        added = {k: str(v) for k, v in value.items() if v is not None}
        document["metadata"][kind] = {**kept, **added}

    return edit


def _priority(document: Document, value: int | None) -> None:
    _marks("annotations")(document, {names.ANNOTATION_PRIORITY: value})


def _annotation(name: str) -> Callable[[Document, str | None], None]:
    return lambda document, value: _marks("annotations")(document, {name: value})


def _queue(document: Document, value: str | None) -> None:
    policy = within(document, "spec", "runPolicy", "schedulingPolicy")
    if value is None:
        policy.pop("queue", None)
    else:
        policy["queue"] = value


def _volumes(document: Document, value: Mapping[str, str | Mapping[str, Any]]) -> None:
    for role in ("Launcher", "Worker"):
        container, found = main_container(document, role), role_of(document, role)
        if container is None or found is None:
            continue
        pod = within(found, "template", "spec")
        for path, source in value.items():
            if not path.startswith("/"):
                raise UsageError(f"a volume is mounted at a whole path, not '{path}'", field="volumes", hint="/data")
            name = volume_name(path)
            where, read_only = _volume_source(source)
            mount = {"name": name, "mountPath": path, **({"readOnly": True} if read_only else {})}
            pod["volumes"] = [v for v in pod.get("volumes") or [] if v.get("name") != name] + [{"name": name, **where}]
            container["volumeMounts"] = [
                m for m in container.get("volumeMounts") or [] if m.get("mountPath") != path
            ] + [mount]


def _volume_source(source: str | Mapping[str, Any]) -> tuple[Mapping[str, Any], bool]:
    if not isinstance(source, str):
        return dict(source), False
    return volume_source(source.removesuffix(":ro")), source.endswith(":ro")


def make_elastic(document: Document, command: Sequence[str], least: int | None, most: int | None) -> None:
    """horovodrun starts the job and asks the discovery script for its hosts."""
    spec = document["spec"]
    workers, slots = int(_workers(document)["replicas"]), int(spec["slotsPerWorker"])
    least, most = least if least is not None else 1, most if most is not None else workers
    if not at_least(1, least, "min_workers") <= workers <= at_least(1, most, "max_workers"):
        raise UsageError(
            f"{workers} workers are not between min_workers={least} and max_workers={most}", field="workers"
        )
    container = main_container(document, "Launcher")
    assert container is not None
    script = f"{names.MPI_CONFIG_DIR}/{names.DISCOVER_HOSTS}"
    container["command"] = [
        "horovodrun",
        "-np",
        str(workers * slots),
        "--min-np",
        str(least * slots),
        "--max-np",
        str(most * slots),
        "--host-discovery-script",
        script,
        *command,
    ]


EDITS: dict[str, Callable[[Document, Any], None]] = {
    "name": _name,
    "namespace": _namespace,
    "image": _image,
    "workers": _replicas,
    "slots": _slots,
    "command": _command,
    "env": _env,
    "cpus": _limit("cpu"),
    "memory": _limit("memory"),
    "gpus": _limit("nvidia.com/gpu"),
    "clean_pod_policy": _clean_pod_policy,
    "backoff_limit": _policy("backoffLimit"),
    "deadline": _policy("activeDeadlineSeconds"),
    "ttl": _policy("ttlSecondsAfterFinished"),
    "labels": _marks("labels"),
    "annotations": _marks("annotations"),
    "volumes": _volumes,
    "priority": _priority,
    "queue": _queue,
    "environment": _annotation(names.ANNOTATION_ENVIRONMENT),
    "install": _annotation(names.ANNOTATION_INSTALL),
}


def merge_patch(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON merge patch (RFC 7396) from one document to the other. Lists are replaced whole."""
    patch: dict[str, Any] = {name: None for name in before if name not in after}
    for name, value in after.items():
        old = before.get(name)
        if isinstance(value, dict) and isinstance(old, dict):
            if inner := merge_patch(old, value):
                patch[name] = inner
        elif name not in before or old != value:
            patch[name] = value
    return patch
