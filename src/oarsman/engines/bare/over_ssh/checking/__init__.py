"""What is right and wrong with the hosts of a rack and the ways between them: found out first, then judged."""

from oarsman.engines.bare.over_ssh.checking.asking import ask
from oarsman.engines.bare.over_ssh.checking.course import Course
from oarsman.engines.bare.over_ssh.checking.findings import FAIL, OK, SKIPPED, WARN, Finding, HostSeen, unfit, worst

__all__ = ["FAIL", "OK", "SKIPPED", "WARN", "Course", "Finding", "HostSeen", "ask", "unfit", "worst"]
