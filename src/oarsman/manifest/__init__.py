"""Text becomes a validated job. Everything the rest of the program needs is listed here."""

from oarsman.manifest.convert import Conversion, convert
from oarsman.manifest.load import documents, job_checked_before, job_from_document, load, salvaged, sketch
from oarsman.manifest.problems import render, render_all
from oarsman.manifest.write import to_yaml

__all__ = [
    "Conversion",
    "convert",
    "documents",
    "job_checked_before",
    "job_from_document",
    "load",
    "render",
    "render_all",
    "salvaged",
    "sketch",
    "to_yaml",
]
