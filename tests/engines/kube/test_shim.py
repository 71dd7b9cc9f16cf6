"""The shim of ranks: which pods get it, and that nobody gets half of it."""

from __future__ import annotations

from typing import Any

import pytest

from oarsman import names
from oarsman.engines.kube.client import resources as kinds
from oarsman.engines.kube.objects.common import KubeOptions
from oarsman.engines.kube.objects.config_map import config_maps, script
from oarsman.engines.kube.objects.launcher import launcher
from oarsman.engines.kube.objects.preparation import PodPreparation, recorded
from oarsman.engines.kube.objects.worker import worker
from oarsman.job.launch_options import LAUNCHERS
from oarsman.plan.actions import CreateLauncher, CreateWorker, Prepare, PublishHosts

from .kube_jobs import V1, V2BETA1, a_kube_job
from .test_engine import World, story
from .test_preparation import CUSTOM, main_of, spec_of, variables

OPTIONS = KubeOptions()
SHIM = PodPreparation(shim=True, ends_ranks=True)
EARLIER = PodPreparation(shim=True)  # as operators recorded it that knew nothing of Python
OF_RANKS = {"mpirun.sh", "rank.sh", "ranks.sh"}


def files_of(body: dict[str, Any]) -> dict[str, int]:
    (items,) = [v["configMap"]["items"] for v in spec_of(body)["volumes"] if v["name"] == "mpi-job-config"]
    return {item["key"]: item["mode"] for item in items}


@pytest.mark.parametrize(
    "given",
    [{}, {"version": V1}, {"version": V1, "worker": CUSTOM}, {"worker": CUSTOM}],
    ids=["ssh", "exec", "exec with a command", "its own sshd"],
)
def test_a_worker_has_the_shim_of_ranks_and_room_for_what_they_write_down(given: dict[str, Any]) -> None:
    body, plain = (worker(a_kube_job(**given), 0, OPTIONS, *more) for more in ((SHIM,), ()))
    assert files_of(body)["rank.sh"] == 0o555
    assert not OF_RANKS & set(files_of(plain))
    assert sum(mount["mountPath"] == "/run/oarsman" for mount in main_of(body)["volumeMounts"]) == 1
    assert main_of(body)["command"] == main_of(plain)["command"]


@pytest.mark.parametrize("version", [V1, V2BETA1])
def test_a_launcher_has_the_shim_of_mpirun_too(version: str) -> None:
    body, plain = (launcher(a_kube_job(version=version), 1, OPTIONS, *more) for more in ((SHIM,), ()))
    assert {name: files_of(body)[name] for name in OF_RANKS} == dict.fromkeys(OF_RANKS, 0o555)
    assert not OF_RANKS & set(files_of(plain))
    assert "OARSMAN_SHIM" not in variables(main_of(plain))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "planned"),
        ({"command": ["sh", "-c", "mpirun ./pi"]}, "yes"),
        ({"command": ["./run"]}, "yes"),
        ({"worker": {"hostNetwork": True}}, "quiet"),
    ],
    ids=["mpirun", "in a shell", "a script", "on the network of nodes"],
)
def test_a_launcher_knows_who_judges_where_ranks_ran(given: dict[str, Any], said: str) -> None:
    assert variables(main_of(launcher(a_kube_job(**given), 1, OPTIONS, SHIM)))["OARSMAN_SHIM"] == said


def test_what_was_decided_is_read_from_the_config_map() -> None:
    for made in (SHIM, EARLIER, PodPreparation(), PodPreparation(commands="x")):
        data = config_maps(a_kube_job(), (), OPTIONS, made)[-1]["data"]
        assert recorded(data) == made
        assert set(data) >= OF_RANKS if made.shim else not set(data) & OF_RANKS
        assert ("sitecustomize.py" in data) is ("sitecustomize.py" in made.files) is made.ends_ranks


def test_the_shim_of_mpirun_knows_every_option_that_the_plan_knows() -> None:
    tables = dict(line.split("=", 1) for line in script("mpirun.sh").splitlines()[1:4])
    assert {
        option: count
        for count, table in enumerate(("alone", "one", "two"))
        for option in tables[table].strip("'").split()
    } == LAUNCHERS["mpirun"]


@pytest.mark.parametrize(("annotation", "shim"), [(None, True), ("true", True), ("false", False)])
def test_a_job_has_the_shim_unless_its_annotation_says_otherwise(annotation: str | None, shim: bool) -> None:
    given = {names.ANNOTATION_SHIM: annotation} if annotation else {}

    @story(job=a_kube_job(annotations=given))
    async def told(world: World) -> None:
        await world.start()
        assert ("rank.sh" in world.kube.one(kinds.CONFIG_MAPS, "pi-config")["data"]) is shim
        assert ("rank.sh" in files_of(world.kube.one(kinds.PODS, "pi-worker-0"))) is shim
        assert ("OARSMAN_SHIM" in variables(main_of(world.kube.one(kinds.JOBS, "pi-launcher")))) is shim

    told()


@story()
async def test_a_job_that_began_without_the_shim_goes_on_without(world: World) -> None:
    """Its workers do not have it: an operator of before made them."""
    world.job_is(annotations={names.ANNOTATION_SHIM: "false"})
    await world.do(Prepare(), PublishHosts(()), CreateWorker(0), CreateWorker(1))
    world.job_is(annotations={})
    await world.do(PublishHosts(("pi-worker-0",)), CreateLauncher(1))
    assert "rank.sh" not in world.kube.one(kinds.CONFIG_MAPS, "pi-config")["data"]
    assert "OARSMAN_SHIM" not in variables(main_of(world.kube.one(kinds.JOBS, "pi-launcher")))
