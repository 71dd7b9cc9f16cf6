"""Sweeps of real jobs through the command: results, causes, kills, resuming. Jobs are as small as they can be."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import in_process
import pytest
from click.testing import Result
from console.api.running import OARSMAN, ROOT

pytestmark = [pytest.mark.mpi, pytest.mark.timeout(180)]
Oarsman = Callable[..., Result]


@pytest.fixture
def environment(tmp_path: Path) -> Mapping[str, str]:
    path = os.pathsep.join([str(ROOT / ".venv" / "bin"), os.environ["PATH"]])
    return {**os.environ, "OARSMAN_STATE": str(tmp_path / "state"), "PATH": path, "LANG": "C.UTF-8", "NO_COLOR": "1"}


@pytest.fixture
def oarsman(environment: Mapping[str, str], tmp_path: Path) -> Iterator[Oarsman]:
    call = partial(in_process.oarsman, environment, tmp_path)
    yield call
    names = call("list", "-o", "name").stdout.split()
    if names:
        call("delete", "--yes", "--wait", *names)
    call("supervisor", "stop")


def jobs(oarsman: Oarsman) -> dict[str, dict[str, Any]]:
    found = json.loads(oarsman("list", "-o", "json").stdout)["items"]
    return {one["metadata"]["name"]: one for one in found}


def state(job: dict[str, Any]) -> str:
    true = {one["type"] for one in job["status"].get("conditions", ()) if one["status"] == "True"}
    return next((word for word in ("Succeeded", "Failed") if word in true), "going on")


MANIFEST = """
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: any}
spec:
  slotsPerWorker: "{{slots}}"
  mpiReplicaSpecs:
    Launcher:
      restartPolicy: Never
      template:
        spec:
          containers:
            - name: launcher
              command: [sh, -c, 'echo "loss: 0.{{n}}$SWEEP_SLOTS"; [ {{n}} -ne 3 ] || { echo no luck; exit 3; }']
