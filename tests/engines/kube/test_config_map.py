"""Hosts and scripts: the exact text of the files (upstream's C28-C44), and the Service and Secrets beside them."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization

from oarsman.engines.kube.objects import config_map, secret, service
from oarsman.engines.kube.objects.common import KubeOptions
from oarsman.engines.kube.objects.config_map import published
from oarsman.engines.kube.objects.preparation import PodPreparation, recorded

from .kube_jobs import UID, V1, V2BETA1, a_kube_job


def config_map_of(*given: Any, **more: Any) -> dict[str, Any]:
    [made] = config_map.config_maps(*given, **more)
    return made


LAUNCHER = "pi-launcher.pi.tenant-a.svc"
WORKERS = tuple(f"pi-worker-{i}.pi.tenant-a.svc" for i in range(12))
HOSTFILES = [
    pytest.param({"runLauncherAsWorker": True}, "", ["pi-launcher slots=1", f"{WORKERS[0]} slots=1"], id="C28"),
    pytest.param(
        {"runLauncherAsWorker": True},
        "cluster.local",
        ["pi-launcher slots=1", f"{WORKERS[0]}.cluster.local slots=1"],
        id="C29",
    ),
    pytest.param({"runLauncherAsWorker": True, "workers": None}, "", ["pi-launcher slots=1"], id="C30"),
    pytest.param({"workers": None}, "", ["pi-launcher slots=1"], id="C30, where ours runs on its launcher"),
    pytest.param({}, "", [f"{WORKERS[0]} slots=1"], id="C31"),
    pytest.param({"slotsPerWorker": 10}, "", [f"{WORKERS[0]} slots=10"], id="C32"),
    pytest.param({"slotsPerWorker": 10}, "cluster.local", [f"{WORKERS[0]}.cluster.local slots=10"], id="C33"),
    pytest.param({"slotsPerWorker": 10, "mpiImplementation": "Intel"}, "", [f"{WORKERS[0]}:10"], id="C34"),
    pytest.param(
        {"slotsPerWorker": 10, "mpiImplementation": "Intel"},
        "cluster.local",
        [f"{WORKERS[0]}.cluster.local:10"],
        id="C35",
    ),
    pytest.param({"slotsPerWorker": 10, "mpiImplementation": "MPICH"}, "", [f"{WORKERS[0]}:10"], id="C36"),
    pytest.param(
        {"slotsPerWorker": 10, "mpiImplementation": "MPICH"},
        "cluster.local",
        [f"{WORKERS[0]}.cluster.local:10"],
        id="C37",
    ),
]


@pytest.mark.parametrize(("given", "domain", "lines"), HOSTFILES)
def test_the_hostfile_names_every_host_and_its_slots(given: dict[str, Any], domain: str, lines: list[str]) -> None:
    job = a_kube_job(**{"namespace": "tenant-a", "workers": 1, "command": ["mpirun", "-np", "1", "a"], **given})
    made = config_map_of(job, (), KubeOptions(cluster_domain=domain))
    assert made["data"]["hostfile"] == "".join(f"{line}\n" for line in lines)


def test_on_the_network_of_a_node_the_launcher_is_named_as_dns_knows_it() -> None:
    job = a_kube_job(namespace="tenant-a", workers=1, runLauncherAsWorker=True, launcher={"hostNetwork": True})
    text = config_map_of(job, (), KubeOptions())["data"]["hostfile"]
    assert text == f"{LAUNCHER} slots=1\n{WORKERS[0]} slots=1\n"


def test_the_hostfile_is_in_numeric_order_and_has_workers_that_are_not_there_yet() -> None:
    text = config_map_of(a_kube_job(workers=12), (), KubeOptions())["data"]["hostfile"]
    assert [line.split(".")[0] for line in text.splitlines()] == [f"pi-worker-{i}" for i in range(12)]


@pytest.mark.parametrize(
    ("hosts", "domain", "lines"),
    [
        pytest.param((), "", [], id="C38: nobody"),
        pytest.param(("pi-worker-0",), "", [f"{WORKERS[0]}:2"], id="C39: workers"),
        pytest.param(("pi-launcher",), "", [f"{LAUNCHER}:2"], id="C40: the launcher"),
        pytest.param(("pi-launcher", "pi-worker-0"), "", [f"{LAUNCHER}:2", f"{WORKERS[0]}:2"], id="C41: both"),
        pytest.param(("pi-worker-0",), "c.local", [f"{WORKERS[0]}.c.local:2"], id="C42: domain"),
        pytest.param(
            ("pi-launcher", "pi-worker-0"),
            "c.local",
            [f"{LAUNCHER}.c.local:2", f"{WORKERS[0]}.c.local:2"],
            id="C43: domain, both",
        ),
        pytest.param(
            ("pi-worker-2", "pi-worker-10"),
            "",
            [f"{WORKERS[2]}:2", f"{WORKERS[10]}:2"],
            id="C44: numeric order",
        ),
    ],
)
def test_discover_hosts_echoes_the_hosts_of_the_moment_with_slots(
    hosts: tuple[str, ...], domain: str, lines: list[str]
) -> None:
    job = a_kube_job(workers=12, slotsPerWorker=2, namespace="tenant-a")
    data = config_map_of(job, hosts, KubeOptions(cluster_domain=domain))["data"]
    assert data["discover_hosts.sh"] == "#!/bin/sh\n" + "".join(f"echo {line}\n" for line in lines)
    assert published(data) == hosts


def test_what_was_published_by_nobody_is_nothing() -> None:
    assert published({}) == ()


@pytest.mark.parametrize(
    ("version", "files"),
    [
        (
            V2BETA1,
            {
                "hostfile",
                "discover_hosts.sh",
                "passwd.sh",
                "barrier.sh",
                "launch.sh",
                "worker.sh",
                "ssh.sh",
                "ssh_config",
            },
        ),
        (V1, {"hostfile", "discover_hosts.sh", "passwd.sh", "barrier.sh", "launch.sh", "kubexec.sh"}),
    ],
)
def test_each_version_has_its_scripts(version: str, files: set[str]) -> None:
    made = config_map_of(a_kube_job(version=version), (), KubeOptions())
    assert set(made["data"]) == files
    assert made["metadata"]["name"] == "pi-config"
    assert all(text.startswith("#!/bin/sh\n") for file, text in made["data"].items() if file.endswith(".sh"))


# -- many hosts -------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "options", [KubeOptions(), KubeOptions(cluster_domain="a-long-domain.of-a-cluster.example.com")]
)
@pytest.mark.parametrize(
    ("name", "workers"), [("a" * 27, 20_000), ("pi", 20_000), ("a" * 49, 14_000), ("a" * 50, 1500), ("pi", 1500)]
)
def test_each_config_map_of_a_large_job_fits_into_a_mebibyte(name: str, workers: int, options: KubeOptions) -> None:
    job = a_kube_job(name=name, workers=workers, namespace="n" * 63, command=["mpirun", "a"])
    apart = PodPreparation(many_hosts=config_map.has_many_hosts(job))
    made = config_map.config_maps(job, job.hosts, options, apart)
    for each in made:
        assert sum(len(text) for text in each["data"].values()) < 2**20
    data = {key: text for each in made for key, text in each["data"].items()}
    assert published(data) == job.hosts
    assert len(data["hostfile"].splitlines()) == workers


def test_a_job_of_many_hosts_calls_them_by_their_first_names() -> None:
    job = a_kube_job(workers=2000, command=["mpirun", "a"])
    apart, made = config_map.config_maps(job, ("pi-worker-3",), KubeOptions(), PodPreparation(many_hosts=True))
    assert (apart["metadata"]["name"], made["metadata"]["name"]) == ("pi-hosts", "pi-config")
    assert apart["data"] == {"discover_hosts.sh": "#!/bin/sh\necho pi-worker-3:1\n"}
    assert made["data"]["hostfile"].startswith("pi-worker-0 slots=1\npi-worker-1 slots=1\n")
    assert "discover_hosts.sh" not in made["data"]
    assert recorded(made["data"]).many_hosts


# -- the Service ------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("version", "operator"), [(V2BETA1, "mpi-operator"), (V1, "mpijob-controller")])
def test_the_service_names_every_pod_ready_or_not(version: str, operator: str) -> None:
    chosen = {"training.kubeflow.org/operator-name": operator, "training.kubeflow.org/job-name": "pi"}
    assert service.service(a_kube_job(version=version)) == {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": "pi",
            "namespace": "default",
            "labels": {"app": "pi", **chosen},
            "ownerReferences": [
                {
                    "apiVersion": version,
                    "kind": "MPIJob",
                    "name": "pi",
                    "uid": UID,
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": {"clusterIP": "None", "selector": chosen, "publishNotReadyAddresses": True},
    }


# -- Secrets ------------------------------------------------------------------------------------------------
def opened(data: dict[str, str]) -> dict[str, bytes]:
    return {name: base64.b64decode(text) for name, text in data.items()}


def test_a_new_secret_has_a_pair_for_the_launcher_and_a_host_key_for_each_worker() -> None:
    job = a_kube_job()
    made = secret.secret(job, 0, secret.missing(job, 0, {}))
    assert (made["metadata"]["name"], made["type"]) == ("pi-ssh", "kubernetes.io/ssh-auth")
    data = opened(made["data"])
    assert set(data) == {"ssh-privatekey", "ssh-publickey", "known_hosts", "host-key-0", "host-key-1"}
    private = serialization.load_ssh_private_key(data["ssh-privatekey"], None)
    public = private.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    assert data["ssh-publickey"] == public + b"\n"
    for index, line in enumerate(data["known_hosts"].decode().splitlines()):
        key = serialization.load_ssh_private_key(data[f"host-key-{index}"], None).public_key()
        spelled = key.public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH).decode()
        assert line == f"pi-worker-{index},pi-worker-{index}.* {spelled}"


def test_keys_that_are_there_are_kept_and_only_new_workers_get_new_ones() -> None:
    small, large = a_kube_job(workers=1, command=["mpirun", "a"]), a_kube_job(workers=3)
    before = secret.missing(small, 0, {})
    added = secret.missing(large, 0, before)
    assert set(added) == {"host-key-1", "host-key-2", "known_hosts"}
    assert opened(added)["known_hosts"].startswith(opened(before)["known_hosts"])
    assert len(opened(added)["known_hosts"].splitlines()) == 3


def test_a_complete_secret_lacks_nothing_also_after_the_job_has_shrunk() -> None:
    data = secret.missing(a_kube_job(workers=3), 0, {})
    assert secret.missing(a_kube_job(workers=3), 0, data) == {}
    assert secret.missing(a_kube_job(workers=1), 0, data) == {}


@pytest.mark.parametrize(
    ("workers", "expected"), [(None, ["pi-ssh"]), (1000, ["pi-ssh"]), (1001, ["pi-ssh", "pi-ssh-1"])]
)
def test_a_thousand_host_keys_fit_into_a_secret(workers: int | None, expected: list[str]) -> None:
    job = a_kube_job(workers=workers)
    assert [secret.shard_name(job, shard) for shard in secret.shards(job)] == expected


def test_further_secrets_hold_host_keys_alone() -> None:
    job = a_kube_job(workers=1002)
    made = secret.secret(job, 1, secret.missing(job, 1, {}))
    assert made["type"] == "Opaque"
    assert set(made["data"]) == {"host-key-1000", "host-key-1001", "known_hosts"}
    assert sum(len(text) for text in secret.missing(a_kube_job(workers=1000), 0, {}).values()) < 2**20


def test_a_secret_without_workers_has_an_empty_list_of_hosts() -> None:
    job = a_kube_job(workers=None)
    data = opened(secret.missing(job, 0, {}))
    assert set(data) == {"ssh-privatekey", "ssh-publickey", "known_hosts"}
    assert data["known_hosts"] == b""
