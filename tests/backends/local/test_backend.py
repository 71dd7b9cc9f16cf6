"""The faces' door to the jobs, where no supervisor is needed."""

from __future__ import annotations

import asyncio
import getpass
import os
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from oarsman import names
from oarsman.backends.base import Amounts
from oarsman.backends.local.backend import LocalBackend
from oarsman.engines.hosts.local import capacity
from oarsman.errors import ConflictError, ForbiddenError, ManifestError, NotFoundError, UserError
from oarsman.job.confined import Confined
from oarsman.job.state import Status
from oarsman.manifest import builder
from oarsman.plan.capacity.amounts import Capacity
from oarsman.plan.capacity.placement import Machine
from oarsman.status.codec import to_wire
from oarsman.store.jobs import JobStore, StoredJob
from oarsman.store.paths import Paths
from oarsman.store.samples import Moment, Sample, Series

from .local_backends import NOW, document, finished, local_backend, without_a_supervisor

GIB = 1 << 30


@pytest.fixture
def jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LocalBackend:
    without_a_supervisor(monkeypatch)
    machine = Machine(name="", capacity=Capacity(cpu=Decimal(4), memory=Decimal(8 * GIB)))
    monkeypatch.setattr(capacity, "measure", lambda: machine)
    return local_backend(Paths(tmp_path / "state"))


def started(jobs: LocalBackend, name: str, **given: object) -> str:
    uid = jobs.submit(document(name, **given), environment={}, folder=Path("/")).job.uid
    jobs._store.write_status(uid, to_wire(Status(start_time=NOW)), finished=False, now=NOW)
    return uid


def test_a_folder_whose_name_is_no_text_is_refused(jobs: LocalBackend) -> None:
    with pytest.raises(UserError, match="not valid UTF-8"):
        jobs.submit(document(), environment={}, folder=Path("/data/\udcff"))


def test_a_record_that_cannot_be_read_does_not_hide_the_others(jobs: LocalBackend) -> None:
    for name in ("old", "new"):
        jobs.submit(document(name), environment={}, folder=Path("/"))
    jobs._store.change_document("default/old", {"kind": "MPIJob", "was": "fine once"}, expected_generation=1)
    assert [record.job.name for record in jobs.list()] == ["new"]
    with pytest.raises(ManifestError):
        jobs.get("default/old")


def test_a_job_belongs_to_whom_it_was_submitted_for(jobs: LocalBackend) -> None:
    confined = Confined("/", []).kept({}, {})
    assert jobs.submit(document("hers"), environment=confined, folder=Path("/"), owner="ada").owner == "ada"
    assert jobs.submit(document("mine"), environment={}, folder=Path("/")).owner == getpass.getuser()
    assert jobs.get("default/hers").owner == "ada"


def test_a_job_of_somebody_else_never_has_the_rights_of_this_user(jobs: LocalBackend) -> None:
    with pytest.raises(ForbiddenError, match="default/pi is a job of ada"):
        jobs.submit(document(), environment={"PATH": "/bin"}, folder=Path("/"), owner="ada")


def test_a_job_takes_the_place_of_the_one_that_was_meant_and_of_no_other(jobs: LocalBackend) -> None:
    there = finished(jobs)
    with pytest.raises(ConflictError, match="exists already"):
        jobs.submit(document(), environment={}, folder=Path("/"), replaces="of one that had that name before")
    assert (jobs.get("default/pi").job.uid, jobs.get("default/pi").deleting) == (there, False)


def test_an_edit_is_seen_although_the_document_was_read_before(jobs: LocalBackend) -> None:
    jobs.submit(document(), environment={}, folder=Path("/"))
    assert not jobs.get("default/pi").job.run_policy.suspend
    assert jobs.suspend("default/pi").job.run_policy.suspend
    assert jobs.list()[0].job.run_policy.suspend


