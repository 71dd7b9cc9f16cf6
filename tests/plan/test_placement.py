from __future__ import annotations

from dataclasses import replace

import pytest

from oarsman import names
from oarsman.job.job import Implementation, Job, Role
from oarsman.job.launch import HostSlots, LaunchLine
from oarsman.job.observed import Observed, Phase, RankReport, World
from oarsman.job.state import Attempt
from oarsman.plan import placement
from oarsman.plan.reconcile import reconcile
from tests.builders import MPIRUN, a_job, a_launcher, a_rank, a_status, a_worker, at, running

PLAIN = a_job(launch=MPIRUN)
UNKNOWN = a_job(launch=replace(MPIRUN, oversubscribe=True))
ELASTIC = a_job(workers=1, elastic=True)
RIGHT = (a_rank(0), a_rank(1))
DONE = a_launcher(Phase.SUCCEEDED, finished_at=at(9))


@pytest.mark.parametrize(
    ("job", "ranks", "ended", "wrong"),
    [
        pytest.param(PLAIN, RIGHT, True, None, id="as planned"),
        pytest.param(PLAIN, (a_rank(0), a_rank(1, "pi-worker-1.pi.default.svc")), True, None, id="a longer name"),
        pytest.param(
            PLAIN,
            (a_rank(0), a_rank(1, "pi-launcher")),
            True,
            "rank 1 ran on pi-launcher, planned pi-worker-1",
            id="on the launcher",
        ),
        pytest.param(
            PLAIN,
            (a_rank(0, "x"), a_rank(1, "y")),
            False,
            "rank 0 ran on x, planned pi-worker-0 (and 1 more)",
            id="seen while it runs",
        ),
        pytest.param(PLAIN, (a_rank(0),), True, "rank 1 never ran, planned pi-worker-1", id="one is missing"),
        pytest.param(PLAIN, (a_rank(0),), False, None, id="one may still come"),
        pytest.param(
            PLAIN,
            (*RIGHT, a_rank(2, "pi-worker-0")),
            True,
            "rank 2 ran on pi-worker-0, planned were 2 ranks",
            id="one too many",
        ),
        pytest.param(UNKNOWN, (a_rank(0, "pi-worker-1"),), True, None, id="plan unknown, host known"),
        pytest.param(
            UNKNOWN,
            (a_rank(0, "pi-launcher"),),
            True,
            "rank 0 ran on pi-launcher, which is not a host of this job",
            id="plan unknown, host unknown",
        ),
        pytest.param(ELASTIC, (a_rank(0), a_rank(5, "pi-worker-5")), True, None, id="a host that has left"),
        pytest.param(
            ELASTIC,
            (a_rank(0, "x-worker-0"),),
            True,
            "rank 0 ran on x-worker-0, which is not a host of this job",
            id="a host of another job",
        ),
    ],
)
def test_ranks_must_run_where_they_were_planned(
    job: Job, ranks: tuple[RankReport, ...], ended: bool, wrong: str | None
) -> None:
    seen = running(job, ranks=ranks, launcher=DONE if ended else a_launcher())
    plan = reconcile(job, seen, at(10))
    failed = plan.status.condition(names.FAILED)
    assert (failed.message if failed else None) == wrong
    assert (failed.reason if failed else names.REASON_PLACEMENT) == names.REASON_PLACEMENT
    assert plan.status.is_true(names.SUCCEEDED) == (ended and not wrong)


def test_where_ranks_ran_is_kept() -> None:
    plan = reconcile(PLAIN, running(PLAIN, ranks=RIGHT), at(10))
    assert dict(plan.status.placement) == {0: "pi-worker-0", 1: "pi-worker-1"}


def test_a_job_without_reports_is_not_judged_and_says_so_once() -> None:
    plan = reconcile(PLAIN, running(PLAIN, launcher=DONE), at(10))
    assert plan.status.is_true(names.SUCCEEDED)
    assert [e.reason for e in plan.events] == [names.REASON_UNVERIFIED, names.REASON_SUCCEEDED]


@pytest.mark.parametrize(
    ("ranks", "told"),
    [
        (
            (a_rank(0, "pi-launcher"), a_rank(1, "pi-launcher")),
            "rank 0 ran on pi-launcher, planned pi-worker-0 (and 1 more)",
        ),
        ((), "no rank was started on pi-worker-1"),
    ],
    ids=["ranks told", "nobody told"],
)
def test_what_a_launcher_found_amiss_is_told_by_rank_if_ranks_told_where_they_were(
    ranks: tuple[RankReport, ...], told: str
) -> None:
    said = {"reason": names.REASON_PLACEMENT, "message": "no rank was started on pi-worker-1"}
    launcher = a_launcher(Phase.FAILED, code=69, finished_at=at(9), **said)
    plan = reconcile(PLAIN, running(PLAIN, launcher=launcher, ranks=ranks, ranks_report=False), at(10))
    failed = plan.status.condition(names.FAILED)
    assert failed is not None
    assert (failed.reason, failed.message) == (names.REASON_PLACEMENT, told)


