"""What Schemathesis makes of the description: for each operation a few dozen requests, some valid and some not."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from functools import cache
from random import Random
from typing import Any
from urllib.parse import urlencode

from .routes import description, header, operations
from .wire import Request

_EACH = 24
_BASE = "http://127.0.0.1"
_OURS = ("host", "content-length", "content-type")  # headers that are written where the request is sent


def asked(rng: Random, caller: str, seed: int) -> Request:
    """A user could begin something with one that is valid, and only looks."""
    operation = rng.choice([one for one in operations() if caller != "user" or one.method == "GET"])
    found = _all(operation.path, operation.method, seed)
    return found[rng.randrange(1 << 30) % len(found)]


@cache
def _schema() -> Any:
    import schemathesis  # late: it takes seconds

    found = schemathesis.openapi.from_dict(json.loads(json.dumps(description())))
    found.config.generation.update(with_security_parameters=False)  # each request has a token that is good
    return found


@cache
def _all(path: str, method: str, seed: int) -> list[Request]:
    """The same ones for the same seed."""
    import hypothesis
    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis import strategies as st
    from schemathesis import GenerationMode

    found: list[Request] = []
    operation = _schema()[path][method]
    made = st.one_of([operation.as_strategy(generation_mode=mode) for mode in GenerationMode])
    checks = list(HealthCheck)

    @hypothesis.seed(f"{seed} {path} {method}")
    @settings(max_examples=_EACH, deadline=None, database=None, phases=[Phase.generate], suppress_health_check=checks)
    @given(case=made)
    def note(case: Any) -> None:
        found.append(_request(case))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        note()
    return found


def _request(case: Any) -> Request:
    given = case.as_transport_kwargs(base_url=_BASE)
    kind = ((b"Content-Type", b"application/json"),) if "json" in given else ()
    said = ((str(name), str(value)) for name, value in given["headers"].items())
    headers = tuple((name.encode(), header(value)) for name, value in said if name.lower() not in _OURS)
    query = urlencode(given.get("params") or {}, doseq=True, errors="surrogatepass")
    target = given["url"].removeprefix(_BASE) + (f"?{query}" if query else "")
    return Request(
        given["method"].upper().encode(), target.encode("latin-1", "replace"), (*kind, *headers), _body(given)
    )


def _body(given: Mapping[str, Any]) -> bytes:
    if given.get("json") is not None:
        return json.dumps(given["json"]).encode()
    data = given.get("data") or b""
    if isinstance(data, dict):
        return urlencode(data, doseq=True).encode()
    return data if isinstance(data, bytes) else str(data).encode()
