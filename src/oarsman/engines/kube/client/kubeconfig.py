"""Kubeconfig files: read, merged as kubectl merges them, and the one context that counts."""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec
import yaml

from oarsman.errors import AccessError
from oarsman.text.sentence import Text

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
Kind = TypeVar("Kind")


class Cluster(msgspec.Struct, frozen=True, rename="kebab"):
    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""


class Variable(msgspec.Struct, frozen=True):
    name: str
    value: str


class Exec(msgspec.Struct, frozen=True, rename="camel"):
    """A program that hands out credentials."""

    command: str
    api_version: str = "client.authentication.k8s.io/v1beta1"
    args: list[str] | None = None
    env: list[Variable] | None = None
    install_hint: str = ""
    interactive_mode: str = "IfAvailable"
    provide_cluster_info: bool = False


class User(msgspec.Struct, frozen=True, rename="kebab"):
    token: str = ""
    token_file: str = msgspec.field(default="", name="tokenFile")
    username: str = ""
    password: str = ""
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    exec: Exec | None = None
    auth_provider: dict[str, Any] | None = None
    impersonate: str = msgspec.field(default="", name="as")
    impersonate_uid: str = msgspec.field(default="", name="as-uid")
    impersonate_groups: list[str] = msgspec.field(default_factory=list, name="as-groups")


class Context(msgspec.Struct, frozen=True):
    cluster: str = ""
    user: str = ""
    namespace: str = ""


class _NamedCluster(msgspec.Struct, frozen=True):
    name: str
    cluster: Cluster


class _NamedUser(msgspec.Struct, frozen=True):
    name: str
    user: User


class _NamedContext(msgspec.Struct, frozen=True):
    name: str
    context: Context


class _Document(msgspec.Struct, frozen=True, rename="kebab"):
    current_context: str | None = None
    clusters: list[_NamedCluster] | None = None
    users: list[_NamedUser] | None = None
    contexts: list[_NamedContext] | None = None


@dataclass(frozen=True, slots=True)
class From(Generic[Kind]):
    """An entry, and the file it is written in: relative paths start there."""

    file: Path
    entry: Kind

    def path(self, written: str) -> Path:
        return self.file.parent / Path(written).expanduser()

    def content(self, data: str, written: str, field: str) -> bytes | None:
        """What a pair of fields such as `client-key-data` and `client-key` holds; the first one wins."""
        if data:
            try:
                return base64.b64decode("".join(data.split()), validate=True)
            except (binascii.Error, ValueError) as error:
                message = Text("{file}: {field}-data is not base64: {why}", file=self.file, field=field, why=error)
                raise AccessError(message, field=f"{field}-data") from error
        if not written:
            return None
        try:
            return self.path(written).read_bytes()
        except OSError as error:
            message = Text("cannot read {path}: {why}", path=self.path(written), why=error.strerror)
            template = Text("{file} names it as {field}; correct the path or put the content into {field}-data")
            raise AccessError(message, field=field, hint=Text(template, file=self.file, field=field)) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """All that one context says."""

    source: str  # for messages
    context: str = ""
    namespace: str = "default"
    cluster: From[Cluster]
    user: From[User]


def choose(files: Sequence[Path], context: str | None = None) -> Chosen:
    """The context asked for, or the current one, out of files of which the first to name something wins."""
    documents = [(file, _read(file)) for file in files]
    where = ", ".join(str(file) for file in files)
    wanted = context or next((one.current_context for _, one in documents if one.current_context), None)
    contexts = {one.name: one.context for _, document in reversed(documents) for one in document.contexts or ()}
    known = Text("contexts to choose from: {names}", names=", ".join(sorted(contexts)) or Text("none"))
    if wanted is None:
        raise AccessError(Text("{where}: no current-context is set", where=where), hint=known)
    named = repr(wanted)
    if wanted not in contexts:
        message = Text("{where}: there is no context named {wanted}", where=where, wanted=named)
        raise AccessError(message, field="context", hint=known)
    chosen = contexts[wanted]
    clusters = _first((one.name, From(file, one.cluster)) for file, each in documents for one in each.clusters or ())
    users = _first((one.name, From(file, one.user)) for file, each in documents for one in each.users or ())
    if chosen.cluster not in clusters:
        template = Text("{where}: context {wanted} is about cluster {cluster}, not described")
        message = Text(template, where=where, wanted=named, cluster=repr(chosen.cluster))
        hint = Text("clusters described there: {names}", names=", ".join(clusters) or Text("none"))
        raise AccessError(message, hint=hint)
    cluster = clusters[chosen.cluster]
    if chosen.user and chosen.user not in users:
        template = Text("{where}: context {wanted} is for user {user}, not described")
        message = Text(template, where=where, wanted=named, user=repr(chosen.user))
        hint = Text("users described there: {names}", names=", ".join(users) or Text("none"))
        raise AccessError(message, hint=hint)
    return Chosen(
        source=os.pathsep.join(str(file) for file in files),
        context=wanted,
        namespace=chosen.namespace or "default",
        cluster=cluster,
        user=users.get(chosen.user) or From(cluster.file, User()),
    )


def _first(entries: Iterable[tuple[str, Kind]]) -> dict[str, Kind]:
    found: dict[str, Kind] = {}
    for name, entry in entries:
        found.setdefault(name, entry)
    return found


def _read(file: Path) -> _Document:
    hint = Text("compare it with `kubectl config view`")
    try:
        return msgspec.convert(yaml.load(file.read_bytes(), Loader=_LOADER) or {}, _Document)  # a safe loader
    except OSError as error:
        message = Text("cannot read the kubeconfig {file}: {why}", file=file, why=error.strerror)
        raise AccessError(message, hint=Text("name another file with --kubeconfig or $KUBECONFIG")) from error
    except yaml.YAMLError as error:
        raise AccessError(Text("{file} is not YAML: {why}", file=file, why=error), hint=hint) from error
    except msgspec.ValidationError as error:
        raise AccessError(Text("{file} is not a kubeconfig: {why}", file=file, why=error), hint=hint) from error
