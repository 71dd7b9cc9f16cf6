"""The bare launcher pod and the worker pods of v1, and the rights of the launcher."""

from __future__ import annotations

from typing import Any

import pytest

from oarsman.engines.kube.objects import access
from oarsman.engines.kube.objects.common import KubeOptions
from oarsman.engines.kube.objects.launcher import launcher
from oarsman.engines.kube.objects.pod import fingerprint
from oarsman.engines.kube.objects.worker import worker

from .kube_jobs import UID, V1, a_kube_job

OPTIONS = KubeOptions(kubectl_image="kubectl:1")
OWNER = {
    "apiVersion": "kubeflow.org/v1",
    "kind": "MPIJob",
    "name": "pi",
    "uid": UID,
    "controller": True,
    "blockOwnerDeletion": True,
}
OPERATOR = {
    "training.kubeflow.org/operator-name": "mpijob-controller",
    "training.kubeflow.org/job-name": "pi",
}


def labels(role: str, **more: str) -> dict[str, str]:
    return {
        **OPERATOR,
        "training.kubeflow.org/job-role": {"launcher": "master"}.get(role, role),  # as its clients look for it
        "training.kubeflow.org/replica-type": role,
        "group-name": "kubeflow.org",
        "mpi-job-name": "pi",
        "mpi-job-role": role,
        **more,
    }


def variables(container: dict[str, Any]) -> dict[str, str]:
    return {variable["name"]: variable.get("value", "") for variable in container.get("env", ())}


def test_the_launcher_of_a_silent_manifest_is_a_pod_with_kubectl() -> None:
    job = a_kube_job(version=V1)
    made = launcher(job, 2, OPTIONS)
    spec = made["spec"]
    assert (made["apiVersion"], made["kind"]) == ("v1", "Pod")
    assert made["metadata"] == {
        "name": "pi-launcher",
        "namespace": "default",
        "labels": labels("launcher"),
        "annotations": {"oarsman.dev/attempt": "2", "oarsman.dev/template": fingerprint(job.launcher.template)},
        "ownerReferences": [OWNER],
    }
    delivery, barrier = spec["initContainers"]
    amounts = {"cpu": "100m", "memory": "512Mi", "ephemeral-storage": "5Gi"}
    assert delivery == {
        "name": "kubectl-delivery",
        "image": "kubectl:1",
        "imagePullPolicy": "IfNotPresent",
        "command": ["/bin/sh", "-c", 'cp "$(command -v kubectl)" "$TARGET_DIR/kubectl"'],
        "env": [{"name": "TARGET_DIR", "value": "/opt/kube"}, {"name": "NAMESPACE", "value": "default"}],
        "resources": {"requests": amounts, "limits": amounts},
        "volumeMounts": [{"name": "mpi-job-kubectl", "mountPath": "/opt/kube"}],
    }
    mounts = [
        {"name": "mpi-job-kubectl", "mountPath": "/opt/kube"},
        {"name": "mpi-job-config", "mountPath": "/etc/mpi"},
        {"name": "oarsman-run", "mountPath": "/run/oarsman"},
    ]
    assert (barrier["name"], barrier["image"], barrier["volumeMounts"]) == ("oarsman-barrier", "pi", mounts)
    [main] = spec["containers"]
    assert main["command"] == ["/bin/sh", "/etc/mpi/launch.sh", "mpirun", "./pi"]
    assert main["volumeMounts"] == mounts
    found = variables(main)
    agent = "/etc/mpi/kubexec.sh"
    assert {name for name, value in found.items() if value == agent} == {
        "OMPI_MCA_plm_rsh_agent",
        "PRTE_MCA_plm_ssh_agent",
        "HYDRA_LAUNCHER_EXEC",
        "I_MPI_HYDRA_BOOTSTRAP_EXEC",
        "OARSMAN_AGENT",
    }
    assert (found["NVIDIA_VISIBLE_DEVICES"], found["NVIDIA_DRIVER_CAPABILITIES"]) == ("", "")
    files = ("hostfile", "discover_hosts.sh", "kubexec.sh", "passwd.sh", "barrier.sh", "launch.sh")
    assert spec["volumes"] == [
        {"name": "mpi-job-kubectl", "emptyDir": {}},
        {
            "name": "mpi-job-config",
            "configMap": {
                "name": "pi-config",
                "items": [
                    {"key": file, "path": file, "mode": 0o444 if file == "hostfile" else 0o555} for file in files
                ],
            },
        },
        {"name": "oarsman-run", "emptyDir": {"medium": "Memory"}},
    ]
    del spec["initContainers"], spec["containers"], spec["volumes"]
    assert spec == {
        "hostname": "pi-launcher",
        "subdomain": "pi",
        "restartPolicy": "Never",
        "dnsConfig": {"searches": ["pi.default.svc.cluster.local"]},
        "serviceAccountName": "pi-launcher",
        "automountServiceAccountToken": True,
    }


