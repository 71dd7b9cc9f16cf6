"""What pages say, in the reader's language: `say("text {x}", x=1)`. Amounts and times as people read them."""

from __future__ import annotations

import re
from collections.abc import Mapping
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
OUTCOMES = (N_("Succeeded"), N_("Failed"), N_("Suspended"), N_("Disrupted"), N_("NotStarted"))
ROLES = (N_("viewer"), N_("user"), N_("admin"), N_("cluster"))
HOST_STATES = (N_("ready"), N_("left out"), N_("lost"), N_("unready"), N_("cordoned"), N_("pressed"))
LOST_HOSTS = ("lost", "unready")  # nobody wants these states
# What the audit log says was done, and what came of it where it was refused: there it is in English for everybody
DEEDS = (
    *(N_("submit"), N_("delete"), N_("scale"), N_("suspend"), N_("resume"), N_("stop"), N_("rerun"), N_("clone")),
    *(N_("build environment"), N_("delete environment")),
    *(N_("begin sweep"), N_("stop sweep"), N_("resume sweep"), N_("delete sweep")),
    *(N_("check hosts"), N_("trust hosts")),
    *(N_("add account"), N_("change account"), N_("remove account"), N_("change password")),
    *(N_("make token"), N_("revoke token"), N_("make link")),
    *(N_("login"), N_("logout")),
)
ABOUT = (N_("by link"), N_("with a token of the cluster"))
# deed -> what it was done to, as the audit log has it, and as people read it
_ABOUT = {
    "scale": (re.compile(r"(?P<job>\S+) to (?P<count>\d+)"), N_("{job} to {count} workers")),
    "clone": (re.compile(r"(?P<job>\S+) as (?P<name>\S+)"), N_("{job} as {name}")),
    "add account": (re.compile(r"(?P<name>\S+) as (?P<role>viewer|user|admin)"), N_("{name} as {role}")),
    "make token": (re.compile(r"(?P<token>\S+) of (?P<name>\S+)"), N_("{token} of {name}")),
    "revoke token": (re.compile(r"(?P<token>\S+) of (?P<name>\S+)"), N_("{token} of {name}")),
    "trust hosts": (re.compile(r"(?P<inventory>.+), undo: True"), N_("{inventory}: undone")),
    "check hosts": (re.compile("all"), N_("all hosts")),
}
REFUSALS = (
    *(N_("refused"), N_("forbidden"), N_("unauthenticated"), N_("throttled"), N_("access")),
    *(N_("invalid-manifest"), N_("usage"), N_("user-error"), N_("not-found"), N_("conflict"), N_("unsupported")),
    *(N_("retryable"), N_("cluster"), N_("supervisor"), N_("store"), N_("internal"), N_("error")),
)
# The units of durations
UNITS = (N_("d"), N_("h"), N_("m"), N_("s"))
_UNIT = re.compile(r"(?<=\d)[dhms]")


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


def outcome_of(job: JobView, attempt: AttemptView) -> str:
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
    """As the manifest has them, which asks for CPUs wherever it runs. Where it says nothing of CPUs, it counts
    for one each slot; a cluster gives it what is there."""
    asked = AmountsView(cpus=one.cpus, memory_bytes=one.memory_bytes, gpus=one.gpus)
    if one.cpus or one.engine == "kube":
        return amounts(say, asked)
    return amounts(say, asked.model_copy(update={"cpus": float(one.slots)}), one.engine)


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


def duration(say: Words, since: datetime | None, until: datetime | None) -> str:
    told = duration_units(say)
    return _UNIT.sub(lambda unit: told[unit[0]], units.took(since, until, datetime.now(UTC))).strip()


def duration_units(say: Words) -> Mapping[str, str]:
    """A Chinese word stands apart from a number."""
    return {unit: f" {say(unit)} " if say.language == "zh" else unit for unit in UNITS}


def about(say: Words, deed: str, told: str) -> str:
    """What something was done to, of what the audit log tells."""
    if told in ABOUT:
        return say(told)
    pattern, text = _ABOUT.get(deed, (None, ""))
    found = pattern.fullmatch(told) if pattern is not None else None
    given = {name: say(one) if name == "role" else one for name, one in found.groupdict().items()} if found else {}
    return say(text, **given) if found is not None else told.removesuffix(", undo: False")


def outcome(say: Words, one: str) -> str:
    """Of what the audit log tells."""
    return say("Succeeded") if one == "ok" else say(one)
