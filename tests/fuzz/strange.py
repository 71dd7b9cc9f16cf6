"""Requests that no description has: odd methods, headers and paths, pages, what is no HTTP, and false credentials."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from urllib.parse import quote, quote_from_bytes, urlencode

from . import odd
from .routes import API, header, operations, routed
from .wire import Request

_METHODS = odd.words("GET HEAD OPTIONS POST PUT PATCH DELETE TRACE CONNECT PROPFIND get FOO")
_PAGES = odd.words(
    "/ /jobs /jobs/default/done /create /sweeps /sweeps/default/rates /hosts /environments /account /people /login"
)
_ASKED = odd.words("state owner search sort namespace cursor to link from template tab key rank view")
_ROOTS = odd.words(
    "/ /api /api/v1 /api/v1/jobs /_nicegui /_nicegui/3.18.0 /_nicegui/3.18.0/static /_nicegui/3.18.0/components"
)
_ROOTS += odd.words("/_nicegui/auto/static /login /login/once /healthz /static")
_STEPS = odd.words(". .. %2e%2e %2E. ..%2f.. ..%5c.. %252e%252e ....// %00 %c0%ae%c0%ae")
_HEADERS = odd.words(
    "Host Origin Referer Sec-Fetch-Site X-Forwarded-For X-Forwarded-Proto X-Forwarded-Host Forwarded Cookie"
)
_HEADERS += odd.words(
    "Authorization Accept Accept-Language Accept-Encoding Content-Type Content-Encoding Range If-None-Match"
)
_HEADERS += odd.words("If-Modified-Since Expect Upgrade X-HTTP-Method-Override X-Oarsman Last-Event-ID")
_VALUES = (
    *(
        b"evil.example",
        b"127.0.0.1",
        b"127.0.0.1:1",
        b"localhost",
        b"[::1]",
        b"[",
        b"a@b",
        b"http://evil.example",
        b"null",
    ),
    *(
        b"https://127.0.0.1",
        odd.ADDRESS.encode(),
        b"same-origin",
        b"cross-site",
        b"1",
        b"Bearer",
        b"Bearer oar_" + b"a" * 5000,
    ),
    *(
        b"Basic cm9vdDpyb290",
        b"oarsman-8470=a",
        b"a=b; " * 500,
        b"zh-CN,zh;q=nan",
        b"zh;q=1;q=2,,,",
        b"en;q=" + b"9" * 400,
    ),
    *(b"*" * 3000, b"gzip, br;q=9", b"bytes=0-,5-1,-9", b"100-continue", b"10.6.6.6, 127.0.0.1", b"::ffff:1.2.3.4%lo"),
    *(b'for="[::1]:x"', b"\xff\xfe", b'W/"a', b"Thu, 99 Jan 2026 99:99:99 GMT"),
)
_NO_METHODS = (b"", b"G\0T", b"GET GET", b"\xff", b"\x16\x03\x01\x02\x00\x01", b"PRI * HTTP/2.0\r\n\r\nSM")
_NO_TARGETS = (b"", b"\xff\xfe", b"a b", b"/" + b"a" * 70_000, b"/%zz", b"/\x01", b"http://[", b"/?" + b"&" * 9000)
_NO_LENGTHS = (b"-1", b"99999999999999999999", b"0x10", b"1e3", b"5", b"+2", b" 3", b"1,2", b"")
_ENCODINGS = (b"chunked", b"gzip, chunked", b"identity", b"chunked, chunked", b"x")
_CHUNKS = (b"0\r\n\r\n", b"zz\r\n", b"-1\r\na", b"ffffffffffffffff\r\n", b"5\r\nab")


def a_method(rng: Random, caller: str, seed: int) -> Request:
    return replace(_of_others(rng, caller), method=rng.choice((*_METHODS, "A" * 300)).encode())


def _of_others(rng: Random, caller: str) -> Request:
    """A route; for a user only one with which nothing could be begun by another method."""
    begun = (f"{API}/jobs", f"{API}/sweeps")
    safe = [one for one in operations() if one.method == "GET" and "{" not in one.path and one.path not in begun]
    return routed(rng.choice(safe if caller == "user" else operations()), rng, caller)


def headers(rng: Random, caller: str, seed: int) -> Request:
    found = _of_others(rng, caller)
    times = range(rng.choice((1, 1, 2, 4)))
    more = [(rng.choice(_HEADERS).encode(), rng.choice((header(odd.text(rng)), *_VALUES))) for _ in times]
    if rng.random() < 0.1:
        more += [(b"X-Many-%d" % n, b"a" * rng.choice((1, 100))) for n in range(rng.choice((90, 500)))]
    if rng.random() < 0.05:
        more.append((b"X-Long", b"a" * rng.choice((10_000, 70_000, 200_000))))
    whole = len(more) < 50 and not any(len(value) > 9000 for _, value in more)
    return replace(found, headers=(*found.headers, *more), whole=whole)


def paths(rng: Random, caller: str, seed: int) -> Request:
    """Out of the folders that are served, and to what is not there."""
    junk = quote_from_bytes(odd.text(rng)[:500].encode("utf-8", "surrogatepass"))
    end = rng.choice(("etc/passwd", f"{odd.CANARY[1:]}/inventory", "console.db", junk, ""))
    target = "/".join([rng.choice(_ROOTS), *[rng.choice(_STEPS)] * rng.choice((1, 3, 12)), end])
    if rng.random() < 0.15:
        target = rng.choice(("http://evil.example", "//evil.example", "http://127.0.0.1", "*")) + target
    return Request(rng.choice((b"GET", b"GET", b"HEAD")), target.encode("latin-1", "replace"))


def a_page(rng: Random, caller: str, seed: int) -> Request:
    path = rng.choice(_PAGES)
    if rng.random() < 0.3:
        namespace = quote(rng.choice(odd.WORDS)[:200], safe="", errors="replace")
        path = f"/{rng.choice(('jobs', 'sweeps'))}/{namespace}/{rng.choice(('a', 'done'))}"
    query = [(rng.choice(_ASKED), odd.text(rng)[:2000]) for _ in range(rng.choice((0, 1, 1, 3)))]
    target = path + ("?" + urlencode(query, errors="surrogatepass") if query else "")
    says = (b"Accept-Language", rng.choice((b"zh-CN", b"en", *_VALUES)))
    return Request(b"GET", target.encode(), (says, (b"Accept", b"text/html")))


def malformed(rng: Random, caller: str, seed: int) -> Request:
    """What is no HTTP. That nothing comes back is as good as a refusal."""
    good = Request(b"GET", f"{API}/jobs".encode(), ((b"Accept", b"*/*"),), whole=False)
    way = rng.randrange(9)
    if way == 0:
        return replace(good, method=rng.choice(_NO_METHODS))
    if way == 1:
        return replace(good, target=rng.choice(_NO_TARGETS))
    if way == 2:
        junk = rng.choice((b"\0", b"\r", b"\n", b"\x80", b" ", b"\t", b":", b"\r\n\r\n"))
        return replace(good, headers=((b"A" + junk + b"B", b"c" + junk + b"d"),))
    if way == 3:
        length = (b"Content-Length", rng.choice(_NO_LENGTHS))
        return replace(good, method=b"POST", target=f"{API}/preview".encode(), headers=(length,), body=b"{}")
    if way == 4:
        both = ((b"Transfer-Encoding", rng.choice(_ENCODINGS)), (b"Content-Length", b"4"))
        return replace(good, method=b"POST", headers=both[: rng.choice((1, 2))], body=rng.choice(_CHUNKS))
    if way == 5:
        twice = ((b"Host", b"a"), (b"Host", b"b"), (b"Content-Length", b"1"), (b"Content-Length", b"2"))
        return replace(good, headers=twice)
    if way == 6:
        return replace(good, headers=((b"Content-Length", b"100"),), method=b"PUT")
    if way == 7:
        return replace(good, target=good.target + b" HTTP/9.9\r\nX: y\r\n\r\nGET /api/v1/me", headers=())
    return Request(rng.randbytes(rng.choice((1, 50, 5000))), b"/", whole=False)


def logins(rng: Random, caller: str, seed: int) -> Request:
    """Whoever is in by a cookie or a token that is none. A few try passwords: the throttle is met by all of them."""
    once = "/login/once?key=" + quote(rng.choice(odd.WORDS)[:200], errors="replace")
    target = rng.choice((f"{API}/me", f"{API}/jobs", once, f"{API}/session"))
    shown = header(odd.text(rng)) or b"a"
    how = rng.choice(
        ((b"Authorization", b"Bearer " + shown), (b"Cookie", b"oarsman=" + shown), (b"Authorization", shown))
    )
    if target.endswith("session"):
        body = odd.as_json({"name": odd.text(rng)[:100], "password": odd.text(rng)[:200]})
        return Request(b"POST", target.encode(), ((b"X-Oarsman", b"1"), (b"Content-Type", b"application/json")), body)
    return Request(b"GET", target.encode(), (how,))
