"""A real mpirun over all hosts that passed, as a person on the first of them would type it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence

from oarsman.engines.hosts.core.installed_mpi import FoundMpi
from oarsman.engines.hosts.ssh import scripts
from oarsman.engines.hosts.ssh.diagnose.diagnosis import Diagnosis
from oarsman.engines.hosts.ssh.diagnose.findings import FAIL, OK, SKIPPED, Finding
from oarsman.engines.hosts.ssh.diagnose.judge import first_mpi
from oarsman.engines.hosts.ssh.interfaces import variables
from oarsman.engines.hosts.ssh.inventory import SshHost
from oarsman.job.job import Implementation
from oarsman.job.mpi import ONE_THREAD
from oarsman.text.sentence import Text

_SECONDS = 60.0
STEP = "real run"


async def plain_mpirun(diagnosis: Diagnosis) -> Finding:
    hosts = diagnosis.passed
    why = why_not(hosts, diagnosis.findings)
    if why:
        hint = _by_job(len(hosts)) if hosts else ""
        return Finding(
            host="", step=STEP, level=SKIPPED, message=Text("mpirun was not tried: {why}", why=why), hint=hint
        )
    first = hosts[0]
    facts = {host.name: own.facts for host in hosts if (own := diagnosis.seen[host.name]).facts is not None}
    mpi = first_mpi(facts[first.name])
    assert mpi is not None, "a host without an MPI has not passed"
    told = variables(diagnosis.networks, first.name) if diagnosis.networks else {}
    answer = await diagnosis.ssh.run(first, script(mpi, hosts, told), timeout=_SECONDS)
    if answer.trouble is not None:
        return Finding(host="", step=STEP, level=FAIL, message=answer.trouble.message, hint=answer.trouble.hint)
    return judged(answer.code, answer.out, answer.err, {name: own.hostname for name, own in facts.items()})


def _by_job(count: int) -> str:
    command = f"oarsman run --on ssh -n {count} -- hostname"
    return Text("a job does it without trust between hosts: {command}", command=command)


def why_not(hosts: Sequence[SshHost], findings: Iterable[Finding]) -> str:
    """What a plain mpirun needs and does not have; empty: nothing is missing."""
    if not hosts:
        return Text("no host passed")
    logins = {(found.host, found.other) for found in findings if found.step == "login" and found.level == OK}
    for host in hosts:
        for other in hosts:
            if host is not other and (host.name, other.name) not in logins:
                return Text("{host} cannot log in to {other}", host=host.name, other=other.name)
    odd = next((host.name for host in hosts if host.port or host.user), "")
    return Text("plain mpirun does not know the port and user of {host}", host=odd) if odd else ""


def script(mpi: FoundMpi, hosts: Sequence[SshHost], told: Mapping[str, str]) -> str:
    """One process on each host that says where it is. What mpirun asks of a shell is not to ask anything of us."""
    names, count = [host.target for host in hosts], str(len(hosts))
    if mpi.family.implementation is Implementation.OPENMPI:
        argv = [mpi.launcher, "--host", ",".join(f"{name}:1" for name in names), "-n", count, "uname", "-n"]
    else:
        argv = [mpi.launcher, "-hosts", ",".join(names), "-ppn", "1", "-n", count, "uname", "-n"]
    agent = "ssh -o BatchMode=yes -o ConnectTimeout=10"
    roots = {f"{kind}_ALLOW_RUN_AS_ROOT{end}": "1" for kind in ("OMPI", "PRTE") for end in ("", "_CONFIRM")}
    agents = {"OMPI_MCA_plm_rsh_agent": agent, "PRTE_MCA_plm_ssh_agent": agent}
    environment = {**ONE_THREAD, **hosts[0].environment, **told, **roots, **agents}
    path = f"export PATH={shlex.quote(mpi.folder)}:$PATH\n"  # where a launcher looks for its other parts
    return f"{scripts.exports(environment)}{path}exec {shlex.join(argv)} </dev/null\n"


def judged(code: int, out: str, err: str, hostnames: Mapping[str, str]) -> Finding:
    said = {line.strip() for line in out.splitlines()}
    missing = [host for host, hostname in hostnames.items() if hostname not in said]
    if code == 0 and not missing:
        message = Text("mpirun started a process on each of {n} hosts", n=len(hostnames))
        return Finding(host="", step=STEP, level=OK, message=message)
    last = next((line.strip() for line in err.splitlines() if line.strip(" -*=")), "") or Text(
        "it ended with code {code}", code=code
    )
    if missing:
        template = Text("mpirun over all hosts failed (nothing came from {hosts}): {why}")
        message = Text(template, hosts=", ".join(missing), why=last)
    else:
        message = Text("mpirun over all hosts failed: {why}", why=last)
    return Finding(host="", step=STEP, level=FAIL, message=message)
