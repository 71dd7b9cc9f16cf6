"""How to reach a cluster, and as whom."""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urlsplit

from oarsman.engines.kube.client import credentials as who
from oarsman.engines.kube.client.credentials import Credentials, Fixed, bearer
from oarsman.engines.kube.client.kubeconfig import Chosen, Cluster, From, User, choose
from oarsman.errors import AccessError
from oarsman.text.sentence import Text

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")  # where Kubernetes puts it into every pod
POD = "the service account of this pod"


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    server: str
    ssl: ssl.SSLContext | None
    namespace: str = "default"
    context: str = ""
    source: str  # where it comes from, for messages
    server_name: str = ""  # in the server's certificate, if it is not the host's name
    proxy: str | None = None
    credentials: Credentials = field(default=Fixed({}), repr=False)

    @property
    def local(self) -> bool:
        """The server is on this machine."""
        return who.is_loopback(urlsplit(self.server).hostname or "")


def load_access(
    *,
    kubeconfig: Path | None = None,
    context: str | None = None,
    master: str | None = None,
    token: str | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Access:
    """The file named; else $KUBECONFIG; else the pod we are in; else ~/.kube/config. `master` replaces the server.

    `token`: whose rights count instead of those of the file's user, or of the pod, of which nothing is shown then.
    """
    if token is not None:
        return _as(token, kubeconfig, context, master, environ)
    if kubeconfig is not None:
        return _access(choose([kubeconfig.expanduser()], context), master, environ)
    named = [Path(one).expanduser() for one in environ.get("KUBECONFIG", "").split(os.pathsep) if one]
    if named:
        present = [file for file in named if file.exists()]
        return _access(choose(present or named, context), master, environ)
    if context is None and environ.get("KUBERNETES_SERVICE_HOST") and (SERVICE_ACCOUNT / "token").exists():
        return _from_pod(master, environ)
    usual = Path(environ.get("HOME") or Path.home(), ".kube", "config")
    if usual.exists():
        return _access(choose([usual], context), master, environ)
    if master:
        nothing = Chosen(source="--master", cluster=From(usual, Cluster()), user=From(usual, User()))
        return _access(nothing, master, environ)
    template = Text(
        "no cluster is known: neither $KUBECONFIG nor {usual} exists, and this is not a pod with a service account"
    )
    hint = Text("name a kubeconfig with --kubeconfig, or set $KUBECONFIG")
    raise AccessError(Text(template, usual=usual), hint=hint)


def _as(
    token: str, kubeconfig: Path | None, context: str | None, master: str | None, environ: Mapping[str, str]
) -> Access:
    """The same server for somebody else. A client certificate would count before a token, so there must be none."""
    named = [kubeconfig] if kubeconfig is not None else environ.get("KUBECONFIG", "").split(os.pathsep)
    files = [file for file in (Path(one).expanduser() for one in named if one) if file.exists()]
    if not files and context is None and environ.get("KUBERNETES_SERVICE_HOST") and SERVICE_ACCOUNT.exists():
        found = _from_pod(master, environ, Fixed({}))
    else:
        files = files or [Path(environ.get("HOME") or Path.home(), ".kube", "config")]
        found = _access(replace(choose(files, context), user=From(files[0], User())), master, environ)
    return replace(found, credentials=Fixed(bearer(token)))


def _from_pod(master: str | None, environ: Mapping[str, str], credentials: Credentials | None = None) -> Access:
    """A pod may know the server and its certificate without having a token of its own."""
    host, port = environ["KUBERNETES_SERVICE_HOST"], environ.get("KUBERNETES_SERVICE_PORT", "443")
    server = master or f"https://{f'[{host}]' if ':' in host else host}:{port}"
    namespace = SERVICE_ACCOUNT / "namespace"
    authority = SERVICE_ACCOUNT / "ca.crt"
    return Access(
        server=server.rstrip("/"),
        ssl=who.tls_context(authority.read_bytes() if authority.exists() else None),
        namespace=namespace.read_text().strip() if namespace.exists() else "default",
        source=POD,
        proxy=who.proxy_for(server, environ),
        credentials=credentials or who.TokenFile(SERVICE_ACCOUNT / "token"),
    )


def _access(chosen: Chosen, master: str | None, environ: Mapping[str, str]) -> Access:
    cluster, source, entry = chosen.cluster, chosen.source, chosen.cluster.entry
    server = master or entry.server
    if not server:
        template = Text("{source}: the cluster of context {context} has no server")
        raise AccessError(Text(template, source=source, context=repr(chosen.context)), field="server")
    server = server if "://" in server else f"http://{server}"
    context = None
    if server.startswith("https://"):
        authority = cluster.content(
            entry.certificate_authority_data, entry.certificate_authority, "certificate-authority"
        )
        context = who.tls_context(authority, verify=not entry.insecure_skip_tls_verify)
        _show_certificate(context, chosen.user)
    proxy = entry.proxy_url or who.proxy_for(server, environ)
    if proxy and not proxy.startswith(("http://", "https://")):
        message = Text("{source}: proxies such as {proxy} cannot be used", source=source, proxy=proxy)
        raise AccessError(message, hint=Text("an http:// proxy is needed"))
    return Access(
        server=server.rstrip("/"),
        ssl=context,
        namespace=chosen.namespace,
        context=chosen.context,
        source=source,
        server_name=entry.tls_server_name,
        proxy=proxy,
        credentials=_credentials(chosen, context),
    )


def _show_certificate(context: ssl.SSLContext, user: From[User]) -> None:
    entry = user.entry
    certificate = user.content(entry.client_certificate_data, entry.client_certificate, "client-certificate")
    key = user.content(entry.client_key_data, entry.client_key, "client-key")
    if certificate and key:
        who.present_certificate(context, certificate, key)
    elif certificate or key:
        missing = "client-key" if certificate else "client-certificate"
        template = Text("{file}: a user with a client certificate needs {missing} too")
        raise AccessError(Text(template, file=user.file, missing=missing), field=missing)


def _credentials(chosen: Chosen, context: ssl.SSLContext | None) -> Credentials:
    user, entry = chosen.user, chosen.user.entry
    found: Credentials
    if entry.token_file:
        found = who.TokenFile(user.path(entry.token_file))
    elif entry.token:
        found = Fixed(bearer(entry.token))
    elif entry.username:
        found = Fixed(who.basic(entry.username, entry.password))
    elif entry.exec:
        found = who.Program(entry.exec, user.file.parent, chosen.cluster.entry, context)
    elif entry.auth_provider:
        hint = Text(
            "Kubernetes dropped auth-provider in 1.26: get credentials through exec, as the provider's own tool sets up"
        )
        message = Text("{file}: auth-provider cannot be used", file=user.file)
        raise AccessError(message, field="auth-provider", hint=hint)
    else:
        found = Fixed({})
    if entry.impersonate:
        return who.Impersonating(found, entry.impersonate, entry.impersonate_uid, entry.impersonate_groups)
    return found
