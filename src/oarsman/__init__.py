"""Oarsman runs MPI jobs: one MPIJob manifest on one machine, on SSH hosts or on Kubernetes."""

__version__ = "0.1.0"