def test_a_worker_of_a_silent_manifest_waits_and_holds_no_keys() -> None:
    job = a_kube_job(version=V1)
    assert job.worker is not None
    items = [{"key": "kubexec.sh", "path": "kubexec.sh", "mode": 0o555}]
    assert worker(job, 1, OPTIONS) == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "pi-worker-1",
            "namespace": "default",
            "labels": labels("worker", **{"training.kubeflow.org/replica-index": "1"}),
            "annotations": {"oarsman.dev/template": fingerprint(job.worker.template)},
            "ownerReferences": [OWNER],
        },
        "spec": {
            "hostname": "pi-worker-1",
            "subdomain": "pi",
            "restartPolicy": "Never",
            "dnsConfig": {"searches": ["pi.default.svc.cluster.local"]},
            "containers": [
                {
                    "name": "mpi",
                    "image": "pi",
                    "command": ["/bin/sh", "-c", "trap 'exit 0' TERM; sleep 365d & wait"],
                    "env": [{"name": "K_MPI_JOB_ROLE", "value": "worker"}],
                    "volumeMounts": [{"name": "mpi-job-config", "mountPath": "/etc/mpi"}],
                }
            ],
            "volumes": [{"name": "mpi-job-config", "configMap": {"name": "pi-config", "items": items}}],
        },
    }


@pytest.mark.parametrize(
    ("container", "command"),
    [
        pytest.param({"command": ["sleep", "1d"], "args": ["x"]}, (["sleep", "1d"], ["x"]), id="its own"),
        pytest.param({"args": ["x"]}, (["/bin/sh", "-c", "trap 'exit 0' TERM; sleep 365d & wait"], None), id="none"),
    ],
)
def test_the_command_of_a_worker(container: dict[str, Any], command: tuple[list[str], list[str] | None]) -> None:
    job = a_kube_job(version=V1, worker={"containers": [{"name": "mpi", "image": "pi", **container}]})
    main = worker(job, 0, OPTIONS)["spec"]["containers"][0]
    assert (main["command"], main.get("args")) == command


@pytest.mark.parametrize(
    ("limit", "takes_ranks"),
    [
        pytest.param("nvidia.com/gpu", True, id="nvidia"),
        pytest.param("amd.com/gpu", True, id="another vendor"),
        pytest.param("vendor.example/fpga", False, id="no gpu"),
    ],
)
def test_a_launcher_with_a_gpu_takes_ranks_and_sees_it(limit: str, takes_ranks: bool) -> None:
    main = {"name": "mpi", "image": "pi", "command": ["mpirun", "a"], "resources": {"limits": {limit: 1}}}
    made = launcher(a_kube_job(version=V1, launcher={"containers": [main]}), 1, OPTIONS)
    assert ("NVIDIA_VISIBLE_DEVICES" not in variables(made["spec"]["containers"][0])) is takes_ranks
    assert ("training.kubeflow.org/replica-index" in made["metadata"]["labels"]) is takes_ranks


def test_the_main_container_is_named_to_kubexec() -> None:
    containers = [{"name": "side", "image": "s"}, {"name": "mpi", "image": "pi", "command": ["mpirun", "a"]}]
    workers = [{"name": "side", "image": "s"}, {"name": "mpi", "image": "pi"}]
    job = a_kube_job(
        version=V1, launcher={"containers": containers}, worker={"containers": workers}, mainContainer="mpi"
    )
    side, main = launcher(job, 1, OPTIONS)["spec"]["containers"]
    assert side == {"name": "side", "image": "s"}
    assert variables(main)["OARSMAN_CONTAINER"] == "mpi"


