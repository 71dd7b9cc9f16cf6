"""REST under /api/v1: the desk, with addresses. The routers translate, nothing else."""

PREFIX = "/api/v1"
