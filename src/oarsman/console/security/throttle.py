"""Guessing passwords is slowed: by the address it comes from, and by the account it is about.

After five failures each further attempt has to wait twice as long as the one before. Nobody sleeps: an attempt
that comes too early is refused and told when to come again, and it neither counts nor is looked at.

The address is slowed much longer (up to 15 minutes) than the account (up to 30 seconds). If it were the other way
round, a stranger could keep somebody out by failing in their name; as it is, the stranger's own address is the
first to be shut out, and many addresses together cost the owner of the account half a minute at worst. An address
from which the account was entered before does not even wait that long. Guessing from ever new addresses is left
with two attempts a minute per account.

A success forgives only what was failed in the same name: with an account of one's own, one cannot go on guessing
another's.

API tokens are not counted here: nobody guesses 256 bits.
"""

from __future__ import annotations

import ipaddress
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from oarsman.backoff import Backoff
from oarsman.errors import ThrottledError
from oarsman.text.sentence import Text

TOO_MANY = Text("too many logins have failed")

K = TypeVar("K")
FREE = 5
_ADDRESS, _ACCOUNT = Backoff(1.0, 900.0), Backoff(1.0, 30.0)
_FORGOTTEN = 3600.0
_BOUND = 10_000  # of each kind


@dataclass(slots=True)
class _Failures:
    count: int = 0
    last: float = 0.0

    def wait(self, now: float, backoff: Backoff) -> float:
        if self.count < FREE:
            return 0.0
        return self.last + backoff.after(self.count - FREE + 1) - now


class Throttle:
    """An attempt counts as failed from its beginning, so a thousand at the same moment are no way around it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, *, bound: int = _BOUND) -> None:
        self._clock = clock
        self._bound = bound
        self._lock = threading.Lock()
        self._addresses: OrderedDict[str, _Failures] = OrderedDict()
        self._accounts: OrderedDict[str, _Failures] = OrderedDict()
        self._pairs: OrderedDict[tuple[str, str], _Failures] = OrderedDict()
        self._welcome: OrderedDict[tuple[str, str], None] = OrderedDict()

    def begin(self, address: str, name: str | None) -> None:
        """Count an attempt, or raise ThrottledError. `succeeded` and `take_back` undo it. No name: a link's key."""
        address, name = network(address), name if name is None else name.casefold()
        with self._lock:
            now = self._clock()
            counted = self._counted(address, name, now)
            wait = counted[0].wait(now, _ADDRESS)
            if name is not None and (address, name) not in self._welcome:
                wait = max(wait, counted[1].wait(now, _ACCOUNT))
            if wait > 0:
                raise ThrottledError(
                    TOO_MANY, retry_after=wait, hint=Text("try again in {seconds} seconds", seconds=math.ceil(wait))
                )
            for failures in counted:
                failures.count += 1
                failures.last = now

    def take_back(self, address: str, name: str | None) -> None:
        """The attempt was none: nothing was looked at."""
        address, name = network(address), name if name is None else name.casefold()
        with self._lock:
            for failures in self._counted(address, name, self._clock()):
                failures.count = max(failures.count - 1, 0)

    def succeeded(self, address: str, name: str) -> None:
        address, name = network(address), name.casefold()
        with self._lock:
            now = self._clock()
            in_this_name = self._pairs.pop((address, name), _Failures())
            of_address = self._of(self._addresses, address, now)
            of_address.count = max(of_address.count - in_this_name.count, 0)
            self._accounts.pop(name, None)
            self._welcome[address, name] = None
            self._welcome.move_to_end((address, name))
            while len(self._welcome) > self._bound:
                self._welcome.popitem(last=False)

    def _counted(self, address: str, name: str | None, now: float) -> list[_Failures]:
        """Of the address, and of the account and both together."""
        counted = [self._of(self._addresses, address, now)]
        if name is not None:
            counted += [self._of(self._accounts, name, now), self._of(self._pairs, (address, name), now)]
        return counted

    def _of(self, known: OrderedDict[K, _Failures], key: K, now: float) -> _Failures:
        found = known.get(key)
        if found is None or now - found.last > _FORGOTTEN:
            found = known[key] = _Failures(last=now)
        known.move_to_end(key)
        while len(known) > self._bound:
            known.popitem(last=False)
        return found


def network(address: str) -> str:
    """The part of an address that is dear: whoever has one of IPv6 has at least 2^64 of them."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed.ipv4_mapped is not None:
            return str(parsed.ipv4_mapped)
        return str(ipaddress.ip_network((parsed, 64), strict=False))
    return str(parsed)