def test_a_v1_launcher_never_restarts_in_place_whatever_the_policy() -> None:
    for policy in ("OnFailure", "Always", "ExitCode", "Never"):
        made = launcher(a_kube_job(version=V1, launcher_role={"restartPolicy": policy}), 1, OPTIONS)
        assert made["spec"]["restartPolicy"] == "Never"


def test_exit_code_is_a_policy_of_ours_and_pods_know_only_never() -> None:
    made = worker(a_kube_job(version=V1, worker_role={"restartPolicy": "ExitCode"}), 0, OPTIONS)
    assert made["spec"]["restartPolicy"] == "Never"


@pytest.mark.parametrize(
    ("mine", "value"),
    [
        pytest.param([], {"I_MPI_HYDRA_BOOTSTRAP": "ssh", "I_MPI_HYDRA_BOOTSTRAP_EXEC": "/etc/mpi/kubexec.sh"}, id="-"),
        pytest.param(
            [{"name": "I_MPI_HYDRA_BOOTSTRAP", "value": "rsh"}],
            {"I_MPI_HYDRA_BOOTSTRAP": "rsh", "I_MPI_HYDRA_BOOTSTRAP_EXEC": "/etc/mpi/kubexec.sh"},
            id="the way",
        ),
        pytest.param(
            [{"name": "I_MPI_HYDRA_BOOTSTRAP_EXEC", "value": "/mine"}],
            {"I_MPI_HYDRA_BOOTSTRAP": "ssh", "I_MPI_HYDRA_BOOTSTRAP_EXEC": "/mine"},
            id="the program",
        ),
        pytest.param(
            [
                {"name": "I_MPI_HYDRA_BOOTSTRAP", "value": "rsh"},
                {"name": "I_MPI_HYDRA_BOOTSTRAP_EXEC", "value": "/mine"},
            ],
            {"I_MPI_HYDRA_BOOTSTRAP": "rsh", "I_MPI_HYDRA_BOOTSTRAP_EXEC": "/mine"},
            id="both",
        ),
    ],
)
def test_intels_bootstrap_is_what_the_user_says_or_ours(mine: list[Any], value: dict[str, str]) -> None:
    main = {"name": "mpi", "image": "pi", "command": ["mpirun", "a"], "env": mine}
    made = launcher(a_kube_job(version=V1, launcher={"containers": [main]}), 1, OPTIONS)
    found = made["spec"]["containers"][0]["env"]
    assert {v["name"]: v["value"] for v in found if v["name"] in value} == value
    assert len({v["name"] for v in found}) == len(found)


# -- rights ---------------------------------------------------------------------------------------------
def test_a_launcher_may_run_commands_in_its_own_workers_and_nothing_else() -> None:
    job = a_kube_job(version=V1)
    meta = {
        "name": "pi-launcher",
        "namespace": "default",
        "labels": {"app": "pi", **OPERATOR},
        "ownerReferences": [OWNER],
    }
    assert access.service_account(job) == {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta}
    assert access.role(job) == {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": meta,
        "rules": [
            {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]},
            {
                "apiGroups": [""],
                "resources": ["pods/exec"],
                "resourceNames": ["pi-worker-0", "pi-worker-1"],
                "verbs": ["create"],
            },
        ],
    }
    assert access.role_binding(job) == {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": meta,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "pi-launcher"},
        "subjects": [{"kind": "ServiceAccount", "name": "pi-launcher", "namespace": "default"}],
    }


def test_a_launcher_without_workers_may_run_no_commands() -> None:
    [only] = access.role(a_kube_job(version=V1, workers=None))["rules"]
    assert only["resources"] == ["pods"]  # a rule without names would mean all pods


def test_a_service_account_the_template_names_is_used() -> None:
    job = a_kube_job(version=V1, launcher={"serviceAccountName": "mine"})
    assert access.account_name(job) == "mine"
    assert access.role_binding(job)["subjects"][0]["name"] == "mine"
    assert access.role(job)["metadata"]["name"] == "pi-launcher"
    assert launcher(job, 1, OPTIONS)["spec"]["serviceAccountName"] == "mine"
