"""A job that is changed while it runs: scaled, suspended, resumed, stopped, deleted, queued."""

from __future__ import annotations

import contextlib
import json
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from oarsman import names
from oarsman.backends.base import LogQuery
from oarsman.backends.local.follow import SupervisorLink
from oarsman.errors import ConflictError, ManifestError, NotFoundError, UserError
from oarsman.store.jobs import JobStore

from .machine import PATIENCE, WAITS, Machine, mpijob, python

pytestmark = pytest.mark.mpi

# A launcher that prints the discovery script's answer whenever it changes, until a file appears.
WATCHES = """
import os, subprocess, sys, time
last = None
while not os.path.exists(sys.argv[1]):
    now = subprocess.run(["/etc/mpi/discover_hosts.sh"], capture_output=True, text=True).stdout.split()
    if now != last:
        print(" ".join(now), flush=True)
        last = now
    time.sleep(0.02)
"""


def elastic(machine: Machine, name: str, workers: int) -> tuple[str, Path]:
    """An elastic job: the launcher follows discover_hosts.sh, as horovodrun does."""
    runner = machine.folder / "horovodrun"
    runner.write_text(f"#!/bin/sh\nexec python3 -c '{WATCHES}' \"$(pwd)/done\"\n")
    runner.chmod(0o755)
    command = [
        str(runner),
        "-np",
        "1",
        "--min-np",
        "1",
        "--max-np",
        "4",
        "--host-discovery-script",
        "/etc/mpi/discover_hosts.sh",
        "python3",
        "train.py",
    ]
    return machine.submit(mpijob(name, command, workers=workers)), machine.folder / "done"


def test_scaling_changes_the_discovery_script_and_takes_the_highest_first(machine: Machine) -> None:
    key, done = elastic(machine, "grow", 2)
    lines = machine.jobs.logs(key, LogQuery(follow=True))
    machine.until(key, lambda status: status.is_true(names.RUNNING))
    expected = [[f"grow-worker-{i}:1" for i in range(count)] for count in (2, 4, 1)]
    assert next(lines).text.split() == expected[0]
    machine.ok("scale", "grow", "--workers", "4")
    heard = next(lines).text.split()
    while heard != expected[1]:  # one by one, as they come up, never out of order
        assert heard == expected[1][: len(heard)]
        heard = next(lines).text.split()
    before, first = machine.seen(key).hosts, ["grow-worker-0"]
    machine.ok("scale", "grow", "--workers", "1")
    heard = next(lines).text.split()
    assert heard == expected[2]
    machine.until(key, lambda status: status.worker.active == 1)
    # Those that were told to end count no more, and take their time.
    after = machine.until_journal(key, lambda seen: [name for name in seen.hosts if "worker" in name] == first).hosts
    assert after["grow-worker-0"].process == before["grow-worker-0"].process
    done.touch()
    assert machine.until_finished(key).status.is_true(names.SUCCEEDED), machine.log_of(key)


def test_ranks_on_a_host_that_is_scaled_away_end_for_that_reason_alone(machine: Machine) -> None:
    """A script that launches once there are two hosts, of which one is taken away again."""
    two = "until [ $(grep -c . /etc/mpi/hostfile) = 2 ]; do sleep 0.1; done"
    script = f"{two}; exec mpirun {shlex.join(python(WAITS))}"
    key = machine.submit(mpijob("shrink", ["sh", "-c", script], workers=1))
    machine.until(key, lambda status: status.is_true(names.RUNNING))
    machine.jobs.scale(key, 2)
    machine.until_ranks(key, 2)
    machine.jobs.scale(key, 1)
    cause = machine.until_finished(key).status.cause
    assert cause is not None
    assert cause.summary == "shrink-worker-1 was removed while rank 1 ran there: the number of workers was set to 1"
    assert (cause.rank, cause.host, cause.hint) == (1, "shrink-worker-1", None)


