"""What every tab of the job page is: built once, and told when there is something new."""

from __future__ import annotations

from abc import ABC, abstractmethod

from oarsman.console.pages.guest import Guest
from oarsman.sdk.models import Job

ENDED = ("Succeeded", "Failed")


class Tab(ABC):
    """`name` is its title, and in the address. One that `follows` also changes while the job itself does not."""

    name: str
    follows = False

    def __init__(self, guest: Guest, key: str, job: Job) -> None:
        self.guest = guest
        self.key = key
        self.job = job

    @property
    def ended(self) -> bool:
        return self.job.summary.state in ENDED

    @abstractmethod
    def build(self) -> None:
        """Draw it; only once, so that what the reader chose stays."""

    @abstractmethod
    async def refresh(self) -> None:
        """Show what is new in `self.job`, or elsewhere. Asked only while the tab is open."""