"""


def test_of_12_points_10_have_results_and_2_have_causes(oarsman: Oarsman, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(MANIFEST)
    given = (
        "job.yaml",
        "--name",
        "many",
        "--grid",
        "n=" + ",".join(map(str, range(6))),
        "--grid",
        "slots=1,2",
        "--metric",
        r"loss: ([0-9.]+)",
    )
    done = oarsman("sweep", "run", *given, "-o", "csv", code=1)
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert [row["state"] for row in rows].count("Succeeded") == 10
    assert {(row["n"], row["slots"]) for row in rows if row["state"] == "Failed"} == {("3", "1"), ("3", "2")}
    assert [row["metric"] for row in rows[:4]] == ["0.01", "0.02", "0.11", "0.12"]
    causes = [row["cause"] for row in rows if row["cause"]]
    assert [cause.rpartition(" exited with ")[2] for cause in causes] == ["code 3: no luck"] * 2
    assert done.stderr == "many: 10 of 12 succeeded, 2 failed\n"
    before = jobs(oarsman)
    assert len(before) == 12
    assert {state(job) for job in before.values()} == {"Succeeded", "Failed"}

    oarsman("sweep", "run", *given, code=1)
    assert {name: made(job) for name, job in jobs(oarsman).items()} == {name: made(job) for name, job in before.items()}
    assert "another sweep" in oarsman("sweep", "run", *given, "--retries", "1", code=5).stderr
    (listed,) = json.loads(oarsman("sweep", "list", "-o", "json").stdout)
    assert (listed["state"], listed["total"], listed["states"]) == ("Failed", 12, {"Succeeded": 10, "Failed": 2})
    assert oarsman("sweep", "list", "-o", "name").stdout == "many\n"


def made(job: Mapping[str, Any]) -> Mapping[str, Any]:
    """What says which job it is; what became of its hosts may be told after its end."""
    return {name: value for name, value in job["metadata"].items() if name != "resourceVersion"}


def test_a_sweep_killed_half_way_goes_on_and_repeats_nothing_that_ended(
    oarsman: Oarsman, environment: Mapping[str, str], tmp_path: Path
) -> None:
    """Each point but the first waits for a file, so that the kill comes when exactly one has ended."""
    given = [
        "sweep",
        "run",
        "--name",
        "half",
        "--grid",
        "n=0,1,2,3,4,5",
        "--at-once",
        "2",
        "-n",
        "1",
        "--",
        "sh",
        "-c",
        "until [ {{n}} = 0 ] || [ -e go ]; do sleep 0.05; done; echo {{n}} >> ran",
    ]
    process = subprocess.Popen(
        [OARSMAN, *given],
        env=dict(environment),
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        oarsman_wait(oarsman, "half-0002")  # handed in when the first had ended
        process.send_signal(signal.SIGKILL)
    finally:
        process.kill()
        process.wait(120)
    before = jobs(oarsman)
    assert sorted(before) == ["half-0000", "half-0001", "half-0002"]
    (listed,) = json.loads(oarsman("sweep", "list", "-o", "json").stdout)
    assert listed["states"]["NotSubmitted"] == 3

    (tmp_path / "go").touch()
    oarsman(*given)
    after = jobs(oarsman)
    assert len(after) == 6
    assert {name: after[name]["metadata"]["uid"] for name in before} == {
        name: job["metadata"]["uid"] for name, job in before.items()
    }
    assert sorted((tmp_path / "ran").read_text().split()) == ["0", "1", "2", "3", "4", "5"]


def oarsman_wait(oarsman: Oarsman, name: str) -> None:
    """Until the job is there and runs."""
    while name not in jobs(oarsman):
        time.sleep(0.05)
    oarsman("wait", name, "--for", "running")


def test_ctrl_c_stops_what_runs_and_resuming_runs_that_again(
    oarsman: Oarsman, environment: Mapping[str, str], tmp_path: Path
) -> None:
    given = [
        "sweep",
        "run",
        "--name",
        "cut",
        "--grid",
        "n=0,1,2",
        "--at-once",
        "1",
        "-n",
        "1",
        "--",
        "sh",
        "-c",
        "until [ -e go ]; do sleep 0.05; done; echo {{n}} >> ran",
    ]
    process = subprocess.Popen(
        [OARSMAN, *given],
        env=dict(environment),
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        oarsman_wait(oarsman, "cut-0000")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 130, out + err
    assert "`oarsman sweep resume cut` continues it" in err
    assert {name: state(job) for name, job in jobs(oarsman).items()} == {"cut-0000": "Failed"}
    assert [point["state"] for point in json.loads(oarsman("sweep", "show", "cut", "-o", "json").stdout)["points"]] == [
        "Stopped",
        "NotSubmitted",
        "NotSubmitted",
    ]
    (tmp_path / "go").touch()
    oarsman("sweep", "resume", "cut")
    assert sorted((tmp_path / "ran").read_text().split()) == ["0", "1", "2"]
    assert set(map(state, jobs(oarsman).values())) == {"Succeeded"}


def test_a_file_has_the_points_and_a_sweep_is_deleted_with_its_jobs(oarsman: Oarsman, tmp_path: Path) -> None:
    (tmp_path / "points.csv").write_text("name,size\na,1\nb,2\n")
    given = ("--name", "again", "--points", "points.csv", "--retries", "1", "-n", "1", "-o", "json")
    done = oarsman("sweep", "run", *given, "--", "sh", "-c", "[ $SWEEP_SIZE = {{size}} ]")
    limits = [job["spec"]["runPolicy"]["backoffLimit"] for job in jobs(oarsman).values()]
    assert limits == [1, 1]
    view = json.loads(done.stdout)
    assert [point["state"] for point in view["points"]] == ["Succeeded", "Succeeded"]
    assert [point["parameters"] for point in view["points"]] == [{"name": "a", "size": 1}, {"name": "b", "size": 2}]
    oarsman("sweep", "stop", "again", code=5)  # it has ended
    oarsman("sweep", "delete", "again")
    for name in ("again-0000", "again-0001"):
        oarsman("wait", name, "--for", "deleted")
    assert oarsman("sweep", "list").stderr == "no sweeps\n"
    oarsman("sweep", "show", "again", code=4)
