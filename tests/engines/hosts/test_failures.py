"""Whatever is killed, the cause names rank and host, and no process stays behind."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
from collections.abc import Callable

import psutil
import pytest

from oarsman import names
from oarsman.backends.base import JobRecord
from oarsman.engines.hosts.core import cgroups
from oarsman.job.state import Cause, Status
from oarsman.store.jobs import JobStore

from .machine import PATIENCE, WAITS, WAITS_IN_MPI, Machine, mpijob, python

pytestmark = pytest.mark.mpi
MPIS = ("openmpi5", "openmpi4", "mpich")


def waiting_job(machine: Machine, name: str, **options: object) -> str:
    return machine.submit(mpijob(name, ["mpirun", "-n", "2", *python(WAITS)], **options))  # type: ignore[arg-type]


def cause_of(record: JobRecord) -> Cause:
    assert record.status.is_true(names.FAILED), record.status
    assert record.status.cause is not None
    return record.status.cause


def program_of(pid: int) -> psutil.Process:
    """The user's program below the shim that reported the rank."""
    (program,) = [child for child in psutil.Process(pid).children() if "mpi4py" in child.cmdline()[:4]]
    return program


@pytest.mark.parametrize("mpi", MPIS)
def test_a_killed_rank_is_named_with_its_host(mpi: str, machine_with: Callable[..., Machine]) -> None:
    machine = machine_with(mpi)
    key = waiting_job(machine, "rank")
    seen = machine.until_ranks(key, 2)
    program_of(seen.ranks[1].pid).kill()
    cause = cause_of(machine.until_finished(key))
    assert (cause.rank, cause.host, cause.signal) == (1, "rank-worker-1", signal.SIGKILL)
    assert "rank 1 on rank-worker-1" in cause.summary
    machine.nothing_left(machine.uid(key))


@pytest.mark.parametrize("mpi", MPIS)
def test_a_killed_worker_is_named(mpi: str, machine_with: Callable[..., Machine]) -> None:
    machine = machine_with(mpi)
    key = waiting_job(machine, "tree")
    seen = machine.until_ranks(key, 2)
    os.kill(seen.hosts["tree-worker-1"].process.pid, signal.SIGKILL)
    cause = cause_of(machine.until_finished(key))
    assert cause.host == "tree-worker-1", cause
    assert "tree-worker-1" in cause.summary
    machine.nothing_left(machine.uid(key))


def test_a_killed_host_takes_its_processes_along_where_there_are_no_namespaces(
    own_machine_with: Callable[..., Machine],
) -> None:
    """Also one that has left its group and its session."""
    machine = own_machine_with("openmpi5", OARSMAN_SEPARATION="none")
    line = "setsid sh -c 'sleep 1000 & echo strayed; sleep 1000' & sleep 1000"
    (machine.folder / "job.json").write_text(json.dumps(mpijob("plain", ["sh", "-c", line], workers=1)))
    machine.ok("submit", "job.json")
    key = "default/plain"
    machine.until(key, lambda status: status.is_true(names.RUNNING))
    seen = machine.until_journal(key, lambda seen: bool(seen.first_output))
    uid = machine.uid(key)
    program = machine.processes(uid)
    assert [process for process in program if "1000" in process.cmdline()]
    os.kill(seen.hosts["plain-launcher"].process.pid, signal.SIGKILL)
    machine.until_finished(key)
    machine.nothing_left(uid)
    assert not any(process.is_running() for process in program)


@pytest.mark.parametrize("mpi", MPIS)
def test_a_killed_launcher_ends_every_rank(mpi: str, machine_with: Callable[..., Machine]) -> None:
    machine = machine_with(mpi)
    key = waiting_job(machine, "launcher")
    seen = machine.until_ranks(key, 2)
    launcher = psutil.Process(seen.hosts["launcher-launcher"].process.pid)
    for process in launcher.children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):  # gone with its parent
            process.kill()
    cause = cause_of(machine.until_finished(key))
    assert "launcher" in cause.summary
    assert cause.signal == signal.SIGKILL
    machine.nothing_left(machine.uid(key))


