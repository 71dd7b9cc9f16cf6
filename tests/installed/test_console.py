"""The console in the cluster, installed by the chart: everybody acts with their own token, by REST and in Chromium."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from browser.chromium import chromium
from cluster.cluster import Cluster
from cluster.jobs import mpijob
from cluster.kubectl import until
from cluster.people import full_name, person
from cluster.releases import Release
from console.security.test_listening import make_certificate
from playwright.sync_api import Browser, Page, expect

pytestmark = pytest.mark.timeout(900)  # one test waits until a token that is gone is looked at again
PATIENCE = 180_000  # milliseconds; a page of a busy machine
ENDS = 300_000  # a minute until a token is looked at again, and what the API server itself remembers


@dataclass(frozen=True)
class There:
    """The console's address, and a client for each token."""

    release: Release
    address: str

    def ask(self, token: str, method: str, path: str, **given: Any) -> httpx.Response:
        headers = {"Authorization": f"Bearer {token}"}
        return httpx.request(
            method, f"{self.address}/api/v1{path}", headers=headers, timeout=60, verify=False, trust_env=False, **given
        )


@pytest.fixture(scope="module")
def there(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[There]:
    """One installation for all tests here, with TLS from a secret, as the guide says."""
    release = Release(cluster)
    cluster.kubectl("create", "namespace", release.namespace, check=False)
    cert, key = make_certificate(tmp_path_factory.mktemp("tls"), "console")
    release.kubectl("create", "secret", "tls", "console-tls", f"--cert={cert}", f"--key={key}")
    try:
        console = {"enabled": True, "tls": {"secretName": "console-tls"}, "tokenReview": True}
        said = release.install({"replicaCount": 1, "console": console})
        assert "https://oarsman-console.mpi-operator.svc:8443" in said
        chosen = "app.kubernetes.io/name=oarsman-console"
        (pod,) = cluster.get("pods", namespace=release.namespace, labels=chosen)["items"]
        yield There(release, f"https://{pod['status']['podIP']}:8443")
        print(release.kubectl("logs", pod["metadata"]["name"], check=False))
    finally:
        release.uninstall()
        release.kubectl("delete", "secret", "console-tls")


@dataclass(frozen=True)
class People:
    """Tokens of one with the cluster's role `edit` in a namespace, one with `view`, and one with nothing."""

    namespace: str
    editor: str
    viewer: str
    nobody: str


@pytest.fixture
def people(cluster: Cluster, namespace: str, there: There) -> People:
    found = People(
        namespace,
        person(cluster, namespace, "editor", role="edit"),
        person(cluster, namespace, "viewer", role="view"),
        person(cluster, namespace, "nobody"),
    )
    until(lambda: there.ask(found.viewer, "GET", "/jobs").status_code == 200, "a controller has added our roles")
    return found


def a_job(cluster: Cluster, people: People, name: str, *command: str, workers: int = 1) -> dict[str, Any]:
    document = mpijob(name, cluster.images["openmpi4"], command, workers=workers, policy={"cleanPodPolicy": "Running"})
    document["metadata"]["namespace"] = people.namespace
    return {"document": document}


def test_through_rest_everybody_may_do_what_the_cluster_lets_them_do(
    cluster: Cluster, there: There, people: People
) -> None:
    assert there.ask(people.viewer, "GET", "/me").json()["name"] == full_name(people.namespace, "viewer")
    refused = there.ask(people.viewer, "POST", "/jobs", json=a_job(cluster, people, "hers"))
    assert refused.status_code == 403
    assert 'cannot create resource "mpijobs"' in refused.json()["detail"]

    made = there.ask(people.editor, "POST", "/jobs", json=a_job(cluster, people, "pi"))
    assert made.status_code == 201, made.text
    place = f"/jobs/{people.namespace}/pi"

    def state(token: str) -> str:
        return str(there.ask(token, "GET", place).json()["summary"]["state"])

    until(lambda: state(people.viewer) in ("Succeeded", "Failed"), lambda: there.ask(people.viewer, "GET", place).text)
    assert state(people.editor) == "Succeeded"
    for token in (people.editor, people.viewer):
        lines = there.ask(token, "GET", f"{place}/log").json()["lines"]
        assert any("rank 0 of 1 on pi-worker-0" in line["text"] for line in lines), lines

    assert there.ask(people.viewer, "DELETE", place).status_code == 403
    for path in ("/jobs", place, f"{place}/log", f"{place}/events"):
        assert there.ask(people.nobody, "GET", path).status_code == 403, path
    assert there.ask(people.editor, "GET", "/audit").status_code == 403
    assert there.ask("nonsense", "GET", "/jobs").status_code == 401
    assert there.ask(people.editor, "DELETE", place).status_code == 204


def test_the_console_itself_may_do_nothing(cluster: Cluster, there: There) -> None:
    """What it has is the right to ask whose a token is, because this release gave it that."""
    account = f"--as={full_name(there.release.namespace, 'oarsman-console')}"
    rules = cluster.kubectl("auth", "can-i", "--list", account, f"--namespace={there.release.namespace}").stdout
    granted = {line.split()[0] for line in rules.splitlines()[1:] if not line.startswith((" ", "\t"))}
    reviews = {f"selfsubject{kind}reviews.authorization.k8s.io" for kind in ("access", "rules")}
    if cluster.version >= (1, 28):  # everybody may ask there who he is
        reviews.add("selfsubjectreviews.authentication.k8s.io")
    assert granted == {"tokenreviews.authentication.k8s.io", *reviews}
    assert there.release.kubectl("get", "deployment", "oarsman-console", "-o", "name")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


def come_in(browser: Browser, there: There, token: str, path: str) -> Page:
    page = browser.new_context(
        locale="en-US", viewport={"width": 1280, "height": 720}, ignore_https_errors=True
    ).new_page()
    page.set_default_timeout(PATIENCE)
    page.goto(there.address + path)
    page.wait_for_url("**/login?to=**")
    page.get_by_label("Your token for the cluster").fill(token)
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url(there.address + path)
    return page


def test_in_a_browser_the_editor_has_buttons_the_viewer_has_none_and_who_is_gone_is_shown_out(
    cluster: Cluster, there: There, people: People, browser: Browser
) -> None:
    waiting = a_job(cluster, people, "patient", "sleep", "600", workers=0)
    assert there.ask(people.editor, "POST", "/jobs", json=waiting).status_code == 201
    place = f"/jobs/{people.namespace}/patient"
    until(lambda: there.ask(people.viewer, "GET", place).json()["summary"]["state"] == "Running", "the job runs")

    viewers = come_in(browser, there, people.viewer, place)
    expect(viewers.get_by_text("patient").first).to_be_visible(timeout=PATIENCE)
    expect(viewers.get_by_text("Running").first).to_be_visible(timeout=PATIENCE)
    expect(viewers.get_by_role("button", name="Stop")).to_have_count(0)
    cluster.kubectl(f"--namespace={people.namespace}", "delete", "serviceaccount", "viewer")

    nobodys = come_in(browser, there, people.nobody, "/jobs")
    expect(nobodys.get_by_text("lets this user see jobs in no namespace").first).to_be_visible(timeout=PATIENCE)
    nobodys.goto(there.address + place)
    expect(nobodys.get_by_text("this user may not do that").first).to_be_visible(timeout=PATIENCE)

    editors = come_in(browser, there, people.editor, place)
    editors.get_by_role("button", name="Stop").click()
    editors.get_by_role("dialog").get_by_role("button", name="Stop").click()
    until(lambda: there.ask(people.editor, "GET", place).json()["summary"]["state"] == "Stopped", "the job is stopped")

    viewers.wait_for_url("**/login**", timeout=ENDS)  # by itself: nobody has touched that page
    assert viewers.goto(there.address + "/jobs") is not None
    viewers.wait_for_url("**/login?to=**")
