"""Specifications of jobs, for tests that only care about some of it."""

from __future__ import annotations

from typing import Any

from oarsman.engines.hosts.core.job_spec import JobSpec, SshAddress, SshHostSpec, SshWay


def a_spec(**given: Any) -> JobSpec:
    facts: dict[str, Any] = {
        "uid": "uid-a",
        "job": "a",
        "run_folder": "/nowhere",
        "implementation": "OpenMPI",
        "mpi": "Open MPI",
        "launcher_host": "a-launcher",
        "launcher_argv": ["true"],
        "launcher_is_mpirun": True,
        "grace": 1,
        "silence": 10,
        "hosts": {},
    }
    return JobSpec(**facts | given)


def an_ssh_host(**given: Any) -> SshHostSpec:
    facts: dict[str, Any] = {
        "role": "worker",
        "index": 0,
        "temp": "/nowhere",
        "folder": "/",
        "machine": "node1",
        "way": SshAddress(name="node1", address="", user="", port=None, jump=""),
        "ssh": SshWay(control="", follows=False, host_agent=[], command=[]),
        "host_agent": "",
        "run": "/tmp/oarsman-0/0",
        "usage_every": 5,
        "members": [("w-0", 1)],
    }
    return SshHostSpec(**facts | given)
