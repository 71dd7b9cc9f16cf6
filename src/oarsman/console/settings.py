"""What a server was told when it was started."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from oarsman.console.security.listening import Listening
from oarsman.console.security.site import Site
from oarsman.store.paths import Paths

DEFAULT_PORT = 8470


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleSettings:
    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT  # 0: any that is free
    engine: str = "local"
    cert: Path | None = None
    key: Path | None = None
    insecure: bool = False
    public_names: tuple[str, ...] = ()
    folder: Path = field(default_factory=Path.cwd)  # of jobs that mention none
    verbose: bool = False
    context: str | None = None  # of the kubeconfig
    kubeconfig: str | None = None
    hosts: str | None = None  # the file that names the SSH hosts
    namespaces: tuple[str, ...] = ()  # the first: of manifests that mention none; all: where jobs are looked for
    paths: Paths = field(default_factory=Paths.default)

    @property
    def by_token(self) -> bool:
        """On a cluster everybody is asked for a token of their own, and acts with its rights."""
        return self.engine == "kube"

    def listening(self, accounts: int) -> Listening:
        return Listening(
            host=self.host,
            cert=self.cert,
            key=self.key,
            insecure=self.insecure,
            accounts=accounts,
            tokens=self.by_token,
        )

    def site(self, port: int) -> Site:
        """`port`: the one that is really listened on."""
        return Site(host=self.host, port=port, tls=self.cert is not None, public_names=self.public_names)
