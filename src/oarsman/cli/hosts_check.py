"""`oarsman hosts check`: every host and every way between two of them, step by step, and how findings are shown."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import click

from oarsman.backends.base import STAGES
from oarsman.cli import documents, options, render
from oarsman.cli.session import Session
from oarsman.cli.text import note, of, pad, t, width
from oarsman.cli.verbs import option, verb
from oarsman.cli.waiting import StatusLine
from oarsman.text import units
from oarsman.text.catalogue import N_
from oarsman.text.sentence import with_word

if TYPE_CHECKING:
    from oarsman.engines.hosts.ssh.diagnose import Finding
    from oarsman.engines.hosts.ssh.diagnose.diagnosis import Speed, SpeedSummary
    from oarsman.engines.hosts.ssh.inventory import Inventory

_MARKS = {"ok": ("✓", "green"), "warn": ("!", "yellow"), "fail": ("✗", "red"), "skipped": ("-", "cyan")}
_STEPS = {N_("name"), N_("port"), N_("host key"), N_("login"), N_("user"), N_("clock"), N_("folder"), N_("disk")}
_STEPS |= {N_("call-back"), N_("network"), N_("real run"), N_("GPUs")}  # others are called the same in every language


class Shown:
    def __init__(self, *, every_step: bool, quiet: bool, progress: StatusLine) -> None:
        self._every_step, self._quiet, self._progress = every_step, quiet, progress
        self._advised: set[str] = set()

    def show(self, findings: Sequence[Finding]) -> None:
        """What belongs together comes together: a host's own steps, or its ways to all others."""
        self._progress.pause()
        good = [finding for finding in findings if finding.level == "ok"]
        if self._every_step:
            for finding in findings:
                ends = f"{finding.host} -> {finding.other}" if finding.other else finding.host
                self._line(
                    finding.level,
                    ends,
                    t("{what}: {why}", what=_step(finding.step), why=of(finding.message)),
                    finding.hint,
                )
            return
        if not self._quiet:
            for ends, steps in _together(good):
                self._line("ok", ends, steps)
        for finding in folded(finding for finding in findings if finding.level != "ok"):
            if finding.level == "fail" or not self._quiet:
                self._line(finding.level, "", of(finding.message), finding.hint)

    def _line(self, level: str, ends: str, text: str, hint: str = "") -> None:
        lead = f"{ends}  " if ends else ""
        click.echo(f"{_mark(level)} {lead}{render.shown(text)}")
        if hint and level != "ok" and hint not in self._advised:  # once is enough
            self._advised.add(hint)
            click.echo(f"  {click.style(t('hint: '), fg='cyan')}{render.shown(of(hint))}")


def _mark(level: str) -> str:
    """Signs need a terminal and colours; everything else gets the word."""
    if sys.stdout.isatty() and render.coloured(sys.stdout):
        sign, colour = _MARKS[level]
        return click.style(sign, fg=colour)
    return pad(of(level), max(width(of(one)) for one in _MARKS))


def _together(good: Iterable[Finding]) -> list[tuple[str, str]]:
    """(who, steps): hosts by themselves, or the ways of a host with the same good steps."""
    steps: dict[tuple[str, str], list[str]] = {}
    for finding in good:
        steps.setdefault((finding.host, finding.other), []).append(_said(finding))
    others: dict[tuple[str, str], list[str]] = {}
    for (host, other), names in steps.items():
        others.setdefault((host, t(", ").join(names)), []).append(other)
    return [(f"{host} -> {', '.join(far)}" if any(far) else host, names) for (host, names), far in others.items()]


def _said(finding: Finding) -> str:
    """What was found where it is news, otherwise the step alone."""
    return of(finding.message) if finding.step in ("MPI", "user", "clock", "real run") else _step(finding.step)


def folded(findings: Iterable[Finding]) -> list[Finding]:
    """The same about several other hosts is said once, of all of them."""
    groups: dict[tuple[str, ...], list[Finding]] = {}
    for finding in findings:
        sentence = with_word(finding.message, _word(finding.other), "\0") if finding.other else finding.message
        groups.setdefault((finding.host, finding.step, finding.level, sentence), []).append(finding)
    found = []
    for (_, _, _, sentence), same in groups.items():
        if len(same) > 1 and sentence.count("\0") == 1:
            said = with_word(same[0].message, _word(same[0].other), ", ".join(one.other for one in same))
            found.append(replace(same[0], message=said))
        else:
            found += same
    return found


def _word(host: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w.-]){re.escape(host)}(?![\w-]|\.\w)")


def _step(name: str) -> str:
    return of(name) if name in _STEPS else name


# -- the network -------------------------------------------------------------------------------------


