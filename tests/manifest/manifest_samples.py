"""Small manifests for tests, and ways to change them."""

from __future__ import annotations

from pathlib import Path

SEEDS = Path(__file__).parents[2] / "examples" / "seeds"

V2BETA1 = """\
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata:
  name: pi
spec:
  slotsPerWorker: 2
  mpiReplicaSpecs:
    Launcher:
      template:
        spec:
          containers:
          - name: mpi
            image: pi
            command: [mpirun, ./pi]
    Worker:
      replicas: 2
      template:
        spec:
          containers:
          - name: mpi
            image: pi
"""
V1 = V2BETA1.replace("v2beta1", "v1")


def spec(text: str, *, base: str = V2BETA1) -> str:
    """The sample with lines added to its spec."""
    indented = "".join(f"  {line}\n" for line in text.splitlines())
    return base.replace("spec:\n", f"spec:\n{indented}", 1)


def command(text: str, *, base: str = V2BETA1) -> str:
    """The sample with another launcher command, in YAML."""
    return base.replace("[mpirun, ./pi]", text)


def worker(text: str, *, base: str = V2BETA1) -> str:
    """The sample with lines added to the worker's container."""
    return base + "".join(f"            {line}\n" for line in text.splitlines())