def test_an_exception_that_the_other_ranks_wait_for_is_told_while_the_job_runs(machine: Machine) -> None:
    program = (
        "from mpi4py import MPI; c = MPI.COMM_WORLD\n"
        "if c.rank == 1: raise ValueError('shapes do not match')\n"
        "c.barrier()\n"
    )
    # isolated, so that nothing of ours is read, which would end it
    key = machine.submit(mpijob("stuck", ["mpirun", "-n", "2", "python3", "-I", "-c", program]))
    stuck = machine.until(key, lambda status: _says_exception(status) is not None).status
    told = "rank 1 on stuck-worker-1 raised ValueError: shapes do not match and has not ended"
    assert stuck.is_true(names.RUNNING)
    assert str(_says_exception(stuck)).startswith(told)
    assert f"Warning  RankRaisedException  {told}" in machine.ok("events", "stuck")
    machine.ok("stop", "stuck")
    before = "before that rank 1 on stuck-worker-1 had raised ValueError: shapes do not match"
    assert cause_of(machine.until_finished(key)).summary == f"stopped by the user; {before}"


def _says_exception(status: Status) -> str | None:
    found = status.condition(names.RUNNING)
    return found.message if found is not None and found.reason == names.REASON_EXCEPTION else None


def test_a_killed_supervisor_loses_nothing(machine: Machine) -> None:
    """The job goes on alone; the next supervisor has all of its lines and its true end."""
    program = (
        "from mpi4py import MPI; import os, time\n"
        "for step in range(40):\n"
        "    print('step', step, flush=True)\n"
        "    while step == 20 and not os.path.exists('go'): time.sleep(0.02)\n"
    )
    key = machine.submit(mpijob("orphan", ["mpirun", "-n", "2", *python(program)]))
    machine.until_ranks(key, 2)
    supervisor = machine.supervisor()
    supervisor.kill()
    supervisor.wait(PATIENCE)
    assert machine.processes(machine.uid(key)), "the job must go on"
    (machine.folder / "go").touch()
    record = machine.until_finished(key)  # starts another one
    assert record.status.is_true(names.SUCCEEDED), machine.log_of(key)
    assert machine.supervisor().pid != supervisor.pid
    for rank in (0, 1):
        assert machine.lines(key, ranks=(rank,)) == [f"step {step}" for step in range(40)]
    machine.nothing_left(machine.uid(key))


def test_a_job_that_ended_while_no_supervisor_was_there_is_reported_truly(machine: Machine) -> None:
    program = "from mpi4py import MPI; import sys; print('late', flush=True); sys.exit(4)"
    line = "sleep 1; mpirun -n 1 " + shlex.join(python(program))
    key = machine.submit(mpijob("late", ["sh", "-c", line]))
    machine.until(key, lambda status: status.is_true(names.RUNNING))
    supervisor = machine.supervisor()
    supervisor.kill()
    supervisor.wait(PATIENCE)
    machine.until_journal(key, lambda seen: seen.launcher is not None and seen.launcher.exit is not None)
    cause = cause_of(machine.until_finished(key))
    assert (cause.rank, cause.exit_code) == (0, 4)


def test_looking_at_a_job_nobody_looks_after_tells_the_truth(machine: Machine) -> None:
    key = waiting_job(machine, "alone")
    seen = machine.until_ranks(key, 2)
    supervisor = machine.supervisor()
    assert seen.agent is not None
    supervisor.kill()
    supervisor.wait(PATIENCE)
    program_of(seen.ranks[0].pid).kill()
    machine.until_journal(key, lambda seen: seen.launcher is not None and seen.launcher.exit is not None)
    assert "Failed" in machine.ok("list")


