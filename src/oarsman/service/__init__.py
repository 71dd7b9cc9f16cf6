"""The desk does the work of `Service` on a door, for one caller with one role."""

from oarsman.service.service import Desk

__all__ = ["Desk"]