def test_where_ranks_need_not_report_a_job_is_only_told_about_if_nobody_else_has_looked() -> None:
    torch = replace(PLAIN, launch=None, launcher=with_command(PLAIN.launcher, "env", "A=b", "torchrun", "train.py"))
    plain = replace(PLAIN, launch=None, launcher=with_command(PLAIN.launcher, "python3", "drive.py"))
    for job, unverified, told in (
        (torch, True, True),
        (torch, False, False),
        (plain, True, False),
        (PLAIN, True, True),
    ):
        plan = reconcile(job, running(job, launcher=DONE, ranks_report=False, unverified=unverified), at(10))
        assert (names.REASON_UNVERIFIED in [e.reason for e in plan.events]) is told


def with_command(role: Role, *command: str) -> Role:
    return replace(role, containers=(replace(role.container, command=command),))


def test_scaling_a_running_job_does_not_move_its_plan() -> None:
    line = LaunchLine(launcher="mpirun", path="mpirun", processes=4, program=("./pi",))
    launched_with_two = running(a_job(launch=line))
    job = replace(a_job(workers=4, launch=line, generation=2), slots_per_worker=2)
    ranks = tuple(a_rank(r, f"pi-worker-{r // 2}", size=4) for r in range(4))
    plan = reconcile(job, replace(launched_with_two, ranks=ranks, launcher=DONE), at(10))
    assert plan.status.is_true(names.SUCCEEDED)


def test_where_two_kinds_of_launcher_differ_the_plan_is_known_only_when_the_kind_is_stated() -> None:
    line = LaunchLine(launcher="mpirun", path="mpirun", processes=3, map_by="node", program=("./pi",))
    job = replace(a_job(launch=line), slots_per_worker=2)
    ranks = (a_rank(0), a_rank(1, "pi-worker-0"), a_rank(2, "pi-worker-1"))
    seen = running(job, ranks=ranks, launcher=DONE)
    assert reconcile(job, seen, at(10)).status.is_true(names.SUCCEEDED)
    stated = replace(job, implementation=Implementation.OPENMPI, implementation_stated=True)
    assert reconcile(stated, seen, at(10)).status.is_true(names.FAILED)


def test_the_running_launcher_of_a_misplaced_job_is_ended_in_the_next_turn() -> None:
    seen = running(PLAIN, ranks=(a_rank(0, "x"),))
    plan = reconcile(PLAIN, seen, at(10))
    after = reconcile(PLAIN, replace(seen, status=plan.status), at(10))
    assert [type(a).__name__ for a in after.actions] == ["DeleteLauncher"]


# -- members that share machines -----------------------------------------------------------------------------
FOUR = {f"pi-worker-{i}": f"node{1 + i // 2}" for i in range(4)}  # two workers on each of two machines
SHARED = {"pi-launcher": "node1", **FOUR}
INTERLEAVED = {f"pi-worker-{i}": f"node{1 + i % 2}" for i in range(4)}
LONG_NAMES = {member: f"{machine}.lab.example" for member, machine in SHARED.items()}
ADDRESSES = {member: f"10.0.0.{machine[-1]}" for member, machine in SHARED.items()}


def line(processes: int | None, **given: str) -> LaunchLine:
    return LaunchLine(launcher="mpirun", path="mpirun", processes=processes, program=("./pi",), **given)  # type: ignore[arg-type]


def on(*workers: int | str) -> tuple[RankReport, ...]:
    names_ = [f"pi-worker-{w}" if isinstance(w, int) else w for w in workers]
    return tuple(a_rank(rank, host, size=len(names_)) for rank, host in enumerate(names_))


