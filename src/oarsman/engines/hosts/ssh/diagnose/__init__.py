"""What is right and wrong with the hosts of an inventory and the ways between them: found out first, then judged."""

from oarsman.engines.hosts.ssh.diagnose.diagnosis import Diagnosis
from oarsman.engines.hosts.ssh.diagnose.judge import FAIL, OK, SKIPPED, WARN, Finding, HostSeen, unfit
from oarsman.engines.hosts.ssh.diagnose.questions import ask

__all__ = ["FAIL", "OK", "SKIPPED", "WARN", "Diagnosis", "Finding", "HostSeen", "ask", "unfit"]
