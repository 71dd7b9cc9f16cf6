"""Text becomes a validated job. Everything the rest of the program needs is listed here."""

from oarsman.manifest.load import documents, job_from_document, load
from oarsman.manifest.problems import Problem, render, render_all

__all__ = ["Problem", "documents", "job_from_document", "load", "render", "render_all"]
