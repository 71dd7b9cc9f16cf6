"""What pages say, in the reader's language: `say("text {x}", x=1)`."""

from __future__ import annotations

from oarsman.errors import OarsmanError
from oarsman.text.catalogue import N_, Translator

COOKIE = "oarsman-language"
# What the API calls by one word, and people by another
_ENGINES = {"local": N_("this machine"), "ssh": N_("SSH hosts"), "kube": N_("Kubernetes")}
# Words of the API that are shown as they are
OUTCOMES = (N_("Succeeded"), N_("Failed"), N_("Suspended"), N_("NotStarted"))
ROLES = (N_("viewer"), N_("user"), N_("admin"), N_("cluster"))
HOST_STATES = (N_("ready"), N_("left out"), N_("lost"), N_("unready"), N_("cordoned"), N_("pressed"))


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
