"""What is read from a pod as the API server shows it."""

from __future__ import annotations

from typing import Any

from for_every import for_every_row

from oarsman.backends.kube import lookups

FAILED = [{"name": "worker", "state": {"terminated": {"exitCode": 1}}}]
RUNNING = [{"name": "worker", "state": {"running": {}}}]


def a_pod(phase: str, statuses: list[Any], *, restart: str = "Never", **metadata: str) -> dict[str, Any]:
    status = {"phase": phase, "containerStatuses": statuses}
    return {"metadata": metadata, "spec": {"restartPolicy": restart}, "status": status}


@for_every_row(
    [
        (a_pod("Running", RUNNING), True),
        (a_pod("Running", FAILED, restart="Always"), True),
        (a_pod("Running", FAILED), False),  # kubectl says Error by then, and the pod's phase follows
        (a_pod("Failed", FAILED), False),
        (a_pod("Running", RUNNING, deletionTimestamp="2026-01-01T00:00:00Z"), False),
    ]
)
def test_a_pod_goes_on_until_its_program_has_ended_for_good_or_it_is_being_deleted(
    pod: dict[str, Any], goes_on: bool
) -> None:
    assert lookups.goes_on(pod, "worker") is goes_on
