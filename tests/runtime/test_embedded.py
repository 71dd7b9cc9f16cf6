"""The faces' door to the jobs, where no supervisor is needed."""

from __future__ import annotations

from pathlib import Path

import pytest

from oarsman.errors import ManifestError, UserError
from oarsman.runtime.embedded import EmbeddedJobs
from oarsman.store.places import Places


def document(name: str = "pi") -> dict[str, object]:
    container = {"name": "l", "command": ["mpirun", "-n", "1", "hostname"]}
    replica = {"template": {"spec": {"containers": [container]}}}
    return {
        "apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "metadata": {"name": name},
        "spec": {"mpiReplicaSpecs": {"Launcher": replica}},
    }  # fmt: skip


@pytest.fixture
def jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> EmbeddedJobs:
    monkeypatch.setattr("oarsman.runtime.caller.Caller.poke", lambda _self, _uid: None)
    monkeypatch.setattr("oarsman.runtime.caller.Caller.attend", lambda _self: None)
    return EmbeddedJobs(Places(tmp_path / "state"))


def test_a_folder_whose_name_is_no_text_is_refused(jobs: EmbeddedJobs) -> None:
    with pytest.raises(UserError, match="not valid UTF-8"):
        jobs.submit(document(), environment={}, folder=Path("/data/\udcff"))


def test_a_record_that_cannot_be_read_does_not_hide_the_others(jobs: EmbeddedJobs) -> None:
    for name in ("old", "new"):
        jobs.submit(document(name), environment={}, folder=Path("/"))
    jobs._store.change_document("default/old", {"kind": "MPIJob", "was": "fine once"}, expected_generation=1)
    assert [record.job.name for record in jobs.list()] == ["new"]
    with pytest.raises(ManifestError):
        jobs.get("default/old")
