"""Rules that look at more than one field. Each speaks only if the fields it draws on are sound: a broken or
misspelled field counts as absent, and what follows from its absence would only mislead."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from math import ceil

from oarsman import names
from oarsman.errors import Problem, did_you_mean
from oarsman.job.job import ApiVersion, Implementation, Job
from oarsman.job.launch import LaunchLine
from oarsman.job.launch_options import HYDRA_ONLY
from oarsman.manifest.document import AnyMPIJob, MPIJobV1
from oarsman.manifest.places import look
from oarsman.manifest.problems import MORE_SLOTS, Path, nearest, quoted
from oarsman.manifest.source import Document
from oarsman.text import units
from oarsman.text.sentence import Text, all_of, any_of

_DNS_1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?\Z")
_DNS_1123 = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\Z")
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?\Z")
_LABEL_NAME = re.compile(r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?\Z")
_LONGEST_NAME = 63
_MOST_WORKERS = 20_000
_MOST_PORTS = 4000  # more do not fit into one ssh configuration
_LONGEST_HOSTFILE = 1_000_000  # of the mebibyte that a ConfigMap holds
_ROLES: Path = ("spec", "mpiReplicaSpecs")
_WORKERS: Path = (*_ROLES, "Worker", "replicas")
_CONTAINERS: Path = ("template", "spec", "containers")
_OUR_PREFIX = "oarsman.dev/"
_BOOLEAN = ("true", "false")


def check_counts(document: Document, model: AnyMPIJob) -> Iterator[Problem]:
    """Rules about single values that the models leave open, so that the sentence can say why."""
    roles = model.spec.mpi_replica_specs
    workers = roles.worker.replicas if roles.worker is not None else 1
    if roles.launcher.replicas not in (None, 1):
        wrong = Text("must be 1: a job has one launcher, not {given}", given=roles.launcher.replicas)
        yield document.problem((*_ROLES, "Launcher", "replicas"), wrong)
    if workers is None:
        yield document.missing(_WORKERS, Text("is required: how many workers?"))
    elif workers < 1:
        wrong = Text("must be at least {least}, not {given}", least=1, given=workers)
        hint = Text("leave Worker out for a job that runs on the launcher alone")
        yield document.problem(_WORKERS, wrong, hint=hint)
    elif workers > _MOST_WORKERS:
        template = Text("must be at most {most}, not {given}: a ConfigMap has no room for the names of more hosts")
        yield document.problem(_WORKERS, Text(template, most=_MOST_WORKERS, given=workers))
    old = model.spec.clean_pod_policy if isinstance(model, MPIJobV1) else None
    new = model.spec.run_policy.clean_pod_policy
    if old is not None and new is not None and old != new:
        wrong = Text("says {old}, but runPolicy.cleanPodPolicy says {new}", old=old, new=new)
        yield document.problem(("spec", "cleanPodPolicy"), wrong, hint=Text("keep one of the two"))


def check_job(document: Document, job: Job) -> Iterator[Problem]:
    yield from _check_names(document, job)
    yield from _check_labels(document, job)
    yield from _check_annotations(document, job.annotations)
    yield from _check_main_container(document, job)
    yield from _check_ports(document, job)
    yield from _check_scheduling(document, job)
    if job.launch is not None and document.sound(*_launch_words(job)):
        yield from _check_launch(document, job, job.launch)


def _check_names(document: Document, job: Job) -> Iterator[Problem]:
    path: Path = ("metadata", "name")
    longest = max((job.launcher_host, job.worker_host(max(job.workers - 1, 0))), key=len)
    if not _DNS_1035.match(job.name):
        wrong = Text(
            "{given} cannot name hosts: it must start with a lower-case letter and hold only lower-case "
            "letters, digits and dashes, the last not a dash",
            given=quoted(job.name),
        )
        better = re.sub(r"[^a-z0-9]+", "-", job.name.lower()).strip("-")
        good = _DNS_1035.match(better) and len(better) <= _LONGEST_NAME
        yield document.problem(path, wrong, hint=did_you_mean(better) if good else None)
    elif len(longest) > _LONGEST_NAME and document.sound(_WORKERS):
        wrong = Text(
            "too long by {over}: the host {host} has {length} characters, and {most} is the most",
            over=len(longest) - _LONGEST_NAME,
            host=longest,
            length=len(longest),
            most=_LONGEST_NAME,
        )
        yield document.problem(path, wrong)
    elif (most := _LONGEST_HOSTFILE // len(f"{longest} slots={job.slots_per_worker}\n")) < job.workers:
        wrong = Text("a ConfigMap has room for {most} hosts with names as long as {host}", most=most, host=longest)
        yield document.problem(_WORKERS, wrong, hint=Text("choose a shorter name for the job"))
    if not _DNS_1123.match(job.namespace):
        given = quoted(job.namespace)
        wrong = Text("{given} is not a namespace: lower-case letters, digits and dashes, at most 63", given=given)
        yield document.problem(("metadata", "namespace"), wrong)


def _check_labels(document: Document, job: Job) -> Iterator[Problem]:
    for name, value in job.labels.items():
        path = ("metadata", "labels", name)
        if not _LABEL_NAME.match(name):
            yield document.problem(path, Text("{given} is not a label name", given=quoted(name)), on_key=True)
        if not _LABEL_VALUE.match(value):
            given = quoted(value)
            wrong = Text("{given} is not a label value: letters, digits, '-', '_' and '.', at most 63", given=given)
            yield document.problem(path, wrong)


def _check_annotations(document: Document, annotations: Mapping[str, str]) -> Iterator[Problem]:
    for name, value in annotations.items():
        path = ("metadata", "annotations", name)
        if not name.startswith(_OUR_PREFIX):
            continue
        known = _OURS if name in _OURS else {**_OURS, **_of_policies()}
        if name not in known:
            yield document.stray(path, Text("unknown annotation {name}", name=quoted(name)), hint=nearest(name, known))
        elif (wrong := known[name](value)) is not None:
            yield document.problem(path, wrong)


def _of_policies() -> Mapping[str, Rule]:
    """What a policy alone reads, it declares. Asked late: most manifests are read by those who need no policy."""
    from oarsman.plan.reconcile import ANNOTATIONS

    return ANNOTATIONS


Rule = Callable[[str], str | None]  # what is wrong with a value, if anything is


def _must(pattern: str, template: str) -> Rule:
    return lambda value: None if re.fullmatch(pattern, value) else Text(template, given=quoted(value))


def _one_of(*allowed: str) -> Rule:
    def wrong(value: str) -> str:
        return Text("{given} is not one of {allowed}", given=quoted(value), allowed=any_of(allowed))

    return lambda value: None if value in allowed else wrong(value)


_ANYTHING = _must(r"(?s:.*)", "")
_WHOLE = _must(r"[+-]?[0-9]{1,9}", Text("{given} is not a whole number"))
_SECONDS = _must(r"(?=.*[1-9])[0-9]{1,9}(\.[0-9]{1,9})?", Text("{given} is not a number of seconds above 0"))
_MPI = _must(r"openmpi|mpich|intel|(?s:.*/.*)", Text("{given} is neither openmpi, mpich or intel nor a path"))
_LABEL = _must(_DNS_1123.pattern, Text("{given} is not a name: small letters, digits and '-', at most 63"))
_OURS: Mapping[str, Rule] = {
    names.ANNOTATION_REWRITE: _one_of(*_BOOLEAN),
    names.ANNOTATION_NETWORK: _one_of("private", "host"),
    names.ANNOTATION_OVERSUBSCRIBE: _one_of(*_BOOLEAN),
    names.ANNOTATION_PRIORITY: _WHOLE,
    names.ANNOTATION_PLACEMENT: _one_of("slot", "node"),
    names.ANNOTATION_CODE: _one_of("copy", "none"),
    names.ANNOTATION_INVENTORY: _ANYTHING,
    names.ANNOTATION_MPI: _MPI,
    names.ANNOTATION_SILENCE: _SECONDS,
    names.ANNOTATION_DESCRIPTION: _ANYTHING,
    names.ANNOTATION_ENVIRONMENT: _LABEL,
    names.ANNOTATION_INSTALL: _ANYTHING,
    names.ANNOTATION_SWEEP_POINT: _WHOLE,
    names.ANNOTATION_SWEEP_PARAMETERS: _ANYTHING,
    names.ANNOTATION_SWEEP_SPEC: _ANYTHING,
    names.ANNOTATION_TAG_OUTPUT: _one_of(*_BOOLEAN),
    names.ANNOTATION_SHIM: _one_of(*_BOOLEAN),
    names.ANNOTATION_BARRIER: _one_of(*_BOOLEAN),
    names.ANNOTATION_ANY_USER: _one_of(*_BOOLEAN),
    names.ANNOTATION_GANG: _ANYTHING,
    names.ANNOTATION_STOP: _one_of(*_BOOLEAN),
    names.ANNOTATION_API_VERSION: _one_of(*(version.value for version in ApiVersion)),
    names.ANNOTATION_ATTEMPT: _WHOLE,
    names.ANNOTATION_RUN: _WHOLE,
    names.ANNOTATION_SUBMITTED_BY: _ANYTHING,
}


def _check_main_container(document: Document, job: Job) -> Iterator[Problem]:
    if job.main_container is None:
        return
    role = job.worker or job.launcher
    known = [container.name for container in role.containers]
    whose = "Worker" if job.worker is not None else "Launcher"
    if job.main_container not in known and document.sound(*_container_names(job, whose)):
        name, has = quoted(job.main_container), all_of(known)
        wrong = Text("the {whose} has no container {name}; it has {known}", whose=whose, name=name, known=has)
        yield document.problem(("spec", "mainContainer"), wrong, hint=nearest(job.main_container, known))


def _check_ports(document: Document, job: Job) -> Iterator[Problem]:
    network: Path = (*_ROLES, "Worker", "template", "spec", "hostNetwork")
    crowded = look(document.value, *network) is True and _MOST_PORTS < job.workers <= _MOST_WORKERS
    if crowded and document.sound(_WORKERS, network):
        template = Text("at most {most} workers can be on the host network, each with a port of its own")
        yield document.problem(_WORKERS, Text(template, most=_MOST_PORTS))


def _container_names(job: Job, whose: str) -> Iterator[Path]:
    """What decides that these, and no others, are the containers of the role."""
    role = job.worker if job.worker is not None and whose == "Worker" else job.launcher
    if job.worker is None:
        yield _WORKERS
    for index in range(len(role.containers)):
        yield (*_ROLES, whose, *_CONTAINERS, index, "name")


def _check_scheduling(document: Document, job: Job) -> Iterator[Problem]:
    policy = job.run_policy.scheduling
    least = policy.min_available if policy is not None and document.sound(_WORKERS) else None
    if least is not None and least > job.total_replicas:
        wrong = Text("waits for {least} pods, but the job has {all}", least=least, all=job.total_replicas)
        yield document.problem(("spec", "runPolicy", "schedulingPolicy", "minAvailable"), wrong)


# -- the launch line ------------------------------------------------------------------------------------
def _check_launch(document: Document, job: Job, line: LaunchLine) -> Iterator[Problem]:
    if line.processes is not None and line.processes < 1:
        given = line.processes
        wrong = Text("{launcher} must start at least 1 process, not {given}", launcher=line.launcher, given=given)
        yield document.problem(_word(job, line), wrong)
    elif not document.sound(*_slot_sources(job)):
        return
    elif line.elastic:
        if bounds := _wrong_bounds(job, line):
            yield document.problem(_word(job, line), bounds)
    elif _is_openmpi(job, line) and not _may_exceed(job, line):
        yield from _check_slots(document, job, line)


def _launch_words(job: Job) -> Iterator[Path]:
    """Where the words of the launch line come from."""
    yield ("spec", "mainContainer")
    if job.main_container is not None:
        yield from _container_names(job, "Launcher")
    for part in ("command", "args", "env"):
        yield (*_main_container(job), part)


def _slot_sources(job: Job) -> Iterator[Path]:
    """What the number of slots is made of, and whether it matters."""
    yield _WORKERS
    for name in ("slotsPerWorker", "runLauncherAsWorker", "mpiImplementation"):
        yield ("spec", name)
    for annotation in (names.ANNOTATION_MPI, names.ANNOTATION_OVERSUBSCRIBE):
        yield ("metadata", "annotations", annotation)
    if job.api_version is ApiVersion.V1:  # a GPU makes the launcher take ranks
        for index in range(len(job.launcher.containers)):
            yield (*_ROLES, "Launcher", *_CONTAINERS, index, "resources", "limits")


def _main_container(job: Job) -> Path:
    return (*_ROLES, "Launcher", *_CONTAINERS, job.launcher.main)


def _is_openmpi(job: Job, line: LaunchLine) -> bool:
    """Only Open MPI counts slots. A manifest can name another MPI in three ways."""
    other = line.launcher == "horovodrun" or line.launcher in HYDRA_ONLY
    wanted = job.annotation(names.ANNOTATION_MPI, "openmpi")
    return job.implementation is Implementation.OPENMPI and not other and wanted == "openmpi"


def _wrong_bounds(job: Job, line: LaunchLine) -> str | None:
    name, low, now, high = line.launcher, line.min_processes, line.processes, line.max_processes
    for count, bound in ((low, Text("least")), (high, Text("most"))):
        if count is not None and count < 1:
            template = Text("{launcher} must allow at least 1 process, but at {bound} {count} are asked for")
            return Text(template, launcher=name, bound=bound, count=count)
    if low is not None and high is not None and low > high:
        template = Text("{launcher} asks for at least {low} but at most {high} processes")
        return Text(template, launcher=name, low=low, high=high)
    if low is not None and now is not None and now < low:
        return Text("{launcher} starts {now} processes but wants at least {low}", launcher=name, now=now, low=low)
    if high is not None and now is not None and now > high:
        return Text("{launcher} starts {now} processes but wants at most {high}", launcher=name, now=now, high=high)
    if low is not None and low > job.slots:
        slots = _sum(job)
        return Text("{launcher} waits for {low} processes but there are {slots}", launcher=name, low=low, slots=slots)
    return None


def _check_slots(document: Document, job: Job, line: LaunchLine) -> Iterator[Problem]:
    slots, said = job.slots, _sum(job)
    if line.hosts:
        slots = sum(host.slots or 1 for host in line.hosts)
        hosts = ",".join(one.host if one.slots is None else f"{one.host}:{one.slots}" for one in line.hosts)
        said = Text("{slots} (--host {hosts})", slots=units.slots(slots), hosts=hosts)
    if line.processes is not None and line.processes > slots:
        hint = _more_slots(job, line.launcher, line.processes)
        if line.hosts and line.processes <= job.slots:
            hint = Text("a host without a number has one slot; write host:slots")
        one = Text("{launcher} asks for {given} but there is {slots}")
        many = Text("{launcher} asks for {given} but there are {slots}")
        given = _processes(line.processes)
        wrong = Text(one if slots == 1 else many, launcher=line.launcher, given=given, slots=said)
        yield document.problem(_word(job, line), wrong, hint=hint)
    elif line.per_node is not None and line.per_node > job.slots_per_worker and not line.hosts:
        wrong = Text(
            "{launcher} asks for {given} per node but a node has {slots}",
            launcher=line.launcher,
            given=_processes(line.per_node),
            slots=units.slots(job.slots_per_worker),
        )
        template = Text("set slotsPerWorker to {slots}, or give {launcher} --oversubscribe")
        hint = Text(template, slots=line.per_node, launcher=line.launcher)
        yield document.problem(_word(job, line), wrong, hint=hint)


def _more_slots(job: Job, launcher: str, ranks: int) -> str:
    workers = ceil(ranks / job.slots_per_worker) - (len(job.hosts) - job.workers if job.workers else 0)
    return Text(MORE_SLOTS, slots=ceil(ranks / len(job.hosts)), workers=workers, launcher=launcher)


def _may_exceed(job: Job, line: LaunchLine) -> bool:
    """Whether the check has nothing to compare: more ranks are wished for, or other hosts are named."""
    if any(word.startswith(("$", "`")) for word in line.unclear):
        return True
    if line.oversubscribe or (line.hostfile is not None and not line.hostfile.startswith(f"{names.MPI_CONFIG_DIR}/")):
        return True
    return any("oversubscribe" in f"{v.name}={v.value}".lower() for v in job.launcher.container.env)


def _sum(job: Job) -> str:
    """4 slots (2 workers x 2 slotsPerWorker): the number, and where it comes from."""
    hosts = units.workers(job.workers)
    if len(job.hosts) != job.workers:
        hosts = Text("(1 launcher + {workers})", workers=hosts) if job.workers else Text("1 launcher")
    each = job.slots_per_worker
    return Text("{slots} ({hosts} x {each} slotsPerWorker)", slots=units.slots(job.slots), hosts=hosts, each=each)


def _processes(count: int) -> str:
    return Text("1 process") if count == 1 else Text("{n} processes", n=count)


def _word(job: Job, line: LaunchLine) -> Path:
    """The path of the word that says the number of processes, or of the words as a whole."""
    container = _main_container(job)
    commands = len(job.launcher.container.command)
    if line.decisive_word is None:
        return (*container, "command" if commands else "args")
    if line.decisive_word < commands:
        return (*container, "command", line.decisive_word)
    return (*container, "args", line.decisive_word - commands)
