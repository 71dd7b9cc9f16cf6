"""Behind a proxy: whose address counts, and whether the way to the browser is encrypted."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_network
from pathlib import Path

import pytest
from for_every import for_every_row
from starlette.requests import HTTPConnection

from oarsman.console.security.proxies import seen_through
from oarsman.console.settings import ConsoleSettings, Site, refusal, remarks, trusted_networks
from oarsman.errors import ForbiddenError, UsageError

from .console import OWN, PASSWORD, Browser, Clock, Console

PROXIES = ("10.0.0.1", "10.9.0.0/16", "fd00::/8")
SITE = Site(port=8080, trusted_proxies=trusted_networks(PROXIES))
NAME = "jobs.example"
OUTSIDE = {**OWN, "Origin": f"https://{NAME}", "Host": NAME}
HTTPS = {"X-Forwarded-Proto": "https"}


@pytest.fixture
def behind(tmp_path: Path, clock: Clock) -> Iterator[Console]:
    made = Console(tmp_path / "c.db", clock, public_names=(NAME,), trusted_proxies=trusted_networks(PROXIES))
    yield made
    made.store.close()


def through(console: Console, client: str, **headers: str) -> Browser:
    return console.browser(address="10.0.0.1", headers={**OUTSIDE, **HTTPS, "X-Forwarded-For": client, **headers})


def seen(peer: str | None, *headers: tuple[str, str], site: Site = SITE) -> tuple[str | None, str]:
    raw = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers]
    client = (peer, 5) if peer is not None else None
    scope = seen_through({"type": "http", "scheme": "http", "client": client, "headers": raw}, site)
    return scope["client"][0] if scope["client"] else None, scope["scheme"]


@for_every_row(
    [
        ("10.0.0.1", ["198.51.100.7"], "198.51.100.7"),
        ("10.0.0.1", ["1.1.1.1, 198.51.100.7"], "198.51.100.7"),  # what the client claimed comes first
        ("10.0.0.1", ["1.1.1.1, 198.51.100.7, 10.9.4.4"], "198.51.100.7"),
        ("10.0.0.1", ["1.1.1.1", "198.51.100.7"], "198.51.100.7"),  # the proxy added a line of its own
        ("10.0.0.1", ["10.0.0.1, 198.51.100.7"], "198.51.100.7"),  # a client that claims to be the proxy
        ("10.0.0.1", ["10.9.0.5, 10.9.0.6"], "10.9.0.5"),  # nobody but proxies: whoever came first
        ("10.0.0.1", ["198.51.100.7:4711"], "198.51.100.7"),
        ("10.0.0.1", ["[2001:db8::7]:4711"], "2001:db8::7"),
        ("10.0.0.1", ["2001:db8::7"], "2001:db8::7"),
        ("::ffff:10.0.0.1", ["::ffff:198.51.100.7"], "198.51.100.7"),  # a server that listens on both
        ("fd00::1", ["198.51.100.7"], "198.51.100.7"),
        ("10.0.0.1", [], "10.0.0.1"),
        ("10.0.0.1", [""], "10.0.0.1"),
        ("10.0.0.1", ["unknown"], "10.0.0.1"),
        ("10.0.0.1", ["198.51.100.7, unknown"], "10.0.0.1"),
        ("10.0.0.1", ["198.51.100.7, , 10.9.4.4"], "10.0.0.1"),
        ("10.0.0.1", ["rubbish, 198.51.100.7"], "198.51.100.7"),  # what is left of it is the client's business
        ("10.0.0.1", ["198.51.100.7/24"], "10.0.0.1"),
        ("10.0.0.1", ["198.51.100.999"], "10.0.0.1"),
        ("10.0.0.1", ["198.51.100.7:x"], "10.0.0.1"),
        ("10.0.0.1", ["[2001:db8::7"], "10.0.0.1"),
        ("10.0.0.1", ["\xff\xfe"], "10.0.0.1"),
        ("10.0.0.2", ["198.51.100.7"], "10.0.0.2"),  # not one of the proxies
        ("198.51.100.9", ["10.0.0.1"], "198.51.100.9"),
        ("unknown", ["198.51.100.7"], "unknown"),
        (None, ["198.51.100.7"], None),
    ]
)
def test_the_client_is_the_first_from_the_right_who_is_no_trusted_proxy(
    peer: str | None, lines: list[str], client: str | None
) -> None:
    assert seen(peer, *(("X-Forwarded-For", line) for line in lines))[0] == client


@for_every_row(
    [
        ("10.0.0.1", ["https"], "https"),
        ("10.0.0.1", ["HTTPS"], "https"),
        ("10.0.0.1", ["https, https"], "https"),
        ("10.0.0.1", ["http"], "http"),
        ("10.0.0.1", ["https, http"], "http"),  # a part of the way is readable
        ("10.0.0.1", ["http", "https"], "http"),
        ("10.0.0.1", ["rubbish"], "http"),
        ("10.0.0.1", [""], "http"),
        ("10.0.0.1", [], "http"),
        ("10.0.0.2", ["https"], "http"),
    ]
)
def test_the_way_is_encrypted_if_a_trusted_proxy_says_so(peer: str, lines: list[str], scheme: str) -> None:
    assert seen(peer, *(("X-Forwarded-Proto", line) for line in lines))[1] == scheme


def test_other_headers_of_proxies_mean_nothing() -> None:
    claims = [("Forwarded", "for=1.1.1.1;proto=https"), ("X-Real-IP", "1.1.1.1"), ("X-Forwarded-Host", "evil.example")]
    assert seen("10.0.0.1", *claims) == ("10.0.0.1", "http")


def test_a_web_socket_is_seen_the_same_way() -> None:
    headers = [(b"x-forwarded-for", b"198.51.100.7"), (b"x-forwarded-proto", b"https")]
    scope = seen_through({"type": "websocket", "scheme": "ws", "client": ("10.0.0.1", 5), "headers": headers}, SITE)
    assert (scope["client"][0], scope["scheme"]) == ("198.51.100.7", "wss")


@pytest.mark.parametrize("wrong", ["", "example.org", "10.0.0.0/33", "10.0.0.1/8", "0.0.0.0/0", "::/0", "10.0.0.1,"])
def test_what_is_no_proxy_is_refused(wrong: str) -> None:
    with pytest.raises(UsageError) as caught:
        trusted_networks(["10.0.0.1", wrong])
    assert caught.value.field == "--trusted-proxy"


@pytest.mark.parametrize(
    "wrong", ["", "http://a.example", "https://a.example/", "https://", "a.example/x", "u@a.example"]
)
def test_what_is_no_public_name_is_refused(wrong: str) -> None:
    with pytest.raises(UsageError) as caught:
        ConsoleSettings(public_names=("https://b.example:8443", wrong)).site(8080)
    assert caught.value.field == "--public-name"


def test_addresses_and_networks_are_taken() -> None:
    assert trusted_networks(PROXIES) == tuple(map(ip_network, PROXIES))


# -- through the door --------------------------------------------------------------------------------
def test_an_address_that_a_stranger_claims_is_not_believed(console: Console, behind: Console) -> None:
    for server, peer in ((console, "10.0.0.1"), (behind, "198.51.100.9")):
        server.account("ann")
        stranger = server.browser(address=peer)
        answers = [stranger.log_in("ann", "wrong one", X_Forwarded_For=f"10.1.1.{n}").status_code for n in range(6)]
        assert answers == [401] * 5 + [429]
        assert {entry.address for entry in server.store.audit.page().items} == {peer}


def test_behind_a_trusted_proxy_everybody_has_an_address_of_their_own(behind: Console) -> None:
    behind.account("ann")
    assert through(behind, "198.51.100.7").log_in("ann").status_code == 200
    guesser = through(behind, "203.0.113.5")
    assert [guesser.log_in("ann", "wrong one").status_code for _ in range(6)] == [401] * 5 + [429]
    assert through(behind, "198.51.100.7").log_in("ann").status_code == 200
    found = [entry.address for entry in behind.store.audit.page().items]
    assert found == ["198.51.100.7"] + ["203.0.113.5"] * 5 + ["198.51.100.7"]


def test_where_a_proxy_ends_tls_the_cookie_is_secure_and_the_browser_told_to_stay_with_it(behind: Console) -> None:
    behind.account("ann")
    browser = through(behind, "198.51.100.7")
    answer = browser.log_in("ann")
    assert answer.headers["set-cookie"].startswith("__Host-oarsman-8080=")
    assert "; Secure" in answer.headers["set-cookie"]
    assert answer.headers["strict-transport-security"] == "max-age=31536000"
    assert browser.me().json()["name"] == "ann"
    assert browser.ask("DELETE", "/api/v1/session").headers["set-cookie"].startswith('__Host-oarsman-8080=""')


def test_the_same_server_without_tls_on_this_machine_has_a_cookie_of_its_own(behind: Console) -> None:
    behind.account("ann")
    here = behind.browser()
    answer = here.log_in("ann")
    assert answer.headers["set-cookie"].startswith("oarsman-8080=")
    assert "; Secure" not in answer.headers["set-cookie"]
    assert "strict-transport-security" not in answer.headers
    assert here.me().status_code == 200
    secret = here.cookies["oarsman-8080"]
    planted = through(
        behind, "198.51.100.7"
    )  # without TLS anybody could have set a cookie: it counts for nothing there
    planted.cookies = {"oarsman-8080": secret}
    assert planted.me().status_code == 401
    planted.cookies = {"__Host-oarsman-8080": secret, "oarsman-8080": "other"}
    assert planted.me().status_code == 200
    assert here.ask("POST", "/api/v1/tokens", {}).status_code == 201


def test_a_stranger_who_claims_to_come_by_tls_gets_the_plain_cookie(behind: Console) -> None:
    behind.account("ann")
    answer = behind.browser(address="198.51.100.9").log_in("ann", X_Forwarded_Proto="https")
    assert answer.headers["set-cookie"].startswith("oarsman-8080=")
    assert "strict-transport-security" not in answer.headers


def test_behind_tls_a_page_without_it_is_foreign(behind: Console) -> None:
    behind.account("ann")
    browser = through(behind, "198.51.100.7")
    assert browser.log_in("ann", Origin=f"http://{NAME}").status_code == 403
    assert browser.log_in("ann").status_code == 200
    cookie = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
    for origin, own in ((f"https://{NAME}", True), (f"http://{NAME}", False), ("https://evil.example", False)):
        sent = {"host": NAME, "cookie": cookie, "origin": origin, "x-forwarded-proto": "https"}
        raw = [(name.encode(), value.encode()) for name, value in sent.items()]
        scope = {"type": "websocket", "scheme": "ws", "path": "/", "headers": raw, "client": ("10.0.0.1", 1)}
        connection = HTTPConnection(seen_through(scope, behind.site))
        if own:
            assert behind.gate.caller(connection).identity.name == "ann"
        else:
            with pytest.raises(ForbiddenError):
                behind.gate.caller(connection)


def test_a_public_name_that_begins_with_https_is_reached_by_tls_whoever_speaks_it(tmp_path: Path, clock: Clock) -> None:
    console = Console(tmp_path / "c.db", clock, public_names=(f"https://{NAME}", "other.example"))
    console.account("ann")
    answer = console.browser(headers=OUTSIDE).log_in("ann", PASSWORD)
    assert answer.headers["set-cookie"].startswith("__Host-oarsman-8080=")
    assert answer.headers["strict-transport-security"] == "max-age=31536000"
    assert console.browser(headers={**OUTSIDE, "Origin": f"http://{NAME}"}).log_in("ann").status_code == 403
    plain = {**OWN, "Host": "other.example", "Origin": "http://other.example"}
    assert console.browser(headers=plain).log_in("ann").headers["set-cookie"].startswith("oarsman-8080=")
    assert console.site.address == f"https://{NAME}"
    console.store.close()


@for_every_row(
    [
        ({"port": 443, "tls": True}, "localhost", True),
        ({"port": 8080, "tls": True}, "127.0.0.1:8080", False),  # it would count for every port of the host
        ({"port": 8080, "public_names": ("https://a.example:8443",)}, "a.example:8443", False),
        ({"port": 8080, "public_names": ("https://a.example",)}, "a.example", True),
        ({"port": 8080, "public_names": ("https://a.example",)}, "a.example:443", True),
        ({"port": 80}, "localhost", False),
    ]
)
def test_browsers_are_told_to_stay_with_tls_where_the_name_is_for_it_alone(
    site: dict[str, object], host: str, told: bool
) -> None:
    assert Site(**site).stays_encrypted(host, encrypted=Site(**site).is_encrypted("http", host)) is told  # type: ignore[arg-type]


# -- what is said at the start -----------------------------------------------------------------------
def test_without_tls_the_start_says_what_that_means_unless_a_proxy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oarsman.service.others.Others.refusal", lambda _: None)  # it says more where it is root's
    open_to_all = ConsoleSettings(host="0.0.0.0", insecure=True)
    assert refusal(open_to_all, accounts=1) is None
    (said,) = remarks(open_to_all)
    assert "--trusted-proxy" in said
    for quiet in (
        ConsoleSettings(),
        ConsoleSettings(host="0.0.0.0", cert=Path("cert.pem")),
        ConsoleSettings(host="0.0.0.0", insecure=True, trusted_proxies=("10.0.0.1",)),
    ):
        assert remarks(quiet) == []


def test_the_start_says_where_accounts_can_run_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oarsman.service.others.Others.refusal", lambda _: "why")
    assert remarks(ConsoleSettings(host="0.0.0.0", cert=Path("cert.pem"))) == ["accounts cannot run jobs here: why"]
    assert remarks(ConsoleSettings()) == []  # the owner of the machine alone


def test_a_claimed_prefix_is_put_in_front_of_nothing() -> None:
    """The framework of the pages would redirect to wherever it leads."""
    headers = [(b"host", b"127.0.0.1:8080"), (b"x-forwarded-prefix", b"//evil.example"), (b"x-other", b"kept")]
    for client in ("10.0.0.1", "198.51.100.1"):
        scope = {"type": "http", "path": "/jobs", "client": (client, 1), "headers": headers}
        assert seen_through(scope, SITE)["headers"] == [headers[0], headers[2]]
