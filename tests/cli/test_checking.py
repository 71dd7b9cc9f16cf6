"""`validate`, `convert`, `plan`, `doctor`, `completion`, `version`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oarsman import __version__
from oarsman import manifest as manifests
from oarsman.backends.local.doctor import DoctorFinding
from oarsman.cli import validate
from oarsman.cli.text import t
from oarsman.text.sentence import Text

from .fakes import MANIFEST, FakeJobs, oarsman


def test_a_valid_manifest_is_named(jobs: FakeJobs, manifest: str) -> None:
    result = oarsman(jobs, "validate", manifest)
    assert (result.stdout, result.exit_code) == (f"{manifest}: valid (pi)\n", 0)
    assert oarsman(jobs, "validate", "-q", manifest).output == ""


def test_every_problem_of_every_file_is_shown(jobs: FakeJobs, manifest: str, tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text(MANIFEST.replace("slotsPerWorker: 2", "slotsPerWorker: x").replace("replicas: 2", "replicas: y"))
    result = oarsman(jobs, "validate", manifest, str(bad), str(tmp_path / "none.yaml"))
    assert result.exit_code == 2
    assert f"{bad}:5:" in result.stdout
    assert f"{bad}:10:" in result.stdout
    assert "No such file or directory" in result.stdout
    assert f"{manifest}: valid (pi)" in result.stdout


def test_problems_as_data(jobs: FakeJobs) -> None:
    result = oarsman(jobs, "validate", "-o", "json", "-", stdin=MANIFEST.replace("slotsPerWorker", "slotPerWorker"))
    data = json.loads(result.stdout)
    assert result.exit_code == 2
    assert data["valid"] is False
    (problem,) = data["files"][0]["problems"]
    assert (problem["line"], problem["column"]) == (5, 3)
    assert "slotsPerWorker" in problem["hint"]
    good = json.loads(oarsman(jobs, "validate", "-o", "json", "-", stdin=MANIFEST).stdout)
    assert good == {
        "valid": True,
        "files": [{"source": "<stdin>", "jobs": ["default/pi"], "warnings": [], "problems": []}],
    }


def test_a_field_that_is_not_known_is_a_warning_and_an_error_with_strict(jobs: FakeJobs) -> None:
    text = MANIFEST.replace("{spec: {", "{spec: {hostNetwrok: true, ", 1)
    loose = oarsman(jobs, "validate", "-", stdin=text)
    assert loose.exit_code == 0
    assert "warning: spec.mpiReplicaSpecs.Launcher.template.spec.hostNetwrok" in loose.stdout
    assert "did you mean 'hostNetwork'?" in loose.stdout
    assert "<stdin>: valid (pi)" in loose.stdout
    strict = oarsman(jobs, "validate", "--strict", "-", stdin=text)
    assert strict.exit_code == 2
    assert "error: spec.mpiReplicaSpecs.Launcher.template.spec.hostNetwrok" in strict.stdout
    assert "problems: 1" in strict.stdout
    submitted = oarsman(jobs, "submit", "-", stdin=text)
    assert submitted.exit_code == 0
    assert "warning: " in submitted.stderr


ODD = [
    b"",
    b"\x00",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"\xf0\x9f",
    b"%YAML 9.9\n---\n",
    b"- " * 5000,
    b"{" * 5000,
    b"[" * 5000,
    b"a: &a [*a]",
    b"? ? ? ?",
    b"!!python/object:os.system {}",
    b"&x *x",
    b"---\n---\n---\n",
    b"kind: List\nitems: 3",
    b"kind: MPIJob",
    b"\tkind: MPIJob",
    b"a: 1\na: 1",
    b"kind: MPIJob\nmetadata: []\nspec: 7",
    "名: 字".encode(),
    b'name: "\\ud800"',
    b"x: 99999999999999999999999999999999999999999999",
    b"x: 0o777",
    b"x: .inf",
    b"'",
    b'"\\x',
    MANIFEST.encode("utf-16"),
    MANIFEST.replace("pi", "\x1b[2J").encode(),
    MANIFEST.replace("4", "9" * 400).encode(),
    MANIFEST.replace("replicas: 2", "replicas: 99999999999").encode(),
    MANIFEST.encode()[:200],
]


def _is_fine(jobs: FakeJobs, raw: bytes) -> None:
    for form in ([], ["-o", "json"], ["-o", "yaml"]):
        result = oarsman(jobs, "validate", "-", *form, stdin=raw)
        assert result.exit_code in (0, 2), result.output
        assert "Traceback (most recent call" not in result.output
        assert "fault in oarsman" not in result.output
        assert "\x1b" not in result.stdout


def test_memory_in_which_no_process_starts_is_an_error(jobs: FakeJobs, tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    limits = "{name: w, image: pi, resources: {limits: {memory: 4}}}"
    file.write_text(MANIFEST.replace("{name: w, image: pi}", limits))
    for words in (["validate"], ["run"], ["submit"], ["plan"]):
        result = oarsman(jobs, *words, str(file))
        place = "error: spec.mpiReplicaSpecs.Worker.template.spec.containers[0].resources.limits.memory: '4' is less"
        assert (result.exit_code, result.output.count(place)) == (2, 1), result.output
        assert "did you mean '4Gi'?" in result.output
    assert jobs.records == {}
    on_kube = oarsman(jobs, "submit", "--on", "kube", str(file))
    assert on_kube.exit_code == 0
    assert "warning: spec.mpiReplicaSpecs.Worker" in on_kube.stderr


@pytest.mark.parametrize("raw", ODD, ids=range(len(ODD)))
def test_validate_survives_odd_input(jobs: FakeJobs, raw: bytes) -> None:
    _is_fine(jobs, raw)


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(raw=st.binary(max_size=200))
def test_validate_survives_any_bytes(jobs: FakeJobs, raw: bytes) -> None:
    _is_fine(jobs, raw)


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_validate_survives_damaged_manifests(jobs: FakeJobs, data: st.DataObject) -> None:
    raw = MANIFEST.encode()
    start = data.draw(st.integers(0, len(raw)))
    end = data.draw(st.integers(start, min(start + 30, len(raw))))
    _is_fine(jobs, raw[:start] + data.draw(st.binary(max_size=10)) + raw[end:])


@pytest.mark.parametrize("error", [RecursionError("deep"), KeyError("x"), MemoryError(), AssertionError()])
def test_even_a_fault_of_ours_is_a_problem_not_a_traceback(
    jobs: FakeJobs, manifest: str, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def broken(path: str) -> None:
        raise error

    monkeypatch.setattr(validate.inputs, "load", broken)
    result = oarsman(jobs, "validate", manifest)
    assert result.exit_code == 2
    assert "cannot be understood" in result.stdout


def test_convert_writes_the_other_version_and_names_what_is_lost(jobs: FakeJobs, manifest: str) -> None:
    there = oarsman(jobs, "convert", manifest, "--to", "v1")
    assert yaml.safe_load(there.stdout)["apiVersion"] == "kubeflow.org/v1"
    back = oarsman(jobs, "convert", "-", "--to", "v2beta1", stdin=there.stdout)
    assert yaml.safe_load(back.stdout)["spec"]["slotsPerWorker"] == 2
    mpich = MANIFEST.replace("spec:\n", "spec:\n  mpiImplementation: MPICH\n", 1)
    lossy = oarsman(jobs, "convert", "-", "--to", "v1", stdin=mpich)
    assert "not kept: " in lossy.stderr
    assert lossy.exit_code == 0


def test_a_manifest_of_an_old_version_is_submitted_with_a_warning_and_converted(jobs: FakeJobs) -> None:
    old = "# a guide's\n" + MANIFEST.replace("v2beta1", "v1alpha2")
    submitted = oarsman(jobs, "submit", "-", stdin=old)
    assert submitted.exit_code == 0
    assert "warning: apiVersion: an old version; it is read as kubeflow.org/v2beta1" in submitted.stderr
    converted = oarsman(jobs, "convert", "-", stdin=old)
    assert converted.exit_code == 0
    assert converted.stdout == old.replace("v1alpha2", "v2beta1")


def test_convert_of_a_bad_manifest_shows_its_problems(jobs: FakeJobs) -> None:
    result = oarsman(jobs, "convert", "-", "--to", "v1", stdin="kind: Pod")
    assert (result.stdout, result.exit_code) == ("", 2)


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Put a module of the runtime in place, whatever the real one would say of this machine."""

    def put(name: str, **contents: Any) -> None:
        module = ModuleType(name)
        module.__dict__.update(contents)
        monkeypatch.setitem(__import__("sys").modules, name, module)

    return put


