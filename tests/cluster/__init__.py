"""A real Kubernetes for the tests. `start()` here, fixtures in conftest.py, `make cluster` for people."""