@pytest.mark.parametrize(
    ("launch", "machines", "ranks", "wrong"),
    [
        pytest.param(line(4), SHARED, on(0, 1, 2, 3), None, id="as planned"),
        pytest.param(line(4), SHARED, on(1, 1, 3, 2), None, id="which worker of a machine is all the same"),
        pytest.param(line(4), SHARED, on(0, 2, 1, 3), "rank 1 ran on node2, planned node1 (and 1 more)", id="swapped"),
        pytest.param(
            line(4),
            SHARED,
            on(0, 1, 2, "pi-launcher"),
            "rank 3 ran on node1, planned node2",
            id="the launcher is on a machine too",
        ),
        pytest.param(line(2), SHARED, on(0, "pi-launcher"), None, id="the machine of the launcher is planned"),
        pytest.param(line(4), SHARED, on(0, 1, 2), "rank 3 never ran, planned node2", id="one is missing"),
        pytest.param(line(4), SHARED, on(0, 1, 2, "x"), "rank 3 ran on x, planned node2", id="a machine of others"),
        pytest.param(line(4, map_by="node"), SHARED, on(0, 2, 0, 2), None, id="by node, machines take turns"),
        pytest.param(line(4), INTERLEAVED, on(0, 2, 1, 3), None, id="a machine stands where its first worker does"),
        pytest.param(
            line(4),
            INTERLEAVED,
            on(0, 1, 2, 3),
            "rank 1 ran on node2, planned node1 (and 1 more)",
            id="not one worker after the other",
        ),
        pytest.param(line(4), LONG_NAMES, on(0, 1, 2, "node2"), None, id="a machine with a longer name"),
        pytest.param(line(4), ADDRESSES, on(0, 1, 2, 0), "rank 3 ran on 10.0.0.1, planned 10.0.0.2", id="addresses"),
        pytest.param(replace(line(4), oversubscribe=True), SHARED, on(0, 0, 0, 0), None, id="plan unknown"),
        pytest.param(
            replace(line(4), oversubscribe=True),
            LONG_NAMES,
            on(0, 0, 0, "node2"),
            None,
            id="plan unknown, machine known",
        ),
        pytest.param(
            replace(line(4), oversubscribe=True),
            SHARED,
            on(0, 0, 0, "node3"),
            "rank 3 ran on node3, which is not a host of this job",
            id="plan unknown, machine unknown",
        ),
    ],
)
def test_on_shared_machines_ranks_are_compared_by_machine(
    launch: LaunchLine, machines: dict[str, str], ranks: tuple[RankReport, ...], wrong: str | None
) -> None:
    job = replace(a_job(workers=4, launch=launch), implementation=Implementation.OPENMPI, implementation_stated=True)
    plan = reconcile(job, running(job, ranks=ranks, launcher=DONE, machines=machines), at(10))
    failed = plan.status.condition(names.FAILED)
    assert (failed.message if failed else None) == wrong
    assert plan.status.is_true(names.SUCCEEDED) == (wrong is None)


def test_workers_that_left_an_elastic_job_are_known_though_their_machine_is_not() -> None:
    seen = running(ELASTIC, ranks=(a_rank(0), a_rank(1, "pi-worker-5")), launcher=DONE, machines={"pi-worker-0": "n"})
    assert reconcile(ELASTIC, seen, at(10)).status.is_true(names.SUCCEEDED)


# -- hosts that share a machine ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("machines", "planned"),
    [
        pytest.param({}, "0 0 1 1 2 2 3 3", id="each its own"),
        pytest.param(dict.fromkeys(range(4), "a"), "0 0 1 1 2 2 3 3", id="all on one"),
        pytest.param({0: "a", 1: "b", 2: "a", 3: "b"}, "0 0 2 2 1 1 3 3", id="in turn"),
    ],
)
def test_a_rank_belongs_to_the_host_whose_slot_it_has(machines: dict[int, str], planned: str) -> None:
    job = replace(a_job(workers=4, launch=replace(MPIRUN, processes=8)), slots_per_worker=2)
    where = {job.worker_host(index): machine for index, machine in machines.items()}
    assert placement.planned(job, where) == tuple(f"pi-worker-{index}" for index in planned.split())


def test_nobody_knows_where_ranks_go_that_no_launch_line_tells() -> None:
    assert placement.planned(a_job(launch=None)) == ()


def test_scaling_a_job_does_not_change_the_hosts_it_was_launched_with() -> None:
    job = a_job(workers=2)
    for attempt in (None, Attempt(number=1)):
        assert placement.hosts_at_launch(job, attempt) == job.hosts == ("pi-worker-0", "pi-worker-1")
    assert placement.hosts_at_launch(job, Attempt(number=1, workers=1)) == ("pi-worker-0",)
    with_launcher = replace(job, run_launcher_as_worker=True)
    assert placement.hosts_at_launch(with_launcher, None) == ("pi-launcher", "pi-worker-0", "pi-worker-1")


def test_a_launcher_whose_start_is_not_on_record_was_given_the_workers_that_are_published() -> None:
    job = a_job(workers=2)
    seen = Observed(status=a_status(), workers=(a_worker(0), a_worker(1)), launcher=a_launcher())
    for published, workers in ((("pi-worker-0",), 1), (("pi-worker-0", "pi-worker-1"), 2), ((), 2)):
        attempt = reconcile(job, replace(seen, published_hosts=published), at(9)).status.attempt
        assert attempt is not None
        assert attempt.workers == workers


