"""What of a user's limits a job can have, and what is said about it."""

from __future__ import annotations

import os
import resource
import subprocess
import sys

import pytest

from oarsman.engines.hosts.core import limits

OWN = limits.of_this_process()


def test_limits_survive_being_written_down() -> None:
    assert limits.read(limits.write(OWN)) == OWN
    assert limits.read("") is None


def test_a_soft_limit_goes_no_further_than_the_hard_one_and_that_is_told() -> None:
    program = """
import resource
from oarsman.engines.hosts.core import limits
wanted = limits.of_this_process()
wanted = wanted._replace(soft={**wanted.soft, "nofile": -1, "core": 4096, "unheard-of": 1})
resource.setrlimit(resource.RLIMIT_NOFILE, (100, 200))
given = limits.fitted(wanted)
print(given.soft["nofile"], given.soft["core"], "unheard-of" in given.soft)
print(limits.told(wanted, given))
limits.apply(given)
print(resource.getrlimit(resource.RLIMIT_NOFILE))
"""
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    numbers, told, had = said.splitlines()
    assert numbers == "200 4096 False"
    assert "core 4.0 KiB" in told
    assert "nofile 200 (unlimited cannot be had)" in told
    assert had == "(200, 200)"


def test_processors_that_are_not_there_are_told() -> None:
    cpus = limits.all_cpus()
    wanted = OWN._replace(cpus=[cpus[0], 8000])
    given = limits.fitted(wanted)
    assert given.cpus == [cpus[0]]
    assert f"CPUs {cpus[0]} ({cpus[0]},8000 cannot be had)" in limits.told(wanted, given)


def test_what_nobody_asked_for_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """However the supervisor itself was started."""
    usual = limits.Limits({}, nice=0, cpus=limits.all_cpus())
    monkeypatch.setattr(limits, "of_this_process", lambda: usual._replace(nice=10, cpus=usual.cpus[:1]))
    assert limits.told(usual, usual) == ""


def test_a_niceness_that_needs_privileges_is_told() -> None:
    wanted, given = OWN._replace(nice=0), OWN._replace(nice=7)
    assert "niceness 7 (0 cannot be had)" in limits.told(wanted, given)


def test_what_is_usual_is_not_told() -> None:
    usual = {"stack": 8 << 20, **dict.fromkeys(("as", "cpu", "data", "fsize", "rss"), resource.RLIM_INFINITY)}
    told = limits.told(OWN, OWN)
    for name, amount in usual.items():
        assert (f"{name} " in told) == (OWN.soft[name] != amount)
    assert "nofile" not in told


def test_trying_changes_nothing_of_this_process() -> None:
    limits.fitted(OWN._replace(nice=OWN.nice + 3, cpus=OWN.cpus[:1]))
    assert limits.of_this_process() == OWN
    assert os.getpriority(os.PRIO_PROCESS, os.getpid()) == OWN.nice


def test_a_job_agent_may_open_as_many_files_as_can_be_had_and_too_few_are_told_beforehand() -> None:
    program = """
import resource
from oarsman.engines.hosts.core import limits
resource.setrlimit(resource.RLIMIT_NOFILE, (100, 200))
limits.open_more_files()
print(resource.getrlimit(resource.RLIMIT_NOFILE))
print(repr(limits.too_few_files(136)))
print(limits.too_few_files(137))
"""
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    raised, enough, told = said.splitlines()
    assert (raised, enough) == ("(200, 200)", "''")
    assert told == "137 ranks need 201 open files, and 200 can be had (ulimit -Hn): raise it or start fewer"
