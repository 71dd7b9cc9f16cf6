"""The console in the chart: what is made for it, what it may not do, and values that are refused."""

from __future__ import annotations

import re

import pytest
from for_every import for_every

from deploy.helm import CHART, CLUSTER_WIDE, Object, Values, helm, of_kind, refusal, rendered, walk
from oarsman.cli.serve import serve_verb as serve

TLS: Values = {"enabled": True, "tls": {"secretName": "certificate"}}
DIGEST = f"sha256:{'0123456789abcdef' * 4}"
PLAIN: Values = {"enabled": True, "insecure": True}
COMBINATIONS: dict[str, Values] = {
    "tls": {"console": TLS},
    "plain": {"console": PLAIN},
    "reviews tokens": {"console": {**TLS, "tokenReview": True}},
    "an ingress": {
        "console": {
            **PLAIN,
            "ingress": {
                "enabled": True,
                "host": "jobs.example.org",
                "className": "nginx",
                "tlsSecretName": "outside",
                "annotations": {"note": "text"},
            },
        }
    },
    "a claim": {"console": {**TLS, "persistence": {"enabled": True, "storageClass": "fast", "size": "2Gi"}}},
    "a claim that is there": {"console": {**TLS, "persistence": {"enabled": True, "existingClaim": "mine"}}},
    "namespaces": {"console": {**TLS, "namespaces": ["team-a", "team-b"]}},
    "of a team": {"console": TLS, "watchNamespaces": ["team-a"], "namespace": {"name": "default"}},
    "placed with care": {
        "console": {
            **TLS,
            "nodeSelector": {"role": "web"},
            "tolerations": [{"operator": "Exists"}],
            "affinity": {"nodeAffinity": {}},
            "image": "registry.example/console:1",
            "publicNames": ["a.example"],
            "extraArgs": ["--verbose"],
            "port": 9000,
            "service": {"type": "LoadBalancer", "annotations": {"note": "text"}},
        },
        "podLabels": {"team": "hpc"},
        "image": {"pullSecrets": [{"name": "key"}]},
        "priorityClassName": "high",
    },
}


def of_console(objects: list[Object]) -> list[Object]:
    return [found for found in objects if found["metadata"]["name"].endswith("-console")]


def pod(objects: list[Object]) -> Object:
    (found,) = of_kind(of_console(objects), "Deployment")
    return dict(found["spec"]["template"]["spec"])


def arguments(objects: list[Object]) -> list[str]:
    return list(pod(objects)["containers"][0]["args"])


@for_every(COMBINATIONS, ["v1.16.0", "v1.20.2", "v1.34.1"])
def test_what_is_rendered_is_well_formed(name: str, kubernetes: str) -> None:
    values = COMBINATIONS[name]
    found = of_console(rendered(values, "--kube-version", kubernetes))
    assert {"ServiceAccount", "Service", "Deployment"} <= {one["kind"] for one in found}
    for one in found:
        assert bool(one["metadata"].get("namespace")) == (one["kind"] not in CLUSTER_WIDE)
        assert re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", one["metadata"]["name"])
        assert [path for path, value in walk(one) if value is None] == []


@for_every(COMBINATIONS)
def test_helm_lint_has_nothing_to_say(name: str) -> None:
    values = COMBINATIONS[name]
    done = helm("lint", "--strict", str(CHART), "--values", "-", values=values)
    assert done.returncode == 0, done.stdout + done.stderr


@for_every(COMBINATIONS)
def test_the_command_knows_every_argument(name: str) -> None:
    values = COMBINATIONS[name]
    first, *others = arguments(rendered(values))
    known = {name for option in serve.params for name in option.opts} | {"--on", "--namespace"}
    assert first == "serve"
    assert {other.partition("=")[0] for other in others} <= known


def test_by_default_there_is_none() -> None:
    assert of_console(rendered()) == []


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"console": {"enabled": True}}, "console.enabled needs console.tls.secretName"),
        ({"console": {**TLS, "insecure": True}}, "contradict each other"),
        ({"console": {**PLAIN, "ingress": {"enabled": True}}}, "needs console.ingress.host"),
        ({"console": {**PLAIN, "ingress": {"enabled": True, "host": "a"}}}, "needs console.ingress.tlsSecretName"),
        ({"console": {**TLS, "ingress": {"enabled": True, "host": "a"}}}, "needs console.ingress.tlsSecretName"),
        ({"console": {**PLAIN, "ingress": {"tlsSecretName": "b", "insecure": True}}}, "contradict each other"),
        ({"console": {**TLS, "tokenReview": True}, "rbac": {"create": False}}, "cluster-wide role"),
        (
            {"console": {**TLS, "tokenReview": True}, "watchNamespaces": ["default"], "namespace": {"name": "default"}},
            "cluster-wide role",
        ),
        ({"console": {**TLS, "replicas": 2}}, "replicas"),
        ({"console": {**TLS, "port": 80}}, "1024"),
    ],
)
def test_what_cannot_be_meant_is_refused(values: Values, why: str) -> None:
    assert why in refusal(values)


