"""Manifests of every kind, a new value for every field, and where in a document each field may show."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from oarsman.manifest import form
from oarsman.manifest.source import read

ROOT = Path(__file__).parents[3]
FOLDERS = ("examples", "src/oarsman/sdk/starters")
GOOD = tuple(sorted(str(p.relative_to(ROOT)) for folder in FOLDERS for p in (ROOT / folder).rglob("*.yaml")))
BROKEN = tuple(sorted(str(path.relative_to(ROOT)) for path in (ROOT / "tests/manifest/broken").glob("*.yaml")))

# What a field is set to where nothing depends on what it was.
NEW: dict[str, Any] = {
    "api_version": "kubeflow.org/v9",
    "name": "another",
    "description": "two words: 描述 # not a comment",
    "namespace": "elsewhere",
    "priority": 7,
    "queue": "night",
    "image": "example.org/other:1.2",
    "environment": "torch",
    "install": "pip install numpy\napt-get install -y numactl\n",
    "working_dir": "/work dir",
    "mpi": "MPICH",
    "launcher_cpu": "3",
    "launcher_memory": "7Gi",
    "launcher_gpu": "5",
    "workers": 11,
    "slots": 13,
    "worker_cpu": "1500m",
    "worker_memory": "9Gi",
    "worker_gpu": "6",
    "worker_vgpu": "4",
    "worker_gpu_memory": "2k",
    "clean_policy": "All",
    "retries": 9,
    "deadline": 12345,
    "ttl": 0,
    "elastic_min": 2,
    "elastic_max": 64,
    "suspend": True,
    "min_available": 2,
    "priority_class": "high",
    "schedule_timeout": 60,
    "restart_policy": "ExitCode",
    "network": "host",
    "oversubscribe": True,
}
_MAIN = r"spec\.mpiReplicaSpecs\.(Launcher|Worker)\.template\.spec\.containers\.0\."
_POD = r"spec\.mpiReplicaSpecs\.(Launcher|Worker)\.template\.spec\."
_WORDS = _MAIN.replace("|Worker", "") + r"(command|args)(\.|$)"
_NOTE = r"metadata\.annotations(\.oarsman\.dev/{}$|$)"
_RUN, _GANG = r"spec\.runPolicy(\.{}$|$)", r"spec\.runPolicy(\.schedulingPolicy(\.{}$|$)|$)"


def _amount(role: str, resource: str) -> str:
    main = _MAIN.replace("Launcher|Worker", role)
    return main + rf"resources(\.(limits|requests)(\.{resource}$|$)|$)"


# Where a change of the field may show. What lies above is named too: it may come into being with the field.
WHERE: dict[str, str] = {
    "api_version": r"apiVersion$",
    "name": r"metadata\.name$",
    "description": _NOTE.format("description"),
    "namespace": r"metadata\.namespace$",
    "priority": _NOTE.format("priority"),
    "queue": _GANG.format("queue"),
    "image": _MAIN + "image$",
    "environment": _NOTE.format("environment"),
    "install": _NOTE.format("install"),
    "command": _MAIN + r"command(\.|$)",
    "args": _MAIN + r"args(\.|$)",
    "working_dir": _MAIN + "workingDir$",
    "mpi": rf"spec\.mpiImplementation$|{_NOTE.format('mpi')}",
    "launcher_cpu": _amount("Launcher", "cpu"),
    "launcher_memory": _amount("Launcher", "memory"),
    "launcher_gpu": _amount("Launcher", ".*/gpu"),
    "worker_cpu": _amount("Worker", "cpu"),
    "worker_memory": _amount("Worker", "memory"),
    "worker_gpu": _amount("Worker", ".*/gpu"),
    "worker_vgpu": _amount("Worker", "nvidia.com/vgpu"),
    "worker_gpu_memory": _amount("Worker", "nvidia.com/gpumem"),
    "workers": rf"spec\.mpiReplicaSpecs\.Worker(\.replicas)?$|{_WORDS}",
    "slots": rf"spec\.slotsPerWorker$|{_WORDS}",
    "clean_policy": rf"spec\.cleanPodPolicy$|{_RUN.format('cleanPodPolicy')}",
    "retries": _RUN.format("backoffLimit"),
    "deadline": _RUN.format("activeDeadlineSeconds"),
    "ttl": _RUN.format("ttlSecondsAfterFinished"),
    "elastic_min": _WORDS,
    "elastic_max": _WORDS,
    "suspend": _RUN.format("suspend"),
    "min_available": _GANG.format("minAvailable"),
    "priority_class": _GANG.format("priorityClass"),
    "schedule_timeout": _GANG.format("scheduleTimeoutSeconds"),
    "restart_policy": r"spec\.mpiReplicaSpecs\.Launcher\.restartPolicy$",
    "labels": r"metadata\.labels(\.|$)",
    "annotations": r"metadata\.annotations(\.(?!oarsman\.dev)|$)",
    "env": _MAIN + r"env(\.|$)",
    "volumes": rf"{_MAIN}volumeMounts(\.|$)|{_POD}volumes(\.|$)",
    "network": _NOTE.format("network"),
    "oversubscribe": _NOTE.format("oversubscribe"),
}


@cache
def text_of(name: str) -> str:
    return (ROOT / name).read_bytes().decode()


def readable(name: str) -> bool:
    """Whether the text is YAML with a mapping in it; what the mapping says may be wrong in every way."""
    try:
        found, problems = read(text_of(name), name)
    except UnicodeDecodeError:
        return False
    return not problems and bool(found) and isinstance(found[0].value, dict)


@cache
def _shown(text: str) -> dict[str, Any]:
    return form.values(form.document(text))


def shows(text: str, field: str) -> Any:
    """What one field of the form shows."""
    return form.FIELDS[field].read(form.document(text))


def new_value(field: str, text: str) -> Any:
    """Something the field does not say yet. Lists and pairs get one more, so that nothing of theirs has to go."""
    before = _shown(text)[field]
    more: dict[str, Any] = {"words": ["--one-more", "2"], "pairs": {"one-more": "true"}}
    more["volumes"] = [{"path": "/one-more", "source": "a-claim", "read_only": True}]
    kind = form.FIELDS[field].kind
    if kind == "pairs":
        return {**before, **more[kind]}
    return [*before, *more[kind]] if kind in more else NEW[field]


def differences(before: Any, after: Any, path: str = "") -> Iterator[str]:
    """The dotted paths at which two documents differ."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in dict.fromkeys([*before, *after]):
            place = f"{path}.{key}".lstrip(".")
            if (key in before) != (key in after):
                yield place
            else:
                yield from differences(before[key], after[key], place)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for at, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from differences(one, other, f"{path}.{at}")
    elif type(before) is not type(after) or before != after:
        yield path


@cache
def commented(name: str) -> str:
    """The manifest with a comment of its own on every line that can have one, and one on a line of its own before."""
    lines = text_of(name).splitlines()
    wanted = read(text_of(name), name)[0][0].value
    for at, line in enumerate(lines):
        pad = line[: len(line) - len(line.lstrip())]
        for with_comment in (f"{pad}# before {at}.\n{line} # behind {at}.", f"{line} # behind {at}.", f"{line}"):
            lines[at] = with_comment
            found, problems = read("\n".join(lines) + "\n", name)
            if not problems and found[0].value == wanted:
                break
    return "\n".join(lines) + "\n"


def comments(text: str) -> list[str]:
    return re.findall(r"# (?:before|behind) \d+\.", text)
