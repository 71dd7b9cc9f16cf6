"""Text becomes a validated job. Everything the rest of the program needs is listed here."""

from oarsman.manifest.convert import Conversion as Conversion
from oarsman.manifest.convert import convert as convert
from oarsman.manifest.load import documents as documents
from oarsman.manifest.load import job_checked_before as job_checked_before
from oarsman.manifest.load import job_from_document as job_from_document
from oarsman.manifest.load import load as load
from oarsman.manifest.load import salvaged as salvaged
from oarsman.manifest.load import sketch as sketch
from oarsman.manifest.problems import render as render
from oarsman.manifest.write import to_yaml as to_yaml
