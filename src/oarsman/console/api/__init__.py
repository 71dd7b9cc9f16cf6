"""REST under /api/v1: the service, with addresses. The routers translate, nothing else."""

from oarsman.service import models

PREFIX = "/api/v1"

models.build_all()