def test_many_threads_submit_edit_and_list_at_the_same_time(jobs: LocalBackend) -> None:
    threads, each = 8, 5
    before = os.umask(0o027)
    try:

        def work(number: int) -> None:
            for step in range(each):
                record = jobs.submit(document(f"job-{number}-{step}"), environment={}, folder=Path("/"))
                assert jobs.suspend(record.job.key).job.run_policy.suspend
                assert record.job.key in {one.job.key for one in jobs.list()}
                assert jobs.fit(document("other")).ever

        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(work, range(threads)))
        assert len(jobs.list()) == threads * each
        assert {stored.environment["OARSMAN_UMASK"] for stored in jobs._store.unfinished()} == {"027"}
    finally:
        assert os.umask(before) == 0o027


def test_a_host_says_who_holds_what(jobs: LocalBackend) -> None:
    started(jobs, "big", resources={"cpu": "3", "memory": "2Gi"})
    started(jobs, "crowd", resources={"cpu": "2"}, annotations={"oarsman.dev/oversubscribe": "true"})
    jobs.submit(document("waits", resources={"cpu": "2"}), environment={}, folder=Path("/"))
    finished(jobs, "over", resources={"cpu": "4"})
    (host,) = jobs.hosts()
    assert host.state == "ready"
    assert host.total == Amounts(cpus=4.0, memory_bytes=8 * GIB)
    assert host.held == Amounts(cpus=3.0, memory_bytes=2 * GIB)
    assert {holding.key: holding.amounts for holding in host.holdings} == {
        "default/big": Amounts(cpus=3.0, memory_bytes=2 * GIB),
        "default/crowd": Amounts(),
    }
    assert host.used is not None
    assert 0 <= host.used.cpus <= 4
    assert 0 < host.used.memory_bytes <= 8 * GIB


def test_a_job_fits_now_or_later_or_never(jobs: LocalBackend) -> None:
    small, large = document("small", resources={"cpu": "1"}), document("large", resources={"cpu": "5"})
    now = jobs.fit(small)
    assert (now.now, now.ever, now.reason) == (True, True, "")
    assert now.wanted == Amounts(cpus=1.0)
    started(jobs, "big", resources={"cpu": "4"})
    later = jobs.fit(small)
    assert (later.now, later.ever) == (False, True)
    assert later.reason == "needs 1 CPU, 0 of 4 are free (held by default/big: 4)"
    assert (later.free.cpus, later.total.cpus) == (0.0, 4.0)
    never = jobs.fit(large)
    assert (never.now, never.ever) == (False, False)
    assert never.reason.startswith("asks for 5 CPUs, the machine has 4")
    with pytest.raises(ManifestError):
        jobs.fit({"kind": "MPIJob"})


def test_who_comes_last_waits_behind_one_that_has_waited_long(jobs: LocalBackend) -> None:
    started(jobs, "big", resources={"cpu": "3"})
    long_ago = datetime.now(UTC) - timedelta(minutes=30)
    jobs._store.add(
        uid="u",
        namespace="default",
        name="patient",
        engine="local",
        owner="me",
        folder="/",
        environment={},
        document=document("patient", resources={"cpu": "2"}),
        now=long_ago,
    )
    fit = jobs.fit(document("small", resources={"cpu": "1"}))
    assert (fit.now, fit.reason) == (False, "waits behind default/patient, which has waited 30 min")
    urgent = document("small", resources={"cpu": "1"}, annotations={"oarsman.dev/priority": "5"})
    assert jobs.fit(urgent).now


def test_a_series_is_read_also_after_the_end_and_from_where_one_was(jobs: LocalBackend) -> None:
    uid = finished(jobs)
    assert jobs.usage_series("default/pi") == []
    folder = jobs._paths.job(uid)
    folder.mkdir(parents=True)
    series = Series(folder, 5.0)
    for number in range(3):
        series.add(Moment(1000.123 + 5 * number, {"a": Sample(1.0, 2), "b": Sample(3.0, 4, 5.0, 6.0, 7.0, 8)}))
    found = jobs.usage_series("default/pi")
    assert [(sample.host, sample.cpu_percent) for sample in found] == [("a", 1.0), ("b", 3.0)] * 3
    assert found[1].received_bytes_per_second == 5.0
    assert found[1].gpu_memory_bytes == 8
    for seen, rest in ((found[1].time, 4), (found[3].time, 2), (found[5].time, 0)):
        assert len(jobs.usage_series("default/pi", since=seen)) == rest


