"""Oarsman runs MPI jobs: one MPIJob manifest on one machine, on SSH hosts or on Kubernetes.

from oarsman import Client, MPIJob
"""

from oarsman.version import __version__

TYPE_CHECKING = False  # type checkers take it for true; `typing` itself would be most of the time this import takes
if TYPE_CHECKING:
    from oarsman.client.async_client import AsyncClient
    from oarsman.client.client import Client
    from oarsman.client.handle import AsyncJobHandle, JobHandle
    from oarsman.client.mpijob import MPIJob
    from oarsman.errors import JobFailed, OarsmanError

__all__ = ["AsyncClient", "AsyncJobHandle", "Client", "JobFailed", "JobHandle", "MPIJob", "OarsmanError", "__version__"]

_HOMES = {
    "AsyncClient": "oarsman.client.async_client",
    "AsyncJobHandle": "oarsman.client.handle",
    "Client": "oarsman.client.client",
    "JobFailed": "oarsman.errors",
    "JobHandle": "oarsman.client.handle",
    "MPIJob": "oarsman.client.mpijob",
    "OarsmanError": "oarsman.errors",
}


def __getattr__(name: str) -> object:
    """Found when first asked for: the command, and everything else that needs none of it, starts without it."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    found: object = getattr(import_module(home), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
