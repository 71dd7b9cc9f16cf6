"""Sentences as they are really made, in Chinese: whatever English is left in them is foreign text or a name."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from for_every import for_every

from oarsman import names
from oarsman.engines.hosts.local import host_spec
from oarsman.errors import ManifestError
from oarsman.job.confined import Confined
from oarsman.job.observed import Admission, Exit, Observed, Phase, Place
from oarsman.manifest import job_from_document, load
from oarsman.plan.capacity import nodes, one_machine, queue
from oarsman.plan.capacity.amounts import Capacity, named
from oarsman.plan.capacity.gang import Gang, Party, Placed, Share
from oarsman.plan.capacity.nodes import Quota
from oarsman.plan.capacity.placement import Machine, Spot
from oarsman.plan.reconcile import reconcile, reject
from oarsman.service.models import CauseView
from oarsman.service.preview import arithmetic
from oarsman.status import causes, conditions, exits, known_errors
from oarsman.status.stragglers import Pace, behind
from oarsman.text.sentence import Text
from tests.builders import T0, a_job, a_launcher, a_rank, a_status, a_worker, at, running, workers
from tests.text.chinese import in_chinese, spoken

GIB = Decimal(1024**3)
EIGHT = Machine(name="", capacity=Capacity(gpu=Decimal(2), cpu=Decimal(8), memory=16 * GIB))
BROKEN = sorted((Path(__file__).parents[1] / "manifest" / "broken").glob("*.yaml"))


# -- room ------------------------------------------------------------------------------------------------
def ask(key: str, cpus: float = 1, *, minutes: float = 0, memory_gib: int = 0, gpus: int = 0, **given: Any) -> Gang:
    need = Capacity(gpu=Decimal(gpus), cpu=Decimal(str(cpus)), memory=memory_gib * GIB)
    return Gang(
        key=f"default/{key}",
        launcher=f"{key}-launcher",
        launcher_alone=Party(need=need),
        launcher_apart=True,
        waited=timedelta(minutes=minutes),
        **given,
    )


@pytest.mark.parametrize(
    ("waiting", "running", "chinese"),
    [
        (
            [ask("a", 4)],
            [ask("b", 6), ask("c", 0.5)],
            "需要 4 个 CPU，共 8，空闲 1.5（占用：default/b 6、default/c 0.5）",
        ),
        (
            [ask("a", 4)],
            [ask(x, 1.5) for x in "bcdef"],
            "需要 4 个 CPU，共 8，空闲 0.5（占用：default/b 1.5、default/c 1.5、default/d 1.5，另有 2 个作业）",
        ),
        ([ask("a", 4, owner="ada")], [ask("b", 6, owner="bob")], "需要 4 个 CPU，共 8，空闲 2（占用：其他人 6）"),
        (
            [ask("a", 4, memory_gib=9, gpus=1)],
            [ask("b", 6, memory_gib=9, gpus=2)],
            "需要 1 个 GPU，共 2，空闲 0（占用：default/b 2）；需要 4 个 CPU，共 8，空闲 2（占用：default/b 6）；"
            "需要 9 GiB 内存，共 16，空闲 7（占用：default/b 9）",
        ),
        ([ask("a", 99)], [], "要求 99 个 CPU，超过本机总量（8）；加 --oversubscribe 仍可启动"),
        ([ask("a", 1, gpus=3)], [], "要求 3 个 GPU，超过本机总量（2）"),
        ([ask("big", 8, minutes=12), ask("a", 1)], [ask("b", 4)], "排在 default/big 之后，后者已等待 12 分钟"),
        (
            [ask("big", 8, minutes=12, owner="eve"), ask("a", 1, owner="ada")],
            [ask("b", 4)],
            "排在其他用户的作业之后，后者已等待 12 分钟",
        ),
    ],
)
def test_the_queue_says_what_is_waited_for(waiting: list[Gang], running: list[Gang], chinese: str) -> None:
    placed = [Placed(gang=gang, placement=(Place(member=gang.launcher, machine=EIGHT.name),)) for gang in running]
    reason = queue.admit(waiting, placed, [EIGHT], one_machine)[-1].admission.reason
    assert spoken(reason) == chinese
    assert spoken(conditions.queued(2, reason)) == f"排在队列第 2 位：{chinese}"


def a_node(name: str, *, cpu: int = 4, free: int = 4, left_out: str = "") -> Spot:
    has = Capacity(cpu=Decimal(cpu), memory=8 * GIB, pods=Decimal(10))
    return Spot(
        machine=Machine(name=name, capacity=has, left_out=left_out), free=Capacity(has | {"cpu": Decimal(free)})
    )


def pods(count: int = 2, cpu: int = 3) -> Gang:
    """A launcher that needs nothing, and workers."""
    workers = tuple(f"w{n}" for n in range(count))
    need = Capacity(cpu=Decimal(cpu), pods=Decimal(1))
    return Gang(key="n/a", launcher="l", workers=workers, worker=Party(need=need), launcher_apart=True)


def a_quota(hard: int, used: int) -> Quota:
    return Quota(name="q", namespace="n", hard=Capacity(cpu=Decimal(hard)), used=Capacity(cpu=Decimal(used)))


@pytest.mark.parametrize(
    ("gang", "spots", "quotas"),
    [
        pytest.param(pods(), None, [], id="nodes unseen"),
        pytest.param(pods(), [], [], id="no nodes"),
        pytest.param(pods(), [a_node("n", left_out="lost", cpu=9)], [], id="none ready"),
        pytest.param(pods(cpu=9), [a_node("n")], [], id="too large"),
        pytest.param(pods(5), [a_node("n")], [], id="too many"),
        pytest.param(pods(2), [a_node("n", cpu=4), a_node("m", cpu=2)], [], id="packed"),
        pytest.param(pods(1), [a_node("n", free=1)], [], id="held"),
        pytest.param(pods(1), [a_node("n", free=2), a_node("m", free=2)], [], id="scattered"),
        pytest.param(pods(2), [a_node("n", cpu=6, free=4), a_node("m", free=2)], [], id="some placed"),
        pytest.param(pods(), None, [a_quota(4, 0)], id="quota too small"),
        pytest.param(pods(), None, [a_quota(8, 4)], id="quota used"),
    ],
)
def test_a_cluster_says_why_a_job_does_not_fit(gang: Gang, spots: list[Spot] | None, quotas: list[Quota]) -> None:
    held = [Share(key="default/b", amounts=Capacity(cpu=Decimal(3)))]
    shares = {spot.machine.name: held for spot in spots or ()}
    spoken(nodes.preview(gang, spots, shares, counted=gang.whole, quotas=quotas).reason)


def test_a_cluster_says_what_is_not_known() -> None:
    gang = pods(1)
    spoken(nodes.preview(gang, [a_node("n")], {}, counted=gang.whole, pods_seen=False).reason)


@pytest.mark.parametrize(
    ("name", "amount"),
    [
        ("cpu", 1),
        ("cpu", 2),
        ("pods", 3),
        ("memory", GIB),
        ("limits.memory", GIB),
        ("limits.cpu", 2),
        ("nvidia.com/gpu", 1),
    ],
)
def test_amounts_of_every_kind_are_named(name: str, amount: Decimal) -> None:
    spoken(Text("{n} {what}", n=1, what=named(name, Decimal(amount))))


# -- the story of a job ----------------------------------------------------------------------------------
QUEUED = Admission(
    admitted=False,
    position=1,
    reason=Text("environment {name} is being built", name="x"),
    about=names.REASON_ENVIRONMENT,
)
SERVICE = Text('"{name}" of Kind "{kind}"', name="pi-1", kind="Service")
DIED = a_worker(1, Phase.FAILED, reason="Evicted", finished_at=at(1))


@pytest.mark.parametrize(
    ("job", "seen"),
    [
        pytest.param(a_job(), Observed(), id="new"),
        pytest.param(a_job(), Observed(admission=QUEUED), id="queued"),
        pytest.param(a_job(), running(status=a_status()), id="running"),
        pytest.param(a_job(), running(launcher=a_launcher(Phase.SUCCEEDED, code=0)), id="succeeded"),
        pytest.param(a_job(backoff_limit=3), running(launcher=a_launcher(Phase.FAILED, code=3)), id="tried again"),
        pytest.param(a_job(backoff_limit=0), running(launcher=a_launcher(Phase.FAILED, code=137)), id="given up"),
        pytest.param(a_job(), running(launcher=None), id="launcher gone"),
        pytest.param(a_job(), running(workers=(a_worker(0), DIED)), id="a worker evicted"),
        pytest.param(a_job(), running(stop_requested=True), id="stopped"),
        pytest.param(a_job(suspend=True), running(), id="suspended"),
        pytest.param(a_job(active_deadline_seconds=9), running(), id="deadline"),
        pytest.param(a_job(), running(outdated=("spec.x",)), id="edited"),
        pytest.param(a_job(workers=3, generation=2), running(), id="scaled"),
        pytest.param(
            a_job(),
            Observed(status=a_status(), conflict=Text('"{name}" of Kind "{kind}"', name="pi-1", kind="Service")),
            id="conflict",
        ),
        pytest.param(
            a_job(), Observed(status=a_status(), workers=workers(2, Phase.PENDING, started_at=T0)), id="barrier"
        ),
        pytest.param(a_job(elastic=True), running(workers=(a_worker(0),)), id="elastic"),
    ],
)
def test_what_a_plan_says_is_said_in_chinese(job: Any, seen: Observed) -> None:
    plan = reconcile(job, seen, at(1000))
    old = {condition.message for condition in seen.status.conditions}
    said = {condition.message for condition in plan.status.conditions} | {event.message for event in plan.events}
    said |= {plan.status.cause.summary} if plan.status.cause else set()
    assert said - old or job.run_policy.suspend
    for sentence in said - old:
        spoken(sentence)


def test_a_job_that_cannot_be_read_is_explained_in_chinese() -> None:
    with pytest.raises(ManifestError) as caught:
        load("apiVersion: kubeflow.org/v2beta1\nkind: MPIJob\nmetadata: {nam: x}\nspec: {slotsPerworker: 0}\n", "x")
    assert spoken(str(caught.value.message), "“nam”").endswith("（另有 2 处）")
    message = reject(a_status(), caught.value.problems, T0).events[0].message
    assert spoken(message, "“nam”").count("；") == len(caught.value.problems) - 1


@for_every(BROKEN)
def test_the_problems_of_a_broken_manifest_are_said_in_chinese(file: Path) -> None:
    with pytest.raises(ManifestError) as caught:
        load(file.read_text(encoding="utf-8").partition("# expected:\n")[0], file.name)
    for problem in caught.value.problems:
        message = problem.message.partition("not readable as YAML: ")
        names_there = ["mpi"] if "has no container" in problem.message else []
        spoken(problem.message, *([message[2]] if message[1] else names_there))
        if problem.hint:
            spoken(problem.hint)


# -- causes and what helps ---------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("seen", "code", "chinese"),
    [
        (
            Observed(ranks=(a_rank(1, code=3, last_lines=("ValueError: it broke",)),)),
            1,
            "pi-worker-1 上的 rank 1 以退出码 3 结束：ValueError: it broke",
        ),
        (Observed(ranks=(a_rank(1, code=139),)), 1, "pi-worker-1 上的 rank 1 被信号 11（段错误）终止"),
        (
            Observed(ranks=(a_rank(1, exit=Exit(code=137, signal=9, memory_limit_hit=True)),)),
            1,
            "pi-worker-1 上的 rank 1 被信号 9（SIGKILL）终止：达到了内存上限",
        ),
        (
            Observed(ranks=(a_rank(0, code=3, reason=Text("its log could not be opened: {why}", why="no")),)),
            1,
            "pi-worker-0 上的 rank 0 以退出码 3 结束（无法打开它的日志：no）",
        ),
        (
            Observed(launcher_lines=("MPI_ABORT was invoked on rank 1 in communicator X with errorcode 7.",)),
            7,
            "rank 1 调用了 MPI_Abort，代码 7",
        ),
        (Observed(), 127, "Launcher 以退出码 127 结束：它没有任何输出"),
        (Observed(), 137, "Launcher 被信号 9（SIGKILL）终止，来源不明：它没有任何输出"),
        (
            Observed(launcher_lines=("ended badly",)),
            255,
            "Launcher 以退出码 255 结束，这通常是因为失去了一台主机或其上的守护进程：ended badly",
        ),
        (Observed(launcher_lines=("ended badly",)), None, "Launcher 失败：ended badly"),
    ],
)
def test_a_cause_is_told_in_chinese_and_what_a_program_wrote_is_kept(
    seen: Observed, code: int | None, chinese: str
) -> None:
    cause = causes.of_failed_launcher(a_job(), seen, a_launcher(Phase.FAILED, code=code))
    assert in_chinese(cause.summary) == chinese
    assert in_chinese(conditions.failed("default/pi", cause.summary)) == f"MPIJob default/pi 失败：{chinese}"


def test_every_signal_exit_code_and_known_error_is_explained_in_chinese() -> None:
    for code in range(256):
        ending = exits.tell(Exit(code=code))
        spoken(Text("{who} {did}", who=Text("the launcher"), did=ending.words))
        if ending.hint:
            spoken(ending.hint)
    spoken(str(exits.tell(Exit(code=137, signal=9, memory_limit_hit=True)).hint))
    for known in known_errors.KNOWN:
        spoken(known.hint)
        if known.sentence:
            spoken(known.sentence)


def test_ranks_that_are_behind_are_told_in_chinese() -> None:
    steps = behind({0: Pace(step=180), 1: Pace(step=120), 2: Pace(step=180)}, T0)
    assert [spoken(reason) for reason in steps.values()] == ["在第 120 步，其他 rank 在第 180 步"]
    rounds = behind({rank: Pace(step=5, round=n) for rank, n in enumerate((3, 1, 3))}, T0)
    assert [spoken(reason) for reason in rounds.values()] == ["比其他 rank 落后 2 轮"]
    paces = {n: Pace(first=at(0), last=at(100 + 400 * (n > 0)), beats=200, longest_gap=4) for n in range(3)}
    silent = behind(paces, at(501))
    assert [spoken(reason) for reason in silent.values()] == ["已有 401 秒没有输出，其他 rank 在 1 秒前还有输出"]


def test_every_reason_has_its_chinese() -> None:
    reasons = [value for name, value in vars(names).items() if name.startswith("REASON_")]
    assert len(reasons) > 20
    for reason in reasons:
        spoken(reason)


# -- what comes before a job ---------------------------------------------------------------------------------
def a_document(*command: str, **spec: Any) -> dict[str, Any]:
    pod = {"spec": {"containers": [{"name": "mpi", "image": "pi-1", "command": list(command)}]}}
    roles = {"Launcher": {"replicas": 1, "template": pod}, "Worker": {"replicas": 2, "template": pod}}
    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": "x"},
        "spec": {"mpiReplicaSpecs": roles, **spec},
    }


@pytest.mark.parametrize(
    ("document", "chinese"),
    [
        (a_document("mpirun", "-np", "2", "a"), "2 个 Worker × 1 个槽位 = 2 个槽位；mpirun 启动 2 个 rank，正好用满"),
        (
            a_document("mpirun", "a"),
            "2 个 Worker × 1 个槽位 = 2 个槽位；没有指定数量（-np），mpirun 启动 2 个 rank，正好用满",
        ),
        (
            a_document("mpirun", "-np", "1", "a", runLauncherAsWorker=True),
            "（2 个 Worker + 1 个 Launcher） × 1 个槽位 = 3 个槽位；mpirun 启动 1 个 rank，还空闲 2 个槽位",
        ),
        (
            a_document("mpirun", "--oversubscribe", "-np", "5", "a"),
            "2 个 Worker × 1 个槽位 = 2 个槽位；mpirun 启动 5 个 rank，比槽位多 3 个：每个槽位可以启动多个",
        ),
        (
            a_document("sleep", "1"),
            "2 个 Worker × 1 个槽位 = 2 个槽位；看不出该命令会启动 MPI，rank 数未知",
        ),
        (
            a_document(
                "horovodrun", "-np", "2", "--min-np", "1", "--max-np", "4", "--host-discovery-script", "/a", "b"
            ),
            "2 个 Worker × 1 个槽位 = 2 个槽位；horovodrun 是弹性的：1 到 4 个 rank，随主机增减",
        ),
    ],
)
def test_slots_and_ranks_are_explained_in_chinese(document: dict[str, Any], chinese: str) -> None:
    assert spoken(arithmetic(job_from_document(document))) == chinese


def test_what_this_machine_does_differently_is_said_in_chinese() -> None:
    document = a_document("train")
    pod = document["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]
    pod["initContainers"] = [{"name": "init", "image": "i"}]
    pod["volumes"] = [
        {"name": "v", "hostPath": {"path": "/not/there"}},
        {"name": "s", "persistentVolumeClaim": {"claimName": "c"}},
    ]
    pod["containers"][0] |= {
        "workingDir": "/not/there",
        "envFrom": [{"configMapRef": {"name": "c"}}],
        "volumeMounts": [{"name": "v", "mountPath": "/nor/this"}, {"name": "s", "mountPath": "/nor/that"}],
        "resources": {"limits": {"memory": "1Gi"}},
    }
    job = job_from_document(document)
    alone = host_spec.Separation(trouble=Text("the trial itself failed"))
    slices = host_spec.Slices(0)
    refusals = host_spec.all_refusals(job, folder=Path("/"), separation=alone, environment={})
    of_others = Confined("/", ["/state"]).kept({}, {})
    said = [*refusals, *host_spec.remarks(job, alone, slices)]
    said += host_spec.all_refusals(job, folder=Path("/"), separation=alone, environment=of_others)
    assert len(said) > 14
    for sentence in said:
        spoken(sentence)


# -- what pages get -------------------------------------------------------------------------------------------
def test_a_view_of_a_job_says_its_cause_in_chinese_and_is_english_to_programs() -> None:
    cause = causes.of_failed_launcher(a_job(), Observed(ranks=(a_rank(1, code=3),)), a_launcher(Phase.FAILED, code=1))
    view = CauseView.of(cause)
    assert spoken(view.summary) == "pi-worker-1 上的 rank 1 以退出码 3 结束"
    assert view.model_dump(mode="json")["summary"] == "rank 1 on pi-worker-1 exited with code 3"
    assert CauseView.model_validate_json(view.model_dump_json()).summary == cause.summary
