"""The cluster is a cluster: pods on both nodes that find each other, services, names, logs and commands in pods."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from cluster.cluster import Cluster
from cluster.kubectl import until
from cluster.pods import headless, pod, service, sleeping


@pytest.fixture
def peers(cluster: Cluster, namespace: str) -> str:
    """A pod on each node, one and two, behind a headless service."""
    image = cluster.images["busy"]
    nodes = [{"nodeName": node["metadata"]["name"]} for node in _nodes(cluster)[:2]]
    cluster.apply(
        headless(), sleeping("one", image, **nodes[0]), sleeping("two", image, **nodes[1]), namespace=namespace
    )
    cluster.wait_for_pods(namespace, "one", "two")
    return namespace


def _nodes(cluster: Cluster) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = cluster.get("nodes")["items"]
    return found


def _address(cluster: Cluster, namespace: str, name: str) -> str:
    return str(cluster.get("pod", name, namespace)["status"]["podIP"])


def _known(cluster: Cluster, namespace: str, asking: str, name: str) -> bool:
    said = cluster.run_in(namespace, asking, "sh", "-c", f"getent hosts {name} >/dev/null && echo yes || echo no")
    return {"yes\n": True, "no\n": False}[said]


def test_every_node_is_ready(cluster: Cluster) -> None:
    cluster.kubectl("wait", "--for=condition=Ready", "node", "--all", "--timeout=180s")  # again
    conditions = [each for node in _nodes(cluster) for each in node["status"]["conditions"] if each["type"] == "Ready"]
    assert [each["status"] for each in conditions] == ["True", "True"]


def test_pods_on_two_nodes_reach_each_other_by_name(cluster: Cluster, peers: str) -> None:
    assert len({cluster.get("pod", name, peers)["spec"]["nodeName"] for name in ("one", "two")}) == 2
    server = "import socket; s = socket.create_server(('', 7000)); s.accept()[0].sendall(socket.gethostname().encode())"
    cluster.run_in(peers, "two", "sh", "-c", f'python3 -c "{server}" >/dev/null 2>&1 &')
    client = """
import socket, time
while True:
    try:
        print(socket.create_connection(("two.peers", 7000)).recv(99).decode()); break
    except ConnectionRefusedError:
        time.sleep(0.05)
"""
    assert cluster.run_in(peers, "one", "python3", "-c", client).strip() == "two"


def test_dns_knows_pods_forward_and_backward(cluster: Cluster, peers: str) -> None:
    address = _address(cluster, peers, "two")
    full = f"two.peers.{peers}.svc.cluster.local"
    for name in (full, f"two.peers.{peers}.svc", f"two.peers.{peers}", "two.peers"):
        assert cluster.run_in(peers, "one", "getent", "hosts", name).split() == [address, full]
    assert cluster.run_in(peers, "one", "getent", "hosts", address).split() == [address, full]


def test_dns_lists_every_pod_of_a_headless_service(cluster: Cluster, peers: str) -> None:
    found = {line.split()[0] for line in cluster.run_in(peers, "one", "getent", "ahostsv4", "peers").splitlines()}
    assert found == {_address(cluster, peers, name) for name in ("one", "two")}


def test_dns_lists_more_addresses_than_one_packet_holds(cluster: Cluster, peers: str) -> None:
    many = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "many"}, "spec": {"clusterIP": "None"}}
    addresses = {f"192.0.2.{number}" for number in range(1, 101)}
    subset = {"addresses": [{"ip": address} for address in sorted(addresses)], "ports": [{"port": 1}]}
    endpoints = {"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "many"}, "subsets": [subset]}
    cluster.apply(many, endpoints, namespace=peers)

    def found() -> set[str]:
        said = cluster.run_in(peers, "one", "getent", "ahostsv4", "many", check=False)
        return {line.split()[0] for line in said.splitlines()}

    until(lambda: found() == addresses, lambda: f"all are listed: {found()}")


def test_dns_does_not_know_a_pod_that_is_gone(cluster: Cluster, peers: str) -> None:
    cluster.kubectl(f"--namespace={peers}", "delete", "pod", "two", "--force", "--grace-period=0")
    until(lambda: not _known(cluster, peers, "one", "two.peers"), "the name goes")


@pytest.mark.parametrize("published", [True, False])
def test_dns_knows_a_pod_that_is_not_ready_if_the_service_says_so(
    cluster: Cluster, namespace: str, published: bool
) -> None:
    never = {"readinessProbe": {"exec": {"command": ["false"]}}}
    image = cluster.images["busy"]
    cluster.apply(
        headless(publishNotReadyAddresses=published),
        sleeping("waiting", image, container=never),
        headless("ready"),
        sleeping("asking", image, service="ready"),
        namespace=namespace,
    )
    cluster.wait_for_pods(namespace, "asking")
    cluster.wait_for_pods(namespace, "waiting", phase="Running")
    if published:
        until(lambda: _known(cluster, namespace, "asking", "waiting.peers"), "the name comes")
    else:
        until(lambda: _listed_as_not_ready(cluster, namespace), "the endpoints are made")
        assert not _known(cluster, namespace, "asking", "waiting.peers")


def _listed_as_not_ready(cluster: Cluster, namespace: str) -> bool:
    subsets = cluster.get("endpoints", "peers", namespace).get("subsets", ())
    return any(subset.get("notReadyAddresses") for subset in subsets)


def test_dns_says_that_other_names_do_not_exist(cluster: Cluster, peers: str) -> None:
    asked = (
        "import socket\ntry: socket.getaddrinfo('example.org', 80)\nexcept socket.gaierror as said: print(said.errno)"
    )
    assert int(cluster.run_in(peers, "one", "python3", "-c", asked)) == -2  # EAI_NONAME


def test_a_service_is_reached_at_its_cluster_address(cluster: Cluster, namespace: str) -> None:
    image = cluster.images["busy"]
    nodes = [{"nodeName": node["metadata"]["name"]} for node in _nodes(cluster)[:2]]
    cluster.apply(
        headless(),
        service("web", "server", 8000),
        pod("server", image, "python3", "-m", "http.server", **nodes[0]),
        sleeping("near", image, **nodes[0]),
        sleeping("far", image, **nodes[1]),
        namespace=namespace,
    )
    cluster.wait_for_pods(namespace, "server", "near", "far")
    ask = """