def test_a_job_between_two_attempts_is_no_holder(jobs: LocalBackend) -> None:
    uid = started(jobs, "crashes")
    assert [holding.key for holding in jobs.hosts()[0].holdings] == ["default/crashes"]
    resting = Status(start_time=NOW, retry_at=NOW + timedelta(minutes=5))
    jobs._store.write_status(uid, to_wire(resting), finished=False, now=NOW)
    assert jobs.hosts()[0].holdings == ()


def asking(**requests: object) -> dict[str, Any]:
    wanted = document("huge")
    [container] = wanted["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"]
    container["resources"] = {"limits": {name.replace("gpu", "nvidia.com/gpu"): n for name, n in requests.items()}}
    return wanted


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"cpu": 5000}, "asks for 5000 CPUs, the machine has 4"),
        ({"memory": "9Gi"}, "asks for 9 GiB of memory, the machine has 8 GiB"),
        ({"gpu": 1}, "asks for 1 GPU, the machine has 0"),
    ],
)
def test_what_can_never_fit_is_refused_with_the_numbers(
    jobs: LocalBackend, given: dict[str, object], words: str
) -> None:
    with pytest.raises(UserError, match=words) as error:
        jobs.submit(asking(**given), environment={}, folder=Path("/"))
    assert error.value.exit_code == 2
    assert jobs.list() == []


@pytest.mark.parametrize("given", ["4", 4, "512m", "900Ki"])
def test_memory_in_which_no_process_starts_is_refused(jobs: LocalBackend, given: object) -> None:
    for ask in (jobs.submit, jobs.preview):
        with pytest.raises(ManifestError, match="less than 1 MiB") as error:
            ask(asking(memory=given), environment={}, folder=Path("/"))
        [problem] = error.value.problems
        assert problem.field.endswith("Launcher.template.spec.containers[0].resources.limits.memory")
        assert problem.meant == {"4": "4Gi", "512m": "512Mi"}.get(str(given))
    assert jobs.list() == []


def test_who_scales_below_what_the_command_starts_is_told_the_least(jobs: LocalBackend) -> None:
    wanted = builder.document(["true"], builder.Shape(processes=4, workers=4), builder.JobSettings(name="el"))
    jobs.submit(wanted, environment={}, folder=Path("/"))
    with pytest.raises(UserError, match="default/el cannot run on 1 worker: mpirun asks for 4 processes") as error:
        jobs.scale("default/el", 1)
    assert error.value.hint == "its command starts more ranks than that: it needs at least 4 workers"


def test_what_fits_an_empty_machine_is_taken_however_full_it_is(jobs: LocalBackend) -> None:
    for name in ("one", "two"):
        wanted = asking(cpu=4)
        wanted["metadata"]["name"] = name
        jobs.submit(wanted, environment={}, folder=Path("/"))
    assert len(jobs.list()) == 2


def test_what_the_hosts_of_an_inventory_can_never_take_is_refused_and_what_is_not_known_is_left_open(
    jobs: LocalBackend, tmp_path: Path
) -> None:
    inventory = tmp_path / "hosts"
    inventory.write_text("node1 slots=2\nnode2 slots=2\n")
    wanted = asking(cpu=3)
    wanted["metadata"]["annotations"] = {names.ANNOTATION_INVENTORY: str(inventory)}
    with pytest.raises(UserError, match=r"no host has 3 slots .*node1 has most: 2"):
        jobs.submit(wanted, environment={}, folder=Path("/"))
    unknown = asking(memory="900Gi")
    unknown["metadata"]["annotations"] = {names.ANNOTATION_INVENTORY: str(inventory)}
    assert jobs.submit(unknown, environment={}, folder=Path("/")).engine == "ssh"


# -- whoever asks is interrupted -----------------------------------------------------------------------
async def _for_ever(*_given: object) -> None:
    await asyncio.Event().wait()


def _until(when: Callable[[], bool]) -> None:
    while not when():
        time.sleep(0.01)


async def interrupted(work: Coroutine[Any, Any, Any], when: Callable[[], bool]) -> None:
    task = asyncio.create_task(work)
    await asyncio.to_thread(_until, when)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("moment", ["while it is stored", "while the supervisor is told"])
