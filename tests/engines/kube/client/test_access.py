"""Where access comes from, what a kubeconfig can say, and what is said when it is wrong."""

from __future__ import annotations

import base64
import json
import os
import ssl
import stat
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from oarsman.engines.kube.client import AccessError, Kube, Unauthorized, access, load_access
from oarsman.engines.kube.client.credentials import proxy_for
from oarsman.engines.kube.client.resources import PODS

from .certificates import Authority
from .fakes import fake, refuse, reply


def config(
    server: str = "https://10.0.0.1:6443",
    *,
    user: dict[str, Any] | None = None,
    name: str = "one",
    current: str | None = None,
    namespace: str = "",
    **cluster: Any,
) -> str:
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": name if current is None else current,
            "clusters": [{"name": name, "cluster": {"server": server, **cluster}}],
            "users": [{"name": name, "user": user or {}}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": namespace}}],
        }
    )


@pytest.fixture
def write(tmp_path: Path) -> Iterator[Any]:
    def written(name: str, content: str | bytes, mode: int = 0o600) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        path.chmod(mode)
        return path

    return written


@pytest.fixture
def pod_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder a pod finds its service account in."""
    folder = tmp_path / "serviceaccount"
    folder.mkdir()
    (folder / "token").write_text("from-the-pod\n")
    (folder / "namespace").write_text("team\n")
    monkeypatch.setattr(access, "SERVICE_ACCOUNT", folder)
    return folder


IN_POD = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "6443"}


async def test_the_file_named_comes_before_all_others(write: Any, tmp_path: Path, pod_here: Path) -> None:
    named = write("named", config("https://named", user={"token": "t"}, namespace="n"))
    other = write("other", config("https://other"))
    write(".kube/config", config("https://home"))
    environ = {"KUBECONFIG": str(other), "HOME": str(tmp_path), **IN_POD}
    assert load_access(environ=environ).server == "https://other"
    found = load_access(kubeconfig=named, environ=environ)
    assert (found.server, found.namespace, found.context, found.source) == ("https://named", "n", "one", str(named))
    assert await found.credentials.headers() == {"Authorization": "Bearer t"}


async def test_in_a_pod_the_service_account_comes_before_the_home(write: Any, tmp_path: Path, pod_here: Path) -> None:
    write(".kube/config", config("https://home"))
    found = load_access(environ={"HOME": str(tmp_path), **IN_POD})
    assert (found.server, found.namespace) == ("https://10.96.0.1:6443", "team")
    assert found.source == "the service account of this pod"
    assert await found.credentials.headers() == {"Authorization": "Bearer from-the-pod"}
    assert load_access(environ={"HOME": str(tmp_path)}).server == "https://home"
    assert load_access(environ={"HOME": str(tmp_path), **IN_POD}, context="one").server == "https://home"


async def test_in_a_pod_without_a_token_somebody_elses_counts(pod_here: Path) -> None:
    (pod_here / "token").unlink()
    found = load_access(environ={"HOME": "/nowhere", **IN_POD}, token="of-a-user")
    assert (found.server, found.namespace) == ("https://10.96.0.1:6443", "team")
    assert await found.credentials.headers() == {"Authorization": "Bearer of-a-user"}


def test_an_address_of_six_has_brackets(pod_here: Path) -> None:
    environ = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443", "HOME": "/nowhere"}
    assert load_access(environ=environ).server == "https://[fd00::1]:443"


def test_without_anything_it_says_what_to_do() -> None:
    with pytest.raises(AccessError, match="no cluster is known") as caught:
        load_access(environ={"HOME": "/nowhere"})
    assert "--kubeconfig" in str(caught.value.hint)


def test_a_master_replaces_the_server_or_is_all_there_is(write: Any) -> None:
    file = write("config", config("https://written"))
    assert load_access(kubeconfig=file, master="https://other:1/").server == "https://other:1"
    found = load_access(master="http://127.0.0.1:8001", environ={"HOME": "/nowhere"})
    assert (found.server, found.ssl) == ("http://127.0.0.1:8001", None)


def test_files_are_merged_and_the_first_to_name_something_wins(write: Any, tmp_path: Path) -> None:
    first = write("first", config("https://first", name="both", current=""))
    second = write("second", config("https://second", name="both", current="extra"))
    third = write("third", config("https://third", name="extra", current="both"))
    missing = tmp_path / "missing"
    environ = {"KUBECONFIG": os.pathsep.join(map(str, (first, missing, second, third)))}
    assert load_access(environ=environ).server == "https://third"
    assert load_access(environ=environ, context="both").server == "https://first"


@pytest.mark.parametrize(
    ("content", "message", "hint"),
    [
        (":\n  - [", "is not YAML", "kubectl config view"),
        ("clusters: 7", r"is not a kubeconfig: .*\$.clusters", "kubectl config view"),
        ("", "no current-context is set", "contexts to choose from: none"),
        ("current-context: x\nusers: null", "there is no context named 'x'", "contexts to choose from: none"),
        (config(current="y"), "there is no context named 'y'", "contexts to choose from: one"),
        (config(""), "the cluster of context 'one' has no server", None),
        (config(user={"auth-provider": {"name": "gcp"}}), "auth-provider cannot be used", "exec"),
        (config(user={"client-certificate-data": "!"}), "client-certificate-data is not base64", None),
        (config(user={"client-key": "no-such-file"}), "cannot read .*no-such-file", "names it as client-key"),
        (config(**{"certificate-authority-data": "aGVsbG8="}), "the certificate authority .* cannot be read", None),
        (config(**{"proxy-url": "socks5://x"}), "proxies such as socks5://x cannot be used", "http://"),
        (config(user={"exec": {"command": "x", "apiVersion": "v9"}}), "the credential program x speaks v9", "v1beta1"),
    ],
)
def test_what_is_wrong_with_a_kubeconfig_is_said_with_what_to_do(
    write: Any, content: str, message: str, hint: str | None
) -> None:
    with pytest.raises(AccessError, match=message) as caught:
        load_access(kubeconfig=write("config", content))
    if hint:
        assert hint in str(caught.value.hint)


def test_a_kubeconfig_that_is_not_there_is_named() -> None:
    with pytest.raises(AccessError, match="cannot read the kubeconfig /nowhere/config"):
        load_access(environ={"KUBECONFIG": "/nowhere/config"})


async def test_tokens_and_passwords_are_sent_and_not_shown(write: Any) -> None:
    with_token = load_access(kubeconfig=write("config", config(user={"token": "hush"})))
    with_password = load_access(kubeconfig=write("config", config(user={"username": "me", "password": "hush"})))
    assert await with_token.credentials.headers() == {"Authorization": "Bearer hush"}
    basic = "Basic " + base64.b64encode(b"me:hush").decode()
    assert await with_password.credentials.headers() == {"Authorization": basic}
    assert "hush" not in repr(with_token) + repr(with_password)


async def test_a_token_file_is_read_again_when_it_changes(write: Any) -> None:
    token = write("keys/token", "first")
    found = load_access(kubeconfig=write("config", config(user={"tokenFile": "keys/token"})))
    assert await found.credentials.headers() == {"Authorization": "Bearer first"}
    new = write("keys/new", "second")
    new.replace(token)  # as Kubernetes does: never a moment without
    assert await found.credentials.headers() == {"Authorization": "Bearer second"}
    token.unlink()
    assert await found.credentials.headers() == {"Authorization": "Bearer second"}


async def test_one_can_act_as_another(write: Any) -> None:
    user = {"token": "t", "as": "jane", "as-groups": ["admins", "staff"], "as-uid": "7"}
    async with fake(reply()) as (server, _):
        async with Kube(load_access(kubeconfig=write("config", config(server.url, user=user)))) as kube:
            await kube.get(PODS, "a", "ns")
        sent = server.seen[0].headers
        assert (sent["Authorization"], sent["Impersonate-User"], sent["Impersonate-Uid"]) == ("Bearer t", "jane", "7")
        assert sent.getall("Impersonate-Group") == ["admins", "staff"]


PLUGIN = """#!{python}
import json, os, pathlib, sys
counter = pathlib.Path({folder!r}, "count")
count = int(counter.read_text()) + 1 if counter.exists() else 1
counter.write_text(str(count))
asked = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
assert asked["kind"] == "ExecCredential"
assert asked["spec"]["cluster"]["server"].startswith("http")
status = {{"token": f"{{sys.argv[1]}}-{{os.environ['EXTRA']}}-{{count}}", **json.loads(sys.argv[2])}}
print(json.dumps({{"apiVersion": asked["apiVersion"], "kind": "ExecCredential", "status": status}}))
"""


def plugin(write: Any, tmp_path: Path, server: str = "https://10.0.0.1", **status: str) -> Path:
    write("bin/plugin", PLUGIN.format(python=sys.executable, folder=str(tmp_path)), 0o700)
    user = {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": "bin/plugin",
            "args": ["token", json.dumps(status)],
            "env": [{"name": "EXTRA", "value": "x"}],
            "provideClusterInfo": True,
            "interactiveMode": "Never",
        }
    }
    return Path(write("config", config(server, user=user)))


async def test_a_credential_program_is_asked_once_while_its_answer_is_good(write: Any, tmp_path: Path) -> None:
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).isoformat()
    found = load_access(kubeconfig=plugin(write, tmp_path, expirationTimestamp=tomorrow))
    assert await found.credentials.headers() == {"Authorization": "Bearer token-x-1"}
    assert await found.credentials.headers() == {"Authorization": "Bearer token-x-1"}
    assert await found.credentials.headers(renew=True) == {"Authorization": "Bearer token-x-2"}


async def test_a_credential_program_is_asked_again_before_its_answer_expires(write: Any, tmp_path: Path) -> None:
    soon = (datetime.now(UTC) + timedelta(seconds=5)).isoformat()
    found = load_access(kubeconfig=plugin(write, tmp_path, expirationTimestamp=soon))
    assert await found.credentials.headers() == {"Authorization": "Bearer token-x-1"}
    assert await found.credentials.headers() == {"Authorization": "Bearer token-x-2"}


@pytest.mark.parametrize(
    ("script", "message"),
    [
        (None, "cannot run the credential program"),
        ("#!/bin/sh\necho no such account >&2; exit 3", "failed with exit code 3: no such account"),
        ("#!/bin/sh\necho hello", "did not answer with an ExecCredential"),
        ('#!/bin/sh\necho \'{"apiVersion": "v9"}\'', "answered v9, asked for"),
    ],
)
async def test_a_credential_program_that_fails_is_named(write: Any, script: str | None, message: str) -> None:
    if script:
        write("plugin", script, 0o700)
    user = {"exec": {"command": "./plugin", "installHint": "get it from the shelf", "interactiveMode": "Never"}}
    found = load_access(kubeconfig=write("config", config(user=user)))
    with pytest.raises(AccessError, match=message) as caught:
        await found.credentials.headers()
    if script is None:
        assert caught.value.hint == "get it from the shelf"


async def test_a_token_refused_is_renewed_and_the_request_sent_again(write: Any, tmp_path: Path) -> None:
    async with fake(refuse(401, "Unauthorized"), reply()) as (server, _):
        async with Kube(load_access(kubeconfig=plugin(write, tmp_path, server.url))) as kube:
            await kube.create(PODS, {}, "ns")
        sent = [request.headers["Authorization"] for request in server.seen]
        assert sent == ["Bearer token-x-1", "Bearer token-x-2"]


async def test_a_token_refused_twice_is_reported() -> None:
    async with fake(refuse(401, "Unauthorized", "who are you?")) as (server, kube):
        with pytest.raises(Unauthorized, match="who are you"):
            await kube.get(PODS, "a", "ns")
        assert len(server.seen) == 2


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


def tls_of(authority: Authority, name: str) -> ssl.SSLContext:
    """A server's side: it has a certificate for this name and wants one of its clients."""
    certificate, key = authority.issue(name)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cadata=authority.certificate.decode())
    context.verify_mode = ssl.CERT_REQUIRED
    authority.load(context, certificate, key)
    return context


def encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


async def test_a_client_certificate_is_shown_and_the_servers_name_can_be_another(
    write: Any, authority: Authority
) -> None:
    certificate, key = authority.issue("me")
    write("pki/ca.crt", authority.certificate)
    write("pki/me.key", key)
    async with fake(reply(), tls=tls_of(authority, "elsewhere.example")) as (server, _):
        user = {"client-certificate-data": encoded(certificate), "client-key": "pki/me.key"}
        there = {"certificate-authority": "pki/ca.crt"}
        named = write("named", config(server.url, user=user, **there, **{"tls-server-name": "elsewhere.example"}))
        async with Kube(load_access(kubeconfig=named)) as kube:
            await kube.get(PODS, "a", "ns")
        unnamed = write("unnamed", config(server.url, user=user, **there))
        async with Kube(load_access(kubeconfig=unnamed)) as kube:
            with pytest.raises(AccessError, match="get pods ns/a: the server's certificate is not trusted") as caught:
                await kube.get(PODS, "a", "ns")
        assert "tls-server-name" in str(caught.value.hint)
        careless = write("careless", config(server.url, user=user, **{"insecure-skip-tls-verify": True}))
        async with Kube(load_access(kubeconfig=careless)) as kube:
            await kube.get(PODS, "a", "ns")


