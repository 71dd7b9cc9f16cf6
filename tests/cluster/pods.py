"""Objects for tests, as short as they can be written."""

from __future__ import annotations

from typing import Any


def pod(name: str, image: str, *command: str, service: str = "peers", **spec: Any) -> dict[str, Any]:
    """Found by others as NAME.SERVICE; it does not outlive its namespace by a grace period."""
    container = {"name": "main", "image": image, "command": list(command), **spec.pop("container", {})}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"service": service, "pod": name}},
        "spec": {
            "hostname": name,
            "subdomain": service,
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 0,
            "containers": [container],
            **spec,
        },
    }


def sleeping(name: str, image: str, **spec: Any) -> dict[str, Any]:
    return pod(name, image, "sleep", "infinity", **spec)


def headless(name: str = "peers", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"clusterIP": "None", "selector": {"service": name}, **spec},
    }


def service(name: str, pod: str, port: int) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"selector": {"pod": pod}, "ports": [{"port": 80, "targetPort": port}]},
    }


def secret(name: str, **content: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": content}
