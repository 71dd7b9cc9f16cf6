from __future__ import annotations

from ssh_hosts.fixtures import rack, shared_rack  # noqa: F401

from .copied import code  # noqa: F401
