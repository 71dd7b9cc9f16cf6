"""Doctor, the check of hosts and the trust between them in the browser, in front of real SSH hosts."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
import yaml
from playwright.sync_api import Page, expect
from ssh_hosts import Rack

from tests.console.api.running import Served, served

from .conftest import Opened, console_store, make_account
from .test_account import logged_in

pytestmark = [pytest.mark.mpi, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def server(shared_rack: Rack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Two hosts that are well, and one that nobody reaches."""
    folder = tmp_path_factory.mktemp("checked")
    inventory = folder / "hosts.yaml"
    first, second, *_, last = shared_rack
    hosts = [{"name": host.name, "slots": 2} for host in (first, second, last)]
    inventory.write_text(yaml.safe_dump({"sshConfig": str(shared_rack.ssh_config), "hosts": hosts}))
    here = {"HOME": str(shared_rack.home), "OARSMAN_ON": "ssh", "OARSMAN_HOSTS": str(inventory)}
    with last.faults.closed_port(), served(folder / "state", **here) as found:
        yield found


def test_the_hosts_are_checked_with_findings_as_they_come_and_what_to_do(server: Served, opened: Opened) -> None:
    page = opened("/hosts")
    page.get_by_role("link", name="Checks").click()
    doctor = page.get_by_role("region", name="doctor")
    doctor.get_by_role("button", name="Examine").click()
    expect(doctor.get_by_text("Jobs can run.")).to_be_visible()
    expect(doctor).to_contain_text("2 of 3 can be used")

    check = page.get_by_role("region", name="hosts check")
    check.get_by_role("checkbox", name="Give hosts that fail no jobs").click()
    check.get_by_role("button", name="Check", exact=True).click()
    expect(check.get_by_text("asking the hosts").or_(check.get_by_text("trying the ways"))).to_be_visible()
    expect(check.get_by_role("button", name="Check", exact=True)).to_be_disabled()
    expect(check.get_by_text(re.compile(r"^Checked .*; failures: 1, warnings: \d+$"))).to_be_visible(timeout=200_000)
    expect(check).to_contain_text("nothing listens on port 22")
    expect(check).to_contain_text("start sshd there, or correct the port")
    expect(check.get_by_text("These get no jobs until they pass: node4")).to_be_visible()
    with console_store(server) as store:
        assert ("check hosts", "all") in [
            (one.what, one.about) for one in store.audit.page(limit=20, cursor=None).items
        ]


def test_the_page_is_whole_when_it_comes_whatever_happens_to_its_connection(server: Served) -> None:
    names = ("doctor", "hosts check", "hosts trust")
    with server.client() as client:
        pages = [client.get("/checks").text for _ in range(5)]
    assert [name for page in pages for name in names if f'aria-label":"{name}"' not in page] == []


def test_trust_is_shown_before_it_is_set_up_and_undone(shared_rack: Rack, server: Served, opened: Opened) -> None:
    first, *_ = shared_rack
    before = ssh_files(shared_rack)
    page = opened("/checks")
    trust = page.get_by_role("region", name="hosts trust")
    expect(trust).to_contain_text("oarsman hosts trust --hosts ")
    trust.get_by_role("button", name="Show what would be changed").click()
    change = trust.get_by_role("button", name="Change this")
    expect(change).to_be_visible()
    expect(trust).to_contain_text(re.compile(rf"{first.name}\s*~/\.ssh/authorized_keys\s*\d+ lines are added"))
    expect(trust).to_contain_text("nothing listens on port 22")
    assert ssh_files(shared_rack) == before
    change.click()
    expect(trust.get_by_text(re.compile(r"^\d of 9 logins work$"))).to_be_visible()
    assert ssh_files(shared_rack) != before
    trust.get_by_role("button", name="Show what undoing removes").click()
    trust.get_by_role("button", name="Remove this").click()
    expect(trust.get_by_text("Done:")).to_be_visible()
    assert ssh_files(shared_rack) == before


@pytest.mark.parametrize(("role", "sees"), [("viewer", 0), ("user", 0), ("admin", 2)])
def test_nobody_but_the_owner_of_the_machine_sets_up_trust_and_only_admins_check(
    server: Served, opened: Opened, role: str, sees: int
) -> None:
    make_account(server, f"some-{role}", role)
    page: Page = logged_in(server, opened(None), f"some-{role}", "correct horse", to="/checks")
    if sees:
        expect(page.get_by_text("Only the owner of this machine sets up logins")).to_be_visible()
        expect(page.get_by_role("button", name="Show what would be changed")).to_have_count(0)
    else:
        expect(page.get_by_text("This page is for admins.")).to_be_visible()


def ssh_files(rack: Rack) -> dict[str, str]:
    """What hosts that take part have for ssh."""
    files = [
        (host.name, host.path(f"/home/rower/.ssh/{name}")) for host in rack for name in ("authorized_keys", "config")
    ]
    return {f"{name} {file.name}": file.read_text() if file.exists() else "" for name, file in files}
