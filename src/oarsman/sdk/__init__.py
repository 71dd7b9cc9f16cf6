"""What Python programs use to make jobs and to run them, on this machine or on a cluster."""

from oarsman.sdk.connect import connect

__all__ = ["connect"]
