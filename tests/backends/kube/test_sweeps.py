"""Sweeps on a cluster: kept in annotations that the API server takes, handed in as fits, gone on with from there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from waiting import waiting

from oarsman.job.sweep import Sweep
from oarsman.manifest import builder, to_yaml
from oarsman.service.sweep_runs import Handing, SweepRunner

HANDING = Handing(environment={}, folder=Path("/"), owner="ada")


def a_sweep(**given: object) -> Sweep:
    shape = builder.Shape(processes=2, workers=2, image="example/solver:1")
    document = builder.document(["train", "--lr={{lr}}"], shape, builder.JobSettings(name="x"))
    fields = {"name": "rates", "namespace": "", "manifest": to_yaml([document]), "grid": {"lr": [0.5, "a b"]}}
    return Sweep(**{**fields, **given})  # type: ignore[arg-type]


def test_a_sweep_is_kept_with_its_jobs_and_gone_on_with(jobs: Any) -> None:
    sweeps = waiting(SweepRunner(jobs.here))
    drive = waiting(sweeps.begin(a_sweep(at_once=1), HANDING))
    drive.hand_in()
    key = f"{jobs.home}/rates"
    assert drive.todo == [1]
    found = sweeps.found(key)
    assert found is not None
    assert found.same_as(drive.sweep)
    again = waiting(sweeps.begin(a_sweep(at_once=5), HANDING))
    again.hand_in()
    assert [record.job.launcher.container.argv[-1] for record in sweeps.records(key)] == ["--lr=0.5", "--lr=a b"]
    assert {record.owner for record in sweeps.records(key)} == {"ada"}
    assert sweeps.stop(key) == 2
    assert sweeps.stop(key) == 0
    assert sweeps.resume(key, HANDING).todo == [0, 1]
    assert sweeps.delete(key) == 2
    assert all(record.deleting for record in sweeps.records(key))


def test_where_nothing_runs_yet_one_point_is_handed_in_and_says_what_it_waits_for(jobs: Any) -> None:
    drive = waiting(waiting(SweepRunner(jobs.here)).begin(a_sweep(), HANDING))
    drive.hand_in()
    assert (drive.active, drive.todo) == ([0], [1])