def test_a_killed_job_agent_takes_its_hosts_along(machine: Machine) -> None:
    key = waiting_job(machine, "agent", worker={"resources": {"limits": {"memory": "1Gi", "cpu": "1"}}})
    seen = machine.until_ranks(key, 2)
    assert seen.agent is not None
    os.kill(seen.agent.pid, signal.SIGKILL)
    cause = cause_of(machine.until_finished(key))
    assert cause.summary
    machine.nothing_left(machine.uid(key))
    assert not machine.paths.job_run(machine.uid(key)).exists()
    slices = cgroups.find()
    for parent in {slices.memory, slices.cpu} - {""}:
        assert not [name for name in os.listdir(parent) if machine.uid(key)[:13] in name]


def test_a_job_whose_agent_was_killed_is_tried_again(machine: Machine) -> None:
    """With workers: they, too, are made anew before the launcher is."""
    line = "if [ -e second ]; then echo again; else touch second; echo first; sleep 1000; fi"
    document = mpijob("agent", ["sh", "-c", line], workers=1, run_policy={"backoffLimit": 2})
    key = machine.submit(document)
    machine.until(key, lambda status: status.is_true(names.RUNNING))
    seen = machine.until_journal(key, lambda seen: bool(seen.first_output))
    assert seen.agent is not None
    os.kill(seen.agent.pid, signal.SIGKILL)
    record = machine.until_finished(key)
    assert record.status.is_true(names.SUCCEEDED), machine.log_of(key)
    first, second = record.status.attempts
    assert (first.outcome, second.outcome) == ("Failed", "Succeeded")
    assert first.cause is not None
    assert "its job agent was killed" in first.cause.summary
    assert machine.lines(key, attempt=2) == ["again"]
    machine.nothing_left(machine.uid(key))


def test_a_job_whose_agent_was_killed_can_be_deleted_while_it_is_tried_again(machine: Machine) -> None:
    key = machine.submit(mpijob("agent", ["sleep", "1000"], workers=1, run_policy={"backoffLimit": 2}))
    machine.until(key, lambda status: status.is_true(names.RUNNING))
    seen = machine.seen(key)
    assert seen.agent is not None
    os.kill(seen.agent.pid, signal.SIGKILL)
    machine.until_journal(key, lambda now: now.agent not in (None, seen.agent))
    uid = machine.uid(key)
    machine.ok("delete", "agent")
    machine.nothing_left(uid)
    machine.folders_gone(uid)


def test_supervisor_and_job_agent_killed_together_leave_nothing(machine: Machine) -> None:
    key = waiting_job(machine, "both")
    seen = machine.until_ranks(key, 2)
    supervisor = machine.supervisor()
    assert seen.agent is not None
    for pid in (supervisor.pid, seen.agent.pid):
        os.kill(pid, signal.SIGKILL)
    supervisor.wait(PATIENCE)
    cause_of(machine.until_finished(key))
    machine.nothing_left(machine.uid(key))


def test_what_a_supervisor_killed_while_deleting_left_goes_with_the_next_one(machine: Machine) -> None:
    key = waiting_job(machine, "half")
    seen = machine.until_ranks(key, 2)
    uid = machine.uid(key)
    supervisor = machine.supervisor()
    supervisor.kill()
    supervisor.wait(PATIENCE)
    store = JobStore(machine.paths.database)
    store.remove(uid)
    store.close()
    machine.ok("run", "-n", "1", "--oversubscribe", "--", "hostname")
    assert seen.agent is not None
    with contextlib.suppress(psutil.NoSuchProcess):
        psutil.Process(seen.agent.pid).wait(PATIENCE)
    machine.nothing_left(uid)
    machine.folders_gone(uid)


@pytest.mark.parametrize("mpi", MPIS)
def test_an_exit_code_of_one_rank_is_the_jobs(mpi: str, machine_with: Callable[..., Machine]) -> None:
    """Hydra says nothing about this at all."""
    machine = machine_with(mpi)
    program = (
        "from mpi4py import MPI; import os; r = MPI.COMM_WORLD.rank; print('here', r, flush=True)\n"
        "os._exit(3) if r else MPI.COMM_WORLD.Barrier()\n"
    )
    done = machine.run("run", "-n", "2", "--name", "three", "--", *python(program))
    assert done.returncode == 3, done.stdout + done.stderr
    assert "rank 1 on three-worker-1 exited with code 3: here 1" in done.stderr