def test_a_lost_worker_of_an_elastic_job_is_replaced_while_it_runs(machine: Machine) -> None:
    import os
    import signal

    key, done = elastic(machine, "heal", 2)
    lines = machine.jobs.logs(key, LogQuery(follow=True))
    machine.until(key, lambda status: status.is_true(names.RUNNING))
    assert len(next(lines).text.split()) == 2
    os.kill(machine.seen(key).hosts["heal-worker-0"].process.pid, signal.SIGKILL)
    assert next(lines).text.split() == ["heal-worker-1:1"]
    assert next(lines).text.split() == ["heal-worker-0:1", "heal-worker-1:1"]
    done.touch()
    record = machine.until_finished(key)
    assert record.status.is_true(names.SUCCEEDED), machine.log_of(key)
    assert len(record.status.attempts) == 1


def test_a_bad_change_changes_nothing(machine: Machine) -> None:
    key = machine.submit(mpijob("stays", ["mpirun", "-n", "2", *python(WAITS)]))
    machine.until_ranks(key, 2)
    with pytest.raises(ManifestError):
        machine.jobs.scale(key, 0)
    with pytest.raises(UserError, match="2 processes"):
        machine.jobs.scale(key, 1)
    assert machine.jobs.get(key).job.workers == 2
    with pytest.raises(NotFoundError):
        machine.jobs.scale("default/nobody", 1)


def test_a_job_can_be_suspended_and_resumed(machine: Machine) -> None:
    key = machine.submit(mpijob("pause", ["mpirun", "-n", "2", *python(WAITS)]))
    machine.until_ranks(key, 2)
    uid = machine.uid(key)
    machine.ok("suspend", "pause")
    suspended = machine.until(key, lambda s: s.is_true(names.SUSPENDED) and s.worker.active == 0)
    assert not suspended.status.is_true(names.RUNNING)
    machine.until_journal(key, lambda seen: not any("worker" in name for name in seen.hosts))
    assert not [p for p in machine.processes(uid) if "mpi4py" in p.cmdline()]
    machine.ok("resume", "pause")
    resumed = machine.until(key, lambda s: s.is_true(names.RUNNING))
    assert [attempt.outcome for attempt in resumed.status.attempts] == ["Suspended", ""]
    machine.ok("stop", "pause")
    machine.until_finished(key)
    machine.nothing_left(uid)


def test_a_job_that_is_resumed_while_its_hosts_still_go_waits_for_new_ones(machine: Machine) -> None:
    """What its ranks do when they are asked to end takes its time."""
    program = "trap '' TERM; echo begun; until [ -e go ]; do sleep 0.1; done"
    key = machine.submit(mpijob("back", ["mpirun", "-n", "1", "sh", "-c", program], workers=1))
    machine.until_ranks(key, 1)
    machine.jobs.suspend(key)
    machine.until(key, lambda status: status.is_true(names.SUSPENDED) and status.worker.active == 0)
    machine.jobs.resume(key)
    (machine.folder / "go").touch()
    status = machine.until_finished(key).status
    assert [attempt.outcome for attempt in status.attempts] == ["Suspended", "Succeeded"], status.cause


def test_a_job_born_suspended_starts_nothing(machine: Machine) -> None:
    key = machine.submit(mpijob("born", ["mpirun", "-n", "2", "hostname"], run_policy={"suspend": True}))
    machine.until(key, lambda s: s.is_true(names.SUSPENDED))
    assert machine.seen(key).agent is None
    machine.ok("resume", "born")
    assert machine.until_finished(key).status.is_true(names.SUCCEEDED), machine.log_of(key)


def test_a_job_that_crashes_makes_room_until_its_next_attempt(machine: Machine) -> None:
    from oarsman.engines.hosts.local.capacity import cpu_count

    everything = {"resources": {"requests": {"cpu": str(cpu_count())}}}
    program = "[ -e crashed ] || { touch crashed; exit 3; }"
    crashing = mpijob("crashing", ["sh", "-c", program], workers=1, worker=everything, run_policy={"backoffLimit": 3})
    key = machine.submit(crashing)
    other = machine.submit(
        mpijob("other", ["sh", "-c", "until [ -e go ]; do sleep 0.1; done"], workers=1, worker=everything)
    )
    machine.until(other, lambda s: s.is_true(names.RUNNING))
    queued = machine.until(key, lambda s: s.queue is not None)
    assert "held by default/other" in queued.status.queue.reason  # type: ignore[union-attr]
    (machine.folder / "go").touch()
    record = machine.until_finished(key)
    assert record.status.is_true(names.SUCCEEDED), record.status
    assert [attempt.outcome for attempt in record.status.attempts] == ["Failed", "Succeeded"]
    assert machine.until_finished(other).status.is_true(names.SUCCEEDED)


