"""What the options of `oarsman serve` become; the server itself is tested with the console."""

from __future__ import annotations

from ipaddress import ip_network
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from oarsman.cli.main import cli
from oarsman.console.settings import ConsoleSettings


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[ConsoleSettings]:
    """With what servers would have been started."""
    found: list[ConsoleSettings] = []
    monkeypatch.setenv("OARSMAN_STATE", str(tmp_path))
    monkeypatch.setattr("oarsman.console.server.serve", lambda settings, announce: found.append(settings))
    return found


def serve(*words: str) -> Result:
    return CliRunner().invoke(cli, ["serve", "--on", "local", *words])


def test_proxies_and_names_reach_the_server(started: list[ConsoleSettings]) -> None:
    answer = serve("--trusted-proxy=10.0.0.1", "--trusted-proxy", "fd00::/8", "--public-name", "https://jobs.example")
    assert answer.exit_code == 0, answer.output
    site = started[0].site(8470)
    assert site.trusted_proxies == (ip_network("10.0.0.1"), ip_network("fd00::/8"))
    assert site.address == "https://jobs.example"


@pytest.mark.parametrize(
    ("more", "told"),
    [(["--insecure"], True), (["--insecure", "--trusted-proxy=10.0.0.1"], False), ([], False)],  # refused elsewhere
)
def test_whoever_opens_it_to_others_without_tls_is_told_what_that_means(
    started: list[ConsoleSettings], more: list[str], told: bool
) -> None:
    answer = serve("--host=0.0.0.0", *more)
    assert answer.exit_code == 0, answer.output
    assert ("--insecure without --trusted-proxy" in answer.output) is told
    assert len(started) == 1