def test_a_failed_attempt_is_tried_again_on_new_hosts(machine: Machine) -> None:
    """The first attempt loses a worker; the gang starts again, and the second attempt ends well."""
    flag = machine.folder / "second"
    program = (
        "from mpi4py import MPI; import os, time\n"
        f"second = os.path.exists({str(flag)!r})\n"
        "print('second' if second else 'first', flush=True)\n"
        "MPI.COMM_WORLD.Barrier()\n"
        f"if not second:\n    {WAITS_IN_MPI}"
    )
    document = mpijob("again", ["mpirun", "-n", "2", *python(program)], run_policy={"backoffLimit": 1})
    key = machine.submit(document)
    seen = machine.until_ranks(key, 2)
    flag.touch()
    os.kill(seen.hosts["again-worker-0"].process.pid, signal.SIGKILL)
    record = machine.until_finished(key)
    assert record.status.is_true(names.SUCCEEDED), machine.log_of(key)
    assert [attempt.outcome for attempt in record.status.attempts] == ["Failed", "Succeeded"]
    first = record.status.attempts[0].cause
    assert first is not None
    assert first.host == "again-worker-0"
    own = [line for line in machine.lines(key, attempt=1, ranks=(0, 1)) if line in ("first", "second")]
    assert own == ["first", "first"], "whoever loses the other end may complain of it in between"
    assert machine.lines(key, attempt=2, ranks=(0, 1)) == ["second", "second"]


@pytest.mark.parametrize("halted", ["host", "daemon"])
def test_a_host_that_falls_silent_is_noticed(halted: str, machine: Machine) -> None:
    key = waiting_job(machine, "silent", annotations={names.ANNOTATION_SILENCE: "2"})
    seen = machine.until_ranks(key, 2)
    host = psutil.Process(seen.hosts["silent-worker-1"].process.pid)
    target = host if halted == "host" else host.children()[0]
    target.suspend()
    cause = cause_of(machine.until_finished(key))
    assert cause.host == "silent-worker-1"
    assert "no sign of life" in cause.summary
    machine.nothing_left(machine.uid(key))


def test_a_launcher_whose_host_falls_silent_did_not_run_out_of_memory(machine: Machine) -> None:
    """It is killed because its host gave no sign of life, and not by the kernel."""
    key = waiting_job(machine, "mute", annotations={names.ANNOTATION_SILENCE: "2"})
    seen = machine.until_ranks(key, 2)
    psutil.Process(seen.hosts["mute-launcher"].process.pid).suspend()
    cause = cause_of(machine.until_finished(key))
    assert cause.summary == "mute-launcher was lost: it gave no sign of life for 2 seconds"
    assert (cause.host, cause.memory_limit_hit, cause.hint) == ("mute-launcher", False, None)


def test_a_process_that_left_its_group_ends_with_the_job(machine: Machine) -> None:
    stray = "import os, time; os.setsid(); time.sleep(1000)"
    program = (
        "import subprocess, sys, time\n"
        f"subprocess.Popen([sys.executable, '-c', {stray!r}], start_new_session=True)\n"
        "print('strayed', flush=True); time.sleep(1000)\n"
    )
    key = machine.submit(mpijob("stray", ["mpirun", "-n", "2", "python3", "-c", program]))
    machine.until_ranks(key, 2)
    uid = machine.uid(key)
    machine.jobs.stop(key)
    record = machine.until_finished(key)
    failed = record.status.condition(names.FAILED)
    assert failed is not None
    assert failed.reason == names.REASON_STOPPED
    machine.nothing_left(uid)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_the_command_ends_the_job(number: int, machine: Machine) -> None:
    command = machine.start("run", "-n", "2", "--name", "held", "--", *python(WAITS))
    assert command.stdout is not None
    # mpirun has warnings of its own at times, about a process group that its child has left already.
    assert any(line.startswith("[rank ") for line in command.stdout)
    uid = machine.uid("default/held")
    command.send_signal(number)
    command.communicate(timeout=PATIENCE)
    assert command.returncode == 128 + number
    machine.nothing_left(uid)
    assert machine.jobs.get("default/held").status.is_true(names.FAILED)


