"""A sweep over hosts: as many points at a time as there are slots, none of which gets into the way of another.

Every rank leaves traces in a folder that all hosts share, by which a test knows what ran where, how often, and beside
what. No rank ends before several points run, and on every host: a sweep of one point after the other would not end.
"""

from __future__ import annotations

import csv
import io
import json
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import inotify_simple
import pytest
from ssh_hosts import Rack

from .ssh_machine import SshMachine

pytestmark = [pytest.mark.mpi, pytest.mark.timeout(600)]
PATIENCE_SECONDS = 300.0
SLOTS = 2  # of each host
VALUES, WORKERS = range(6), (1, 2)
POINTS = [f"{n}/{workers}" for n in VALUES for workers in WORKERS]
UNLUCKY = 2  # the last rank of its points fails
AT_ONCE = 6
FREE = 3  # values whose points need not wait for a sign

PROGRAM = """
cd {shared}
point=$1/$2 me=$(hostname)
[ "$RANK" != 0 ] || echo "$point" >>ran
mkdir "running/$me,$1,$2,$RANK"
touch "seen/$me"
set -- "$1" "$2" "running/$me",*
[ $# -le $((2 + {slots})) ] || echo "$me" >>crowded
until [ "$(wc -l <ran)" -ge 4 ] && set -- "$1" "$2" seen/* && [ $# = $((2 + {hosts})) ]; do sleep 0.1; done
[ "$1" -lt {free} ] || until [ -e go ]; do sleep 0.1; done
rmdir "running/$me,$1,$2,$RANK"
echo "point $point of $SWEEP_N/$SWEEP_WORKERS on $me"
echo "loss: $1.$2"
[ "$1 $((RANK + 1))" != "{unlucky} $WORLD_SIZE" ] || {{ echo no luck >&2; exit 3; }}
"""
MANIFEST = """
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {{name: any, annotations: {{oarsman.dev/code: none}}}}
spec:
  slotsPerWorker: 1
  mpiReplicaSpecs:
    Launcher:
      restartPolicy: Never
      template:
        spec:
          containers: [{{name: l, command: [mpirun, sh, {program}, "{{{{n}}}}", "{{{{workers}}}}"]}}]
    Worker:
      replicas: "{{{{workers}}}}"
      template: {{spec: {{containers: [{{name: w}}]}}}}
"""
FAILED = {
    f"{UNLUCKY}/1": "rank 0 on {job}-worker-0 ({host}) exited with code 3: no luck",
    f"{UNLUCKY}/2": "rank 1 on {job}-worker-1 ({host}) exited with code 3: no luck",
}


@pytest.fixture
def machine(tmp_path: Path, rack: Rack) -> Iterator[SshMachine]:
    machine = SshMachine(tmp_path / "state", rack, slots=SLOTS)
    for name in ("running", "seen"):
        (rack.shared / name).mkdir()
        (rack.shared / name).chmod(0o1777)
    (rack.shared / "ran").touch()
    (rack.shared / "ran").chmod(0o666)
    program = rack.shared / "point.sh"
    program.write_text(PROGRAM.format(shared=rack.shared, slots=SLOTS, hosts=len(rack), unlucky=UNLUCKY, free=FREE))
    (machine.folder / "job.yaml").write_text(MANIFEST.format(program=program))
    yield machine
    rack.repair()
    machine.close()


def grid(name: str) -> list[str]:
    values, workers = ",".join(map(str, VALUES)), ",".join(map(str, WORKERS))
    return [
        "sweep",
        "run",
        "job.yaml",
        "--name",
        name,
        "--grid",
        f"n={values}",
        "--grid",
        f"workers={workers}",
        "--metric",
        r"loss: ([0-9.]+)",
    ]


def ended(machine: SshMachine, *words: str) -> str:
    """What a sweep says of its results, of which some are failures."""
    done = subprocess.run(
        machine.command(*words),
        env=machine.environment,
        cwd=machine.folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout


def ran(machine: SshMachine) -> list[str]:
    """The points whose first rank began, each as often as that happened."""
    return (machine.rack.shared / "ran").read_text().split()


def until_ran(machine: SshMachine, count: int) -> None:
    with inotify_simple.INotify() as notifier:
        notifier.add_watch(str(machine.rack.shared), inotify_simple.flags.MODIFY)
        while len(ran(machine)) < count:
            assert notifier.read(timeout=int(PATIENCE_SECONDS * 1000)), f"only {ran(machine)} began"


def results(text: str) -> Mapping[str, Mapping[str, str]]:
    return {f"{row['n']}/{row['workers']}": row for row in csv.DictReader(io.StringIO(text))}


def all_is_right(machine: SshMachine, rows: Mapping[str, Mapping[str, str]]) -> None:
    """10 results, 2 causes, each point once and by itself, and nothing left on any host."""
    assert list(rows) == POINTS
    for point, row in rows.items():
        assert row["state"] == ("Failed" if point in FAILED else "Succeeded"), row
        assert row["metric"] == point.replace("/", ".")
    assert sorted(ran(machine)) == sorted(POINTS)
    assert not (machine.rack.shared / "crowded").exists(), "more ranks than slots were on a host at the same time"
    for point, row in rows.items():
        placed = machine.machine_of(row["job"])
        workers = [placed[member] for member in sorted(placed) if "-worker-" in member]
        assert row["cause"] == FAILED.get(point, "").format(job=row["job"].partition("/")[2], host=workers[-1])
        said = sorted(line for line in machine.rank_lines(row["job"]) if line.startswith("point"))
        assert said == sorted(f"point {point} of {point} on {host}" for host in workers)
    machine.nothing_left()


def test_of_12_points_10_have_results_and_2_have_causes_and_several_ran_at_a_time(machine: SshMachine) -> None:
    (machine.rack.shared / "go").touch()
    rows = results(ended(machine, *grid("many"), "-o", "csv"))
    all_is_right(machine, rows)
    view = json.loads(machine.ok("sweep", "show", "many", "-o", "json"))
    assert (view["state"], view["states"]) == ("Failed", {"Succeeded": 10, "Failed": 2})
    assert [point["cause"] for point in view["points"]] == [row["cause"] for row in rows.values()]


def test_a_sweep_killed_half_way_goes_on_and_repeats_nothing(machine: SshMachine) -> None:
    """6 points have ended and others wait on their hosts when whoever hands them in is killed, and the supervisor."""
    command = machine.start(*grid("half"), "--at-once", str(AT_ONCE))
    until_ran(machine, 6 + AT_ONCE // 2)
    command.kill()
    machine.supervisor().kill()
    command.wait()
    before = {record.job.key: (record.job.uid, record.created_at) for record in machine.jobs.list()}
    assert 6 + AT_ONCE // 2 <= len(before) <= 6 + AT_ONCE

    (machine.rack.shared / "go").touch()
    all_is_right(machine, results(ended(machine, "sweep", "resume", "half", "-o", "csv")))
    after = {record.job.key: (record.job.uid, record.created_at) for record in machine.jobs.list()}
    assert len(after) == 12
    assert {key: after[key] for key in before} == before
