"""Who may do what: the whole table, and nothing beside it."""

from __future__ import annotations

from typing import Any

import pytest

from deploy.helm import Object, Values, of_kind, only, rendered

Rights = dict[str, set[str]]

OPERATOR: Rights = {
    "kubeflow.org/mpijobs": {"get", "list", "watch", "delete"},
    "kubeflow.org/mpijobs/status": {"update"},
    "kubeflow.org/mpijobs/finalizers": {"update"},
    "pods": {"get", "list", "watch", "create", "delete", "patch"},
    "pods/log": {"get"},
    "services": {"get", "list", "watch", "create", "patch"},
    "configmaps": {"get", "list", "watch", "create", "patch"},
    "secrets": {"get", "create", "patch"},  # by name: what cannot be listed cannot be collected
    "events": {"create", "patch"},
    "batch/jobs": {"get", "list", "watch", "create", "delete"},
    # A job may name its gang scheduler itself.
    "scheduling.volcano.sh/podgroups": {"get", "create", "patch", "delete"},
    "scheduling.x-k8s.io/podgroups": {"get", "create", "patch", "delete"},
    "scheduling.k8s.io/podgroups": {"get", "create", "patch", "delete"},
}
FOR_V1: Rights = {
    "serviceaccounts": {"get", "create"},
    "rbac.authorization.k8s.io/roles": {"get", "create", "patch"},
    "rbac.authorization.k8s.io/rolebindings": {"get", "create", "patch"},
    "pods/exec": {"create"},
}
PRIORITIES: Rights = {"scheduling.k8s.io/priorityclasses": {"list"}}
METRICS_AUTH: Rights = {
    "authentication.k8s.io/tokenreviews": {"create"},
    "authorization.k8s.io/subjectaccessreviews": {"create"},
}
VIEW: Rights = {
    "kubeflow.org/mpijobs": {"get", "list", "watch"},
    "kubeflow.org/mpijobs/status": {"get"},
    "kubeflow.org/mpijobs/scale": {"get"},
}
EDIT: Rights = {
    "kubeflow.org/mpijobs": {"get", "list", "watch", "create", "delete", "deletecollection", "patch", "update"},
    "kubeflow.org/mpijobs/status": {"get"},
    "kubeflow.org/mpijobs/scale": {"get", "patch", "update"},
}
# What a v1 launcher's own role says; whoever grants it must hold it.
V1_LAUNCHER: Rights = {"pods": {"get", "list", "watch"}, "pods/exec": {"create"}}

TEAMS: Values = {"watchNamespaces": ["team-a", "team-b"], "namespace": {"name": "team-a", "create": False}}
OFF: Values = {"v1": {"enabled": False}}
TABLE: list[tuple[str, Values, Rights]] = [
    ("defaults", {}, OPERATOR | FOR_V1),
    ("without v1", OFF, OPERATOR),
    ("volcano", {"gangScheduling": "volcano"}, OPERATOR | FOR_V1 | PRIORITIES),
    ("coscheduling", {"gangScheduling": "other", **OFF}, OPERATOR | PRIORITIES),
    ("namespaces", TEAMS, OPERATOR | FOR_V1),
    ("namespaces, volcano", {**TEAMS, "gangScheduling": "volcano", **OFF}, OPERATOR),
]


def rights(role: Object) -> Rights:
    found: Rights = {}
    for rule in role["rules"]:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                found.setdefault(f"{group}/{resource}".lstrip("/"), set()).update(rule["verbs"])
    return found


def roles_of_the_operator(objects: list[Object]) -> list[Object]:
    return [role for role in of_kind(objects, "ClusterRole", "Role") if role["metadata"]["name"] == "oarsman"]


def binding_of(role: Object, objects: list[Object]) -> Object:
    kind, name, namespace = role["kind"], role["metadata"]["name"], role["metadata"].get("namespace")
    (found,) = [
        binding
        for binding in of_kind(objects, f"{kind}Binding")
        if binding["metadata"].get("namespace") == namespace
        and binding["roleRef"] == {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}
    ]
    return found