def test_a_reader_that_goes_away_ends_the_job(machine: Machine) -> None:
    """`oarsman run ... | head -1`, also when lines come slowly."""
    program = "import time\nwhile True: print('tick', flush=True); time.sleep(0.1)"
    command = machine.start("run", "-n", "1", "--name", "piped", "--", "python3", "-c", program)
    assert command.stdout is not None
    assert any("tick" in line for line in command.stdout)
    uid = machine.uid("default/piped")
    command.stdout.close()
    assert command.wait(timeout=PATIENCE) != 0
    machine.until_finished("default/piped")
    machine.nothing_left(uid)


TYPOS = {
    "launcher": (["mpriun", "-n", "2", "hostname"], "the program is not there"),
    "rank": (["mpirun", "-n", "2", "./pyhton3"], "the program is not there"),
    "shell": (["sh", "-c", "mpriun -n 2 hostname"], "the program is not there"),
    "file": (["mpirun", "-n", "2", "/etc/hostname"], "the program cannot be executed"),
    "option": (["mpirun", "--frobnicate", "-n", "2", "hostname"], "mpirun does not take its command line"),
}

# What Python says of itself, in a job and the retries of it that would be of no use.
PYTHON_TYPOS = {
    "script": (["python3", "helo.py"], "the program is not there"),
    "mpi4py": (["python3", "-m", "mpi4py", "helo.py"], "the program is not there"),
    "module": (["python3", "-m", "nosuch", "x.py"], "a Python module is missing"),
    "import": (["python3", "-c", "import nosuch.sub"], "a Python module is missing"),
    "mpi-import": (["python3", "-m", "mpi4py", "-c", "import nosuch"], "a Python module is missing"),
    "after-init": (["python3", "-c", "from mpi4py import MPI; import nosuch"], "a Python module is missing"),
}


@pytest.mark.parametrize("mpi", ["openmpi4", "openmpi5", "mpich"])
def test_what_python_does_not_find_is_not_tried_again(mpi: str, machine_with: Callable[..., Machine]) -> None:
    machine, ends = machine_with(mpi), {}
    for name, (command, _) in PYTHON_TYPOS.items():
        machine.submit(mpijob(name, ["mpirun", "-n", "2", *command], run_policy={"backoffLimit": 6}))
    for name in PYTHON_TYPOS:
        found = machine.until(f"default/{name}", lambda status: status.finished or bool(status.retry_at))
        failed = found.status.condition(names.FAILED)
        assert found.status.cause is not None
        ends[name] = failed.message.partition("; not retried: ")[2] if failed else found.status.cause.last_lines
    assert ends == {name: why for name, (_, why) in PYTHON_TYPOS.items()}


@pytest.mark.parametrize("mpi", ["openmpi5", "mpich"])
def test_a_typo_is_not_tried_again(mpi: str, machine_with: Callable[..., Machine]) -> None:
    machine, ends = machine_with(mpi), {}
    for name, (command, _) in TYPOS.items():
        machine.submit(mpijob(name, command, run_policy={"backoffLimit": 6}))
    for name in TYPOS:
        status = machine.until_finished(f"default/{name}").status
        failed = status.condition(names.FAILED)
        assert failed is not None
        ends[name] = (failed.message.partition("; not retried: ")[2], len(status.attempts))
    assert ends == {name: (why, 1) for name, (_, why) in TYPOS.items()}


def test_what_a_missing_program_is_called_and_where(machine: Machine) -> None:
    done = machine.run("run", "-n", "2", "--name", "typo", "--", "pyhton3", "train.py")
    assert done.returncode == 127, done.stdout + done.stderr
    assert "on typo-worker-" in done.stderr
    assert "pyhton3: command not found" in done.stderr