async def test_a_credential_program_may_hand_out_a_certificate(
    write: Any, tmp_path: Path, authority: Authority
) -> None:
    certificate, key = authority.issue("me")
    async with fake(reply(), tls=tls_of(authority, "localhost")) as (server, _):
        status = {"clientCertificateData": certificate.decode(), "clientKeyData": key.decode()}
        content = yaml.safe_load(plugin(write, tmp_path, server.url, **status).read_text())
        content["clusters"][0]["cluster"] |= {
            "certificate-authority-data": encoded(authority.certificate),
            "tls-server-name": "localhost",
        }
        async with Kube(load_access(kubeconfig=write("config", yaml.safe_dump(content)))) as kube:
            await kube.get(PODS, "a", "ns")
        assert server.seen[0].headers["Authorization"] == "Bearer token-x-1"


def test_no_key_is_left_on_the_disk(write: Any, authority: Authority, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write("tmp/x", "").parent
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", None)
    certificate, key = authority.issue("me")
    user = {"client-certificate-data": encoded(certificate), "client-key-data": encoded(key)}
    load_access(kubeconfig=write("config", config(user=user)))
    assert [one.name for one in folder.iterdir()] == ["x"]
    assert stat.S_IMODE((folder / "x").stat().st_mode) == 0o600


async def test_requests_go_through_the_proxy_of_the_cluster(write: Any) -> None:
    async with fake(reply()) as (proxy, _):
        file = write("config", config("http://cluster.invalid", **{"proxy-url": proxy.url}))
        async with Kube(load_access(kubeconfig=file)) as kube:
            await kube.get(PODS, "a", "ns")
        assert proxy.seen[0].host == "cluster.invalid"


@pytest.mark.parametrize(
    ("server", "exceptions", "through"),
    [
        ("https://cluster.example", "", True),
        ("https://cluster.example", "*", False),
        ("https://cluster.example", "example", False),
        ("https://cluster.example", ".example", False),
        ("https://cluster.example", "other, *.example", False),
        ("https://cluster.example", "ample", True),
        ("https://cluster.example:6443", "cluster.example:6443", False),
        ("https://cluster.example:6443", "cluster.example:443", True),
        ("https://10.1.2.3:6443", "10.0.0.0/8", False),
        ("https://10.1.2.3:6443", "10.1.2.3", False),
        ("https://10.1.2.3:6443", "10.1.2.3:6443", False),
        ("https://10.1.2.3:6443", "11.0.0.0/8", True),
        ("https://[fd00::1]:6443", "fd00::/8", False),
        ("https://127.0.0.1:6443", "", False),
        ("https://localhost:6443", "", False),
        ("http://cluster.example", "", False),
    ],
)
def test_the_environment_says_whether_a_proxy_is_in_between(server: str, exceptions: str, through: bool) -> None:
    environ = {"https_proxy": "proxy.example:3128", "NO_PROXY": exceptions}
    assert proxy_for(server, environ) == ("http://proxy.example:3128" if through else None)
