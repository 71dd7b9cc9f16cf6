"""Tests of this engine may ask for a real API server."""

from __future__ import annotations

from cluster.conftest import api, api_namespace

__all__ = ["api", "api_namespace"]
