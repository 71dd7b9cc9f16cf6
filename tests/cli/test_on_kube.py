"""`--on kube`: the options, whose words are sent where, and what is said when something is missing."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from oarsman.backends import open_backend
from oarsman.backends.kube import install
from oarsman.backends.kube.install import InstallSettings, documents
from oarsman.cli.main import cli
from oarsman.cli.session import Session
from oarsman.errors import ManifestError
from oarsman.job.job import Job
from oarsman.manifest import job_from_document, sketch

from .fakes import MANIFEST, NOW, RUNNING, FakeJobs, oarsman


@dataclass
class ClusterFake(FakeJobs):
    """Nobody looks after its jobs."""

    home: str = "lab"

    async def silence(self, key: str) -> str | None:
        return f"no operator for {key}"

    async def served(self, namespace: str) -> bool | None:
        return False

    async def workers_left(self, job: Job) -> int:
        return 0

    async def lacks_namespace(self, namespace: str) -> bool:
        return False


def on_kube(jobs: FakeJobs, *words: str, stdin: str | None = None) -> Result:
    session = Session(factory=lambda engine: jobs, now=lambda: NOW)
    env = {"TZ": "UTC", "OARSMAN_ON": "kube"}
    return CliRunner().invoke(cli, words, input=stdin, obj=session, env=env, catch_exceptions=False)


@pytest.fixture
def jobs() -> ClusterFake:
    return ClusterFake()


# -- namespaces --------------------------------------------------------------------------------------


def test_names_that_mention_no_namespace_are_in_that_of_the_context(jobs: ClusterFake) -> None:
    jobs.add("pi", namespace="lab")
    assert on_kube(jobs, "stop", "pi").stdout == "pi is being stopped\n"
    assert jobs.calls == [("stop", "lab/pi")]


@pytest.mark.parametrize("option", ["-n", "--namespace"])
def test_another_namespace_can_be_named(jobs: ClusterFake, option: str) -> None:
    jobs.add("pi", namespace="other")
    assert on_kube(jobs, "stop", option, "other", "pi").stdout == "other/pi is being stopped\n"


def test_only_the_namespace_that_is_meant_goes_unmentioned(jobs: ClusterFake) -> None:
    for namespace in ("lab", "default"):
        jobs.add("pi", namespace=namespace)
    names = on_kube(jobs, "list", "--all-namespaces", "-o", "name").stdout.split()
    assert sorted(names) == ["mpijob/default/pi", "mpijob/pi"]
    assert on_kube(jobs, "list", "-o", "name").stdout == "mpijob/pi\n"


def test_one_machine_lists_every_namespace_as_before() -> None:
    jobs = FakeJobs()
    jobs.add("pi")
    jobs.add("tau", namespace="other")
    for words in (["list", "-o", "name"], ["list", "-A", "-o", "name"]):
        assert oarsman(jobs, *words).stdout == "mpijob/pi\nmpijob/other/tau\n"


def test_delete_all_stays_in_the_namespace_of_the_context(jobs: ClusterFake) -> None:
    jobs.add("pi", namespace="lab")
    jobs.add("tau", namespace="other")
    assert on_kube(jobs, "delete", "--all", "--yes").stdout == "pi deleted\n"
    assert list(jobs.records) == ["other/tau"]


# -- options -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("option", ["--context", "--kubeconfig"])
def test_options_of_clusters_are_refused_elsewhere(option: str) -> None:
    result = oarsman(FakeJobs(), "list", option, "x")
    assert (result.exit_code, result.stderr) == (2, f"error: {option} needs --on kube\n")


def test_a_command_needs_an_image(jobs: ClusterFake) -> None:
    result = on_kube(jobs, "run", "-n", "4", "--", "./solver", "--fast")
    assert result.exit_code == 2
    assert "needs --image" in result.stderr
    assert "oarsman run --on kube -n 4 --image IMAGE -- ./solver --fast" in result.stderr
    assert on_kube(jobs, "run", "-n", "4", "--image", "pi:1", "--name", "pi", "--", "./solver").exit_code == 0
    containers = [
        role["template"]["spec"]["containers"][0]
        for role in jobs.records["default/pi"].job.document["spec"]["mpiReplicaSpecs"].values()
    ]
    assert {container["image"] for container in containers} == {"pi:1"}


def test_an_image_does_not_go_with_a_manifest(jobs: ClusterFake, manifest: str) -> None:
    result = on_kube(jobs, "run", "--image", "x", manifest)
    assert (result.exit_code, "--image needs -n" in result.stderr) == (2, True)


def test_the_operator_is_said_to_finish_what_is_left(jobs: ClusterFake) -> None:
    from oarsman.cli.waiting import controller

    assert controller(Session(engine="kube")) == "the operator"
    assert controller(Session()) == "the supervisor"


def test_a_job_that_nobody_looks_at_is_explained_once(
    jobs: ClusterFake, manifest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from threading import Event

    from oarsman.cli import waiting

    told = Event()
    monkeypatch.setattr(waiting, "_LOOK_AFTER_SECONDS", 0.0)
    heard = []

    def tell(why: str) -> None:
        heard.append(why)
        told.set()

    jobs.add("pi", namespace="lab")
    with waiting.told_if_nothing_happens(Session(factory=lambda _: jobs, engine="kube"), "lab/pi", tell):
        assert told.wait(120)
    assert heard == ["no operator for lab/pi"]


def test_a_job_that_somebody_else_made_and_that_is_not_valid_is_shown_as_far_as_it_goes(jobs: ClusterFake) -> None:
    document = {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": "odd", "namespace": "lab"},
        "spec": {"mpiReplicaSpecs": {"Launcher": {"template": {"spec": {"containers": [{"image": "odd:1"}]}}}}},
    }
    with pytest.raises(ManifestError):
        job_from_document(document)
    jobs.records["lab/odd"] = replace(jobs.add("odd", RUNNING, namespace="lab"), job=sketch(document))
    page = on_kube(jobs, "describe", "odd")
    assert (page.exit_code, "odd:1" in page.stdout) == (0, True)
    assert json.loads(on_kube(jobs, "get", "odd", "-o", "json").stdout)["spec"] == document["spec"]
    assert "odd" in on_kube(jobs, "list", "-o", "wide").stdout


# -- what is missing ---------------------------------------------------------------------------------


def python(script: str, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    clean = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": "/nonexistent", **env}
    return subprocess.run([sys.executable, "-c", script, *words], env=clean, capture_output=True, text=True)


def test_without_the_extra_its_name_is_given() -> None:
    script = "import sys; sys.modules['aiohttp'] = None; from oarsman.cli.main import cli; cli.main()"
    done = python(script, "list", "--on", "kube")
    assert done.returncode == 2
    assert "hint: pip install 'oarsman[kube]'" in done.stderr


def test_without_a_kubeconfig_the_places_are_named() -> None:
    done = python("from oarsman.cli.main import cli; cli.main()", "list", "--on", "kube")
    assert done.returncode == 2
    assert "no cluster is known" in done.stderr
    assert "--kubeconfig" in done.stderr


def test_programs_choose_a_cluster_as_the_command_does(tmp_path: Path) -> None:
    config = {
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "far", "context": {"cluster": "c", "user": "u", "namespace": "lab"}}],
    }
    path = tmp_path / "config"
    path.write_text(json.dumps(config))
    assert open_backend("kube", context="far", kubeconfig=str(path)).home == "lab"
    assert open_backend("kube", context="far", kubeconfig=str(path), namespace="other").home == "other"


# -- what is installed -------------------------------------------------------------------------------


def test_the_manifest_is_the_one_of_the_source_tree() -> None:
    kinds = [one["kind"] for one in documents(InstallSettings())]
    assert kinds[:2] == ["CustomResourceDefinition", "Namespace"]
    assert {"Deployment", "ServiceAccount", "ClusterRole", "ClusterRoleBinding"} <= set(kinds)


def test_every_object_moves_to_the_namespace_that_was_asked_for() -> None:
    found = documents(
        InstallSettings(namespace="elsewhere", image="own:2", kubectl_image="kubectl:3", watch=("a", "b"))
    )
    assert "mpi-operator" not in {one["metadata"].get("namespace") for one in found}
    assert [one["metadata"]["name"] for one in found if one["kind"] == "Namespace"] == ["elsewhere"]
    assert {s["namespace"] for one in found for s in one.get("subjects") or () if "namespace" in s} == {"elsewhere"}
    container = next(one for one in found if one["kind"] == "Deployment")["spec"]["template"]["spec"]["containers"][0]
    assert container["image"] == "own:2"
    assert {"--lock-namespace=elsewhere", "--namespace=a,b"} <= set(container["args"])
    assert container["args"][0] == "operator"
    images = [arg for arg in container["args"] if arg.startswith("--kubectl-delivery-image=")]
    assert images == ["--kubectl-delivery-image=kubectl:3"]


def test_the_objects_can_be_printed_for_another_tool() -> None:
    from yaml import safe_load_all

    result = on_kube(FakeJobs(), "install", "-o", "yaml", "--image", "own:2")
    assert result.exit_code == 0
    assert list(safe_load_all(result.stdout)) == documents(InstallSettings(image="own:2"))


def test_uninstall_asks_where_somebody_can_answer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "config"
    cluster = {"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}
    path.write_text(
        json.dumps(
            {
                "clusters": [cluster],
                "users": [],
                "contexts": [{"name": "x", "context": {"cluster": "c"}}],
                "current-context": "x",
            }
        )
    )
    monkeypatch.setattr(install, "remove", None)  # nothing may be removed
    result = on_kube(FakeJobs(), "uninstall", "--kubeconfig", str(path))
    assert result.exit_code == 2
    assert "hint: --yes answers the question" in result.stderr


def test_uninstall_without_a_cluster_says_how_this_machine_is_cleared(tmp_path: Path) -> None:
    """Whether there is no kubeconfig or nobody answers."""
    path = tmp_path / "config"
    result = on_kube(FakeJobs(), "uninstall", "--yes", "--kubeconfig", str(path))
    assert "cannot read the kubeconfig" in result.stderr
    assert "`oarsman supervisor stop`, `rm -rf ~/.local/state/oarsman` and `pip uninstall oarsman`" in result.stderr
    cluster = {"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}
    context = {"name": "x", "context": {"cluster": "c"}}
    path.write_text(json.dumps({"clusters": [cluster], "contexts": [context], "current-context": "x"}))
    result = on_kube(FakeJobs(), "uninstall", "--yes", "--kubeconfig", str(path))
    assert "http://127.0.0.1:1" in result.stderr
    assert "`pip uninstall oarsman`" in result.stderr


def test_a_manifest_goes_to_the_cluster_as_it_goes_to_this_machine(jobs: ClusterFake) -> None:
    assert on_kube(jobs, "submit", "-", stdin=MANIFEST).exit_code == 0
    assert [call[0] for call in jobs.calls] == ["submit"]
