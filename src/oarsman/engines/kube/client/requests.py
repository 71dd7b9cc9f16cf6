"""Requests as values: what will be sent, decided without sending anything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal
from urllib.parse import urlencode

from oarsman.engines.kube.client.codec import encode
from oarsman.engines.kube.client.resources import Resource

PatchKind = Literal["merge", "json", "strategic", "apply"]

_JSON: Final = {"Accept": "application/json", "Content-Type": "application/json"}
_READ: Final = {"Accept": "application/json"}
_PATCHES: Final[dict[PatchKind, Mapping[str, str]]] = {
    "merge": _READ | {"Content-Type": "application/merge-patch+json"},
    "json": _READ | {"Content-Type": "application/json-patch+json"},
    "strategic": _READ | {"Content-Type": "application/strategic-merge-patch+json"},
    "apply": _READ | {"Content-Type": "application/apply-patch+yaml"},  # JSON is YAML
}
_METADATA_LIST: Final = {"Accept": "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"}
_METADATA: Final = {"Accept": "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    verb: str  # as the server's own metrics and its RBAC call it
    method: str
    target: str  # path and query
    plural: str
    trying: str  # "create pods default/pi", for messages
    headers: Mapping[str, str]
    body: bytes | None = None
    repeatable: bool = False  # sending it again when it may have arrived does no harm


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which objects a list or a watch is about."""

    resource: Resource
    namespace: str | None = None
    labels: str = ""
    fields: str = ""
    metadata_only: bool = False

    def query(self) -> dict[str, str]:
        query = {}
        if self.labels:
            query["labelSelector"] = self.labels
        if self.fields:
            query["fieldSelector"] = self.fields
        return query

    def request(self, verb: str, method: str, query: dict[str, str], headers: Mapping[str, str]) -> Request:
        place = f" in {self.namespace}" if self.namespace else ""
        return Request(
            verb=verb,
            method=method,
            target=_target(self.resource.path(self.namespace), self.query() | query),
            plural=self.resource.plural,
            trying=f"{verb} {self.resource.plural}{place}",
            headers=headers,
            repeatable=True,
        )


def get(resource: Resource, name: str, namespace: str | None, subresource: str | None) -> Request:
    return _of_one("get", "GET", resource, name, namespace, subresource=subresource, repeatable=True)


def create(resource: Resource, body: Mapping[str, Any], namespace: str | None, *, dry_run: bool) -> Request:
    metadata = body.get("metadata") or {}
    namespace = namespace or metadata.get("namespace") or None
    name = metadata.get("name") or metadata.get("generateName", "") + "*"
    return Request(
        verb="create",
        method="POST",
        target=_target(resource.path(namespace), {"dryRun": "All"} if dry_run else {}),
        plural=resource.plural,
        trying=_trying("create", resource, name, namespace),
        headers=_JSON,
        body=encode(body),
    )


def replace(
    resource: Resource, name: str, body: Mapping[str, Any], namespace: str | None, subresource: str | None
) -> Request:
    return _of_one(
        "update", "PUT", resource, name, namespace, subresource=subresource, body=encode(body), headers=_JSON
    )


def patch(
    resource: Resource,
    name: str,
    body: object,
    namespace: str | None,
    *,
    kind: PatchKind,
    subresource: str | None,
    field_manager: str | None,
    force: bool,
) -> Request:
    query = {}
    if field_manager or kind == "apply":
        query["fieldManager"] = field_manager or "oarsman"
    if force:
        query["force"] = "true"
    return _of_one(
        "patch",
        "PATCH",
        resource,
        name,
        namespace,
        subresource=subresource,
        query=query,
        body=encode(body),
        headers=_PATCHES[kind],
    )


def delete(
    resource: Resource, name: str, namespace: str | None, *, uid: str | None, grace: int | None, propagation: str
) -> Request:
    options: dict[str, Any] = {"propagationPolicy": propagation}
    if uid:
        options["preconditions"] = {"uid": uid}
    if grace is not None:
        options["gracePeriodSeconds"] = grace
    return _of_one("delete", "DELETE", resource, name, namespace, body=encode(options), headers=_JSON, repeatable=True)


def delete_all(selection: Selection) -> Request:
    return selection.request("deletecollection", "DELETE", {"propagationPolicy": "Background"}, _READ)


def page(selection: Selection, *, size: int, after: str) -> Request:
    query = {"limit": str(size)} if size else {}
    if after:
        query["continue"] = after
    return selection.request("list", "GET", query, _METADATA_LIST if selection.metadata_only else _READ)


def watch(selection: Selection, *, since: str, seconds: int) -> Request:
    query = {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "resourceVersion": since,
        "timeoutSeconds": str(seconds),
    }
    return selection.request("watch", "GET", query, _METADATA if selection.metadata_only else _READ)


def log(resource: Resource, pod: str, namespace: str, query: Mapping[str, str]) -> Request:
    return _of_one(
        "get",
        "GET",
        resource,
        pod,
        namespace,
        subresource="log",
        query=query,
        headers={"Accept": "*/*"},
        repeatable=True,
    )


def raw(
    method: str, path: str, query: Mapping[str, str], body: object | None, headers: Mapping[str, str] | None
) -> Request:
    return Request(
        verb=method.lower(),
        method=method,
        target=_target(path, query),
        plural="",
        trying=f"{method} {path}",
        headers=(_READ if body is None else _JSON) | dict(headers or {}),
        body=body if body is None or isinstance(body, bytes) else encode(body),
        repeatable=method in ("GET", "HEAD", "DELETE"),
    )


def _of_one(
    verb: str,
    method: str,
    resource: Resource,
    name: str,
    namespace: str | None,
    *,
    subresource: str | None = None,
    query: Mapping[str, str] | None = None,
    body: bytes | None = None,
    headers: Mapping[str, str] = _READ,
    repeatable: bool = False,
) -> Request:
    return Request(
        verb=verb,
        method=method,
        target=_target(resource.path(namespace, name, subresource), query),
        plural=resource.plural,
        trying=_trying(verb, resource, name, namespace, subresource),
        headers=headers,
        body=body,
        repeatable=repeatable,
    )


def _trying(verb: str, resource: Resource, name: str, namespace: str | None, subresource: str | None = None) -> str:
    what = f"{resource.plural}/{subresource}" if subresource else resource.plural
    return f"{verb} {what} {namespace}/{name}" if namespace else f"{verb} {what} {name}"


def _target(path: str, query: Mapping[str, str] | None) -> str:
    return f"{path}?{urlencode(query)}" if query else path
