"""What pages say, in the reader's language: `say("text {x}", x=1)`. Amounts and times as people read them."""

from __future__ import annotations

from datetime import UTC, datetime

from oarsman.errors import OarsmanError
from oarsman.names import RUNNING
from oarsman.service.models import AmountsView, AttemptView, JobSummary, JobView
from oarsman.status.words import STOPPED
from oarsman.text import units
from oarsman.text.catalogue import N_, Translator
from oarsman.text.sentence import Text

COOKIE = "oarsman-language"
# What the API calls by one word, and people by another
_ENGINES = {"local": N_("this machine"), "ssh": N_("SSH hosts"), "kube": N_("Kubernetes")}
# Words of the API that are shown as they are
OUTCOMES = (N_("Succeeded"), N_("Failed"), N_("Suspended"), N_("NotStarted"))
ROLES = (N_("viewer"), N_("user"), N_("admin"), N_("cluster"))
HOST_STATES = (N_("ready"), N_("left out"), N_("lost"), N_("unready"), N_("cordoned"), N_("pressed"))
LOST_HOSTS = ("lost", "unready")  # nobody wants these states


class Words(Translator):
    def engine(self, name: str) -> str:
        return self(_ENGINES.get(name, name))

    def refusal(self, error: OarsmanError) -> str:
        """Why something was not done, and what would help."""
        return self.of(error.message) + (f" ({self.of(error.hint)})" if error.hint else "")

    @property
    def other(self) -> str:
        """The language to switch to."""
        return "en" if self.language == "zh" else "zh"


def outcome(job: JobView, attempt: AttemptView) -> str:
    """For other programs an attempt that somebody stopped has failed; it did what people wanted."""
    if job.summary.state == STOPPED and attempt == job.attempts[-1]:
        return STOPPED
    return attempt.outcome or RUNNING


def error_first(say: Words, cause: str) -> tuple[str, str]:
    """What the program itself said, and then who ended how; the second may be nothing."""
    if isinstance(cause, Text) and cause.template == "{what}: {why}":
        why, what = (str(cause.arguments[name]) for name in ("why", "what"))
        return say.of(why), say.of(what)
    return say.of(cause), ""


def resources(say: Words, one: JobSummary) -> str:
    """As the manifest has them, which asks for CPUs wherever it runs."""
    return amounts(say, AmountsView(cpus=one.cpus, memory_bytes=one.memory_bytes, gpus=one.gpus))


def unit(say: Words, engine: str) -> str:
    """What a host has of processors: an inventory counts slots."""
    return say("Slots") if engine == "ssh" else say("CPU")


def really(say: Words, engine: str, field: str, used: str) -> str:
    """Nobody measures slots: what an SSH host tells is how many of its processors are busy."""
    if engine == "ssh" and field == "cpus":
        return say("; {used} CPU busy", used=used)
    return say("; {used} used", used=used)


def amounts(say: Words, one: AmountsView, engine: str = "") -> str:
    parts = []
    if one.cpus and engine == "ssh":
        parts.append(say("1 slot") if one.cpus == 1 else say("{count} slots", count=f"{one.cpus:g}"))
    elif one.cpus:
        parts.append(f"{one.cpus:g} CPU")
    if one.memory_bytes:
        parts.append(units.size(one.memory_bytes))
    if one.gpus:
        parts.append(f"{one.gpus} GPU")
    return " · ".join(parts)


def duration(since: datetime | None, until: datetime | None) -> str:
    return units.took(since, until, datetime.now(UTC))
