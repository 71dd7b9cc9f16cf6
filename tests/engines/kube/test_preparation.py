"""Environments and install commands of a job: what its pods get, what the scripts do, and what the engine waits for."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from oarsman import names
from oarsman.engines.kube import environments
from oarsman.engines.kube.client import resources as kinds
from oarsman.engines.kube.objects.common import KubeOptions
from oarsman.engines.kube.objects.config_map import config_maps
from oarsman.engines.kube.objects.launcher import launcher
from oarsman.engines.kube.objects.preparation import PodPreparation, barrier_seconds, impossible
from oarsman.engines.kube.objects.worker import worker
from oarsman.errors import RetryableError
from oarsman.plan.actions import CreateLauncher, CreateWorker, Prepare, PublishHosts

from .kube_jobs import V1, V2BETA1, a_kube_job
from .sandbox import Sandbox
from .test_engine import World, story

OPTIONS = KubeOptions()
PREPARE = ["/bin/sh", "/etc/mpi/prepare.sh"]
BOTH = PodPreparation(environment="abc", commands="make\n")
PLACE = "/opt/oarsman/environments"
MOUNT = {"name": "oarsman-environments", "mountPath": PLACE, "readOnly": True}
CLAIM = {"name": "oarsman-environments", "persistentVolumeClaim": {"claimName": "oarsman-environments"}}
SLEEP = ["/bin/sh", "-c", "trap 'exit 0' TERM; sleep 365d & wait"]
CUSTOM = {"containers": [{"name": "mpi", "image": "pi", "command": ["/start"], "args": ["now"]}]}
IMAGES_OWN = {"containers": [{"name": "mpi", "image": "pi", "args": ["now"]}]}


def spec_of(body: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = body["spec"]["template"]["spec"] if body["kind"] == "Job" else body["spec"]
    return found


def main_of(body: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = spec_of(body)["containers"][0]
    return found


def variables(container: dict[str, Any]) -> dict[str, str]:
    return {variable["name"]: variable["value"] for variable in container["env"]}


# -- what pods get --------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("given", "command"),
    [
        ({}, [*PREPARE, "/bin/sh", "/etc/mpi/worker.sh"]),
        ({"version": V1}, [*PREPARE, *SLEEP]),
        ({"version": V1, "worker": CUSTOM}, [*PREPARE, "/start"]),
        ({"worker": CUSTOM}, [*PREPARE, "/start"]),
    ],
    ids=["ssh", "exec", "exec with a command", "its own sshd"],
)
def test_a_worker_is_prepared_before_it_does_its_part(given: dict[str, Any], command: list[str]) -> None:
    body = worker(a_kube_job(**given), 0, OPTIONS, BOTH)
    main = main_of(body)
    assert main["command"] == command
    assert MOUNT in main["volumeMounts"]
    assert sum(mount["mountPath"] == "/run/oarsman" for mount in main["volumeMounts"]) == 1
    assert CLAIM in spec_of(body)["volumes"]
    (files,) = [v["configMap"]["items"] for v in spec_of(body)["volumes"] if v["name"] == "mpi-job-config"]
    assert {"prepare.sh", "install.sh"} <= {item["key"] for item in files}
    assert variables(main)["OARSMAN_ENVIRONMENT"] == f"{PLACE}/abc"
    assert spec_of(body)["restartPolicy"] == "Never"


@pytest.mark.parametrize("version", [V1, V2BETA1])
def test_a_launcher_is_prepared_and_tells_its_agent_what_comes_before_a_session(version: str) -> None:
    main = main_of(launcher(a_kube_job(version=version), 1, OPTIONS, BOTH))
    assert main["command"] == [*PREPARE, "/bin/sh", "/etc/mpi/launch.sh", "mpirun", "./pi"]
    assert MOUNT in main["volumeMounts"]
    session = variables(main)["OARSMAN_SESSION"]
    assert session.endswith(f"export VIRTUAL_ENV={PLACE}/abc PATH={PLACE}/abc/bin:${{PATH#{PLACE}/abc/bin:}};")
    assert ("/run/oarsman/prepared" in session) == (version == V1)  # nothing else holds back an exec


def test_without_an_environment_no_claim_is_mounted() -> None:
    for body in (worker(a_kube_job(), 0, OPTIONS, PodPreparation(commands="x")), launcher(a_kube_job(), 1, OPTIONS)):
        assert CLAIM not in spec_of(body)["volumes"]
        assert "OARSMAN_SESSION" not in variables(main_of(body))


def test_the_config_map_keeps_what_was_decided() -> None:
    data = config_maps(a_kube_job(), (), OPTIONS, BOTH)[-1]["data"]
    assert (data["environment"], data["install.sh"]) == ("abc", "make\n")
    assert "prepare.sh" in data
    assert not {"environment", "install.sh", "prepare.sh"} & set(config_maps(a_kube_job(), (), OPTIONS)[-1]["data"])


def test_installing_may_take_longer_than_logging_in() -> None:
    assert barrier_seconds(a_kube_job(), OPTIONS) == OPTIONS.barrier_seconds
    installs = a_kube_job(annotations={names.ANNOTATION_INSTALL: "make"})
    assert barrier_seconds(installs, OPTIONS) == OPTIONS.barrier_seconds + 1800


@pytest.mark.parametrize(
    ("given", "annotation", "role"),
    [
        ({"command": []}, names.ANNOTATION_ENVIRONMENT, "launcher"),
        ({"command": []}, names.ANNOTATION_INSTALL, "launcher"),
        ({"worker": IMAGES_OWN}, names.ANNOTATION_INSTALL, "worker"),
        ({"worker": IMAGES_OWN}, names.ANNOTATION_ENVIRONMENT, None),
        ({"worker": CUSTOM}, names.ANNOTATION_INSTALL, None),
        ({"worker": IMAGES_OWN, "version": V1}, names.ANNOTATION_INSTALL, None),
        ({"command": []}, names.ANNOTATION_DESCRIPTION, None),
    ],
)
def test_a_command_that_only_the_image_knows_cannot_be_prepared(
    given: dict[str, Any], annotation: str, role: str | None
) -> None:
    said = impossible(a_kube_job(annotations={annotation: "x"}, **given))
    words = f"{annotation} needs the {role}'s command in the manifest: what the image starts is not known here"
    assert said == (words if role else None)


# -- what the scripts do ---------------------------------------------------------------------------------------
@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    return Sandbox(tmp_path)


def test_the_environment_comes_first_on_path(sandbox: Sandbox) -> None:
    sandbox.file("opt/oarsman/environments/abc/bin/which", "")
    sandbox.program("opt/oarsman/environments/abc/bin/mine", "echo mine, $VIRTUAL_ENV, ${PATH%%:*}")
    done = sandbox.run("prepare.sh", "mine", OARSMAN_ENVIRONMENT=f"{PLACE}/abc")
    assert (done.returncode, done.stdout) == (0, f"mine, {PLACE}/abc, {PLACE}/abc/bin\n")


def test_an_environment_that_is_gone_is_told(sandbox: Sandbox) -> None:
    done = sandbox.run("prepare.sh", "true", OARSMAN_ENVIRONMENT=f"{PLACE}/abc")
    assert done.returncode == 1
    assert sandbox.read("dev/termination-log").startswith("oarsman: the environment is not in the claim any more")


def test_install_commands_run_before_the_command_and_their_output_is_seen(sandbox: Sandbox) -> None:
    sandbox.file("etc/mpi/install.sh", "echo out\necho err >&2\necho x >/run/oarsman/made\n")
    done = sandbox.run("prepare.sh", "cat", "/run/oarsman/made")
    assert (done.returncode, done.stdout, done.stderr) == (0, "out\nerr\nx\n", "")
    assert (sandbox.place / "run/oarsman/prepared").exists()


@pytest.mark.parametrize(
    ("commands", "words"),
    [
        ("echo one\nsh -c 'echo no disk; exit 3'\necho never\n", "failed with code 3: no disk"),
        ("printf 'no end'; exit 7", "failed with code 7: no end"),
        ("false", "failed with code 1"),
    ],
)
def test_install_commands_that_fail_end_the_pod_with_their_last_words(
    sandbox: Sandbox, commands: str, words: str
) -> None:
    sandbox.file("etc/mpi/install.sh", commands)
    done = sandbox.run("prepare.sh", "echo", "never")
    assert done.returncode == 1
    assert "never" not in done.stdout
    assert sandbox.read("dev/termination-log") == f"oarsman: the install commands {words}\n"
    assert not (sandbox.place / "run/oarsman/prepared").exists()


@pytest.mark.parametrize(
    ("agent", "call"),
    [
        ("ssh.sh", "-F /etc/mpi/ssh_config -x -p 22 pi-worker-0.pi first; a 'b c'"),
        ("kubexec.sh", "exec pi-worker-0 -- /bin/sh -c first; a 'b c'"),
    ],
)
def test_an_agent_puts_the_preparation_before_the_command(sandbox: Sandbox, agent: str, call: str) -> None:
    sandbox.host("pi-worker-0", "exit 7")
    words = ("-x", "-p", "22", "pi-worker-0.pi", "a", "'b c'")
    done = sandbox.run(agent, *words, OARSMAN_LAUNCHER="pi-launcher.pi", OARSMAN_SESSION="first;")
    assert done.returncode == 7
    assert sandbox.calls == [call]


# -- what the engine waits for ---------------------------------------------------------------------------------
NAMED = {names.ANNOTATION_ENVIRONMENT: "torch", names.ANNOTATION_INSTALL: "make"}
LABELS = {environments.LABEL: "torch"}


def an_environment(world: World, digest: str = "abc", **result: Any) -> None:
    data = {"digest": digest, "spec": "{}"}
    if result:
        data["result"] = json.dumps({"digest": "abc", **result})
    meta = {"name": "oarsman-env-torch", "namespace": "default", "labels": LABELS}
    world.kube.add(kinds.CONFIG_MAPS, {"metadata": meta, "data": data})


def its_build(world: World, *ends: str) -> None:
    conditions = [{"type": end, "status": "True"} for end in ends]
    meta = {"name": environments.build_name("torch", "abc"), "namespace": "default", "labels": LABELS}
    world.kube.add(kinds.JOBS, {"metadata": meta, "status": {"conditions": conditions}})


@pytest.mark.parametrize(
    ("result", "ends", "words"),
    [
        (None, [], "there is no environment torch in this namespace"),
        ({}, [], "environment torch is not built yet"),
        ({}, ["Failed"], "environment torch could not be built"),
        ({"state": "Failed", "message": "no wheel"}, [], "environment torch could not be built: no wheel"),
        ({"state": "Ready"}, [], ""),
        ({}, ["Complete"], ""),
    ],
    ids=["unknown", "building", "failed", "failed before", "ready before", "ready"],
)
def test_a_job_waits_until_its_environment_is_built(result: dict[str, str] | None, ends: list[str], words: str) -> None:
    async def play() -> None:
        world = World(a_kube_job(annotations=NAMED))
        if result is not None:
            an_environment(world, **result)
            its_build(world, *ends)
        admission = (await world.look()).admission
        assert (admission.reason, admission.admitted) == (words, not words)
        assert admission.about == names.REASON_ENVIRONMENT
        if words:
            with pytest.raises(RetryableError, match=words):
                await world.do(PublishHosts(()))

    asyncio.run(play())


@story(job=a_kube_job(annotations=NAMED))
async def test_a_result_of_other_contents_does_not_count(world: World) -> None:
    an_environment(world, digest="new", state="Ready")
    assert (await world.look()).admission.reason == "environment torch is not built yet"


@story(job=a_kube_job(annotations=NAMED))
async def test_what_is_no_digest_reaches_no_shell(world: World) -> None:
    an_environment(world, digest="$(reboot)", state="Ready")
    its_build(world, "Complete")
    said = "ConfigMap oarsman-env-torch does not say what environment torch contains"
    assert (await world.look()).admission.reason == said


@story(job=a_kube_job(annotations=NAMED))
async def test_every_pod_of_a_job_has_what_its_first_one_had(world: World) -> None:
    an_environment(world, state="Ready")
    await world.look()
    await world.do(Prepare(), PublishHosts(()), CreateWorker(0))
    an_environment(world, digest="new")
    assert (await world.look()).admission.admitted
    await world.do(PublishHosts(("pi-worker-0",)), CreateWorker(1), CreateLauncher(1))
    assert world.kube.one(kinds.CONFIG_MAPS, "pi-config")["data"]["environment"] == "abc"
    made = [world.kube.one(kinds.PODS, f"pi-worker-{index}") for index in (0, 1)]
    made.append(world.kube.one(kinds.JOBS, "pi-launcher"))
    assert [variables(main_of(body))["OARSMAN_ENVIRONMENT"] for body in made] == [f"{PLACE}/abc"] * 3


@story(job=a_kube_job(annotations=NAMED))
async def test_a_job_is_told_when_its_environment_changes(world: World) -> None:
    for name, environment in (("pi", "torch"), ("other", "another")):
        meta = {"name": name, "annotations": {names.ANNOTATION_ENVIRONMENT: environment}}
        world.kube.add(kinds.MPIJOBS, {"metadata": meta, "spec": {}})
    told: list[str] = []
    news = asyncio.Event()

    def notify(key: str) -> None:
        told.append(key)
        news.set()

    await world.engine.start(notify)
    for happens in (lambda: an_environment(world), lambda: its_build(world, "Complete")):
        told.clear()
        news.clear()
        happens()
        async with asyncio.timeout(120):
            await news.wait()
        assert told == ["default/pi"]
    await world.engine.close()


@pytest.mark.parametrize("name", ["short", "a" * 63, "with-" * 12 + "end"])
def test_the_name_of_a_build_fits_a_label(name: str) -> None:
    found = environments.build_name(name, "0123456789abcdef" * 2)
    assert len(found) <= 63
    assert found != environments.build_name(f"{name[:-1]}x", "0123456789abcdef" * 2)


@story()
async def test_a_launcher_whose_install_commands_fail_names_itself(world: World) -> None:
    await world.start()
    said = "oarsman: the install commands failed with code 3: no disk"
    ended = {"terminated": {"exitCode": 1, "message": f"{said}\n"}}
    world.play_launcher("Failed", containerStatuses=[{"name": "mpi", "state": ended}])
    launcher = (await world.look()).launcher
    assert launcher is not None
    assert launcher.reason == names.REASON_BARRIER
    assert launcher.message == "pi-launcher: the install commands failed with code 3: no disk"