@pytest.mark.parametrize(("reviews", "granted"), [(False, []), (True, [["create", "tokenreviews"]])])
def test_it_has_no_rights_but_that_to_ask_whose_a_token_is(reviews: bool, granted: list[list[str]]) -> None:
    objects = of_console(rendered({"console": {**TLS, "tokenReview": reviews}}))
    rules = [rule for role in of_kind(objects, "Role", "ClusterRole") for rule in role["rules"]]
    assert [[*rule["verbs"], *rule["resources"]] for rule in rules] == granted
    (account,) = of_kind(objects, "ServiceAccount")
    assert account["automountServiceAccountToken"] is False
    inside = pod(objects)
    assert inside["automountServiceAccountToken"] is False
    (projected,) = [volume["projected"]["sources"] for volume in inside["volumes"] if "projected" in volume]
    assert any("serviceAccountToken" in source for source in projected) == reviews


def test_its_pod_satisfies_the_restricted_profile() -> None:
    inside = pod(rendered({"console": TLS}))
    (container,) = inside["containers"]
    assert inside["securityContext"]["runAsNonRoot"]
    assert inside["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert not container["securityContext"]["allowPrivilegeEscalation"]
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}


def test_it_speaks_tls_unless_told_not_to_and_is_probed_the_same_way() -> None:
    for values, scheme, words in (
        (TLS, "HTTPS", {"--tls-cert=/tls/tls.crt", "--tls-key=/tls/tls.key"}),
        (PLAIN, "HTTP", {"--insecure"}),
    ):
        objects = rendered({"console": values})
        (container,) = pod(objects)["containers"]
        for probe in ("livenessProbe", "readinessProbe"):
            assert container[probe]["httpGet"] == {"path": "/healthz", "port": "web", "scheme": scheme}
        assert words == {word for word in arguments(objects) if word.startswith(("--tls", "--insecure"))}


def test_it_answers_to_the_names_that_lead_to_it() -> None:
    for ingress, shown in (
        ({"tlsSecretName": "b"}, "https://jobs.example.org"),
        ({"insecure": True}, "jobs.example.org"),
    ):
        outside = {"enabled": True, "host": "jobs.example.org", **ingress}
        values = {**PLAIN, "ingress": outside, "publicNames": ["a.example"]}
        names = [word.partition("=")[2] for word in arguments(rendered({"console": values})) if "public" in word]
        assert names == [
            "oarsman-console",
            "oarsman-console.mpi-operator",
            "oarsman-console.mpi-operator.svc",
            shown,
            "a.example",
        ]


def test_the_proxies_that_it_believes_are_named() -> None:
    words = arguments(rendered({"console": {**PLAIN, "trustedProxies": ["10.1.0.0/16", "192.0.2.7"]}}))
    assert [word for word in words if "proxy" in word] == ["--trusted-proxy=10.1.0.0/16", "--trusted-proxy=192.0.2.7"]
    assert [word for word in arguments(rendered({"console": PLAIN})) if "proxy" in word] == []


def test_neither_service_selects_the_pods_of_the_other() -> None:
    services = of_kind(rendered({"console": TLS}), "Service")
    chosen = [service["spec"]["selector"]["app.kubernetes.io/name"] for service in services]
    assert sorted(chosen) == ["oarsman", "oarsman-console"]


def test_users_are_looked_for_in_the_namespaces_named_or_else_in_the_operators() -> None:
    teams: Values = {"watchNamespaces": ["a", "b"], "namespace": {"name": "default"}, "console": TLS}
    assert "--namespace=a,b" in arguments(rendered(teams))
    assert "--namespace=c" in arguments(rendered({**teams, "console": {**TLS, "namespaces": ["c"]}}))


def test_only_its_port_can_be_reached_and_by_the_peers_named() -> None:
    peers = [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "ingress-nginx"}}}]
    closed = {"consoleFrom": peers, "apiServer": {"cidrs": ["10.0.0.1/32"]}}
    for policy, who in (({}, None), (closed, peers)):
        objects = rendered({"console": {**TLS, "port": 9000}, "networkPolicy": policy})
        (found,) = of_kind(of_console(objects), "NetworkPolicy")
        (rule,) = found["spec"]["ingress"]
        assert (rule["ports"], rule.get("from")) == ([{"protocol": "TCP", "port": 9000}], who)
        assert ("egress" in found["spec"]) == (who is not None)
        (deployment,) = of_kind(of_console(objects), "Deployment")
        assert found["spec"]["podSelector"] == deployment["spec"]["selector"]


@pytest.mark.parametrize("own", ["", f"registry.example/console@{DIGEST}"])
def test_its_image_can_be_pinned_with_the_operators_or_on_its_own(own: str) -> None:
    objects = rendered({"console": {**TLS, "image": own}, "image": {"digest": DIGEST}})
    assert pod(objects)["containers"][0]["image"] == (own or f"oarsman/operator@{DIGEST}")
