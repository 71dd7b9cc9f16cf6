"""One leader at a time: with virtual time on a lease in memory, and in earnest on a real API server."""

from __future__ import annotations

import asyncio
import copy
import logging
import re
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from oarsman.engines.kube.client import AlreadyExists, Conflict, Forbidden, NotFound, Unavailable
from oarsman.engines.kube.lease import Election, LeadershipLost

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


# -- time that passes only when nobody has anything to do --------------------------------------------------


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        super().__init__()
        self._virtual = 0.0
        look = self._selector.select

        def select(timeout: float | None) -> list[Any]:
            assert timeout is not None, "everybody waits for ever"
            self._virtual += timeout
            return look(0)

        self._selector.select = select  # type: ignore[method-assign]

    def time(self) -> float:
        return self._virtual

    def stall(self, seconds: float) -> None:
        """The whole process stands still, as under SIGSTOP."""
        self._virtual += seconds


def run(story: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(asyncio.wait_for(story, 3600))


def now() -> float:
    return asyncio.get_running_loop().time()


def stall(seconds: float) -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    loop.stall(seconds)


# -- a lease in memory ----------------------------------------------------------------------------------------


class MemoryApi:
    """One object, with versions. Each party talks to it over a line of its own."""

    def __init__(self) -> None:
        self.lease: dict[str, Any] | None = None
        self.version = 0

    @property
    def metadata(self) -> dict[str, Any]:
        assert self.lease is not None
        return self.lease["metadata"]

    @property
    def spec(self) -> dict[str, Any]:
        assert self.lease is not None
        return self.lease["spec"]

    @property
    def holder(self) -> str:
        return self.spec["holderIdentity"] if self.lease else ""

    def store(self, document: dict[str, Any]) -> dict[str, Any]:
        self.version += 1
        self.lease = copy.deepcopy(document)
        self.lease["metadata"]["resourceVersion"] = str(self.version)
        return copy.deepcopy(self.lease)

    def edit(self, **spec: Any) -> None:
        """What somebody does with kubectl."""
        assert self.lease is not None
        self.store({**self.lease, "spec": {**self.spec, **spec}})


@dataclass
class Line:
    """A party's own way to the server. It can be cut, be slow, lose answers, or be refused."""

    server: MemoryApi
    cut: bool = False  # requests hang, as behind a firewall that swallows everything
    down: bool = False  # requests fail at once
    forbidden: bool = False
    loses_answers: bool = False  # the request arrives, the answer does not
    there: float = 0.01
    back: float = 0.01
    asked: list[str] = field(default_factory=list)

    async def _ask(self, verb: str, act: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        self.asked.append(verb)
        if self.down:
            raise Unavailable(f"{verb} leases", "connection refused")
        if self.forbidden:
            raise Forbidden(f"{verb} leases", "no", status=403)
        await asyncio.sleep(self.there)
        if self.cut:
            await asyncio.sleep(1e6)
        answer = act()
        if self.loses_answers:
            await asyncio.sleep(1e6)
        await asyncio.sleep(self.back)
        return answer

    async def get(self, resource: Any, name: str, namespace: str) -> dict[str, Any]:
        def act() -> dict[str, Any]:
            if self.server.lease is None:
                raise NotFound("get leases", "not found", status=404)
            return copy.deepcopy(self.server.lease)

        return await self._ask("get", act)

    async def create(self, resource: Any, body: dict[str, Any], namespace: str) -> dict[str, Any]:
        def act() -> dict[str, Any]:
            if self.server.lease is not None:
                raise AlreadyExists("create leases", "exists", status=409)
            return self.server.store(body)

        return await self._ask("create", act)

    async def replace(self, resource: Any, name: str, body: dict[str, Any], namespace: str) -> dict[str, Any]:
        def act() -> dict[str, Any]:
            if self.server.lease is None:
                raise NotFound("update leases", "not found", status=404)
            if body["metadata"]["resourceVersion"] != self.server.lease["metadata"]["resourceVersion"]:
                raise Conflict("update leases", "changed", status=409)
            return self.server.store(body)

        return await self._ask("update", act)


# -- parties ----------------------------------------------------------------------------------------------------


@dataclass
class Party:
    """An operator: when it led, and how its run ended."""

    name: str
    line: Any
    clock: Callable[[], float] = now
    wall: Callable[[], datetime] = lambda: EPOCH + timedelta(seconds=now())
    terms: list[list[float]] = field(default_factory=list)  # [from, to]
    acts: Callable[[], Awaitable[None]] = asyncio.Event().wait  # type: ignore[assignment]
    settings: dict[str, Any] = field(default_factory=dict)
    task: asyncio.Task[None] | None = None

    def start(self) -> Party:
        self.election = Election(
            self.line, namespace="ns", identity=self.name, clock=self.clock, now=self.wall, **self.settings
        )
        self.led = asyncio.Event()
        self.task = asyncio.create_task(self.election.run(self._lead))
        # An end that no test asks about must not be complained of later, in the middle of something else.
        self.task.add_done_callback(lambda task: task.cancelled() or task.exception())
        return self

    async def _lead(self) -> None:
        term = [now(), float("inf")]
        self.terms.append(term)
        self.led.set()
        try:
            await self.acts()
        finally:
            term[1] = now()

    async def stop(self) -> None:
        assert self.task is not None
        self.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await self.task


async def for_ever() -> None:
    await asyncio.Event().wait()


def party(name: str, server: MemoryApi, **more: Any) -> Party:
    return Party(name, Line(server), acts=more.pop("acts", for_ever), **more)


def overlap(*parties: Party) -> list[tuple[list[float], list[float]]]:
    """Pairs of terms of different parties that were not one after the other."""
    terms = sorted((term, number) for number, one in enumerate(parties) for term in one.terms)
    return [(a, b) for (a, m), (b, n) in pairwise(terms) if m != n and a[1] > b[0]]


# -- facts ------------------------------------------------------------------------------------------------------


def test_the_first_one_leads_at_once_and_writes_a_proper_record() -> None:
    async def story() -> None:
        server = MemoryApi()
        one = party("one", server).start()
        await one.led.wait()
        assert now() < 1
        assert one.election.leading
        assert re.fullmatch(r"2026-01-01T00:00:00\.\d{6}Z", server.spec["renewTime"])
        assert server.spec["leaseDurationSeconds"] == 15
        assert server.spec["leaseTransitions"] == 0
        acquired = server.spec["acquireTime"]
        await asyncio.sleep(60)
        assert server.spec["acquireTime"] == acquired
        assert server.spec["renewTime"] > "2026-01-01T00:00:57"
        assert one.election.last_renewed is not None
        assert now() - one.election.last_renewed < 2.1
        await one.stop()
        assert not one.election.leading

    run(story())


def test_a_renewal_is_one_request() -> None:
    async def story() -> None:
        one = party("one", MemoryApi()).start()
        await one.led.wait()
        one.line.asked.clear()
        await asyncio.sleep(20.5)
        assert set(one.line.asked) == {"update"}
        assert 9 <= len(one.line.asked) <= 10
        await one.stop()

    run(story())


def test_a_released_lease_is_taken_over_within_the_pause() -> None:
    async def story() -> None:
        server = MemoryApi()
        one = party("one", server).start()
        await one.led.wait()
        two = party("two", server).start()
        await asyncio.sleep(30)
        assert not two.led.is_set()
        assert not two.election.leading
        await one.stop()
        assert server.holder == ""
        released = now()
        await two.led.wait()
        assert now() - released <= 2.1
        assert server.spec["leaseTransitions"] == 1
        await two.stop()
        assert overlap(one, two) == []

    run(story())


def test_a_leader_that_vanished_is_replaced_after_the_duration_and_not_before() -> None:
    async def story() -> None:
        server = MemoryApi()
        one = party("one", server).start()
        await one.led.wait()
        two = party("two", server).start()
        await asyncio.sleep(10)
        one.line.cut = True  # and with it, it is as good as dead
        server_saw = now()
        await two.led.wait()
        # The follower may see the last renewal a pause late, and that it has expired another pause late.
        assert 13 <= now() - server_saw <= 15 + 2 * 2.5
        assert server.spec["leaseTransitions"] == 1
        assert overlap(one, two) == []
        await two.stop()
        assert isinstance(await settled(one), LeadershipLost)

    run(story())


async def settled(one: Party) -> BaseException | None:
    assert one.task is not None
    await asyncio.wait({one.task})
    return None if one.task.cancelled() else one.task.exception()


@pytest.mark.parametrize("trouble", ["cut", "down", "forbidden", "loses_answers"])
def test_a_leader_that_cannot_renew_steps_down_before_another_can_take_over(trouble: str) -> None:
    async def story() -> None:
        server = MemoryApi()
        one = party("one", server).start()
        await one.led.wait()
        two = party("two", server).start()
        await asyncio.sleep(7)
        before = one.election.last_renewed
        assert before is not None
        setattr(one.line, trouble, True)
        error = await settled(one)
        assert isinstance(error, LeadershipLost)
        assert one.terms[0][1] - before <= 10.1
        assert not one.election.leading
        await two.led.wait()
        assert overlap(one, two) == []
        assert two.terms[0][0] - one.terms[0][1] > 1
        await two.stop()

    run(story())


def test_a_lost_lease_is_left_to_expire_since_requests_may_still_be_under_way() -> None:
    async def story() -> None:
        server = MemoryApi()
        one = party("one", server).start()
        await one.led.wait()
        one.line.down = True
        await asyncio.sleep(9.9)
        lost = asyncio.create_task(settled(one))
        await asyncio.sleep(0.2)
        one.line.down = False
        assert isinstance(await lost, LeadershipLost)
        assert server.holder == "one"

    run(story())


def test_short_trouble_is_survived() -> None:
    async def story() -> None:
        server = MemoryApi()
        one = party("one", server).start()
        await one.led.wait()
        two = party("two", server).start()
        for trouble in ("cut", "down", "loses_answers", "forbidden"):
            setattr(one.line, trouble, True)
            await asyncio.sleep(6)
            setattr(one.line, trouble, False)
            await asyncio.sleep(10)
            assert one.election.leading
            assert server.holder == "one"
        assert two.terms == []
        await one.stop()
        await two.stop()

    run(story())


def test_a_process_that_stood_still_knows_at_once_that_it_may_not_lead_any_more() -> None:
    async def story() -> None:
        server = MemoryApi()
        one = party("one", server).start()
        await one.led.wait()
        await asyncio.sleep(5)
        stall(11)
        assert not one.election.leading  # before any timer could run
        assert isinstance(await settled(one), LeadershipLost)

    run(story())


def test_the_time_of_a_renewal_is_the_time_it_was_sent_and_slow_answers_cost_no_term() -> None:
    async def story() -> None:
        server = MemoryApi()
        one = party("one", server).start()
        await one.led.wait()
        one.line.back = 4.0
        for _ in range(10):
            await asyncio.sleep(5.7)
            assert one.election.leading
            assert one.election.last_renewed is not None
            assert 4.0 <= now() - one.election.last_renewed <= 8.1
        one.line.back = 0.01
        await one.stop()

    run(story())


def test_the_other_sides_clock_is_never_trusted() -> None:
    async def story() -> None:
        server = MemoryApi()
        ancient = lambda: datetime(1999, 1, 1, tzinfo=UTC)  # noqa: E731 - a clock far behind, and standing
        one = party("one", server, wall=lambda: datetime(1999, 1, 1, tzinfo=UTC) + timedelta(seconds=now())).start()
        await one.led.wait()
        two = party("two", server).start()
        await asyncio.sleep(60)
        assert two.terms == []
        await one.stop()
        await two.led.wait()
        await two.stop()
        future = party("far", server, wall=lambda: datetime(2999, 1, 1, tzinfo=UTC)).start()
        await future.led.wait()
        future.line.cut = True
        three = party("three", server, wall=ancient).start()
        await asyncio.wait_for(three.led.wait(), 20)
        assert overlap(future, three) == []
        await three.stop()

    run(story())


def test_a_longer_duration_in_the_record_is_honoured() -> None:
    async def story() -> None:
        server = MemoryApi()
        one = party("one", server, settings={"duration": 60, "renew_deadline": 40}).start()
        await one.led.wait()
        two = party("two", server).start()
        await asyncio.sleep(1)
        one.line.cut = True
        await two.led.wait()
        assert 58 <= now() <= 65
        assert overlap(one, two) == []
        await two.stop()

    run(story())


def test_of_many_that_try_at_once_one_leads() -> None:
    async def story() -> None:
        server = MemoryApi()
        parties = [party(f"p{number}", server).start() for number in range(20)]
        await asyncio.sleep(5)
        assert sum(one.election.leading for one in parties) == 1
        for _ in range(19):
            leader = next(one for one in parties if one.election.leading)
            await leader.stop()
            parties.remove(leader)
            await asyncio.sleep(4)
            assert sum(one.election.leading for one in parties) == 1
        assert server.spec["leaseTransitions"] == 19
        await parties[0].stop()

    run(story())


def test_the_lease_is_kept_while_the_leader_puts_things_in_order_and_released_then() -> None:
    async def story() -> None:
        server = MemoryApi()
        allowed: list[bool] = []

        async def acts() -> None:
            try:
                await for_ever()
            finally:
                await asyncio.sleep(40)
                allowed.append(one.election.leading)

        one = party("one", server, acts=acts).start()
        await one.led.wait()
        two = party("two", server).start()
        await asyncio.sleep(5)
        await one.stop()
        assert now() > 45
        assert allowed == [True]
        await two.led.wait()
        assert overlap(one, two) == []
        await two.stop()

    run(story())


def test_a_leader_that_lost_its_lease_gets_no_time_to_put_things_in_order() -> None:
    async def story() -> None:
        server = MemoryApi()

        async def acts() -> None:
            try:
                await for_ever()
            finally:
                await asyncio.sleep(60)

        one = party("one", server, acts=acts).start()
        await one.led.wait()
        two = party("two", server).start()
        await asyncio.sleep(5)
        one.line.cut = True
        assert isinstance(await settled(one), LeadershipLost)
        await two.led.wait()
        assert overlap(one, two) == []
        await two.stop()

    run(story())


def test_what_does_not_end_at_all_is_said_and_the_lease_is_not_given_back(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        server = MemoryApi()
        enough = asyncio.Event()

        async def stubborn() -> None:
            while not enough.is_set():
                try:
                    await enough.wait()
                except asyncio.CancelledError:
                    continue

        one = party("one", server, acts=stubborn).start()
        await one.led.wait()
        server.edit(holderIdentity="somebody")
        assert isinstance(await settled(one), LeadershipLost)
        assert server.holder == "somebody"
        assert not one.election.leading
        assert one.election.unrenewed_for is not None  # what /healthz looks at
        assert "does not end" in caplog.text
        enough.set()
        await asyncio.sleep(1)

    with caplog.at_level(logging.CRITICAL):
        run(story())


def test_the_lease_is_released_when_the_leader_ends_by_itself_or_fails() -> None:
    async def story() -> None:
        server = MemoryApi()

        async def ends() -> None:
            await asyncio.sleep(3)

        async def fails() -> None:
            await asyncio.sleep(3)
            raise ZeroDivisionError

        one = party("one", server, acts=ends).start()
        assert await settled(one) is None
        assert server.holder == ""
        two = party("two", server, acts=fails).start()
        assert isinstance(await settled(two), ZeroDivisionError)
        assert server.holder == ""

    run(story())


def test_a_lease_taken_by_force_ends_the_term_at_the_next_renewal() -> None:
    async def story() -> None:
        server = MemoryApi()
        one = party("one", server).start()
        await one.led.wait()
        server.edit(holderIdentity="kubectl")
        taken = now()
        error = await settled(one)
        assert isinstance(error, LeadershipLost)
        assert "kubectl has taken the lease" in error.message
        assert now() - taken < 2.2
        assert server.holder == "kubectl"  # what is another's is not released

    run(story())


def test_labels_and_edits_of_others_survive_and_cost_no_term() -> None:
    async def story() -> None:
        server = MemoryApi()
        one = party("one", server).start()
        await one.led.wait()
        assert server.lease is not None
        server.store({**server.lease, "metadata": {**server.lease["metadata"], "labels": {"a": "b"}}})
        await asyncio.sleep(5)
        assert one.election.leading
        assert server.lease["metadata"]["labels"] == {"a": "b"}
        await one.stop()
        assert server.lease["metadata"]["labels"] == {"a": "b"}

    run(story())


def test_a_deleted_lease_is_made_again_by_the_leader_and_no_follower_jumps_in() -> None:
    async def story() -> None:
        server = MemoryApi()
        one = party("one", server).start()
        await one.led.wait()
        followers = [party(f"f{number}", server).start() for number in range(10)]
        await asyncio.sleep(5)
        for _ in range(20):
            server.lease = None
            await asyncio.sleep(2.7)
            assert server.holder == "one"
        assert one.election.leading
        assert [f.terms for f in followers] == [[]] * 10
        for each in (one, *followers):
            await each.stop()

    run(story())


def test_a_follower_that_is_stopped_while_it_takes_the_lease_gives_it_back() -> None:
    async def story() -> None:
        server = MemoryApi()
        one = party("one", server).start()
        one.line.back = 1.0
        while not server.holder:  # noqa: ASYNC110 - the moment between the request's arrival and its answer
            await asyncio.sleep(0.01)
        assert not one.led.is_set()
        one.line.back = 0.01
        await one.stop()
        assert server.holder == ""
        assert one.terms == []

    run(story())


def test_a_follower_waits_for_a_server_that_is_away_and_complains_once(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        one = party("one", MemoryApi())
        one.line.down = True
        one.start()
        await asyncio.sleep(60)
        one.line.down = False
        await asyncio.wait_for(one.led.wait(), 3)
        await one.stop()

    with caplog.at_level(logging.WARNING, "oarsman.lease"):
        run(story())
    assert [record.message for record in caplog.records] == ["cannot get the lease: get leases: connection refused"]


def test_the_lease_says_what_its_holder_looks_after() -> None:
    async def story() -> None:
        server = MemoryApi()
        one = party("one", server, settings={"annotations": {"watches": "a"}}).start()
        await one.led.wait()
        assert server.metadata["annotations"] == {"watches": "a"}
        server.metadata["annotations"]["of"] = "others"
        await one.stop()
        two = party("two", server, settings={"annotations": {"watches": "b"}}).start()
        await two.led.wait()
        assert server.metadata["annotations"] == {"watches": "b", "of": "others"}
        await two.stop()

    run(story())


def test_an_election_can_be_run_again() -> None:
    async def story() -> None:
        server = MemoryApi()
        one = party("one", server).start()
        await one.led.wait()
        server.edit(holderIdentity="kubectl")
        assert isinstance(await settled(one), LeadershipLost)
        server.edit(holderIdentity="")
        again = asyncio.create_task(one.election.run(one._lead))
        await asyncio.sleep(3)
        assert one.election.leading
        again.cancel()
        await asyncio.wait({again})
        assert server.holder == ""

    run(story())


def test_times_that_could_make_two_leaders_are_refused() -> None:
    for wrong in ({"duration": 10}, {"renew_deadline": 15}, {"retry": 10}, {"retry": 0}):
        with pytest.raises(ValueError, match="longer"):
            Election(Line(MemoryApi()), namespace="ns", **wrong)  # type: ignore[arg-type]


def test_two_processes_on_one_machine_have_different_identities() -> None:
    one, two = (Election(Line(MemoryApi()), namespace="ns").identity for _ in range(2))  # type: ignore[arg-type]
    assert one != two
    assert one.rpartition("_")[0] == two.rpartition("_")[0] != ""
