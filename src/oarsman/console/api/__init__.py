"""REST under /api/v1: the service, with addresses. The routers translate, nothing else."""

PREFIX = "/api/v1"
