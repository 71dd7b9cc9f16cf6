"""The jobs of a Kubernetes cluster, for the faces."""

from oarsman.backends.kube.backend import ClusterJobs

__all__ = ["ClusterJobs"]
