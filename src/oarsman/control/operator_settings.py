"""Everything the operator can be told. The command reads it from flags; tests write it down."""

from __future__ import annotations

from dataclasses import dataclass

LEASE_NAME = "mpi-operator"  # as upstream's, so that the two never act at the same time
LOCK_NAMESPACE = "mpi-operator"


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorSettings:
    # -- what is looked after --------------------------------------------------------------------------
    namespaces: tuple[str, ...] = ()  # none: all of them
    gang_scheduling: str = ""  # volcano, kubernetes, or the name of a scheduler that knows scheduler-plugins' PodGroups
    cluster_domain: str = ""  # suffix of host names, such as cluster.local; empty: none
    kubectl_delivery_image: str = ""  # brings kubectl to the launchers of v1 jobs; empty: the built-in way
    start_barrier_seconds: float = 300.0  # how long a launcher may wait for its workers

    # -- who acts ----------------------------------------------------------------------------------------
    leader_elect: bool = True
    lock_namespace: str = LOCK_NAMESPACE
    lease_name: str = LEASE_NAME
    lease_seconds: float = 15.0
    renew_deadline_seconds: float = 10.0
    retry_seconds: float = 2.0

    # -- how fast ----------------------------------------------------------------------------------------
    threadiness: int = 16  # jobs that have their turn at the same time
    qps: float | None = None  # requests per second to the API server; None: no limit
    burst: int | None = None

    # -- what others see ---------------------------------------------------------------------------------
    bind_address: str = ""  # empty: every address
    health_port: int = 8080  # 0: off
    monitoring_port: int = 8081  # 0: off
    monitoring_auth: bool = True  # TLS, and only for whom the cluster lets read /metrics
    log_level: str = "info"
    json_logs: bool = False

    # -- the end -----------------------------------------------------------------------------------------
    shutdown_seconds: float = 10.0  # for the turns under way

    @property
    def rate(self) -> tuple[float, int] | None:
        """(requests per second, burst) as the client takes it. A burst alone limits nothing."""
        if self.qps is None:
            return None
        return self.qps, self.burst if self.burst is not None else max(int(self.qps * 2), 1)
