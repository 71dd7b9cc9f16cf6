from __future__ import annotations

from .fixtures import rack, shared_rack  # noqa: F401
