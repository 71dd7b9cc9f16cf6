"""Events are written once, counted up when they repeat, and never stop anybody."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

import pytest
from cluster.cluster import Cluster

from oarsman import names
from oarsman.backends.kube import records
from oarsman.engines.kube.client import AlreadyExists, Forbidden, Kube, NotFound, Unavailable, load_access
from oarsman.engines.kube.client.errors import ApiError
from oarsman.engines.kube.events import EventRecorder, ObjectRef
from oarsman.text.catalogue import Translator
from oarsman.text.sentence import Text

NORMAL, WARNING = "Normal", "Warning"
JOB = ObjectRef(api_version="kubeflow.org/v2beta1", kind="MPIJob", namespace="ns", name="pi", uid="u-1")


class MemoryEvents:
    """What the server would have: events by namespace and name. `trouble` is raised by every request."""

    def __init__(self) -> None:
        self.events: dict[tuple[str, str], dict[str, Any]] = {}
        self.requests: list[str] = []
        self.trouble: Exception | None = None

    async def create(self, resource: Any, body: dict[str, Any]) -> dict[str, Any]:
        await self._arrive("create")
        key = body["metadata"]["namespace"], body["metadata"]["name"]
        if key in self.events:
            raise AlreadyExists("create events", "exists", status=409)
        self.events[key] = dict(body)
        return body

    async def patch(self, resource: Any, name: str, body: dict[str, Any], namespace: str) -> dict[str, Any]:
        await self._arrive("patch")
        if (namespace, name) not in self.events:
            raise NotFound("patch events", "gone", status=404)
        self.events[namespace, name] |= body
        return self.events[namespace, name]

    async def _arrive(self, verb: str) -> None:
        self.requests.append(verb)
        await asyncio.sleep(0)
        if self.trouble is not None:
            raise self.trouble

    @property
    def all(self) -> list[dict[str, Any]]:
        return list(self.events.values())


class Clock:
    def __init__(self) -> None:
        self.seconds = 1_800_000_000

    def __call__(self) -> float:
        return float(self.seconds)

    def ns(self) -> int:
        return self.seconds * 1_000_000_000


@pytest.fixture
def server() -> MemoryEvents:
    return MemoryEvents()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def recorder(server: MemoryEvents, clock: Clock) -> EventRecorder:
    return EventRecorder(server, instance="operator-0", clock=clock, time_ns=clock.ns)  # type: ignore[arg-type]


def run(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(story, 120))


def test_an_event_says_about_whom_by_whom_when_and_what(recorder: EventRecorder, server: MemoryEvents) -> None:
    run(recorder.record(JOB, NORMAL, "MPIJobCreated", "MPIJob ns/pi is created."))
    (event,) = server.all
    assert event["metadata"] == {"name": f"pi.{1_800_000_000_000_000_000:x}", "namespace": "ns"}
    assert event["involvedObject"] == {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "namespace": "ns",
        "name": "pi",
        "uid": "u-1",
    }
    assert (event["type"], event["reason"], event["message"]) == ("Normal", "MPIJobCreated", "MPIJob ns/pi is created.")
    assert (event["count"], event["firstTimestamp"], event["lastTimestamp"]) == (1, *["2027-01-15T08:00:00Z"] * 2)
    assert event["source"] == {"component": "mpi-job-controller"}  # as upstream's; the other field says which replica
    assert (event["reportingComponent"], event["reportingInstance"]) == ("mpi-job-controller", "operator-0")
    assert event["reportingComponent"] == "mpi-job-controller"


def test_the_same_again_is_counted_up_and_something_else_is_not(
    recorder: EventRecorder, server: MemoryEvents, clock: Clock
) -> None:
    async def story() -> None:
        for _ in range(3):
            await recorder.record(JOB, NORMAL, "MPIJobRunning", "is running")
            clock.seconds += 60
        await recorder.record(JOB, WARNING, "MPIJobRunning", "is running")
        await recorder.record(JOB, NORMAL, "MPIJobRunning", "is running!")
        reborn = ObjectRef(api_version=JOB.api_version, kind=JOB.kind, namespace="ns", name="pi", uid="u-2")
        await recorder.record(reborn, NORMAL, "MPIJobRunning", "is running")

    run(story())
    assert [event["count"] for event in server.all] == [3, 1, 1, 1]
    assert server.all[0]["lastTimestamp"] == "2027-01-15T08:02:00Z"
    assert server.all[0]["firstTimestamp"] == "2027-01-15T08:00:00Z"
    assert server.requests == ["create", "patch", "patch", "create", "create", "create"]


def test_after_ten_minutes_it_is_news_again(recorder: EventRecorder, server: MemoryEvents, clock: Clock) -> None:
    async def story() -> None:
        await recorder.record(JOB, NORMAL, "R", "m")
        clock.seconds += 601
        await recorder.record(JOB, NORMAL, "R", "m")

    run(story())
    assert [event["count"] for event in server.all] == [1, 1]


def test_an_event_that_the_server_forgot_is_written_anew(recorder: EventRecorder, server: MemoryEvents) -> None:
    async def story() -> None:
        await recorder.record(JOB, NORMAL, "R", "m")
        server.events.clear()
        await recorder.record(JOB, NORMAL, "R", "m")
        await recorder.record(JOB, NORMAL, "R", "m")

    run(story())
    assert [event["count"] for event in server.all] == [2]


def test_an_event_can_be_read_in_chinese(recorder: EventRecorder, server: MemoryEvents) -> None:
    run(recorder.record(JOB, NORMAL, "MPIJobCreated", Text("MPIJob {key} is created.", key="ns/pi")))
    (written,) = server.all
    assert Translator("zh").of(records.event(written).message) == "MPIJob ns/pi 已创建。"
    forged = {**written, "message": "something else"}
    assert records.event(forged).message == "something else"
    broken = {**written, "metadata": {"annotations": {names.EVENT_TEXT: "{"}}}
    assert records.event(broken).message == "MPIJob ns/pi is created."


def test_the_same_at_the_same_time_makes_one_event(recorder: EventRecorder, server: MemoryEvents) -> None:
    async def story() -> None:
        await asyncio.gather(*(recorder.record(JOB, NORMAL, "R", "m") for _ in range(50)))

    run(story())
    assert [event["count"] for event in server.all] == [50]


def test_two_recorders_in_the_same_nanosecond_do_not_collide(server: MemoryEvents, clock: Clock) -> None:
    async def story() -> None:
        for _ in range(2):
            recorder = EventRecorder(server, clock=clock, time_ns=clock.ns)  # type: ignore[arg-type]
            await recorder.record(JOB, NORMAL, "R", "m")
            await recorder.record(JOB, NORMAL, "R", "other")

    run(story())
    assert len(server.all) == 4


def test_memory_is_bounded(recorder: EventRecorder, server: MemoryEvents) -> None:
    async def story() -> None:
        await recorder.record(JOB, NORMAL, "R", "kept")
        for number in range(5000):
            await recorder.record(JOB, NORMAL, "R", f"{number}")
            if number % 1000 == 0:
                await recorder.record(JOB, NORMAL, "R", "kept")

    run(story())
    assert len(recorder._known) == 4096
    assert server.all[0]["count"] == 6


@pytest.mark.parametrize("trouble", [Unavailable("create events", "away"), OSError("broken"), TimeoutError()])
def test_trouble_is_logged_and_the_next_try_succeeds(
    recorder: EventRecorder, server: MemoryEvents, caplog: pytest.LogCaptureFixture, trouble: Exception
) -> None:
    async def story() -> None:
        server.trouble = trouble
        await recorder.record(JOB, NORMAL, "R", "m")
        server.trouble = None
        await recorder.record(JOB, NORMAL, "R", "m")

    with caplog.at_level(logging.WARNING):
        run(story())
    assert "event R of ns/pi was not written" in caplog.text
    assert [event["count"] for event in server.all] == [1]


def test_what_is_forbidden_is_said_once(
    recorder: EventRecorder, server: MemoryEvents, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        for number in range(5):
            await recorder.record(JOB, NORMAL, "R", f"{number}")

    server.trouble = Forbidden("create events ns/pi", "no", status=403)
    with caplog.at_level(logging.WARNING):
        run(story())
    assert len(caplog.records) == 1
    assert isinstance(server.trouble, ApiError)


def test_long_texts_are_cut_and_long_names_still_make_a_valid_name(
    recorder: EventRecorder, server: MemoryEvents
) -> None:
    long = ObjectRef(api_version="v1", kind="Pod", namespace="ns", name="x" * 235 + "." + "y" * 17)
    run(recorder.record(long, WARNING, "R" * 200, "长" * 2000))
    (event,) = server.all
    assert len(event["message"]) == 1024
    assert event["message"].endswith("长...")
    assert len(event["reason"]) == 128
    assert len(event["metadata"]["name"]) <= 253
    assert ".." not in event["metadata"]["name"]


def test_events_about_what_has_no_namespace_go_to_default(recorder: EventRecorder, server: MemoryEvents) -> None:
    run(recorder.record(ObjectRef(api_version="v1", kind="Node", name="n1"), WARNING, "R", "m"))
    assert server.all[0]["metadata"]["namespace"] == "default"
    assert "namespace" not in server.all[0]["involvedObject"]


# -- on a real API server ------------------------------------------------------------------------------------


def listed(api: Cluster, namespace: str) -> list[dict[str, Any]]:
    return list(api.get("events", "", namespace)["items"])


def test_a_real_server_takes_events_and_gets_them_anew_when_they_were_deleted(api: Cluster, api_namespace: str) -> None:
    about = ObjectRef(api_version="kubeflow.org/v2beta1", kind="MPIJob", namespace=api_namespace, name="pi", uid="u-1")

    async def story() -> None:
        async with Kube(load_access(kubeconfig=api.kubeconfig)) as kube:
            recorder = EventRecorder(kube, instance="operator-0")
            for _ in range(3):
                await recorder.record(about, NORMAL, "MPIJobRunning", "is running")
            await asyncio.gather(*(recorder.record(about, WARNING, "Trouble", f"no {n}") for n in range(20)))
            await recorder.record(about, WARNING, "Long", "长" * 5000)
            api.kubectl("delete", "events", "--all", f"--namespace={api_namespace}")
            await recorder.record(about, NORMAL, "MPIJobRunning", "is running")

    run(story())
    (event,) = listed(api, api_namespace)
    assert (event["reason"], event["count"], event["source"]["component"]) == ("MPIJobRunning", 1, "mpi-job-controller")


def test_a_real_server_counts_up_what_repeats(api: Cluster, api_namespace: str) -> None:
    about = ObjectRef(api_version="v1", kind="Pod", namespace=api_namespace, name="p", uid="u-1")

    async def story() -> None:
        async with Kube(load_access(kubeconfig=api.kubeconfig)) as kube:
            recorder = EventRecorder(kube)
            for _ in range(3):
                await recorder.record(about, NORMAL, "R", "again")

    run(story())
    assert [(event["reason"], event["count"]) for event in listed(api, api_namespace)] == [("R", 3)]
