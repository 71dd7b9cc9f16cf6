"""Doctor, the check of hosts and the trust between them through REST: who may, and what is told."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from oarsman.backends import checks
from oarsman.backends.base import DoctorFinding
from oarsman.backends.ssh.check import Checked
from oarsman.backends.ssh.trusting import Trusting
from oarsman.engines.hosts.ssh.diagnose import Finding
from oarsman.engines.hosts.ssh.trust.changes import TrustChange
from oarsman.errors import ConflictError
from oarsman.service import JobService
from oarsman.service.checks import Checking
from oarsman.service.models import HostsCheckWanted, Identity, Role, TrustOrder, TrustWanted

from .asking import Asking, asking
from .memory import MemoryJobs

WELL = Finding("node1", "login", "ok", "it lets us in")
UNWELL = Finding("node2", "port", "fail", "nothing listens", hint="start sshd there")
EVERY = (("POST", "/doctor"), ("POST", "/hosts/check"), ("GET", "/hosts/check"))
TRUST = (("POST", "/hosts/trust/plan", {}), ("POST", "/hosts/trust", {"seen": "what"}))


class HostsInMemory(MemoryJobs):
    place = "ssh"

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[Any] = []
        self.goes_on = asyncio.Event()

    async def examine(self, _: object) -> Sequence[DoctorFinding]:
        self.asked.append("doctor")
        return [DoctorFinding("ssh", "missing", "not installed", "install it", blocking=True)]

    async def check_hosts(
        self, _: object, names: Sequence[str], *, tell: Callable[..., None], stage: Callable[[str], None], **how: Any
    ) -> Checked:
        self.asked.append((*names, how))
        tell([WELL])
        stage("ways")
        await self.goes_on.wait()
        tell([UNWELL])
        left_out = {"node2": UNWELL.message} if how["leave_out"] else {}
        return Checked(findings=[WELL, UNWELL], speeds=[], unfit={"node2": UNWELL}, left_out=left_out)

    async def trust_hosts(self, _: object, *, undo: bool, seen: str | None = None) -> Trusting:
        self.asked.append((undo, seen))
        if seen not in (None, "mark"):
            raise ConflictError("other")
        change = ("~/.ssh/authorized_keys", TrustChange("node1", "authorized_keys", "remove" if undo else "add", 2))
        nothing: dict[str, Any] = {"new_host_keys": {}, "refused": (), "left_out": (), "need_password": ["node3"]}
        done = [change] if seen else []
        return Trusting(seen="mark", inventory=Path("/hosts.yaml"), changes=[change], done=done, **nothing)


@pytest.fixture
def hosts(monkeypatch: pytest.MonkeyPatch) -> HostsInMemory:
    found = HostsInMemory()
    for name in ("examine", "check_hosts", "trust_hosts"):
        monkeypatch.setattr(checks, name, getattr(found, name))
    return found


@pytest.fixture
def ask(tmp_path: Path, hosts: HostsInMemory) -> Iterator[Asking]:
    with asking(tmp_path, hosts) as found:
        yield found


def test_whoever_is_no_admin_has_nothing_run_and_sees_nothing(ask: Asking, hosts: HostsInMemory) -> None:
    for name, status in (("vera", 403), ("ada", 403), ("", 401)):
        for method, path in EVERY:
            body = {"json": {}} if path == "/hosts/check" and method == "POST" else {}
            assert ask(method, path, by=name, **body).status_code == status, (name, path)
        for method, path, wanted in TRUST:
            assert ask(method, path, by=name, json=wanted).status_code == status, (name, path)
    assert hosts.asked == []


def test_an_admin_learns_what_is_missing_and_what_would_help(ask: Asking) -> None:
    (found,) = ask("POST", "/doctor", by="root").json()
    assert found == {
        "subject": "ssh",
        "level": "missing",
        "message": "not installed",
        "advice": "install it",
        "blocking": True,
    }


def test_a_check_goes_on_by_itself_and_tells_how_far_it_is(ask: Asking, hosts: HostsInMemory) -> None:
    assert ask("GET", "/hosts/check", by="root").json()["state"] == "never"
    answer = ask("POST", "/hosts/check", by="root", json={"hosts": ["node1", "node2"], "leaveOut": True})
    assert (answer.status_code, answer.json()["state"]) == (202, "running")
    seen = until(ask, lambda view: view["stage"] == "ways")
    assert [one["message"] for one in seen["findings"]] == ["it lets us in"]
    assert ask("POST", "/hosts/check", by="root", json={}).status_code == 409
    ask.portal.run(go_on(hosts))
    seen = until(ask, lambda view: view["state"] == "ended")
    assert [(one["host"], one["level"], one["hint"]) for one in seen["findings"]] == [
        ("node1", "ok", ""),
        ("node2", "fail", "start sshd there"),
    ]
    assert (seen["unfit"], seen["leftOut"], seen["stage"]) == (["node2"], ["node2"], "")
    entries = ask.store.audit.page(limit=10, cursor=None).items
    assert ("check hosts", "node1, node2") in [(one.what, one.about) for one in entries]


def test_whoever_follows_a_check_is_told_of_its_changes_and_asks_for_nothing_between(hosts: HostsInMemory) -> None:
    looks: list[tuple[str, str, int]] = []

    async def follow() -> None:
        checking = Checking()
        checking.start(hosts, HostsCheckWanted())
        seen = checking.view
        while seen.ended is None:
            seen = await checking.other_than(seen)
            looks.append((seen.state, seen.stage, len(seen.findings)))
            hosts.goes_on.set()
        await checking.close()

    asyncio.run(follow())
    assert looks == [("running", "ways", 1), ("ended", "", 2)]


def test_only_the_owner_of_the_machine_sees_and_changes_who_logs_in_where(ask: Asking, hosts: HostsInMemory) -> None:
    for method, path, wanted in TRUST:
        answer = ask(method, path, by="root", json=wanted)
        assert answer.status_code == 403
        assert "only the owner of this machine" in answer.json()["detail"]
    assert hosts.asked == []
    owner = JobService(hosts, Identity(name="owner", role=Role.ADMIN))
    plan = asyncio.run(owner.plan_trust(TrustWanted()))
    assert [(one.host, one.file, one.action, one.count) for one in plan.changes] == [
        ("node1", "~/.ssh/authorized_keys", "add", 2)
    ]
    assert (plan.need_password, plan.done) == (["node3"], [])
    done = asyncio.run(owner.trust_hosts(TrustOrder(seen=plan.seen)))
    assert done.done == plan.changes
    with pytest.raises(ConflictError):
        asyncio.run(owner.trust_hosts(TrustOrder(seen="another")))


async def go_on(hosts: HostsInMemory) -> None:
    hosts.goes_on.set()


def until(ask: Asking, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    for _ in range(500):
        found: dict[str, Any] = ask("GET", "/hosts/check", by="root").json()
        if wanted(found):
            return found
        time.sleep(0.01)
    raise AssertionError(found)