def test_jobs_are_admitted_whole_and_say_what_they_wait_for(machine: Machine) -> None:
    from oarsman.engines.hosts.local.capacity import cpu_count

    everything = {"resources": {"requests": {"cpu": str(cpu_count())}}}
    first = machine.submit(mpijob("first", ["mpirun", "-n", "1", *python(WAITS)], workers=1, worker=everything))
    machine.until_ranks(first, 1)
    second = machine.submit(mpijob("second", ["mpirun", "-n", "1", "hostname"], workers=1, worker=everything))
    waiting = machine.until(second, lambda s: s.is_true(names.QUEUED))
    assert waiting.status.queue is not None
    assert waiting.status.queue.position == 1
    assert "held by default/first" in waiting.status.queue.reason
    assert machine.seen(second).agent is None
    assert "held by default/first" in machine.ok("describe", "second")
    machine.jobs.stop(first)
    assert machine.until_finished(second).status.is_true(names.SUCCEEDED)


def test_a_suspended_job_gives_its_room_to_others(machine: Machine) -> None:
    from oarsman.engines.hosts.local.capacity import cpu_count

    everything = {"resources": {"requests": {"cpu": str(cpu_count())}}}
    running = machine.submit(mpijob("ran", ["mpirun", "-n", "1", *python(WAITS)], workers=1, worker=everything))
    machine.until_ranks(running, 1)
    queued = machine.submit(mpijob("queued", ["mpirun", "-n", "1", "hostname"], workers=1, worker=everything))
    machine.until(queued, lambda s: s.is_true(names.QUEUED))
    machine.jobs.suspend(queued)
    machine.until(queued, lambda s: s.is_true(names.SUSPENDED))
    machine.jobs.suspend(running)
    other = machine.submit(mpijob("other", ["mpirun", "-n", "1", "hostname"], workers=1, worker=everything))
    assert machine.until_finished(other).status.is_true(names.SUCCEEDED)


def test_a_job_that_can_never_fit_is_told_so(machine: Machine) -> None:
    huge = {"resources": {"requests": {"cpu": "5000"}}}
    refused = machine.run("run", "--name", "huge", str(_saved(machine, huge)))
    assert refused.returncode == 2
    assert "asks for 5000 CPUs, the machine has" in refused.stderr
    output = machine.ok("run", "--oversubscribe", "--name", "squeezed", str(_saved(machine, huge)))
    assert "squeezed-worker-0" in output


def _saved(machine: Machine, worker: dict[str, object]) -> Path:
    path = machine.folder / "saved.yaml"
    path.write_text(json.dumps(mpijob("saved", ["mpirun", "-n", "1", "hostname"], workers=1, worker=worker)))
    return path


def test_a_deadline_ends_the_job(machine: Machine) -> None:
    document = mpijob("slow", ["mpirun", "-n", "2", *python(WAITS)], run_policy={"activeDeadlineSeconds": 2})
    key = machine.submit(document)
    failed = machine.until_finished(key).status.condition(names.FAILED)
    assert failed is not None
    assert failed.reason == names.REASON_DEADLINE
    machine.nothing_left(machine.uid(key))


def test_a_time_to_live_removes_the_job_with_its_logs(machine: Machine) -> None:
    document = mpijob("brief", ["mpirun", "-n", "1", "hostname"], workers=1, run_policy={"ttlSecondsAfterFinished": 0})
    key = machine.submit(document)
    uid = machine.uid(key)
    for _ in machine.jobs.watch(key, timeout=PATIENCE):
        pass
    with pytest.raises(NotFoundError):
        machine.jobs.get(key)
    machine.folders_gone(uid)
    agents = [p for p in psutil.process_iter(["cmdline"]) if uid in " ".join(p.info["cmdline"] or ())]
    assert not psutil.wait_procs(agents, timeout=PATIENCE)[1]


