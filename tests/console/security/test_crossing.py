"""Other people's pages: requests forged from elsewhere, names that are made to lead here, and frames."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from for_every import for_every_row
from starlette.requests import HTTPConnection

from oarsman.console.settings import Site
from oarsman.errors import ForbiddenError, OarsmanError
from oarsman.service.models import Role

from .console import OWN, Browser, Clock, Console

FORGED: list[dict[str, str]] = [
    {},  # neither origin nor header: a form of old
    {"Origin": "http://127.0.0.1:8080"},
    {"X-Oarsman": "1"},
    {"Origin": "http://evil.example", "X-Oarsman": "1"},
    {"Origin": "http://127.0.0.1:9999", "X-Oarsman": "1"},  # the same site to a cookie: another port of this machine
    {"Origin": "https://127.0.0.1:8080", "X-Oarsman": "1"},
    {"Origin": "http://localhost:8080", "X-Oarsman": "1"},
    {"Origin": "null", "X-Oarsman": "1"},
    {"Origin": "", "X-Oarsman": "1"},
    {"Origin": "http://127.0.0.1:8080.evil.example", "X-Oarsman": "1"},
    {"Origin": "http://127.0.0.1:8080@evil.example", "X-Oarsman": "1"},
    {"Origin": "http://evil.example@127.0.0.1:8080", "X-Oarsman": "1"},
    {"Origin": "http://127.0.0.1:8080", "Sec-Fetch-Site": "cross-site", "X-Oarsman": "1"},
    {"Sec-Fetch-Site": "same-site", "X-Oarsman": "1"},
    {"Sec-Fetch-Site": "none", "X-Oarsman": "1"},
    {"Origin": "http://127.0.0.1:8080", "X-Oarsman": "0"},
]


@pytest.mark.parametrize("headers", FORGED, ids=str)
@pytest.mark.parametrize(("method", "path"), [("DELETE", "/api/v1/session"), ("POST", "/api/v1/tokens")])
def test_a_forged_request_changes_nothing(console: Console, headers: dict[str, str], method: str, path: str) -> None:
    victim = console.logged_in("ann")
    forged = Browser(console, cookies=dict(victim.cookies), headers=headers)
    assert forged.ask(method, path, {}).status_code == 403
    assert victim.me().status_code == 200
    assert console.store.tokens.all() == []


@pytest.mark.parametrize(
    "headers",
    [
        OWN,
        {"Origin": "http://127.0.0.1:8080", "X-Oarsman": "1"},
        {"Sec-Fetch-Site": "same-origin", "X-Oarsman": "1"},
    ],
    ids=str,
)
def test_the_consoles_own_pages_can_change_things(console: Console, headers: dict[str, str]) -> None:
    victim = console.logged_in("ann")
    own = Browser(console, cookies=victim.cookies, headers=headers)
    assert own.ask("POST", "/api/v1/tokens", {}).status_code == 201


def test_reading_needs_no_header(console: Console) -> None:
    victim = console.logged_in("ann")
    assert Browser(console, cookies=victim.cookies, headers={}).me().status_code == 200


@pytest.mark.parametrize("headers", [h for h in FORGED if h.get("X-Oarsman") != "1" or len(h) > 1], ids=str)
def test_nobody_is_logged_in_to_an_account_by_another_page(console: Console, headers: dict[str, str]) -> None:
    console.account("mallory")
    answer = Browser(console, headers=headers).log_in("mallory")
    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers


def test_a_program_with_a_token_needs_neither_origin_nor_header(console: Console) -> None:
    console.account("ann")
    token, secret = console.store.tokens.make("ann", "ann")
    program = Browser(console, headers={"Authorization": f"Bearer {secret}", "Origin": "http://evil.example"})
    assert program.ask("DELETE", f"/api/v1/tokens/{token.id}").status_code == 204


def test_a_token_beside_a_cookie_decides_alone(console: Console) -> None:
    admin = console.logged_in("ann", Role.ADMIN)
    assert admin.me(Authorization="Bearer oar_" + "A" * 43).status_code == 401
    assert admin.me(Authorization="Basic YTpi").status_code == 200  # a proxy's business
    assert (
        Browser(console, cookies=admin.cookies, headers={"Authorization": "Basic YTpi"})
        .ask("POST", "/api/v1/tokens", {})
        .status_code
        == 403
    )


def socket(console: Console, browser: Browser, **headers: str) -> HTTPConnection:
    name = console.site.cookie(encrypted=False)
    cookie = f"{name}={browser.cookies[name]}"
    sent = {"host": "127.0.0.1:8080", "cookie": cookie, **headers}
    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in sent.items()]
    return HTTPConnection({"type": "websocket", "path": "/", "headers": raw, "client": ("127.0.0.1", 1)})


def test_a_web_socket_is_only_for_our_own_pages(console: Console) -> None:
    browser = console.logged_in("ann")
    assert console.gate.caller(socket(console, browser, origin="http://127.0.0.1:8080")).identity.name == "ann"
    foreign: list[dict[str, str]] = [{}, {"origin": "http://evil.example"}, {"sec_fetch_site": "same-origin"}]
    for headers in foreign:
        with pytest.raises(ForbiddenError):
            console.gate.caller(socket(console, browser, **headers))


# -- names -------------------------------------------------------------------------------------------
LOOPBACK = Site(port=8080)
PLAIN = Site(port=80)
NAMED = Site(port=8080, public_names=("jobs.example", "lab.example:8443"))
NETWORK = Site(host="0.0.0.0", port=8080, tls=True)


@for_every_row(
    [
        (LOOPBACK, "127.0.0.1:8080", True),
        (LOOPBACK, "localhost:8080", True),
        (LOOPBACK, "[::1]:8080", True),
        (LOOPBACK, "LOCALHOST:8080", True),
        (LOOPBACK, "127.0.0.1:9999", False),
        (LOOPBACK, "127.0.0.1", False),
        (LOOPBACK, "evil.example:8080", False),
        (LOOPBACK, "evil.example", False),
        (LOOPBACK, "localhost.evil.example:8080", False),
        (LOOPBACK, "192.168.1.5:8080", False),
        (LOOPBACK, "user@localhost:8080", False),
        (LOOPBACK, None, False),
        (LOOPBACK, "", False),
        (LOOPBACK, "localhost:8080/x", False),
        (LOOPBACK, "localhost:", False),
        (LOOPBACK, "localhost:99999", False),
        (LOOPBACK, "[::1", False),
        (LOOPBACK, "localhost:8080,evil", False),
        (PLAIN, "localhost", True),
        (PLAIN, "localhost:80", True),
        (NAMED, "jobs.example", True),
        (NAMED, "jobs.example:443", True),
        (NAMED, "JOBS.example:8080", True),
        (NAMED, "lab.example:8443", True),
        (NAMED, "lab.example", False),
        (NAMED, "localhost:8080", True),
        (NAMED, "evil.example", False),
        (NETWORK, "192.168.1.5:8080", True),
        (NETWORK, "[fd00::1]:8080", True),
        (NETWORK, "evil.example:8080", False),
        (NETWORK, "192.168.1.5", False),
        (Site(host="node7", port=8080), "node7:8080", True),
    ]
)
def test_a_server_answers_to_its_own_names_alone(site: Site, host: str | None, ours: bool) -> None:
    assert site.answers_to(host) is ours


@pytest.mark.parametrize(
    ("site", "origin", "host", "own"),
    [
        (PLAIN, "http://localhost", "localhost", True),
        (PLAIN, "http://localhost", "localhost:80", True),
        (NAMED, "https://jobs.example", "jobs.example", True),  # a proxy speaks TLS for it
        (NAMED, "https://jobs.example", "localhost:8080", False),
        (NAMED, "https://localhost:8080", "localhost:8080", False),
        (NETWORK, "https://192.168.1.5:8080", "192.168.1.5:8080", True),
        (NETWORK, "http://192.168.1.5:8080", "192.168.1.5:8080", False),
        (LOOPBACK, "ftp://127.0.0.1:8080", "127.0.0.1:8080", False),
        (LOOPBACK, "http://[", "127.0.0.1:8080", False),
        (LOOPBACK, "http://127.0.0.1:8080/x", "127.0.0.1:8080", False),
    ],
)
def test_an_origin_is_own_if_the_request_was_sent_to_it(site: Site, origin: str, host: str, own: bool) -> None:
    assert site.is_own_origin(origin, host, encrypted=site.tls) is own


@pytest.mark.parametrize(
    ("site", "address"),
    [
        (LOOPBACK, "http://127.0.0.1:8080"),
        (Site(host="::1", port=1), "http://[::1]:1"),
        (NETWORK, "https://localhost:8080"),
        (NAMED, "http://jobs.example:8080"),
        (Site(port=1, public_names=("a:2",)), "http://a:2"),
    ],
)
def test_the_address_can_be_opened_in_a_browser(site: Site, address: str) -> None:
    assert site.address == address


def test_a_rebound_name_gets_no_answer_even_with_a_cookie(console: Console) -> None:
    victim = console.logged_in("ann")
    answer = victim.me(Host="evil.example:8080")
    assert (answer.status_code, answer.json()["code"]) == (421, "misdirected")
    assert answer.headers["content-type"] == "application/problem+json"
    link = console.gate.new_link()
    assert console.browser().get(link, Host="evil.example").status_code == 421
    assert console.browser().get(link).status_code == 303  # and nothing was burnt


def test_a_web_socket_of_a_rebound_name_is_closed(console: Console) -> None:
    import asyncio

    sent: list[Any] = []

    async def receive() -> dict[str, str]:
        return {"type": "websocket.connect"}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "websocket", "path": "/", "headers": [(b"host", b"evil.example:8080")]}
    asyncio.run(console.app(scope, receive, send))
    assert sent == [{"type": "websocket.close", "code": 1008}]


# -- headers -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("path", ["/", "/api/v1/me", "/nowhere", "/login/once?key=x"])
def test_every_answer_keeps_other_pages_out(console: Console, path: str) -> None:
    headers = console.browser().get(path).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "same-origin"
    policy = headers["content-security-policy"]
    assert "frame-ancestors 'none'" in policy
    assert "http" not in policy
    assert "*" not in policy


def test_answers_of_the_api_are_neither_kept_nor_shown_as_pages(console: Console) -> None:
    headers = console.browser().me().headers
    assert headers["cache-control"] == "no-store"
    assert headers["content-security-policy"].startswith("default-src 'none'")
    page = console.browser().get("/apians").headers
    assert "cache-control" not in page
    assert "connect-src 'self'" in page["content-security-policy"]


def test_an_error_says_nothing_that_was_secret(tmp_path: Path, clock: Clock) -> None:
    console = Console(tmp_path / "console.db", clock)
    with pytest.raises(OarsmanError) as caught:
        console.gate.caller(
            HTTPConnection(
                {
                    "type": "http",
                    "method": "GET",
                    "headers": [(b"authorization", b"Bearer oar_something-secret")],
                }
            )
        )
    assert "something-secret" not in f"{caught.value.message} {caught.value.hint} {caught.value.field}"
    console.store.close()