import time, urllib.request
while True:
    try:
        print(urllib.request.urlopen("http://web", timeout=5).status); break
    except OSError:
        time.sleep(0.1)
"""
    for client in ("near", "far", "server"):  # the last asks itself, through the service
        assert cluster.run_in(namespace, client, "python3", "-c", ask).strip() == "200"


def test_a_pod_reaches_the_api_server_with_its_service_account(cluster: Cluster, peers: str) -> None:
    said = cluster.run_in(peers, "one", "sh", "-c", "kubectl auth can-i create pods; kubectl version", check=False)
    assert said.startswith("no\n")
    assert "Server Version" in said


def test_logs_and_exit_codes_are_told(cluster: Cluster, namespace: str) -> None:
    cluster.apply(pod("speaker", cluster.images["busy"], "sh", "-c", "echo hello; exit 3"), namespace=namespace)
    cluster.wait_for_pods(namespace, "speaker", phase="Failed")
    assert cluster.kubectl(f"--namespace={namespace}", "logs", "speaker").stdout == "hello\n"
    status = cluster.get("pod", "speaker", namespace)["status"]["containerStatuses"][0]
    assert status["state"]["terminated"]["exitCode"] == 3


def test_the_operator_image_holds_the_source_and_what_it_needs(cluster: Cluster, namespace: str) -> None:
    script = "import os, oarsman, aiohttp, pydantic, uvloop; print(os.getuid(), os.path.dirname(oarsman.__file__))"
    cluster.apply(pod("operator", cluster.images["operator"], "python3", "-c", script), namespace=namespace)
    cluster.wait_for_pods(namespace, "operator", phase="Succeeded")
    said = cluster.kubectl(f"--namespace={namespace}", "logs", "operator").stdout.split()
    assert said == ["65532", "/opt/oarsman/src/oarsman"]


@pytest.fixture
def things(cluster: Cluster) -> Iterator[str]:
    """A kind of custom resource, gone again after the test."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": "Thing", "plural": "things", "singular": "thing"}
    cluster.apply(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "things.test.oarsman"},
            "spec": {"group": "test.oarsman", "scope": "Namespaced", "names": names, "versions": [version]},
        }
    )
    cluster.kubectl("wait", "--for=condition=Established", "crd/things.test.oarsman", "--timeout=180s")
    yield "things"
    cluster.kubectl("delete", "crd", "things.test.oarsman", "--timeout=180s")


def test_custom_resources_are_served(cluster: Cluster, namespace: str, things: str) -> None:
    named = {"name": "it", "labels": {"a": "b"}}
    cluster.apply({"apiVersion": "test.oarsman/v1", "kind": "Thing", "metadata": named, "size": 1}, namespace=namespace)
    assert cluster.get(things, "it", namespace)["size"] == 1