def test_a_job_whose_hand_in_is_interrupted_does_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    without_a_supervisor(monkeypatch)
    backend, begun, add = LocalBackend(Paths(tmp_path / "state")), threading.Event(), JobStore.add

    def slowly(store: JobStore, **given: Any) -> StoredJob:
        begun.set()
        time.sleep(0.5)
        return add(store, **given)

    def stored() -> bool:
        return bool(backend._store.uids())

    if moment == "while it is stored":
        monkeypatch.setattr(JobStore, "add", slowly)
    else:
        monkeypatch.setattr("oarsman.backends.local.follow.SupervisorLink.poke", _for_ever)
    handed_in = backend.submit(document(), environment={}, folder=Path("/"))
    asyncio.run(interrupted(handed_in, begun.is_set if moment == "while it is stored" else stored))
    assert backend._store.get("default/pi").stop_requested
    asyncio.run(backend.close())


def test_an_interrupted_hand_in_stops_no_other_job_that_has_its_name_by_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_a_supervisor(monkeypatch)
    backend = LocalBackend(Paths(tmp_path / "state"))
    given_the_name, add = threading.Event(), JobStore.add

    def followed_by_another(store: JobStore, **given: Any) -> StoredJob:
        added = add(store, **given)
        store.remove(added.uid)
        add(store, **{**given, "uid": "another"})
        given_the_name.set()
        time.sleep(0.5)
        return added

    monkeypatch.setattr(JobStore, "add", followed_by_another)
    handed_in = backend.submit(document(), environment={}, folder=Path("/"))
    asyncio.run(interrupted(handed_in, given_the_name.is_set))
    assert not backend._store.get("default/pi").stop_requested
    asyncio.run(backend.close())


@pytest.mark.parametrize("verb", ["stop", "delete", "suspend"])
def test_what_is_asked_for_is_on_record_although_no_supervisor_could_be_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    without_a_supervisor(monkeypatch)
    backend = LocalBackend(Paths(tmp_path / "state"))
    asyncio.run(backend.submit(document(), environment={}, folder=Path("/")))
    monkeypatch.setattr("oarsman.backends.local.follow.SupervisorLink.poke", _for_ever)

    def on_record() -> bool:
        found = backend._store.get("default/pi")
        return found.stop_requested or found.deleting or bool(found.document["spec"].get("runPolicy"))

    asyncio.run(interrupted(getattr(backend, verb)("default/pi"), on_record))
    assert on_record()
    asyncio.run(backend.close())


def test_a_number_of_runs_that_is_none_is_refused_before_anything_is_replaced(
    jobs: LocalBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    uid = finished(jobs)
    monkeypatch.setenv("OARSMAN_RUNS_KEPT", "a few")
    with pytest.raises(UserError, match="is not a number of runs: 'a few'"):
        jobs.submit(document(), environment={}, folder=Path("/"), replaces=uid)
    assert [record.job.uid for record in jobs.runs("default/pi")] == [uid]


def test_what_an_earlier_run_used_and_wrote_is_read_by_its_number(jobs: LocalBackend) -> None:
    uid = finished(jobs)
    series = Series(jobs._paths.job(uid), 5.0)
    jobs._paths.job(uid).mkdir(parents=True, exist_ok=True)
    series.add(Moment(NOW.timestamp(), {"pi-worker-0": Sample(50.0, GIB)}))
    jobs.submit(document(), environment={}, folder=Path("/"), replaces=uid)
    assert [sample.memory_bytes for sample in jobs.usage_series("default/pi#1")] == [GIB]
    assert list(jobs.usage_series("default/pi")) == []


def test_what_is_asked_of_one_job_is_not_done_to_another_that_has_its_name_by_now(jobs: LocalBackend) -> None:
    started(jobs, "pi")
    before = jobs.get("default/pi")
    for ask in (jobs.stop, jobs.delete, jobs.suspend, jobs.resume, partial(jobs.scale, workers=1)):
        with pytest.raises(NotFoundError, match="there is no job pi"):
            ask("default/pi", uid="of the job that had this name")
    assert jobs.get("default/pi") == before
    assert jobs.stop("default/pi", uid=before.job.uid).stop_requested
