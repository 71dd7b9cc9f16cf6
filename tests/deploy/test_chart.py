"""What the chart renders, over many combinations of values."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml
from for_every import for_every

from deploy.helm import (
    CHART,
    CLUSTER_WIDE,
    Object,
    Values,
    container,
    helm,
    of_kind,
    only,
    refusal,
    rendered,
    walk,
)
from oarsman import __version__
from oarsman.cli.operator import command as operator

DIGEST = f"sha256:{'0123456789abcdef' * 4}"
TEAMS: Values = {"watchNamespaces": ["team-a", "team-b"], "namespace": {"name": "team-a", "create": False}}

COMBINATIONS: dict[str, Values] = {
    "defaults": {},
    "the seed's values": {
        "image": {"repository": "registry.example/kubeflow-oteam/mpi-operator", "tag": "latest"},
        "namespace": {"create": True, "name": "mpi-operator"},
    },
    "the release's namespace": {"namespace": {"name": ""}},
    "one replica, no leader": {"replicaCount": 1, "leaderElection": {"enabled": False}},
    "scaled to nothing": {"replicaCount": 0},
    "two namespaces": TEAMS,
    "volcano": {"gangScheduling": "volcano"},
    "coscheduling": {"gangScheduling": "scheduler-plugins-scheduler"},
    "volcano in namespaces": {**TEAMS, "gangScheduling": "volcano"},
    "without v1": {"v1": {"enabled": False}},
    "without metrics": {"metrics": {"enabled": False}},
    "metrics without a service": {"metrics": {"service": {"enabled": False}}},
    "open metrics": {"metrics": {"authentication": False}},
    "a pinned image": {"image": {"digest": DIGEST}},
    "no network policy": {"networkPolicy": {"enabled": False}},
    "a closed network": {
        "networkPolicy": {"metricsFrom": [{"podSelector": {}}], "apiServer": {"cidrs": ["10.0.0.1/32", "fd00::1/128"]}}
    },
    "a service monitor": {"metrics": {"serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}}}},
    "a disruption budget": {"podDisruptionBudget": {"enabled": True, "minAvailable": "50%"}},
    "rights made by somebody else": {"rbac": {"create": False}, "serviceAccount": {"create": False, "name": "boss"}},
    "no aggregation": {"rbac": {"aggregate": False}},
    "other names": {"nameOverride": "rows", "fullnameOverride": "mpi-operator"},
    "a private registry": {"image": {"pullSecrets": [{"name": "key"}], "pullPolicy": "Always"}},
    "placed with care": {
        "nodeSelector": {"role": "system"},
        "tolerations": [{"key": "system", "operator": "Exists"}],
        "affinity": {"nodeAffinity": {}},
        "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}],
        "priorityClassName": "system-cluster-critical",
    },
    "more of everything": {
        "extraArgs": ["--verbose"],
        "extraEnv": [{"name": "HTTPS_PROXY", "value": "proxy.example"}],
        "podLabels": {"team": "hpc"},
        "podAnnotations": {"note": "text"},
        "serviceAccount": {"annotations": {"role": "text"}},
        "clusterDomain": "cluster.local",
        "kubeApiQps": 50,
    },
    "OpenShift's users": {"podSecurityContext": {"runAsUser": None, "runAsGroup": None, "fsGroup": None}},
    "no annotations": {"podAnnotations": {"sidecar.istio.io/inject": None}},
    "part of another chart": {"global": {"imageRegistry": "ignored"}},
}
KUBERNETES = ["v1.16.0", "v1.20.2", "v1.25.0", "v1.34.1", "v1.28.3-gke.1", "v1.27.0+k3s1"]


def identity(found: Object) -> tuple[str, str, str]:
    return found["kind"], found["metadata"].get("namespace", ""), found["metadata"]["name"]


@for_every(COMBINATIONS)
def test_helm_lint_has_nothing_to_say(name: str) -> None:
    values = COMBINATIONS[name]
    done = helm("lint", "--strict", str(CHART), "--values", "-", values=values)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "[WARNING]" not in done.stdout


@for_every(COMBINATIONS)
def test_what_is_rendered_is_well_formed(name: str) -> None:
    values = COMBINATIONS[name]
    objects = rendered(values)
    identities = [identity(found) for found in objects]
    assert len(set(identities)) == len(identities)
    for found in objects:
        kind, namespace, name = identity(found)
        assert bool(namespace) == (kind not in CLUSTER_WIDE), identity(found)
        assert re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", name)
        assert found["metadata"]["labels"]["app.kubernetes.io/version"] == __version__
        empty = [path for path, value in walk(found) if value is None]
        assert empty == [], identity(found)
        for group in (found["metadata"].get("labels"), found["metadata"].get("annotations")):
            assert all(isinstance(value, str) for value in (group or {}).values())


@for_every(COMBINATIONS, KUBERNETES)
def test_every_version_of_kubernetes_gets_something(name: str, kubernetes: str) -> None:
    values = COMBINATIONS[name]
    assert only(rendered(values, "--kube-version", kubernetes), "Deployment")


def test_an_older_kubernetes_is_refused() -> None:
    done = helm("template", "oarsman", str(CHART), "--kube-version", "v1.15.9")
    assert done.returncode != 0
    assert "requires kubeVersion: >=1.16.0-0" in done.stderr


@for_every(COMBINATIONS)
def test_a_deployment_is_probed_bounded_and_restricted(name: str) -> None:
    values = COMBINATIONS[name]
    pod = only(rendered(values), "Deployment")["spec"]["template"]["spec"]
    (program,) = pod["containers"]
    ports = {port["name"]: port["containerPort"] for port in program["ports"]}
    assert program["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": "health"}
    assert program["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "health"}
    assert f"--health-port={ports['health']}" in program["args"]
    assert {"cpu", "memory"} <= program["resources"]["requests"].keys()
    assert "memory" in program["resources"]["limits"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert program["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert {"name": "tmp", "mountPath": "/tmp"} in program["volumeMounts"]
    assert {"name": "tmp", "emptyDir": {}} in pod["volumes"]
    assert not {"hostNetwork", "hostPID", "hostIPC"} & pod.keys()


@for_every(COMBINATIONS)
def test_selectors_find_the_pods(name: str) -> None:
    values = COMBINATIONS[name]
    objects = rendered(values)
    deployment = only(objects, "Deployment")
    labels = deployment["spec"]["template"]["metadata"]["labels"].items()
    assert deployment["spec"]["selector"]["matchLabels"].items() <= labels
    for service in of_kind(objects, "Service"):
        assert service["spec"]["selector"].items() <= labels
    for policy in of_kind(objects, "NetworkPolicy"):
        assert policy["spec"]["podSelector"]["matchLabels"].items() <= labels
    for budget in of_kind(objects, "PodDisruptionBudget"):
        assert budget["spec"]["selector"]["matchLabels"].items() <= labels
    for monitor in of_kind(objects, "ServiceMonitor"):
        assert (
            monitor["spec"]["selector"]["matchLabels"].items() <= only(objects, "Service")["metadata"]["labels"].items()
        )


# -- the command line --------------------------------------------------------------------------

ARGUMENTS: list[tuple[str, Values, set[str], set[str]]] = [
    # what is asked for, values, arguments that are there, beginnings that are not
    (
        "defaults",
        {},
        {
            "--lock-namespace=mpi-operator",
            "--leader-elect",
            "--health-port=8080",
            "--monitoring-port=8081",
            f"--kubectl-delivery-image=oarsman/kubectl-delivery:{__version__}",
            "--kube-api-qps=0",
            "--kube-api-burst=0",
            "--threadiness=16",
            "--log-level=info",
        },
        {"--namespace", "--gang-scheduling", "--cluster-domain", "--no-leader-elect", "--no-monitoring-auth"},
    ),
    ("namespaces", TEAMS, {"--namespace=team-a,team-b", "--lock-namespace=team-a"}, set()),
    ("one twice", {**TEAMS, "watchNamespaces": ["team-a", "team-a"]}, {"--namespace=team-a"}, set()),
    ("alone", {"replicaCount": 1, "leaderElection": {"enabled": False}}, {"--no-leader-elect"}, {"--leader-elect"}),
    ("gang", {"gangScheduling": "volcano"}, {"--gang-scheduling=volcano"}, set()),
    ("domain", {"clusterDomain": "cluster.local"}, {"--cluster-domain=cluster.local"}, set()),
    ("no metrics", {"metrics": {"enabled": False}}, {"--monitoring-port=0"}, set()),
    ("open metrics", {"metrics": {"authentication": False}}, {"--no-monitoring-auth"}, set()),
    ("ports", {"health": {"port": 9}, "metrics": {"port": 10}}, {"--health-port=9", "--monitoring-port=10"}, set()),
    ("kubectl", {"kubectlDelivery": {"image": "own/kubectl:1"}}, {"--kubectl-delivery-image=own/kubectl:1"}, set()),
    (
        "large numbers",
        {"kubeApiBurst": 20000000, "kubeApiQps": 5},
        {"--kube-api-qps=5", "--kube-api-burst=20000000"},
        set(),
    ),
    ("log", {"logLevel": "debug", "threadiness": 9}, {"--log-level=debug", "--threadiness=9"}, set()),
    ("more", {"extraArgs": ["--more=1"]}, {"--more=1"}, set()),
]


@pytest.mark.parametrize(
    ("values", "there", "absent"), [row[1:] for row in ARGUMENTS], ids=[row[0] for row in ARGUMENTS]
)
def test_values_become_arguments(values: Values, there: set[str], absent: set[str]) -> None:
    arguments = container(rendered(values))["args"]
    assert arguments[0] == "operator"
    assert all(isinstance(argument, str) for argument in arguments)
    assert there <= set(arguments)
    assert {argument.split("=")[0] for argument in arguments} & absent == set()


@pytest.mark.parametrize(
    ("values", "image"),
    [
        ({}, f"oarsman/operator:{__version__}"),
        ({"image": {"tag": "latest"}}, "oarsman/operator:latest"),
        ({"image": {"repository": "registry.example:5000/a/b", "tag": "1"}}, "registry.example:5000/a/b:1"),
        ({"image": {"tag": "1", "digest": DIGEST}}, f"oarsman/operator@{DIGEST}"),
    ],
)
def test_the_image_is_the_one_asked_for(values: Values, image: str) -> None:
    assert container(rendered(values))["image"] == image


def test_the_operator_knows_every_argument_the_chart_gives() -> None:
    given = {
        argument.split("=")[0] for values in COMBINATIONS.values() for argument in container(rendered(values))["args"]
    }
    known = {flag for option in operator.params for flag in (*option.opts, *option.secondary_opts)}
    assert given - known == {"operator", "--verbose"}  # the second is an example of extraArgs


# -- the network ------------------------------------------------------------------------------

PROMETHEUS = [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}]


def opened(policy: Object) -> list[tuple[int, Any]]:
    """(port, from whom) of each way in; None is everybody."""
    return [(port["port"], rule.get("from")) for rule in policy["spec"]["ingress"] for port in rule["ports"]]


def test_nothing_comes_in_but_to_the_ports_that_are_served() -> None:
    objects = rendered()
    policy = only(objects, "NetworkPolicy")
    assert (policy["spec"]["policyTypes"], "egress" in policy["spec"]) == (["Ingress"], False)
    assert opened(policy) == [(port["containerPort"], None) for port in container(objects)["ports"]]
    assert opened(only(rendered(COMBINATIONS["without metrics"]), "NetworkPolicy")) == [(8080, None)]


def test_metrics_can_be_for_some_peers_and_probes_are_for_all() -> None:
    policy = only(rendered({"networkPolicy": {"metricsFrom": PROMETHEUS}}), "NetworkPolicy")
    assert opened(policy) == [(8080, None), (8081, PROMETHEUS)]


def test_with_the_api_servers_addresses_nothing_else_can_be_reached_but_dns() -> None:
    policy = only(rendered(COMBINATIONS["a closed network"]), "NetworkPolicy")["spec"]
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    api, dns = policy["egress"]
    assert [peer["ipBlock"]["cidr"] for peer in api["to"]] == ["10.0.0.1/32", "fd00::1/128"]
    assert [port["port"] for port in api["ports"]] == [443, 6443]
    assert dns == {"ports": [{"protocol": "UDP", "port": 53}, {"protocol": "TCP", "port": 53}]}


def test_there_can_be_no_policy() -> None:
    assert of_kind(rendered(COMBINATIONS["no network policy"]), "NetworkPolicy") == []


@pytest.mark.parametrize(("authentication", "scheme"), [(True, "https"), (False, None)])
def test_a_service_monitor_shows_a_token_where_one_is_asked_for(authentication: bool, scheme: str | None) -> None:
    values = {"metrics": {"authentication": authentication, "serviceMonitor": {"enabled": True}}}
    (endpoint,) = only(rendered(values), "ServiceMonitor")["spec"]["endpoints"]
    assert endpoint.get("scheme") == scheme
    assert ("bearerTokenFile" in endpoint, "tlsConfig" in endpoint) == (authentication, authentication)


# -- namespaces -------------------------------------------------------------------------------

NAMESPACES: list[tuple[str, Values, str, str, bool]] = [
    # what is asked for, values, the release's namespace, where the operator is, whether the namespace is made
    ("the seed's way", {}, "default", "mpi-operator", True),
    ("Helm made it", {}, "mpi-operator", "mpi-operator", False),
    ("another name", {"namespace": {"name": "hpc"}}, "default", "hpc", True),
    ("it is there", {"namespace": {"create": False}}, "default", "mpi-operator", False),
    ("the release's", {"namespace": {"name": ""}}, "kubeflow", "kubeflow", False),
]


@pytest.mark.parametrize(
    ("values", "release", "operator", "made"), [row[1:] for row in NAMESPACES], ids=[row[0] for row in NAMESPACES]
)
def test_the_operator_goes_into_its_namespace(values: Values, release: str, operator: str, made: bool) -> None:
    objects = rendered(values, namespace=release)
    assert [found["metadata"]["name"] for found in of_kind(objects, "Namespace")] == [operator] * made
    assert {found["metadata"]["namespace"] for found in objects if found["kind"] not in CLUSTER_WIDE} == {operator}
    assert f"--lock-namespace={operator}" in container(objects)["args"]


def test_a_namespace_the_chart_made_outlives_the_release() -> None:
    assert only(rendered(), "Namespace")["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}


@pytest.mark.parametrize("gang", ["", "volcano"])
def test_with_named_namespaces_nothing_is_cluster_wide(gang: str) -> None:
    objects = rendered({**TEAMS, "gangScheduling": gang})
    assert {found["kind"] for found in objects} & CLUSTER_WIDE == set()
    assert {found["metadata"]["namespace"] for found in of_kind(objects, "Role")} == {"team-a", "team-b"}


# -- contradictions, and names ------------------------------------------------------------------

CONTRADICTIONS: list[tuple[Values, str]] = [
    ({"leaderElection": {"enabled": False}}, "Set replicaCount to 1 or leaderElection.enabled to true"),
    ({"watchNamespaces": ["team-a"]}, "cannot create the namespace mpi-operator. Set namespace.name to default"),
    (
        {"metrics": {"enabled": False, "serviceMonitor": {"enabled": True}}},
        "metrics.serviceMonitor.enabled needs metrics.enabled",
    ),
    ({"metrics": {"port": 8080}}, "Choose another metrics.port"),
]


@pytest.mark.parametrize(("values", "message"), CONTRADICTIONS)
def test_contradictions_are_refused_with_the_way_out(values: Values, message: str) -> None:
    assert message in refusal(values)


@pytest.mark.parametrize(
    ("release", "values", "name"),
    [
        ("oarsman", {}, "oarsman"),
        ("my-oarsman", {}, "my-oarsman"),
        ("mpi", {}, "mpi-oarsman"),
        ("mpi", {"fullnameOverride": "mpi-operator"}, "mpi-operator"),
        ("a" * 53, {}, "a" * 48),
    ],
)
def test_objects_are_named_after_the_release(release: str, values: Values, name: str) -> None:
    objects = rendered(values, release=release)
    assert only(objects, "Deployment")["metadata"]["name"] == name
    assert all(len(found["metadata"]["name"]) <= 63 for found in objects)


@pytest.mark.parametrize(
    ("kubernetes", "group"), [("v1.16.0", "policy/v1beta1"), ("v1.20.9", "policy/v1beta1"), ("v1.21.0", "policy/v1")]
)
def test_the_disruption_budget_has_an_api_the_cluster_knows(kubernetes: str, group: str) -> None:
    values = COMBINATIONS["a disruption budget"]
    assert only(rendered(values, "--kube-version", kubernetes), "PodDisruptionBudget")["apiVersion"] == group


def test_before_1_19_seccomp_is_an_annotation() -> None:
    pod: dict[str, Any] = only(rendered({}, "--kube-version", "v1.18.0"), "Deployment")["spec"]["template"]
    assert "seccompProfile" not in pod["spec"]["securityContext"]
    assert pod["metadata"]["annotations"] == {
        "sidecar.istio.io/inject": "false",
        "seccomp.security.alpha.kubernetes.io/pod": "runtime/default",
    }


def test_replicas_prefer_different_nodes() -> None:
    spec = only(rendered(), "Deployment")["spec"]
    assert spec["replicas"] == 2
    (preference,) = spec["template"]["spec"]["affinity"]["podAntiAffinity"].values()
    assert preference[0]["podAffinityTerm"]["topologyKey"] == "kubernetes.io/hostname"


def test_without_a_leader_the_old_operator_ends_before_the_new_one_starts() -> None:
    alone = rendered(COMBINATIONS["one replica, no leader"])
    assert only(alone, "Deployment")["spec"]["strategy"] == {"type": "Recreate"}


def test_the_notes_speak_of_the_definition_and_of_other_operators() -> None:
    """Helm 3.6 shows the notes only when it installs; without a cluster it can still render them as a file."""
    notes = (CHART / "templates" / "NOTES.txt").read_text()
    assert "kubectl apply -f deploy/crd/mpijobs.kubeflow.org.yaml" in notes
    assert "training-operator" in notes


def test_the_chart_has_the_version_of_the_program() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"], chart["kubeVersion"]) == (__version__, __version__, ">=1.16.0-0")
