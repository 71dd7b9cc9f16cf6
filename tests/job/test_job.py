"""What a job, its roles and what is seen of them say of themselves."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from for_every import for_every_row

from oarsman import names
from oarsman.job.job import Container, Implementation, Job, Resources, Role, VolumeMount
from oarsman.job.launch import LaunchLine
from oarsman.job.mpi import Family, launcher_variables
from oarsman.job.observed import Admission, Exit, Member, Observed, Phase, RankReport
from oarsman.job.state import Attempt, Cause, ReplicaCount, Status
from tests.builders import HOROVODRUN, MPIRUN, a_condition, a_job, a_worker


def test_a_job_knows_its_hosts_and_slots() -> None:
    for workers, as_worker, hosts, total in (
        (2, False, ("pi-worker-0", "pi-worker-1"), 3),
        (2, True, ("pi-launcher", "pi-worker-0", "pi-worker-1"), 3),
        (0, False, ("pi-launcher",), 1),
    ):
        job = replace(a_job(workers=workers, as_worker=as_worker), slots_per_worker=3)
        assert (job.hosts, job.slots, job.total_replicas) == (hosts, 3 * len(hosts), total)
    assert a_job().key == "default/pi"


def test_only_a_launcher_that_follows_its_hosts_is_elastic() -> None:
    assert [a_job(launch=line).elastic for line in (None, MPIRUN, HOROVODRUN)] == [False, False, True]
    assert LaunchLine(launcher="horovodrun", path="", min_processes=1).elastic
    assert LaunchLine(launcher="horovodrun", path="", host_discovery_script="x").elastic


@for_every_row(
    [
        ("/opt/openmpi/bin/mpirun", {}, "/opt/openmpi/bin/mpirun"),
        ("mpi/bin/mpirun", {}, "mpi/bin/mpirun"),
        ("mpirun", {}, ""),
        ("$MPI_HOME/bin/mpirun", {}, ""),
        ("/opt/openmpi/bin/mpirun", {"in_shell": True}, ""),
        ("/opt/horovod/bin/horovodrun", {"launcher": "horovodrun"}, ""),
    ]
)
def test_a_launcher_that_is_written_with_its_folder_says_where_the_mpi_is(
    written: str, given: dict[str, Any], path: str
) -> None:
    job = a_job(launch=replace(MPIRUN, path=written, **given))
    assert (job.launcher_path, job.mpi_path) == (path, path)


def test_nobody_looks_for_a_launcher_that_is_installed_first_or_that_another_mpi_is_chosen_for() -> None:
    job = a_job(launch=replace(MPIRUN, path="/opt/openmpi/bin/mpirun"))
    assert replace(job, annotations={names.ANNOTATION_INSTALL: "make install"}).mpi_path == ""
    assert replace(job, annotations={names.ANNOTATION_MPI: "mpich"}).mpi_path == ""
    assert replace(job, annotations={names.ANNOTATION_MPI: "/opt/mpich"}).mpi_path == "/opt/mpich"


@pytest.mark.parametrize(
    ("implementation", "annotation", "rewrites"),
    [
        (Implementation.OPENMPI, None, True),
        (Implementation.OPENMPI, "true", True),
        (Implementation.OPENMPI, "false", False),
        (Implementation.MPICH, None, False),
        (Implementation.INTEL, "true", False),
    ],
)
def test_options_are_spelled_anew_for_open_mpi_unless_that_is_not_wanted(
    implementation: Implementation, annotation: str | None, rewrites: bool
) -> None:
    annotations = {} if annotation is None else {names.ANNOTATION_REWRITE: annotation}
    assert replace(a_job(), implementation=implementation, annotations=annotations).rewrites_launch_line == rewrites


def test_an_annotation_that_is_not_there_has_the_default() -> None:
    job = replace(a_job(), annotations={"a": "b"})
    assert (job.annotation("a"), job.annotation("c"), job.annotation("c", "d")) == ("b", "", "d")


def test_what_must_be_there_is_the_request_or_else_the_limit() -> None:
    amounts = Resources(requests={"cpu": Decimal(1)}, limits={"cpu": Decimal(2), "memory": Decimal(3)})
    assert [amounts.effective(name) for name in ("cpu", "memory", "other")] == [1, 3, 0]


def test_gpus_are_whole_devices_of_any_maker() -> None:
    def gpus(**given: dict[str, int]) -> int:
        return Resources(**{part: {k: Decimal(v) for k, v in found.items()} for part, found in given.items()}).gpus

    assert gpus() == 0
    assert gpus(limits={"nvidia.com/gpu": 2, "amd.com/gpu": 1, "nvidia.com/vgpu": 4}) == 7
    assert gpus(limits={"nvidia.com/gpumem": 9, "cpu": 8, "gpu/x": 1}) == 0
    assert gpus(requests={"nvidia.com/gpu": 1}, limits={"nvidia.com/gpu": 2}) == 1


def test_the_container_of_a_role_is_the_one_that_runs_mpi() -> None:
    first, second = Container(name="a", command=("x",), args=("y",)), Container(name="b")
    assert Role(containers=(first, second)).container is first
    assert Role(containers=(first, second), main=1).container is second
    assert first.argv == ("x", "y")


def test_the_first_of_two_workers_with_one_number_counts() -> None:
    one, two, other = a_worker(0), a_worker(0, Phase.FAILED), a_worker(3)
    seen = Observed(workers=(one, two, other))
    assert [seen.worker(0), seen.worker(3), seen.worker(1)] == [one, other, None]


def test_phases_that_ended() -> None:
    assert [phase for phase in Phase if phase.ended] == [Phase.SUCCEEDED, Phase.FAILED]


@pytest.mark.parametrize(
    ("true", "phase"),
    [
        ((), "Pending"),
        ((names.CREATED,), "Created"),
        ((names.CREATED, names.QUEUED), "Queued"),
        ((names.CREATED, names.QUEUED, names.RUNNING), "Running"),
        ((names.RUNNING, names.RESTARTING), "Restarting"),
        ((names.RUNNING, names.SUSPENDED), "Suspended"),
        ((names.RUNNING, names.FAILED), "Failed"),
        ((names.FAILED, names.SUCCEEDED), "Succeeded"),
    ],
)
def test_the_phase_is_the_strongest_condition(true: tuple[str, ...], phase: str) -> None:
    status = Status(conditions=(*(a_condition(t) for t in true), a_condition("Other"), a_condition("Off", False)))
    assert status.phase == phase
    assert status.finished == (phase in ("Failed", "Succeeded"))
    assert not status.is_true("Off")
    assert not status.is_true("Never said")


def test_the_present_attempt_is_the_last() -> None:
    assert Status().attempt is None
    assert Status(attempts=(Attempt(number=1), Attempt(number=2))).attempt == Attempt(number=2)


BARE: list[tuple[object, dict[str, Any]]] = [
    (
        Job(name="pi", launcher=Role(containers=()), worker=None),
        {
            "namespace": "default",
            "generation": 1,
            "slots_per_worker": 1,
            "implementation_stated": False,
            "run_launcher_as_worker": False,
        },
    ),
    (a_job().run_policy, {"suspend": False}),
    (Role(containers=()), {"replicas": 1, "main": 0}),
    (VolumeMount(name="a", mount_path="/a"), {"read_only": False}),
    (LaunchLine(launcher="mpirun", path="mpirun"), {"in_shell": False, "oversubscribe": False, "contexts": 1}),
    (Exit(code=1), {"memory_limit_hit": False}),
    (
        Member(name="a", phase=Phase.PENDING),
        {
            "index": 0,
            "attempt": 1,
            "ready": False,
            "terminating": False,
            "waits_for_room": False,
        },
    ),
    (RankReport(rank=0, host="a", world_size=1), {"local_rank": 0, "pid": 0}),
    (Admission(), {"admitted": True, "position": 0, "impossible": False}),
    (
        Observed(),
        {
            "stop_requested": False,
            "keeps_idle_members": True,
            "launcher_holds": False,
            "ranks_report": True,
        },
    ),
    (ReplicaCount(), {"active": 0, "succeeded": 0, "failed": 0, "ready": 0}),
    (Cause(summary=""), {"memory_limit_hit": False}),
    (Status(), {"observed_generation": 0}),
]


def test_what_nobody_says_is_nothing_out_of_the_ordinary() -> None:
    for value, facts in BARE:
        assert {name: getattr(value, name) for name in facts} == facts, type(value).__name__
    assert Observed().patience.total_seconds() == 300


def test_every_family_is_an_implementation() -> None:
    assert [family.implementation.value for family in Family] == ["OpenMPI", "OpenMPI", "MPICH", "Intel"]


def test_every_family_is_told_the_hostfile_the_agent_and_the_slots() -> None:
    found = launcher_variables(hostfile="H", agent="A", slots=3)
    by_value = {value: {name for name in found if found[name] == value} for value in ("H", "A", "3")}
    assert by_value["H"] == {
        "OMPI_MCA_orte_default_hostfile",
        "PRTE_MCA_prte_default_hostfile",
        "HYDRA_HOST_FILE",
        "I_MPI_HYDRA_HOST_FILE",
    }
    assert by_value["A"] == {
        "OMPI_MCA_plm_rsh_agent",
        "PRTE_MCA_plm_ssh_agent",
        "HYDRA_LAUNCHER_EXEC",
        "I_MPI_HYDRA_BOOTSTRAP_EXEC",
    }
    assert by_value["3"] == {
        "OMPI_MCA_orte_set_default_slots",
        "PRTE_MCA_prte_set_default_slots",
        "I_MPI_PERHOST",
    }
