"""The jobs of a Kubernetes cluster, for the faces."""

from oarsman.runtime.cluster.jobs import ClusterJobs

__all__ = ["ClusterJobs"]
