"""What the journal of a job amounts to: its hosts, launchers and ranks, replayed fact by fact."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from oarsman.engines.hosts.core.process import ProcessId
from oarsman.job.observed import Exit, RankReport
from oarsman.text.sentence import load

Fact = Mapping[str, Any]


@dataclass(slots=True)
class HostSeen:
    name: str
    index: int
    launcher: bool
    process: ProcessId
    address: str
    made_at: datetime
    up: bool = False
    down_at: datetime | None = None
    trouble: str = ""  # why it is down, or why it does not come up; empty when it was asked to end
    trouble_at: datetime | None = None  # it is ended for it a moment later, and its ranks with it
    memory_limit_hit: bool = False
    machine: str = ""  # where it is, if it is not a machine of its own


@dataclass(slots=True)
class LauncherSeen:
    attempt: int
    started_at: datetime
    finished_at: datetime | None = None
    exit: Exit | None = None
    lines: tuple[str, ...] = ()
    dismissed: bool = False  # the plan has dealt with it
    workers: tuple[HostSeen, ...] = ()  # those that were up, or had been lost, when it ended


@dataclass(slots=True)
class Seen:
    agent: ProcessId | None = None
    ended: bool = False
    hosts: dict[str, HostSeen] = field(default_factory=dict)
    launcher: LauncherSeen | None = None
    ranks: dict[int, RankReport] = field(default_factory=dict)  # of the newest world of the newest attempt
    world: tuple[int, str] = (0, "")
    published: tuple[str, ...] | None = None
    first_output: dict[int, datetime] = field(default_factory=dict)
    log_trouble: str = ""
    ranks_may_fail: bool = False  # the user asked that the others go on
    unset_limits: set[str] = field(default_factory=set)

    def learn(self, fact: Fact) -> None:
        handler = _HANDLERS.get(fact["e"])
        if handler is not None:
            handler(self, fact, datetime.fromtimestamp(fact["t"], UTC))

    # -- one method per kind of fact ----------------------------------------------------------------
    def _agent(self, fact: Fact, _when: datetime) -> None:
        self.agent = ProcessId(fact["pid"], fact["started"])
        self.ended = False
        self.hosts.clear()
        self.published = None

    def _end(self, _fact: Fact, _when: datetime) -> None:
        self.ended = True
        self.hosts.clear()

    def _host_made(self, fact: Fact, when: datetime) -> None:
        identity = ProcessId(fact["pid"], fact["started"])
        self.hosts[fact["host"]] = HostSeen(
            fact["host"],
            fact["index"],
            fact["launcher"],
            identity,
            fact["address"],
            made_at=when,
            machine=fact.get("machine", ""),
        )
        self.unset_limits.update(fact["unset"])

    def _host_up(self, fact: Fact, _when: datetime) -> None:
        if fact["host"] in self.hosts:
            host = self.hosts[fact["host"]]
            host.up, host.trouble, host.trouble_at = True, "", None  # it may have taken several tries

    def _host_trouble(self, fact: Fact, when: datetime) -> None:
        if fact["host"] in self.hosts:
            self.hosts[fact["host"]].trouble, self.hosts[fact["host"]].trouble_at = load(fact["reason"]), when

    def _host_down(self, fact: Fact, when: datetime) -> None:
        host = self.hosts.get(fact["host"])
        if host is None:
            return
        host.trouble = host.trouble or load(fact["reason"])
        host.memory_limit_hit = fact["memory"]
        host.up, host.down_at = False, host.trouble_at or when
        if not host.trouble or host.launcher:  # a launcher's host is judged by the launcher
            del self.hosts[fact["host"]]

    def _host_gone(self, fact: Fact, _when: datetime) -> None:
        host = self.hosts.get(fact["host"])
        if host is not None and host.down_at is not None:
            del self.hosts[fact["host"]]

    def _launcher_start(self, fact: Fact, when: datetime) -> None:
        self.launcher = LauncherSeen(fact["attempt"], started_at=when)
        self.ranks.clear()

    def _launcher_end(self, fact: Fact, when: datetime) -> None:
        if self.launcher is not None and self.launcher.attempt == fact["attempt"]:
            self.launcher.finished_at = when
            self.launcher.exit = Exit(code=fact["code"], signal=fact["signal"], memory_limit_hit=fact["memory"])
            self.launcher.lines = tuple(fact["lines"])
            then = (host for host in self.hosts.values() if (host.up or host.down_at) and not host.launcher)
            self.launcher.workers = tuple(replace(host) for host in then)

    def _launcher_gone(self, fact: Fact, _when: datetime) -> None:
        if self.launcher is not None and self.launcher.attempt == fact["attempt"]:
            self.launcher.dismissed = True

    def _rank_start(self, fact: Fact, when: datetime) -> None:
        world = (fact["attempt"], fact["world"])
        self.ranks_may_fail = fact.get("survives", False)
        if world != self.world:
            self.world = world
            self.ranks.clear()
        self.ranks[fact["rank"]] = RankReport(
            rank=fact["rank"],
            host=fact["host"],
            world_size=fact["size"],
            local_rank=fact["local"],
            pid=fact["pid"],
            started_at=when,
        )

    def _rank_end(self, fact: Fact, when: datetime) -> None:
        report = self.ranks.get(fact["rank"])
        if report is None or (fact["attempt"], fact["world"]) != self.world:
            return
        self.ranks[fact["rank"]] = RankReport(
            rank=report.rank,
            host=report.host,
            world_size=report.world_size,
            local_rank=report.local_rank,
            pid=report.pid,
            started_at=report.started_at,
            finished_at=datetime.fromtimestamp(fact["at"], UTC) if fact.get("at") else when,
            exit=Exit(code=fact["code"], signal=fact["signal"], memory_limit_hit=fact["memory"]),
            reason=load(fact["reason"]),
            last_lines=tuple(fact["lines"]),
        )

    def _rank_lines(self, fact: Fact, _when: datetime) -> None:
        report = self.ranks.get(fact["rank"])
        if report is not None and (fact["attempt"], fact["world"]) == self.world:
            self.ranks[fact["rank"]] = replace(report, last_lines=tuple(fact["lines"]))

    def _published(self, fact: Fact, _when: datetime) -> None:
        self.published = tuple(fact["hosts"])

    def _first_output(self, fact: Fact, when: datetime) -> None:
        self.first_output.setdefault(fact["attempt"], when)

    def _log_trouble(self, fact: Fact, _when: datetime) -> None:
        self.log_trouble = load(fact["reason"])


_HANDLERS = {
    "agent": Seen._agent,
    "keeper": Seen._agent,  # what the agent of a job was called that may still run
    "end": Seen._end,
    "host-made": Seen._host_made,
    "host-up": Seen._host_up,
    "host-trouble": Seen._host_trouble,
    "host-down": Seen._host_down,
    "host-gone": Seen._host_gone,
    "launcher-start": Seen._launcher_start,
    "launcher-end": Seen._launcher_end,
    "launcher-gone": Seen._launcher_gone,
    "rank-start": Seen._rank_start,
    "rank-end": Seen._rank_end,
    "rank-lines": Seen._rank_lines,
    "published": Seen._published,
    "first-output": Seen._first_output,
    "log-trouble": Seen._log_trouble,
}