def network_table(speeds: Sequence[Speed]) -> None:
    """Every way that was measured, then what sticks out."""
    from oarsman.engines.hosts.ssh.diagnose.diagnosis import BANDWIDTH_IS, LATENCY_IS, summary

    if not speeds:
        click.echo(t("no network was measured: it takes two hosts that a network connects"))
        return
    render.heading(t("Network"))
    rows = [
        [speed.host, speed.other, _milliseconds(speed.latency), _rate(speed.bandwidth), of(speed.why)]
        for speed in sorted(speeds, key=lambda speed: (speed.host, speed.other))
    ]
    why = any(row[-1] for row in rows)
    headers = [t("FROM"), t("TO"), t("LATENCY"), t("BANDWIDTH"), *([t("REASON")] if why else [])]
    render.table(headers, rows if why else [row[:-1] for row in rows])
    latency, bandwidth = summary(speeds, "latency"), summary(speeds, "bandwidth")
    if latency is not None:
        _summary(t("latency ({what})", what=of(LATENCY_IS)), latency, _milliseconds, latency.most)
    if bandwidth is not None:
        _summary(t("bandwidth ({what})", what=of(BANDWIDTH_IS)), bandwidth, _rate, bandwidth.least)
    click.echo()


def _summary(what: str, found: SpeedSummary, form: Callable[[float], str], worst: float) -> None:
    click.echo(
        t(
            "{what}: least {least}, median {middle}; slowest: {host} -> {other}, {worst}",
            what=what,
            least=form(found.least),
            middle=form(found.middle),
            host=found.slowest.host,
            other=found.slowest.other,
            worst=form(worst),
        )
    )


def _milliseconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds * 1000:.3f} ms"


def _rate(bytes_per_second: float | None) -> str:
    return "" if bytes_per_second is None else f"{units.size(int(bytes_per_second))}/s"


@verb(
    "check",
    t(
        "Check the hosts and every connection between two: names, ports, host keys, logins, users, clocks, "
        "MPI, PATH, folders, disks, GPUs, and whether each can connect to an mpirun on the others; then run "
        "a real mpirun across all of them. Changes nothing on any host. The exit code is 0 if nothing "
        "failed.\n\n"
        "Warnings concern plain mpirun and other programs; Oarsman's jobs run despite them."
    ),
    "oarsman hosts check",
    ("oarsman hosts check node1 node2 --network", t("two of them, and how fast the way between them is")),
    ("oarsman hosts check --leave-out", t("hosts that fail get no jobs until they pass")),
    ("oarsman hosts check -o json", t("every step, for programs")),
)
@options.hosts
@option("--leave-out", t("Keep jobs off hosts that fail, until they pass a later check."))
@option("--network", t("Also measure latency and bandwidth between all hosts."))
@options.output("wide", "json")
@options.inventory
def command(session: Session, names: tuple[str, ...], leave_out: bool, network: bool, output: str | None) -> int:
    import asyncio

    from oarsman.backends.ssh.check import check
    from oarsman.engines.hosts.ssh.diagnose import FAIL

    inventory = options.inventory_of(session)
    hosts = options.chosen_hosts(inventory, names)
    progress = StatusLine(wanted=not session.quiet)
    shown = Shown(every_step=output == "wide", quiet=session.quiet, progress=progress)
    try:
        found = asyncio.run(
            check(
                inventory,
                hosts,
                leave_out=leave_out,
                network=network,
                tell=(lambda findings: None) if output == "json" else shown.show,
                stage=lambda name: progress.show(of(STAGES[name])),
                clock=lambda: session.now().timestamp(),
            )
        )
    finally:
        progress.end()
    findings, speeds, bad, left_out = found.findings, found.speeds, found.unfit, found.left_out
    if output == "json":
        documents.emit(_document(inventory, findings, left_out, speeds), "json")
    else:
        if network:
            network_table(speeds)
        count = Counter(finding.level for finding in findings)
        counted = {"failed": count["fail"], "warned": count["warn"]}
        many = t(
            "{hosts} hosts, {ways} ways between them; failed: {failed}, warnings: {warned}",
            hosts=len(hosts),
            ways=len(hosts) * (len(hosts) - 1),
            **counted,
        )
        session.say(many if len(hosts) != 1 else t("1 host; failed: {failed}, warnings: {warned}", **counted))
        if leave_out:
            for name, finding in bad.items():
                note(t("{name} is left out: {why}", name=name, why=of(finding.message)))
        elif bad:
            note(t("`oarsman hosts check --leave-out` gives {names} no jobs until they pass", names=", ".join(bad)))
    return 1 if any(finding.level == FAIL for finding in findings) else 0


def _document(
    inventory: Inventory, findings: Sequence[Finding], left_out: Mapping[str, str], speeds: Sequence[Speed]
) -> dict[str, Any]:
    from oarsman.engines.hosts.ssh.diagnose import FAIL
    from oarsman.engines.hosts.ssh.diagnose.diagnosis import BANDWIDTH_IS, LATENCY_IS

    found: dict[str, Any] = {
        "inventory": str(inventory.file),
        "ok": all(finding.level != FAIL for finding in findings),
        "findings": [asdict(finding) for finding in findings],
        "leftOut": left_out,
    }
    if speeds:
        found["network"] = {
            "latencyIs": LATENCY_IS,
            "bandwidthIs": BANDWIDTH_IS,
            "ways": [asdict(speed) for speed in speeds],
        }
    return found
