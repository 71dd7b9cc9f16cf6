"""What launcher and workers have in common: a copy of the user's template, and ways to add to it with care."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from oarsman import names
from oarsman.engines.kube import environments
from oarsman.engines.kube.objects import config_map
from oarsman.engines.kube.objects.common import KubeOptions, Object, owner, pod_labels
from oarsman.engines.kube.objects.preparation import SCRIPT, PodPreparation
from oarsman.job.job import Job, RestartPolicy

_KEYS: Final = "oarsman-ssh"
_RUN: Final = "oarsman-run"
KEYS_DIR: Final = "/etc/oarsman/ssh"
RUN_DIR: Final = "/run/oarsman"
_RESTARTS: Final = {RestartPolicy.EXIT_CODE: "Never"}
_KEPT_BY_INIT: Final = ("image", "imagePullPolicy", "securityContext")


class PodDraft:
    """A pod template being completed. The user's own words are never overwritten without need."""

    def __init__(self, job: Job, index: int | None, options: KubeOptions, preparation: PodPreparation) -> None:
        """Of a worker, or, without an index, of the launcher."""
        role = job.launcher if index is None else job.worker
        assert role is not None
        template = copy.deepcopy(dict(role.template))
        metadata = template.get("metadata") or {}
        self.job = job
        self.preparation = preparation
        self.labels: dict[str, str] = {**(metadata.get("labels") or {}), **pod_labels(job, index)}
        self.annotations: dict[str, str] = {
            **(metadata.get("annotations") or {}),
            names.ANNOTATION_TEMPLATE: fingerprint(role.template),
        }
        self.spec: Object = template.get("spec") or {}
        self.main: Object = self.spec["containers"][role.main]
        spec = self.spec
        spec["hostname"] = job.launcher_host if index is None else job.worker_host(index)
        spec["subdomain"] = job.name
        spec["restartPolicy"] = _RESTARTS.get(role.restart_policy, role.restart_policy.value)
        if spec.get("hostNetwork"):
            spec["dnsPolicy"] = "ClusterFirstWithHostNet"
        searches = spec.setdefault("dnsConfig", {}).setdefault("searches", [])
        searches.append(f"{job.name}.{job.namespace}.svc.{options.cluster_domain or 'cluster.local'}")

    # -- variables ------------------------------------------------------------------------------
    def export(self, variables: Mapping[str, str]) -> None:
        """Add variables the user has not set."""
        env = self.main.setdefault("env", [])
        known = {variable["name"] for variable in env}
        env += [{"name": name, "value": value} for name, value in variables.items() if name not in known]

    # -- volumes --------------------------------------------------------------------------------
    def mount(self, volume: Object, path: str, containers: Iterable[Object] = (), **more: Any) -> None:
        volumes = self.spec.setdefault("volumes", [])
        if all(known["name"] != volume["name"] for known in volumes):
            volumes.append(volume)
        for container in containers or (self.main,):
            mounts = container.setdefault("volumeMounts", [])
            if all((known["name"], known["mountPath"]) != (volume["name"], path) for known in mounts):
                mounts.append({"name": volume["name"], "mountPath": path, **more})

    def mount_config(self, files: Mapping[str, int], *containers: Object) -> None:
        wanted = {**files, **self.preparation.files}
        items = [{"key": key, "path": key, "mode": mode} for key, mode in wanted.items()]
        source = {"name": config_map.name(self.job), "items": items}
        volume: Object = {"name": names.VOLUME_CONFIG, "configMap": source}
        if self.preparation.many_hosts and names.DISCOVER_HOSTS in files:
            apart = [item for item in items if item["key"] == names.DISCOVER_HOSTS]
            sources = [
                {**source, "items": [item for item in items if item not in apart]},
                {"name": config_map.name_of_hosts(self.job), "items": apart},
            ]
            volume = {"name": names.VOLUME_CONFIG, "projected": {"sources": [{"configMap": each} for each in sources]}}
        self.mount(volume, names.MPI_CONFIG_DIR, containers)

    def mount_run(self, *containers: Object) -> None:
        self.mount({"name": _RUN, "emptyDir": {"medium": "Memory"}}, RUN_DIR, containers)

    def mount_keys(self, sources: Mapping[str, Mapping[str, str]], *containers: Object) -> None:
        """For our own scripts, readable by whichever user runs here; they copy what has to be private."""
        parts = [{"secret": {"name": name, "items": _items(items)}} for name, items in sources.items()]
        self.mount({"name": _KEYS, "projected": {"sources": parts, "defaultMode": 0o444}}, KEYS_DIR, containers)

    def mount_ssh_auth(self, sources: Mapping[str, Mapping[str, str]]) -> None:
        """As upstream has it, for commands that look for keys in the place the manifest names."""
        parts = [{"name": name, "items": _items(items)} for name, items in sources.items()]
        if len(parts) == 1:
            kind, content = "secret", Object(secretName=parts[0]["name"], items=parts[0]["items"])
        else:
            kind, content = "projected", Object(sources=[{"secret": part} for part in parts])
        if self.job.ssh_auth_mount_path == "/root/.ssh":
            content["defaultMode"] = 0o600
        self.mount({"name": names.VOLUME_SSH_AUTH, kind: content}, self.job.ssh_auth_mount_path)

    # -- what is done first in the container itself -----------------------------------------------
    def prepare(self) -> None:
        """Put the preparation before the command. Its files are among those of `mount_config`."""
        keeps = self.preparation.commands or self.preparation.shim
        if keeps and all(mounted["mountPath"] != RUN_DIR for mounted in self.main["volumeMounts"]):
            self.mount_run(self.main)
        if not self.preparation:
            return
        if self.preparation.environment:
            self.export({"OARSMAN_ENVIRONMENT": self.preparation.path})
            claim = {"name": environments.CLAIM, "persistentVolumeClaim": {"claimName": environments.CLAIM}}
            self.mount(claim, environments.PLACE, readOnly=True)
        if self.main.get("command"):
            self.main["command"] = ["/bin/sh", f"{names.MPI_CONFIG_DIR}/{SCRIPT}", *self.main["command"]]

    # -- containers that run before --------------------------------------------------------------
    def before(self, name: str, command: list[str], variables: Mapping[str, str] | None = None) -> Object:
        """An init container in the user's own image, as the user's own user, within the same resources."""
        container: Object = {"name": name, "command": command}
        container |= {key: copy.deepcopy(self.main[key]) for key in _KEPT_BY_INIT if key in self.main}
        resources = self.main.get("resources") or {}
        amounts = {
            part: {what: amount for what, amount in (resources.get(part) or {}).items() if what in ("cpu", "memory")}
            for part in ("requests", "limits")
        }
        if any(amounts.values()):
            container["resources"] = {part: found for part, found in amounts.items() if found}
        if variables:
            container["env"] = [{"name": key, "value": value} for key, value in variables.items()]
        self.spec.setdefault("initContainers", []).append(container)
        return container

    def name_the_user(self) -> list[Object]:
        """A user id that the image does not know gets a name. Returns what containers have to mount for it."""
        users = ((part.get("securityContext") or {}).get("runAsUser") for part in (self.main, self.spec))
        user = next((each for each in users if each is not None), 0)
        if not user and self.job.annotation(names.ANNOTATION_ANY_USER) != "true":
            return []
        return [self.before("oarsman-user", ["/bin/sh", f"{names.MPI_CONFIG_DIR}/passwd.sh"])]

    def mount_passwd(self, container: Object) -> None:
        container.setdefault("volumeMounts", []).append(
            {"name": _RUN, "mountPath": "/etc/passwd", "subPath": "passwd", "readOnly": True}
        )

    # -- the outcome ----------------------------------------------------------------------------
    def template(self) -> Object:
        return {"metadata": {"labels": self.labels, "annotations": self.annotations}, "spec": self.spec}

    def pod(self) -> Object:
        named = {"name": self.spec["hostname"], "namespace": self.job.namespace, "ownerReferences": [owner(self.job)]}
        template = self.template()
        return {"apiVersion": "v1", "kind": "Pod", **template, "metadata": template["metadata"] | named}


def _items(files: Mapping[str, str]) -> list[Object]:
    return [{"key": key, "path": path} for key, path in files.items()]


def fingerprint(template: Mapping[str, Any]) -> str:
    """Tells whether a template was edited since a pod was made from it."""
    return hashlib.sha256(json.dumps(template, sort_keys=True).encode()).hexdigest()[:16]