PREVIEW = SimpleNamespace(
    mpi="Open MPI 4.1.4 at /usr/bin/mpirun",
    hosts=("pi-worker-0", "pi-worker-1"),
    ranks={0: "pi-worker-0", 1: "pi-worker-0", 2: "pi-worker-1", 3: "pi-worker-1"},
    hostfile="pi-worker-0 slots=2\npi-worker-1 slots=2\n",
    discover_hosts="#!/bin/sh\necho pi-worker-0:2\n",
    environment={"B": "2", "A": "1"},
    launch_line="mpirun -np 4 ./pi",
    rewritten="mpirun --np 4 ./pi",
    objects=("worker pi-worker-0",),
    not_honoured=("image pi",),
    fit=None,
    machines={},
)


def test_a_plan_shows_everything_and_changes_nothing(
    jobs: FakeJobs, manifest: str, stand_in: Callable[..., None]
) -> None:
    stand_in("oarsman.backends.local.capacity", preview=lambda job, environment, folder, **_: PREVIEW)
    result = oarsman(jobs, "plan", manifest)
    assert result.exit_code == 0
    for fact in (
        "1 launcher + 2 workers = 3",
        "2 hosts x 2 = 4",
        "  pi-worker-1  2      2-3\n",
        "  pi-worker-1 slots=2\n",
        "  mpirun -np 4 ./pi\n",
        "  mpirun --np 4 ./pi\n",
        "  A=1\n  B=2\n",
        "  worker pi-worker-0\n",
        "  image pi\n",
        "Open MPI 4.1.4",
        "  echo pi-worker-0:2\n",
    ):
        assert fact in result.stdout
    assert jobs.calls == []
    data = json.loads(oarsman(jobs, "plan", manifest, "-o", "json").stdout)
    assert data["ranks"] == {"0": "pi-worker-0", "1": "pi-worker-0", "2": "pi-worker-1", "3": "pi-worker-1"}


