"""Values that break programs. `CANARY` stands for a folder of the server of which nobody is to read or run anything."""

from __future__ import annotations

import json
from random import Random
from typing import Any

CANARY = "/canary-folder"  # as long as no site is known: `settled` puts the real one in its place
ADDRESS = "http://address.fuzz"  # likewise: of the server
_RUN = f"touch {CANARY}/ran"
PATHS = (
    CANARY,
    f"{CANARY}/inventory",
    f"{CANARY}/pipe",
    f"file://{CANARY}/inventory",
    "/etc/passwd",
    "../../../../etc/passwd",
    "/proc/self/environ",
    "/dev/zero",
    "/dev/stdin",
    "~root",
    "@/etc/passwd",
    "..",
    ".",
    "/",
)
SHELL = (
    f"$({_RUN})",
    f"`{_RUN}`",
    f"x; {_RUN}",
    f"x\n{_RUN}\n",
    f"| {_RUN}",
    f"-o ProxyCommand={_RUN}",
    "$FUZZ_SECRET",
)
WORDS = (
    *("", " ", "\t", "\0", "a\0b", "\n", "a\nb: c", "a\r\nSet-Cookie: a=b", "\x1b[2J", "\x7f", "\x85", "\u2028"),
    *("'", '"', "\\", "%", "%00", "%s%n", "{0}", "{answer}", "{name}", "${HOME}", "$$", "*", "&a", "~", "-", "--help"),
    *("<script>alert(1)</script>", "' OR 1=1 --", "\u202eabc", "a\u200bb", "\ufeff", "e\u0301", "\U0001f600", "\uffff"),
    *("\ud800", "a\udfffb", "İ", "ß", "ǅ", "١٢٣", "１２", "²", "½", "é" * 40),
    *("NaN", "inf", "1e309", "-1", "0x10", "0o17", "1_000", "1:30", "9" * 5000, "true", "null", "2026-01-01", "1Ei"),
    *("1e30m", "0.0000001", "-5Gi", "9999999Pi", "1e999999999", "(.*)*$", "(a+)+$", "[", "(?P<", "a" * 300),
    *("x" * 70_000, "default/done", "Default", "a..b", "a/b/c", "kubeflow.org/v9", "v1", "MPIJob", "List"),
    "2026-02-31T25:61:61Z",
)
TEXTS = (*PATHS, *SHELL, *WORDS)
_INTEGERS = (0, -1, 1, 2, 255, 65536, 2**31, 2**53 + 1, 2**63, 2**64, 10**30, 10**400)
NUMBERS = (*_INTEGERS, 0.5, -0.0, 1e308, float("inf"), float("nan"))
# Written into YAML as they are, without quotes.
PIECES = (
    *("[" * depth + "]" * depth for depth in (20, 99, 101, 1000, 20_000)),
    *("{a: " * depth + "1" + "}" * depth for depth in (20, 101, 3000)),
    *("&a [*a]", "*nobody", "&a {b: *a}", "<<: *a", "!!python/object/apply:os.system [id]", "!!python/name:os.system"),
    *("!!binary gA==", "!!binary '~'", "!!set {a, b}", "!!timestamp 2026-99-99", "2026-99-99"),
    *("2026-01-01T00:00:00+99:99", "!!int x", "!!float x", "!!bool x", "!!null x", "!!omap [a]", "!!str [a]"),
    *("!!map a", "!<x> y", "!", "!!", "? a", "? [a]: b", "9" * 5000, "0x" + "f" * 5000, "0b" + "1" * 5000),
    *("1:" * 500 + "1", ".inf", "-.inf", ".nan", "1e400", "0o9", "=", "<<", "'", '"', '"\\x"', '"\\ud800"'),
    *('"\\U00110000"', "|\n", ">-\n", "|9\n", "%", "@a", "`a", "- - -", *"{}[],"),
)


def words(line: str) -> list[str]:
    return line.split()


def text(rng: Random) -> str:
    """One of them, or two with something between."""
    found = rng.choice(TEXTS)
    if rng.random() < 0.9:
        return found
    return f"{rng.choice(('a', 'oarsman', 'done'))}{found[:200]}{rng.choice(WORDS)[:200]}"


def value(rng: Random, depth: int = 2) -> Any:
    """Anything that JSON can say."""
    kind = rng.randrange(8 if depth else 5)
    if kind < 3:
        return text(rng)
    if kind == 3:
        return rng.choice(NUMBERS)
    if kind == 4:
        return rng.choice((None, True, False, [], {}))
    if kind == 5:
        return [value(rng, depth - 1) for _ in range(rng.choice((1, 2, 3, 200)))]
    return {rng.choice((text(rng), "name", "a")): value(rng, depth - 1) for _ in range(rng.choice((1, 2, 30)))}


def deep(rng: Random) -> bytes:
    """JSON of some depth."""
    depth = rng.choice((30, 101, 500, 1100, 30_000))
    return rng.choice((b"[" * depth + b"]" * depth, b'{"a":' * depth + b"1" + b"}" * depth, b"[" * depth))


def as_json(found: Any) -> bytes:
    """With surrogates and NaN as they are: whether they are refused is up to the server."""
    return json.dumps(found).encode()


def settled(raw: bytes, canary: str, address: str = "") -> bytes:
    return raw.replace(CANARY.encode(), canary.encode()).replace(ADDRESS.encode(), address.encode())
