"""kwok plays a node and its kubelet: pods of `on_kwok` templates seem to run, thousands of them, at little cost.

A pod runs as soon as it is there; with the annotation ENDS it ends; deleted, it is gone. Containers are never started.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cluster import build
from cluster.cluster import Cluster
from cluster.kubectl import until
from cluster.world import Program

NODE = "kwok"
ENDS = "oarsman.test/ends"  # on a pod, with any value: its containers exit with 0
ADDRESSES = "10.128.0.0/9"  # one for each pod
AT_ONCE = 16  # pods that change at the same time
LEASE_SECONDS = 20  # kwok renews it after a quarter of that, so the node counts as alive

# -- statuses, as Go's templates ---------------------------------------------------------------------
_RUNS = """
phase: Running
startTime: {{ Now | Quote }}
podIP: {{ PodIPWith .spec.nodeName false .metadata.uid .metadata.name .metadata.namespace | Quote }}
conditions:
- {type: Initialized, status: "True", lastTransitionTime: {{ Now | Quote }}}
- {type: Ready, status: "True", lastTransitionTime: {{ Now | Quote }}}
- {type: ContainersReady, status: "True", lastTransitionTime: {{ Now | Quote }}}
initContainerStatuses:
{{ range .spec.initContainers }}
- {name: {{ .name | Quote }}, image: {{ .image | Quote }}, imageID: "", restartCount: 0, ready: true,
   state: {terminated: {exitCode: 0, reason: Completed, startedAt: {{ Now | Quote }}, finishedAt: {{ Now | Quote }}}}}
{{ end }}
containerStatuses:
{{ range .spec.containers }}
- {name: {{ .name | Quote }}, image: {{ .image | Quote }}, imageID: "", restartCount: 0, ready: true,
   state: {running: {startedAt: {{ Now | Quote }}}}}
{{ end }}
"""
_HAS_ENDED = """
phase: Succeeded
conditions:
- {type: Ready, status: "False", lastTransitionTime: {{ Now | Quote }}}
- {type: ContainersReady, status: "False", lastTransitionTime: {{ Now | Quote }}}
containerStatuses:
{{ range .spec.containers }}
- {name: {{ .name | Quote }}, image: {{ .image | Quote }}, imageID: "", restartCount: 0, ready: false,
   state: {terminated: {exitCode: 0, reason: Completed, startedAt: {{ Now | Quote }}, finishedAt: {{ Now | Quote }}}}}
{{ end }}
"""
_IS_READY = """
conditions:
- {type: Ready, status: "True", reason: Played,
   lastTransitionTime: {{ Now | Quote }}, lastHeartbeatTime: {{ Now | Quote }}}
"""


def _cel(expression: str) -> dict[str, Any]:
    """Costs kwok less than jq."""
    return {"cel": {"expression": expression}}


def _stage(name: str, kind: str, when: dict[str, Any], template: str) -> dict[str, Any]:
    """The status that objects get which are so. Without a template they are deleted."""
    patch = {"subresource": "status", "root": "status", "template": template}
    return {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": {"name": name},
        "spec": {
            "resourceRef": {"apiGroup": "v1", "kind": kind},
            "selector": {"matchExpressions": [when]},
            "steps": [{"patch": patch} if template else {"delete": True}],
        },
    }


_CONDITION = '.status.conditions.[] | select(.type == "Ready") | .status'
_NOT_READY = {"key": _CONDITION, "operator": "NotIn", "values": ["True"]}
_DELETED = "has(self.metadata.deletionTimestamp)"
_TOLD_TO_END = f'has(self.metadata.annotations) && "{ENDS}" in self.metadata.annotations'
CONFIGURATION: list[dict[str, Any]] = [
    {
        "apiVersion": "config.kwok.x-k8s.io/v1alpha1",
        "kind": "KwokConfiguration",
        "options": {
            "podPlayStageParallelism": AT_ONCE,
            "nodePlayStageParallelism": 1,
            "nodeLeaseParallelism": 1,
            "podsOnNodeSyncParallelism": 1,
        },
    },
    _stage("node-ready", "Node", {"jq": _NOT_READY}, _IS_READY),
    _stage("pod-runs", "Pod", _cel(f'!{_DELETED} && self.status.phase == "Pending"'), _RUNS),
    _stage("pod-ends", "Pod", _cel(f'!{_DELETED} && self.status.phase == "Running" && {_TOLD_TO_END}'), _HAS_ENDED),
    _stage("pod-goes", "Pod", _cel(_DELETED), ""),
]


def on_kwok(pod_spec: dict[str, Any]) -> dict[str, Any]:
    """The same, on kwok's node without being scheduled."""
    return {**pod_spec, "nodeName": NODE}


@contextlib.contextmanager
def playing(cluster: Cluster) -> Iterator[Program]:
    """kwok at work in this cluster, until the cluster or this ends."""
    found = build.kwok()
    if found is None:
        raise RuntimeError("kwok is missing: say scripts/setup bench")
    world = cluster.control_plane.world
    configuration = world.work / "kwok.yaml"
    configuration.write_text("\n---\n".join(json.dumps(document) for document in CONFIGURATION))  # JSON is YAML
    program = Program(world, "kwok", _command(found, cluster.kubeconfig, configuration))
    cluster.client.ask("POST", "/api/v1/nodes", {"metadata": {"name": NODE}})
    program.start()
    try:
        until(lambda: _is_ready(cluster, program), lambda: f"kwok's node is ready; see {program.log}")
        yield program
    finally:
        program.kill()
        with contextlib.suppress(OSError):  # a server that is gone has no node
            cluster.client.ask("DELETE", f"/api/v1/nodes/{NODE}")


def _command(program: Path, kubeconfig: Path, configuration: Path) -> list[str | Path]:
    return [
        program,
        f"--kubeconfig={kubeconfig}",
        f"--config={configuration}",
        f"--manage-single-node={NODE}",
        f"--node-lease-duration-seconds={LEASE_SECONDS}",
        f"--cidr={ADDRESSES}",
        "--v=WARN",
    ]


def _is_ready(cluster: Cluster, program: Program) -> bool:
    program.check()
    conditions = cluster.get("nodes", NODE)["status"].get("conditions", ())
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
