"""What every face asks for: operations on jobs, their models, who may do what, and an index of all jobs."""

from oarsman.service.service import JobService

__all__ = ["JobService"]
