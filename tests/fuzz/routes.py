"""Calls of routes: every one of the description, with parameters and bodies as it has them, or nearly."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any
from urllib.parse import quote_from_bytes, urlencode

from oarsman.console.server import bare_app

from . import odd
from .manifests import case as manifest_case
from .site import ENVIRONMENT, OWNERS_JOBS, ROLES, SWEEP, USERS_JOB
from .wire import Request

API = "/api/v1"
# What would start something if a user asked for it: there, the job is never the user's own.
STARTING = ("resumeJob", "rerunJob", "cloneJob", "resumeSweep")
_GIVEN = ("default", "done", "mine", "a", "2026-01-01T00:00:00Z", "1", "v1", "name", "-created")
_WITHIN = (b"\xff", b"\0", b"\xed\xa0\x80", b"NaN", b",", b"\\u12", b"\xef\xbb\xbf")
_TYPES = (
    *(b"", b"text/plain", b"application/x-www-form-urlencoded", b"multipart/form-data; boundary=a", b"application/xml"),
    *(b"application/json; charset=utf-16", b"application/json\t", b"a" * 9000, b"\xff/\xfe", b"application/yaml"),
)


@dataclass(frozen=True)
class Operation:
    id: str
    method: str
    path: str
    parameters: tuple[Mapping[str, Any], ...]
    body: Mapping[str, Any] | None


@cache
def description() -> Mapping[str, Any]:
    found: Mapping[str, Any] = bare_app().openapi()
    return found


@cache
def operations() -> tuple[Operation, ...]:
    return tuple(
        Operation(
            said["operationId"],
            method.upper(),
            path,
            tuple(said.get("parameters", ())),
            said["requestBody"]["content"]["application/json"]["schema"] if "requestBody" in said else None,
        )
        for path, methods in description()["paths"].items()
        for method, said in methods.items()
    )


def asked(rng: Random, caller: str, seed: int) -> Request:
    return routed(rng.choice(operations()), rng, caller)


def routed(operation: Operation, rng: Random, caller: str) -> Request:
    path, query, headers = operation.path, [], [(b"Accept", b"*/*")]
    for parameter in operation.parameters:
        name, schema = parameter["name"], parameter["schema"]
        if parameter["in"] == "path":
            path = path.replace(f"{{{name}}}", _segment(operation, name, rng, caller))
        elif parameter["in"] == "query" and rng.random() < 0.4:
            query += [(name, plain(_like(schema, rng))) for _ in range(rng.choice((1, 1, 1, 2, 30)))]
        elif parameter["in"] == "header" and rng.random() < 0.7:
            headers.append((name.encode(), header(plain(_like(schema, rng)))))
    if rng.random() < 0.1:
        query.append((odd.text(rng)[:200], odd.text(rng)))
    body = b""
    if operation.body is not None or rng.random() < 0.05:
        kind, body = _body(operation, rng, caller)
        headers.append((b"Content-Type", kind))
    target = path + ("?" + urlencode(query, errors="surrogatepass") if query else "")
    return Request(operation.method.encode(), target.encode("latin-1", "replace")[:60_000], tuple(headers), body)


def _segment(operation: Operation, name: str, rng: Random, caller: str) -> str:
    """What is there, most of the time."""
    jobs = OWNERS_JOBS if operation.id in STARTING else (*OWNERS_JOBS, USERS_JOB)
    if operation.id == "deleteJob" and rng.random() < 0.9:  # each time it is made anew
        jobs = OWNERS_JOBS
    things = {"sweeps": (SWEEP,), "environments": (ENVIRONMENT,), "accounts": tuple(ROLES), "jobs": jobs}
    named = things.get(operation.path.split("/")[3], ())
    if rng.random() < 0.75:
        return rng.choice({"namespace": ("default",), "id": ("oar_AbCd1234",)}.get(name, named))
    return quote_from_bytes(odd.text(rng)[:3000].encode("utf-8", "surrogatepass"), safe=rng.choice(("", "/.")))


def _like(schema: Mapping[str, Any], rng: Random, depth: int = 4) -> Any:
    """What the schema allows, or something odd in its place."""
    if rng.random() < 0.15 or depth == 0:
        return odd.value(rng)
    if "$ref" in schema:
        return _like(description()["components"]["schemas"][schema["$ref"].rpartition("/")[2]], rng, depth)
    for several in ("anyOf", "oneOf", "allOf"):
        if several in schema:
            return _like(rng.choice(schema[several]), rng, depth)
    if "enum" in schema or "const" in schema:
        return rng.choice(schema.get("enum") or [schema["const"]])
    kind = schema.get("type", "object")
    if kind == "object":
        return _object(schema, rng, depth)
    if kind == "array":
        return [_like(schema.get("items", {}), rng, depth - 1) for _ in range(rng.choice((0, 1, 2, 40)))]
    numbers = (schema.get("minimum", 0), schema.get("maximum", 9), schema.get("maximum", 9) + 1, 1, *odd.NUMBERS[:6])
    if kind in ("integer", "number"):
        return rng.choice(numbers)
    if kind == "string":
        given = schema.get("examples") or _GIVEN
        longest = schema.get("maxLength", 100)
        return rng.choice((*given, "a" * min(longest, 5000), "a" * min(longest + 1, 5001), odd.text(rng)))
    return rng.choice((True, False, None))


def _object(schema: Mapping[str, Any], rng: Random, depth: int) -> dict[str, Any]:
    needed = schema.get("required", ())
    found = {
        name: _like(of, rng, depth - 1)
        for name, of in schema.get("properties", {}).items()
        if rng.random() < (0.95 if name in needed else 0.4)
    }
    if rng.random() < 0.1 or "additionalProperties" in schema:
        more = schema.get("additionalProperties")
        found[odd.text(rng)[:300]] = _like(more if isinstance(more, dict) else {"type": "string"}, rng, depth - 1)
    return found


def _body(operation: Operation, rng: Random, caller: str) -> tuple[bytes, bytes]:
    kind = rng.choices((b"application/json", *_TYPES), (30, *[1] * len(_TYPES)))[0]
    found = _like(operation.body or {}, rng)
    if isinstance(found, dict) and "manifest" in found and rng.random() < 0.6:
        found["manifest"] = manifest_case(rng.randrange(1 << 30), 0).text.decode("utf-8", "surrogateescape")
    body = odd.as_json(_harmless(operation, found) if caller == "user" else found)
    way = rng.randrange(20)
    if way == 0:
        body = odd.deep(rng)
    elif way == 1:
        body = body[: rng.randrange(len(body) + 1)]
    elif way == 2:
        at = rng.randrange(len(body) + 1)
        body = body[:at] + rng.choice(_WITHIN) + body[at:]
    elif way == 3:
        body = b'{"a":1,' * rng.choice((1, 1000)) + body
    elif way == 4:
        body = rng.choice((b" ", b"1", b'"a"')) * rng.choice((100, 100_000, 1_100_000))
    elif way == 5:
        body = json.dumps(found, default=str).encode(rng.choice(("utf-16", "utf-32", "utf-8-sig")), "surrogatepass")
    return kind, body


def _harmless(operation: Operation, found: Any) -> Any:
    """Of a user, who may run things: nothing is to run, and nothing to be built."""
    if not isinstance(found, dict):
        return found
    if operation.id in ("createJob", "createSweep"):
        field = "document" if "document" in found else "manifest"
        found = {**found, field: {"kind": found.get(field)}}
    elif operation.id == "putEnvironment":
        found["python"] = "3.99"
    return found


def plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def header(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass").replace(b"\r", b"").replace(b"\n", b"").replace(b"\0", b"")[:20_000]