def test_a_name_can_be_used_once_unless_replaced(machine: Machine) -> None:
    document = mpijob("once", ["mpirun", "-n", "1", "hostname"], workers=1)
    key = machine.submit(document)
    with pytest.raises(ConflictError, match="exists already"):
        machine.submit(document)
    first = machine.until_finished(key)
    given = {"environment": machine.environment, "folder": machine.folder, "replaces": first.job.uid}
    again = machine.jobs.submit(document, **given)
    assert again.job.uid != first.job.uid
    assert machine.until_finished(key).status.is_true(names.SUCCEEDED)


def test_deleting_a_running_job_leaves_no_process_and_no_file(machine: Machine) -> None:
    key = machine.submit(mpijob("gone", ["mpirun", "-n", "2", *python(WAITS)]))
    machine.until_ranks(key, 2)
    uid = machine.uid(key)
    machine.ok("delete", "gone")
    machine.ok("wait", "gone", "--for", "deleted")
    machine.nothing_left(uid)
    machine.folders_gone(uid)


def test_a_record_that_cannot_be_read_can_be_deleted(own_machine: Machine) -> None:
    key = own_machine.submit(mpijob("odd", ["mpirun", "-n", "1", "hostname"], workers=1))
    own_machine.until_finished(key)
    uid = own_machine.uid(key)
    assert SupervisorLink(own_machine.paths).stop()
    store = JobStore(own_machine.paths.database)
    store.change_document(key, {"kind": "MPIJob", "was": "fine once"}, expected_generation=1)
    own_machine.jobs.delete(key)
    deadline = time.monotonic() + PATIENCE
    while store.by_uid(uid) is not None:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    store.close()


def test_a_job_that_somebody_else_manages_takes_no_room_and_can_be_deleted(machine: Machine) -> None:
    elsewhere = {"managedBy": "kueue.x-k8s.io/multikueue"}
    foreign = machine.submit(mpijob("foreign", ["mpirun", "hostname"], workers=8, run_policy=elsewhere))
    own = machine.submit(mpijob("own", ["mpirun", "-n", "1", "hostname"], workers=8))
    assert machine.until_finished(own).status.is_true(names.SUCCEEDED)
    machine.jobs.delete(foreign)
    with contextlib.suppress(NotFoundError):
        for _ in machine.jobs.watch(foreign, timeout=PATIENCE):
            pass


def test_a_job_ends_although_its_run_folder_was_swept_away(machine: Machine) -> None:
    key = machine.submit(mpijob("swept", ["sh", "-c", "while [ ! -e done ]; do sleep 0.1; done"], workers=1))
    machine.until(key, lambda status: status.is_true(names.RUNNING))
    seen = machine.seen(key)
    assert seen.agent is not None
    shutil.rmtree(machine.paths.job_run(machine.uid(key)))
    (machine.folder / "done").touch()
    assert machine.until_finished(key).status.is_true(names.SUCCEEDED)
    with contextlib.suppress(psutil.NoSuchProcess):
        psutil.Process(seen.agent.pid).wait(PATIENCE)


def test_a_full_disk_fails_the_job_with_that_cause(own_machine_with: Callable[..., Machine]) -> None:
    machine = own_machine_with()
    state = machine.paths.state
    state.mkdir(parents=True)
    program = "from mpi4py import MPI; import sys\nfor i in range(400000): print('x' * 100, flush=False)"
    (machine.folder / "job.yaml").write_text(
        json.dumps(mpijob("full", ["mpirun", "-n", "1", *python(program)], workers=1))
    )
    # A disk of its own, seen by the command and by all that it starts.
    script = (
        f"mount -t tmpfs -o size=12m tmpfs {state} && {' '.join(machine.command('run', 'job.yaml'))}; code=$?; "
        f"{' '.join(machine.command('describe', 'full'))}; {' '.join(machine.command('supervisor', 'stop'))}; "
        "exit $code"
    )
    done = subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script],
        env=machine.environment,
        cwd=machine.folder,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 74, done.stdout[-3000:] + done.stderr[-3000:]
    assert "No space left on device" in done.stdout
    assert "rank 0 on full-worker-0" in done.stdout
