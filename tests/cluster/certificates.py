"""Who is who in the cluster: a certificate authority, the API server's certificate, and a token for each user."""

from __future__ import annotations

import base64
import json
import secrets
import subprocess
from collections.abc import Iterable
from pathlib import Path

from cluster.audit import OPERATORS

GROUPS = {
    "admin": ("system:masters",),
    "system:kube-controller-manager": (),
    "system:kube-scheduler": (),
    "system:kube-proxy": (),
    "dns": ("system:masters",),
    **dict.fromkeys(OPERATORS, ("system:masters",)),
}


class Certificates:
    """Files in one folder: ca.crt, apiserver.crt and .key, service-accounts.key, tokens.csv."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._tokens: dict[str, str] = {}

    def make(self, names: Iterable[str], addresses: Iterable[str], nodes: Iterable[str]) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        alternatives = ",".join([*(f"DNS:{name}" for name in names), *(f"IP:{address}" for address in addresses)])
        for key in ("ca", "apiserver", "service-accounts"):
            self._openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", f"{key}.key")
        self._openssl(
            "req", "-x509", "-new", "-key", "ca.key", "-subj", "/CN=oarsman-test-ca", "-days", "3650", "-out", "ca.crt"
        )
        self._openssl("req", "-new", "-key", "apiserver.key", "-subj", "/CN=kube-apiserver", "-out", "apiserver.csr")
        (self.folder / "extensions").write_text(f"subjectAltName={alternatives}\nextendedKeyUsage=serverAuth\n")
        self._openssl(
            "x509",
            "-req",
            "-in",
            "apiserver.csr",
            "-CA",
            "ca.crt",
            "-CAkey",
            "ca.key",
            "-CAcreateserial",
            "-days",
            "3650",
            "-extfile",
            "extensions",
            "-out",
            "apiserver.crt",
        )
        lines = []
        for user, groups in {**GROUPS, **{f"system:node:{node}": ("system:nodes",) for node in nodes}}.items():
            self._tokens[user] = secrets.token_hex(16)
            lines.append(f'{self._tokens[user]},{user},{user},"{",".join(groups)}"\n')
        (self.folder / "tokens.csv").write_text("".join(lines))

    def kubeconfig(self, user: str, server: str, path: Path) -> Path:
        authority = base64.b64encode((self.folder / "ca.crt").read_bytes()).decode()
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "clusters": [{"name": "test", "cluster": {"server": server, "certificate-authority-data": authority}}],
            "users": [{"name": user, "user": {"token": self._tokens[user]}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": user}}],
        }
        path.touch(mode=0o600)
        path.write_text(json.dumps(content, indent=2) + "\n")  # JSON is YAML
        return path

    def _openssl(self, *words: str) -> None:
        done = subprocess.run(["openssl", *words], cwd=self.folder, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"openssl {' '.join(words)}: {done.stderr.strip()}")
