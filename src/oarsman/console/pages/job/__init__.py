"""One job: what it is, how far it is, why it failed, what it wrote. One file per tab."""

from oarsman.console.pages.job.page import register

__all__ = ["register"]