# -- scripts that launch more than once --------------------------------------------------------------------
SCRIPT = replace(line(4), in_shell=True)
ONE, FOUR_RANKS = World(ranks=on(0), line=line(1)), World(ranks=on(0, 1, 2, 3), line=line(4))


@pytest.mark.parametrize(
    ("worlds", "wrong"),
    [
        pytest.param((FOUR_RANKS, ONE), None, id="a smaller one"),
        pytest.param((ONE, FOUR_RANKS), None, id="a larger one"),
        pytest.param((World(ranks=on(1), line=None),), None, id="its words are not known yet"),
        pytest.param(
            (World(ranks=on("x"), line=None),), "rank 0 ran on x, which is not a host of this job", id="a stranger"
        ),
        pytest.param((World(ranks=on(1), line=line(1)),), "rank 0 ran on pi-worker-1, planned pi-worker-0", id="wrong"),
        pytest.param(
            (World(ranks=on(1), line=line(1)), ONE), "rank 0 ran on pi-worker-1, planned pi-worker-0", id="the first"
        ),
        pytest.param((World(ranks=on(0), line=line(2)), ONE), "rank 1 never ran, planned pi-worker-1", id="missing"),
        pytest.param(
            (World(ranks=(a_rank(0, code=1),), line=line(2)), ONE), None, id="one that failed before all had begun"
        ),
    ],
)
def test_each_world_is_compared_with_its_own_words(worlds: tuple[World, ...], wrong: str | None) -> None:
    job = a_job(workers=4, launch=SCRIPT)
    *earlier, last = worlds
    given = {"ranks": last.ranks, "line": last.line, "earlier_worlds": tuple(earlier)}
    plan = reconcile(job, running(job, launcher=DONE, **given), at(10))
    failed = plan.status.condition(names.FAILED)
    assert (failed.message if failed else None) == wrong
    assert plan.status.placement == placement.seen(last.ranks)


def test_a_job_that_is_an_mpirun_has_its_words_from_the_manifest() -> None:
    seen = running(PLAIN, launcher=DONE, ranks=(a_rank(0, "pi-worker-1"), a_rank(1, "pi-worker-0")))
    assert reconcile(PLAIN, seen, at(10)).status.is_true(names.FAILED)


def test_how_many_ranks_a_host_takes_that_is_named_without_a_number_depends_on_the_mpi() -> None:
    named = replace(line(2), hosts=(HostSlots("pi-worker-1"), HostSlots("pi-worker-0")))
    job = replace(a_job(launch=named), slots_per_worker=2)
    assert placement.expected(job, job.hosts) is None
    stated = {kind: replace(job, implementation=kind, implementation_stated=True) for kind in Implementation}
    one_each = ("pi-worker-1", "pi-worker-0")
    found = {kind: placement.expected(job, job.hosts) for kind, job in stated.items()}
    assert found == {Implementation.OPENMPI: one_each, Implementation.MPICH: one_each, Implementation.INTEL: None}
    assert placement.expected(replace(job, slots_per_worker=1), job.hosts) == one_each


def test_a_world_that_was_launched_on_more_hosts_stays_when_they_are_taken_away() -> None:
    job = a_job(workers=1, launch=replace(line(None), in_shell=True), generation=3)
    hosts = ("pi-worker-0", "pi-worker-1")
    world = World(ranks=on(0, 1), line=line(None), hosts=hosts)
    earlier = running(job, earlier_worlds=(world,), ranks=on(0), line=line(1), world_hosts=hosts[:1])
    newest = running(job, ranks=world.ranks, line=world.line, world_hosts=hosts)
    for seen in (earlier, newest):
        assert not reconcile(job, seen, at(10)).status.finished
    wrong = reconcile(job, replace(newest, ranks=on(0, "pi-launcher")), at(10)).status.condition(names.FAILED)
    assert wrong is not None
    assert wrong.message == "rank 1 ran on pi-launcher, which is not a host of this job"


def test_nobody_knows_where_ranks_belong_that_were_launched_while_the_job_was_scaled() -> None:
    job = a_job(workers=1, launch=MPIRUN)
    for hosts, planned in ((), {0: "pi-worker-0", 1: "pi-worker-1"}), (("pi-worker-0", "pi-worker-2"), {}):
        seen = running(a_job(launch=MPIRUN), world_hosts=hosts)
        assert placement.expected_of_newest(job, seen) == planned