@pytest.mark.parametrize(("values", "expected"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_the_operator_has_exactly_these_rights(values: Values, expected: Rights) -> None:
    objects = rendered(values)
    roles = roles_of_the_operator(objects)
    places = values.get("watchNamespaces", [None])
    assert [role["metadata"].get("namespace") for role in roles] == places
    for role in roles:
        assert rights(role) == expected
        assert not any("resourceNames" in rule for rule in role["rules"])
        (subject,) = binding_of(role, objects)["subjects"]
        account = only(objects, "ServiceAccount")["metadata"]
        assert (subject["kind"], subject["name"], subject["namespace"]) == (
            "ServiceAccount",
            account["name"],
            account["namespace"],
        )


@pytest.mark.parametrize("values", [row[1] for row in TABLE], ids=[row[0] for row in TABLE])
def test_nothing_is_granted_by_a_star(values: Values) -> None:
    for role in of_kind(rendered(values), "ClusterRole", "Role"):
        for rule in role["rules"]:
            assert not any("*" in word for words in rule.values() for word in words)


def test_what_launchers_of_v1_get_the_operator_holds() -> None:
    (role,) = roles_of_the_operator(rendered())
    held = rights(role)
    assert all(verbs <= held[resource] for resource, verbs in V1_LAUNCHER.items())


@pytest.mark.parametrize("values", [{}, TEAMS], ids=["everywhere", "namespaces"])
def test_the_lease_is_the_only_one_that_can_be_touched(values: Values) -> None:
    objects = rendered(values)
    (role,) = [role for role in of_kind(objects, "Role") if role["metadata"]["name"] == "oarsman-leader"]
    assert role["metadata"]["namespace"] == only(objects, "Deployment")["metadata"]["namespace"]
    leases: dict[str, Any] = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"]}
    assert role["rules"] == [
        {**leases, "verbs": ["create"]},
        {**leases, "resourceNames": ["mpi-operator"], "verbs": ["get", "update"]},
    ]
    assert binding_of(role, objects)


def test_without_a_leader_there_are_no_rights_to_leases() -> None:
    objects = rendered({"replicaCount": 1, "leaderElection": {"enabled": False}})
    assert of_kind(objects, "Role", "RoleBinding") == []


def test_users_get_mpijobs_with_the_roles_they_have() -> None:
    found = {
        role["metadata"]["name"]: (
            {label for label in role["metadata"]["labels"] if label.startswith("rbac.")},
            rights(role),
        )
        for role in of_kind(rendered(), "ClusterRole")
        if "-mpijobs-" in role["metadata"]["name"]
    }

    def labels(role: str) -> set[str]:
        return {
            f"rbac.authorization.k8s.io/aggregate-to-{role}",
            f"rbac.authorization.kubeflow.org/aggregate-to-kubeflow-{role}",
        }

    assert found == {
        "oarsman-mpijobs-view": (labels("view"), VIEW),
        "oarsman-mpijobs-edit": (labels("edit"), EDIT),
        "oarsman-mpijobs-admin": (labels("admin"), EDIT),
    }


def test_the_operator_may_ask_whose_a_scrapers_token_is_and_nobody_may_read_metrics_yet() -> None:
    objects = rendered()
    found = {role["metadata"]["name"]: role for role in of_kind(objects, "ClusterRole")}
    assert rights(found["oarsman-metrics-auth"]) == METRICS_AUTH
    (subject,) = binding_of(found["oarsman-metrics-auth"], objects)["subjects"]
    assert subject["name"] == only(objects, "ServiceAccount")["metadata"]["name"]
    assert found["oarsman-metrics-reader"]["rules"] == [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]
    bound = {binding["roleRef"]["name"] for binding in of_kind(objects, "ClusterRoleBinding")}
    assert "oarsman-metrics-reader" not in bound


@pytest.mark.parametrize(
    "values",
    [{"metrics": {"authentication": False}}, {"metrics": {"enabled": False}}, {"rbac": {"create": False}}, TEAMS],
    ids=["open", "no metrics", "rights made by others", "namespaces"],
)
def test_where_it_checks_no_tokens_or_nothing_is_cluster_wide_it_has_no_right_to(values: Values) -> None:
    assert [o for o in rendered(values) if "metrics-auth" in o["metadata"]["name"]] == []


@pytest.mark.parametrize(
    ("values", "kinds"),
    [
        ({"rbac": {"create": False}}, set()),
        ({"rbac": {"aggregate": False}}, {"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}),
        (TEAMS, {"Role", "RoleBinding"}),
    ],
    ids=["none", "no aggregation", "namespaces"],
)
def test_kinds_of_rights_can_be_left_out(values: Values, kinds: set[str]) -> None:
    found = of_kind(rendered(values), "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
    assert {role["kind"] for role in found} == kinds
    assert not any("mpijobs-" in role["metadata"]["name"] for role in found)


def test_rights_can_be_made_by_one_and_the_rest_by_another() -> None:
    alone = rendered(TEAMS, "--show-only", "templates/rbac-jobs.yaml", "--show-only", "templates/rbac-leader.yaml")
    rest = rendered({**TEAMS, "rbac": {"create": False}})
    whole = rendered(TEAMS)

    def identities(objects: list[Object]) -> list[tuple[str, str, str]]:
        return sorted((o["kind"], o["metadata"].get("namespace", ""), o["metadata"]["name"]) for o in objects)

    assert {found["kind"] for found in alone} == {"Role", "RoleBinding"}
    assert identities(alone + rest) == identities(whole)
