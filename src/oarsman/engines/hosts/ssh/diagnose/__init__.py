"""What is right and wrong with the hosts of a rack and the ways between them: found out first, then judged."""

from oarsman.engines.hosts.ssh.diagnose.ask import ask
from oarsman.engines.hosts.ssh.diagnose.course import Course
from oarsman.engines.hosts.ssh.diagnose.findings import FAIL, OK, SKIPPED, WARN, Finding, HostSeen, unfit, worst

__all__ = ["FAIL", "OK", "SKIPPED", "WARN", "Course", "Finding", "HostSeen", "ask", "unfit", "worst"]
