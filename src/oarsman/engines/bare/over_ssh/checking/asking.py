"""Asks a host about itself."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from oarsman.engines.bare.over_ssh import probe
from oarsman.engines.bare.over_ssh.checking.findings import HostSeen
from oarsman.engines.bare.over_ssh.client import Ssh
from oarsman.engines.bare.over_ssh.inventory import RackHost
from oarsman.engines.bare.over_ssh.trouble import Trouble
from oarsman.errors import RetryableError

ANSWER_SECONDS = 25.0
CONNECT_SECONDS = 10  # a host that is switched off is not waited for as long as a busy one
PATIENCE = 5  # seconds for what may hang on a host

Clock = Callable[[], float]


async def ask(ssh: Ssh, host: RackHost, *, clock: Clock = time.time) -> HostSeen:
    connect = f"ConnectTimeout={CONNECT_SECONDS}"
    asked = clock()
    answer = await ssh.run(host, probe.script(host, patience=PATIENCE), timeout=ANSWER_SECONDS, options=(connect,))
    if answer.trouble is not None:
        return HostSeen(host=host, trouble=answer.trouble)
    try:
        facts = probe.parse(answer.out)
    except RetryableError as error:
        return HostSeen(host=host, trouble=Trouble("odd", f"{host.name}: {error.message}", error.hint or ""))
    return timed(HostSeen(host=host, facts=facts), facts.clock, asked, clock())


def timed(seen: HostSeen, its_clock: float, asked: float, answered: float) -> HostSeen:
    """Its clock was read at some moment between our question and its answer: most likely in the middle."""
    return replace(seen, skew=its_clock - (asked + answered) / 2, within=(answered - asked) / 2)
