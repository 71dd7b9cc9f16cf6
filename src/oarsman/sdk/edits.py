"""Changes to an MPIJob document, one function per thing that can be said. They change the document they are given."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import ceil
from typing import Any

from oarsman import names
from oarsman.errors import UsageError

Document = dict[str, Any]
_RANKS = ("-n", "-np", "--np", "--n")


def at_least(least: int, value: int, field: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise UsageError(f"{field} must be a whole number of at least {least}, not {value!r}", field=field)
    return value


# -- where things are -------------------------------------------------------------------------------
def _within(document: Document, *steps: str) -> Document:
    """The mapping at that place, made where it is missing."""
    for step in steps:
        if not isinstance(document.get(step), dict):
            document[step] = {}
        document = document[step]
    return document


def _role(document: Document, role: str) -> Document | None:
    specs = _within(document, "spec", "mpiReplicaSpecs")
    return _within(specs, role) if isinstance(specs.get(role), dict) else None


def _container(document: Document, role: str) -> Document | None:
    found = _role(document, role)
    if found is None:
        return None
    containers = _within(found, "template", "spec").setdefault("containers", [])
    if not containers:
        containers.append({"name": role.lower()})
    wanted = (document.get("spec") or {}).get("mainContainer")
    main: Document = next((c for c in containers if wanted and c.get("name") == wanted), containers[0])
    return main


def _containers(document: Document) -> Iterator[Document]:
    for role in ("Launcher", "Worker"):
        container = _container(document, role)
        if container is not None:
            yield container


def _workers(document: Document) -> Document:
    found = _role(document, "Worker")
    if found is None:
        raise UsageError("the job has no workers", field="spec.mpiReplicaSpecs.Worker")
    return found


def _total(document: Document) -> int:
    spec, worker = document.get("spec") or {}, _role(document, "Worker")
    return int((worker or {}).get("replicas") or 1) * int(spec.get("slotsPerWorker") or 1)


def _set_ranks(document: Document, before: int) -> None:
    """A launch line that filled every slot goes on to do so; one that did not is left alone."""
    container = _container(document, "Launcher") or {}
    for part in ("command", "args"):
        words = container.get(part) or []
        for index, word in enumerate(words):
            if word in _RANKS and words[index + 1 : index + 2] == [str(before)]:
                words[index + 1] = str(_total(document))
                return


# -- what can be changed ----------------------------------------------------------------------------
def _name(document: Document, value: str) -> None:
    _within(document, "metadata")["name"] = value


def _namespace(document: Document, value: str) -> None:
    _within(document, "metadata")["namespace"] = value


def _image(document: Document, value: str) -> None:
    for container in _containers(document):
        container["image"] = value


def _command(document: Document, value: Sequence[str]) -> None:
    if isinstance(value, str) or not value:
        raise UsageError("a command is a list of words", field="command", hint='["python", "train.py"]')
    container = _container(document, "Launcher")
    if container is None:
        raise UsageError("the job has no launcher", field="spec.mpiReplicaSpecs.Launcher")
    before = container.get("command") or []
    ours = len(before) >= 3 and before[0] == "mpirun" and before[1] in _RANKS
    start = list(before[:3]) if ours else ["mpirun", "-n", str(_total(document))]
    container["command"] = [*start, *map(str, value)]
    container.pop("args", None)


def _replicas(document: Document, value: int) -> None:
    before = _total(document)
    _workers(document)["replicas"] = at_least(1, value, "workers")
    _set_ranks(document, before)


def _slots(document: Document, value: int) -> None:
    before = _total(document)
    _within(document, "spec")["slotsPerWorker"] = at_least(1, value, "slots")
    _set_ranks(document, before)


def _env(document: Document, value: Mapping[str, object]) -> None:
    for container in _containers(document):
        kept = [item for item in container.get("env") or [] if item.get("name") not in value]
        added = [{"name": name, "value": str(given)} for name, given in value.items() if given is not None]
        if kept or added:
            container["env"] = [*kept, *added]
        else:
            container.pop("env", None)


def _limit(resource: str) -> Callable[[Document, Any], None]:
    def edit(document: Document, value: Any) -> None:
        _workers(document)
        container = _container(document, "Worker")
        assert container is not None
        limits = _within(container, "resources", "limits")
        gpu = next((known for known in limits if known.endswith("/gpu")), resource)
        key = gpu if resource.endswith("/gpu") else resource
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
        policy = _within(document, "spec", "runPolicy")
        if value is None:
            policy.pop(field, None)
        else:
            policy[field] = ceil(value) if isinstance(value, float) else value

    return edit


def _clean_pod_policy(document: Document, value: str) -> None:
    spec = _within(document, "spec")
    if "cleanPodPolicy" in spec:  # the older place of v1, which wins
        spec["cleanPodPolicy"] = value
    else:
        _policy("cleanPodPolicy")(document, value)


def _marks(kind: str) -> Callable[[Document, Mapping[str, Any]], None]:
    def edit(document: Document, value: Mapping[str, Any]) -> None:
        kept = {k: v for k, v in _within(document, "metadata", kind).items() if k not in value}
        added = {k: str(v) for k, v in value.items() if v is not None}
        document["metadata"][kind] = {**kept, **added}

    return edit


def _priority(document: Document, value: int | None) -> None:
    _marks("annotations")(document, {names.ANNOTATION_PRIORITY: value})


def _queue(document: Document, value: str | None) -> None:
    policy = _within(document, "spec", "runPolicy", "schedulingPolicy")
    if value is None:
        policy.pop("queue", None)
    else:
        policy["queue"] = value


def _volumes(document: Document, value: Mapping[str, str | Mapping[str, Any]]) -> None:
    for role in ("Launcher", "Worker"):
        container, found = _container(document, role), _role(document, role)
        if container is None or found is None:
            continue
        pod = _within(found, "template", "spec")
        for path, source in value.items():
            if not path.startswith("/"):
                raise UsageError(f"a volume is mounted at a whole path, not '{path}'", field="volumes", hint="/data")
            name = "vol-" + (re.sub(r"[^a-z0-9]+", "-", path.lower()).strip("-") or "root")[:50].strip("-")
            where, read_only = _volume_source(source)
            mount = {"name": name, "mountPath": path, **({"readOnly": True} if read_only else {})}
            pod["volumes"] = [v for v in pod.get("volumes") or [] if v.get("name") != name] + [{"name": name, **where}]
            container["volumeMounts"] = [
                m for m in container.get("volumeMounts") or [] if m.get("mountPath") != path
            ] + [mount]


def _volume_source(source: str | Mapping[str, Any]) -> tuple[Mapping[str, Any], bool]:
    if not isinstance(source, str):
        return dict(source), False
    name, read_only = source.removesuffix(":ro"), source.endswith(":ro")
    if name.startswith("/"):
        return {"hostPath": {"path": name}}, read_only
    return {"persistentVolumeClaim": {"claimName": name}}, read_only


def make_elastic(document: Document, command: Sequence[str], least: int | None, most: int | None) -> None:
    """horovodrun starts the job and asks the discovery script for its hosts."""
    spec = document["spec"]
    workers, slots = int(_workers(document)["replicas"]), int(spec["slotsPerWorker"])
    least, most = least if least is not None else 1, most if most is not None else workers
    if not at_least(1, least, "min_workers") <= workers <= at_least(1, most, "max_workers"):
        raise UsageError(
            f"{workers} workers are not between min_workers={least} and max_workers={most}", field="workers"
        )
    container = _container(document, "Launcher")
    assert container is not None
    script = f"{names.MPI_CONFIG_DIR}/{names.DISCOVER_HOSTS}"
    container["command"] = [
        "horovodrun", "-np", str(workers * slots), "--min-np", str(least * slots), "--max-np", str(most * slots),
        "--host-discovery-script", script, *command,
    ]  # fmt: skip


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