def test_a_plan_is_all_chinese_for_chinese_readers(
    jobs: FakeJobs, manifest: str, stand_in: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    told = {
        "objects": (Text("host {name}", name="pi-worker-0"), Text("log files per rank")),
        "not_honoured": (Text("image {image} is not pulled: the programs of this machine run", image="pi"),),
    }
    found = SimpleNamespace(**vars(PREVIEW) | told)
    stand_in("oarsman.backends.local.capacity", preview=lambda job, environment, folder, **_: found)
    monkeypatch.setattr(t, "language", "zh")
    said = oarsman(jobs, "plan", manifest).stdout
    for fact in ("  主机 pi-worker-0\n", "  每个 rank 的日志文件\n", "  不拉取镜像 pi：运行的是本机的程序\n"):
        assert fact in said
    assert json.loads(oarsman(jobs, "plan", manifest, "-o", "json").stdout)["objects"][0] == "host pi-worker-0"


def test_a_command_that_starts_no_mpi_is_warned_of_before_it_runs(
    jobs: FakeJobs, manifest: str, tmp_path: Path, stand_in: Callable[..., None]
) -> None:
    stand_in("oarsman.backends.local.capacity", preview=lambda job, environment, folder, **_: PREVIEW)
    once = tmp_path / "once.yaml"
    once.write_text(MANIFEST.replace('[mpirun, -np, "4", ./pi]', "[python, train.py]"))
    for verb in ("validate", "plan", "submit"):
        assert "so it runs once, on the launcher" in oarsman(jobs, verb, str(once)).output
        jobs.records.clear()
        assert "it runs once" not in oarsman(jobs, verb, manifest).output
    assert "it runs once" not in oarsman(jobs, "submit", "-n", "4", "--", "./solver").output
    (told,) = json.loads(oarsman(jobs, "plan", str(once), "-o", "json").stdout)["warnings"]
    (file,) = json.loads(oarsman(jobs, "validate", str(once), "-o", "json").stdout)["files"]
    assert file["warnings"] == [told]


def test_a_plan_of_a_command_can_be_kept_as_a_manifest(jobs: FakeJobs) -> None:
    text = oarsman(jobs, "plan", "-n", "4", "--name", "kept", "-o", "manifest", "--", "./solver", "-x").stdout
    (job,) = manifests.load(text, "made.yaml")
    assert (job.name, job.launcher.container.argv) == ("kept", ("mpirun", "-n", "4", "./solver", "-x"))


def a_finding(level: str, *, blocking: bool = False, advice: str | None = None) -> DoctorFinding:
    return DoctorFinding(subject="MPI", level=level, message=f"it is {level}", advice=advice, blocking=blocking)


@pytest.mark.parametrize(
    ("findings", "code", "last"),
    [
        ([a_finding("ok", blocking=True)], 0, "Jobs can run here."),
        ([a_finding("warn", advice="a"), a_finding("missing", advice="b")], 0, "Jobs can run here."),
        ([a_finding("missing", blocking=True, advice="pip install x")], 1, "No job can run here before that."),
    ],
)
def test_the_doctor_fails_only_where_nothing_can_run(
    jobs: FakeJobs, stand_in: Callable[..., None], findings: list[Any], code: int, last: str
) -> None:
    stand_in("oarsman.backends.local.doctor", examine=lambda: findings)
    result = oarsman(jobs, "doctor")
    assert result.exit_code == code
    assert result.stdout.splitlines()[-1] == last
    assert all(f.advice in result.stdout for f in findings if f.advice)
    assert [f["level"] for f in json.loads(oarsman(jobs, "doctor", "-o", "json").stdout)] == [f.level for f in findings]


def test_the_doctor_speaks_chinese_throughout(
    jobs: FakeJobs, stand_in: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [DoctorFinding(subject=Text("host names"), level="warn", message=Text("not installed"))]
    stand_in("oarsman.backends.local.doctor", examine=lambda: found)
    monkeypatch.setattr(t, "language", "zh")
    said = oarsman(jobs, "doctor").stdout
    assert said.splitlines()[1].split() == ["警告", "主机名", "未安装"]
    assert json.loads(oarsman(jobs, "doctor", "-o", "json").stdout)[0]["subject"] == "host names"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_call_us(jobs: FakeJobs, shell: str) -> None:
    result = oarsman(jobs, "completion", shell)
    assert result.exit_code == 0
    assert f"_OARSMAN_COMPLETE={shell}_complete" in result.stdout


def test_version_has_a_form_for_programs(jobs: FakeJobs) -> None:
    assert oarsman(jobs, "--version").stdout == f"oarsman {__version__}\n"
    assert oarsman(jobs, "version").stdout.startswith(f"oarsman {__version__}\npython 3.")
    assert json.loads(oarsman(jobs, "version", "-o", "json").stdout)["oarsman"] == __version__
