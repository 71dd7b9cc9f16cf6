"""Calls: what somebody who means no good can send to an address. A seed and a number stand for one, always the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random

from . import described, routes, sockets, strange
from .manifests import CALLERS
from .wire import Request


@dataclass(frozen=True)
class Call:
    index: int
    kind: str
    caller: str
    request: Request


Kind = Callable[[Random, str, int], Request]
_KINDS: Mapping[str, tuple[int, Kind]] = {
    "route": (40, routes.asked),
    "described": (16, described.asked),
    "method": (6, strange.a_method),
    "headers": (10, strange.headers),
    "path": (7, strange.paths),
    "page": (3, strange.a_page),
    "malformed": (7, strange.malformed),
    "login": (2, strange.logins),
    "socket": (6, sockets.asked),
}


def case(seed: int, index: int) -> Call:
    rng, kind, caller = Random(f"{seed} call {index}"), kind_of(seed, index), caller_of(seed, index)
    return Call(index, kind, caller, _KINDS[kind][1](rng, caller, seed))


def caller_of(seed: int, index: int) -> str:
    return Random(f"{seed} caller {index}").choice((*CALLERS, "viewer", "user"))


def kind_of(seed: int, index: int) -> str:
    return Random(f"{seed} kind {index}").choices([*_KINDS], [weight for weight, _ in _KINDS.values()])[0]
