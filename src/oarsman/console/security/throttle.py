"""Guessing passwords is slowed, and nobody is kept out by what others guess.

Nobody sleeps: an attempt that comes too early is refused and told when to come again, and it neither counts nor is
looked at. Failures are counted in three ways; each has some that are free, after which the wait doubles:

- of a name at an address: 5 an hour, then up to 15 minutes. One address is left with five attempts an hour at one
  account, and those who share it (people behind one proxy) are not concerned.
- of a name, wherever it was tried: 5 an hour, then up to 30 seconds. Many addresses together are left with two attempts
  a minute, and can make the owner of the account wait no longer than that at a time.
- of an address, whatever was tried: 100 an hour, then up to 10 seconds. One address cannot try a few passwords on
  everybody; a hundred people who mistype theirs do not notice.

Where an account was entered before, at that address or with the cookie of that session (though it has ended), only
what fails there in this name counts, up to 30 seconds. So the guesses of others, of any number and at the same
address too, do not keep out a browser that was in; and whoever has the cookie cannot guess faster for it. Addresses
are known again after a restart, from the audit log.

Counters lie in tables of a fixed size, found by a hash that nobody else can compute. Nothing is ever thrown out to
make room, so a flood of junk frees no guesser; and each counter lies at four places of which the lowest counts, so it
slows hardly anybody else: after 40 attempts a second for three hours, each in another name and from another address,
none of 20,000 others. Names that do not exist are counted like all others: nothing tells which do.

A success forgives only what was failed in the same name: with an account of one's own, one cannot go on guessing
another's. API tokens are not counted here: nobody guesses 256 bits.
"""

from __future__ import annotations

import hashlib
import ipaddress
import math
import os
import threading
import time
from array import array
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from oarsman.backoff import Backoff
from oarsman.errors import ThrottledError
from oarsman.text.sentence import Text

TOO_MANY = Text("too many logins have failed")

FREE, FREE_OF_ADDRESS = 5, 100
_AT_ADDRESS, _ANYWHERE, _OF_ADDRESS = Backoff(1.0, 900.0), Backoff(1.0, 30.0), Backoff(1.0, 10.0)
_HOUR = 3600.0
_ROWS, _SLOTS = 4, 1 << 16
_MORE = 16  # failures beyond the free ones that are told apart: the longest wait is reached by then
_PLACES_EACH = 64


class _Counters:
    """Failures by key, in a fixed number of slots; `free` of them are forgotten in an hour.

    A slot is shared by many keys, but hardly ever all slots of two keys: the lowest is right or too high.
    """

    def __init__(self, free: int) -> None:
        self._free = free
        self._seed = os.urandom(16)
        self._counts = array("f", bytes(4 * _ROWS * _SLOTS))
        self._last = array("d", bytes(8 * _ROWS * _SLOTS))

    def wait(self, key: str, now: float, backoff: Backoff) -> float:
        return min(self._wait(slot, now, backoff) for slot in self._slots(key))

    def add(self, key: str, now: float) -> None:
        for slot in self._slots(key):
            self._counts[slot] = min(self._count(slot, now) + 1, self._free + _MORE)
            self._last[slot] = now

    def forgive(self, key: str, failures: float) -> None:
        """When the last one was stays known: whoever had to wait for the next one still has to."""
        for slot in self._slots(key):
            self._counts[slot] = max(self._counts[slot] - failures, 0.0)

    def forgive_all(self, key: str, now: float) -> float:
        """How many they were."""
        found = min(self._count(slot, now) for slot in self._slots(key))
        self.forgive(key, found)
        return found

    def _wait(self, slot: int, now: float, backoff: Backoff) -> float:
        beyond = round(self._count(slot, now)) - self._free
        return self._last[slot] + backoff.after(beyond + 1) - now if beyond >= 0 else 0.0

    def _count(self, slot: int, now: float) -> float:
        return max(self._counts[slot] - (now - self._last[slot]) * self._free / _HOUR, 0.0)

    def _slots(self, key: str) -> list[int]:
        digest = hashlib.blake2b(key.encode("utf-8", "surrogatepass"), key=self._seed, digest_size=4 * _ROWS).digest()
        return [row * _SLOTS + int.from_bytes(digest[4 * row : 4 * row + 4], "big") % _SLOTS for row in range(_ROWS)]

    @property
    def size(self) -> int:
        return len(self._counts)


@dataclass(frozen=True, slots=True)
class Attempt:
    address: str
    name: str | None
    place: str | None  # at which the account was entered before: the address, or a session's cookie

    @property
    def known(self) -> bool:
        return self.place is not None

    @property
    def pair(self) -> str:
        return f"{self.place or self.address} {self.name}"


class Throttle:
    """An attempt counts as failed from its beginning, so a thousand at the same moment are no way around it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._pairs, self._places, self._names = _Counters(FREE), _Counters(FREE), _Counters(FREE)
        self._addresses = _Counters(FREE_OF_ADDRESS)
        self._entered: dict[str, OrderedDict[str, None]] = {}  # by account; none but their owners can add to them

    def begin(self, address: str, name: str | None, browser: str = "") -> Attempt:
        """Count an attempt, or raise ThrottledError. `succeeded` and `take_back` undo it. No name: a link's key, or a
        token of a cluster. `browser`: what it has of a session."""
        address, name = network(address), name if name is None else name.casefold()
        with self._lock:
            entered = self._entered.get(name or "", ())
            place = next((place for place in (browser, address) if place in entered), None)
            attempt = Attempt(address, name, place)
            now = self._clock()
            counted = self._counted(attempt)
            wait = max(counters.wait(key, now, backoff) for counters, key, backoff in counted)
            if wait > 0:
                raise ThrottledError(
                    TOO_MANY, retry_after=wait, hint=Text("try again in {seconds} seconds", seconds=math.ceil(wait))
                )
            for counters, key, _ in counted:
                counters.add(key, now)
        return attempt

    def take_back(self, attempt: Attempt) -> None:
        """The attempt was none: nothing was looked at, or it showed something good."""
        with self._lock:
            for counters, key, _ in self._counted(attempt):
                counters.forgive(key, 1)

    def succeeded(self, attempt: Attempt) -> None:
        with self._lock:
            now = self._clock()
            (pairs, pair, _), *others = self._counted(attempt)
            in_this_name = pairs.forgive_all(pair, now)
            if others:
                self._names.forgive_all(attempt.name or "", now)
                self._addresses.forgive(attempt.address, in_this_name)
        self.welcome(attempt.name or "", attempt.address)

    def welcome(self, name: str, place: str) -> None:
        """The account was entered at this place: an address, or with a cookie that the browser has now."""
        with self._lock:
            entered = self._entered.setdefault(name.casefold(), OrderedDict())
            entered[place] = None
            entered.move_to_end(place)
            if len(entered) > _PLACES_EACH:
                entered.popitem(last=False)

    def _counted(self, attempt: Attempt) -> list[tuple[_Counters, str, Backoff]]:
        of_address = (self._addresses, attempt.address, _OF_ADDRESS)
        if attempt.name is None:
            return [of_address]
        if attempt.known:
            return [(self._places, attempt.pair, _ANYWHERE)]
        return [(self._pairs, attempt.pair, _AT_ADDRESS), (self._names, attempt.name, _ANYWHERE), of_address]

    @property
    def size(self) -> int:
        """How much is remembered."""
        tables = (self._pairs, self._places, self._names, self._addresses)
        return sum(table.size for table in tables) + sum(1 + len(places) for places in self._entered.values())


@lru_cache(4096)  # all connections are asked for it whenever there is another one
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
