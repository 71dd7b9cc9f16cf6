"""Jobs that end well, from kubectl to the last rank: every MPI, both versions, as users write them."""

from __future__ import annotations

import base64
import contextlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
import yaml

from cluster.cluster import Cluster
from cluster.jobs import (
    HELLO,
    RESTRICTED_CONTAINER,
    RESTRICTED_POD,
    V1,
    V2BETA1,
    Object,
    Submitted,
    hosts_in,
    mpijob,
)
from cluster.places import ROOT
from cluster.together import Place, together

pytestmark = pytest.mark.timeout(900)  # a body waits for others before it, and says more than a time limit

MPIS = {"openmpi4": "OpenMPI", "openmpi5": "OpenMPI", "mpich": "MPICH"}
PI = """
from mpi4py import MPI
import math
world = MPI.COMM_WORLD
steps = range(world.rank, 100000, world.size)
parts = sum(4 / (1 + ((i + 0.5) / 100000) ** 2) for i in steps) / 100000
total = world.reduce(parts)
if world.rank == 0:
    print(f"workers={world.size} pi is approximately {total:.8f}", flush=True)
"""
every_mpi = pytest.mark.parametrize("mpi", MPIS)


def launch(ranks: int, program: Sequence[str] = HELLO) -> list[str]:
    return ["mpirun", "-n", str(ranks), *program]


def spread(name: str) -> Object:
    """Workers on both nodes, as even as can be."""
    return {
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {
                    "matchLabels": {
                        "training.kubeflow.org/job-name": name,
                        "training.kubeflow.org/job-role": "worker",
                    }
                },
            }
        ],
    }


def hosts_after_success(job: Submitted) -> list[str]:
    job.wait_for("Succeeded")
    return sorted(hosts_in(job.log()))


def workers_of(job: Submitted, count: int = 2, slots: int = 1) -> list[str]:
    return sorted([job.worker(index) for index in range(count)] * slots)


# -- where ranks land ------------------------------------------------------------------------------------
@every_mpi
@together
def test_six_ranks_land_on_three_workers_over_two_nodes(place: Place, mpi: str) -> None:
    job = place.submit(
        mpijob(
            "six",
            place.image(mpi),
            launch(6),
            workers=3,
            slots=2,
            worker_pod=spread("six"),
            mpiImplementation=MPIS[mpi],
        )
    )
    assert hosts_after_success(job) == workers_of(job, 3, slots=2)
    assert len({pod["spec"]["nodeName"] for pod in job.pods("worker")}) == 2


@pytest.mark.parametrize("mpi", ["openmpi4", "openmpi5"])
@together
def test_ranks_of_a_v1_job_land_on_its_workers(place: Place, mpi: str) -> None:
    job = place.submit(mpijob("old", place.image(mpi), version=V1, slots=2))
    assert hosts_after_success(job) == workers_of(job, slots=2)
    (launcher,) = job.pods("launcher")
    assert launcher["metadata"]["name"] == "old-launcher", "v1 has a pod for a launcher, not a Job"


@every_mpi
@together
def test_a_launcher_that_is_a_worker_too_takes_ranks(place: Place, mpi: str) -> None:
    job = place.submit(
        mpijob("both", place.image(mpi), launch(2), workers=1, runLauncherAsWorker=True, mpiImplementation=MPIS[mpi])
    )
    assert hosts_after_success(job) == ["both-launcher", "both-worker-0"]


@together
def test_workers_of_the_same_node_share_its_network_without_a_clash_of_ports(place: Place) -> None:
    job = place.submit(mpijob("bare", place.image(), workers=4, pod={"hostNetwork": True}, worker_pod=spread("bare")))
    job.wait_for("Succeeded")
    nodes = Counter(pod["spec"]["nodeName"] for pod in job.pods("worker"))
    assert sorted(nodes.values()) == [2, 2]
    assert Counter(hosts_in(job.log())) == nodes, "on a node's network a rank is where the node's name is"


# -- as whom ---------------------------------------------------------------------------------------------
@every_mpi
@together
def test_any_user_may_run_under_the_restricted_profile(place: Place, mpi: str) -> None:
    job = place.submit(restricted(place, mpi, V2BETA1, mpiImplementation=MPIS[mpi]))
    assert hosts_after_success(job) == workers_of(job)
    assert "user 12345" in job.log()


@together
def test_any_user_may_run_a_v1_job_under_the_restricted_profile(place: Place) -> None:
    job = place.submit(restricted(place, "openmpi4", V1))
    assert hosts_after_success(job) == workers_of(job)
    assert "user 12345" in job.log()


def restricted(place: Place, mpi: str, version: str, **spec: Any) -> Object:
    program = ("python3", "-c", HELLO[-1] + "import os; print('user', os.getuid(), flush=True)")
    return mpijob(
        "nobody",
        place.image(mpi),
        launch(2, program),
        version=version,
        pod={"securityContext": RESTRICTED_POD},
        container={"securityContext": RESTRICTED_CONTAINER},
        **spec,
    )


@together
def test_root_may_run_with_a_group_that_owns_its_volumes(place: Place) -> None:
    job = place.submit(mpijob("group", place.image(), pod={"securityContext": {"runAsUser": 0, "fsGroup": 2000}}))
    assert hosts_after_success(job) == workers_of(job)


# -- workers with a command of their own -----------------------------------------------------------------
@together
def test_the_usual_command_of_workers_is_understood(place: Place) -> None:
    job = place.submit(mpijob("usual", place.image(), worker_command=("/usr/sbin/sshd", "-De")))
    assert hosts_after_success(job) == workers_of(job)


@together
def test_a_job_that_names_its_operator_is_run_by_it(place: Place) -> None:
    job = place.submit(mpijob("named", place.image(), policy={"managedBy": "kubeflow.org/mpi-operator"}))
    assert hosts_after_success(job) == workers_of(job)


@together
def test_the_pi_job_of_the_mpi_operator_runs_as_it_is_written_there(place: Place) -> None:
    """As its user, with its keys, its sshd and its configuration. What its image has comes from a ConfigMap here.

    All but one thing: the port stands in the command, because the image of the tests does not tell ssh about it.
    """
    # The image's user; it has the name that the launcher gives a user whom no image knows.
    users = (
        "root:x:0:0::/root:/bin/sh\nsshd:x:100:65534::/run/sshd:/bin/false\nuser1000:x:1000:0::/home/mpiuser:/bin/sh\n"
    )
    config = "PidFile /tmp/sshd.pid\nHostKey /home/mpiuser/.ssh/id_rsa\nStrictModes no\n"
    files = {"pi.py": PI, "sshd_config": config, "passwd": users}
    place.cluster.apply(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "image"}, "data": files},
        namespace=place.namespace,
    )
    program, sshd, passwd = (
        {"name": "image", "mountPath": path, "subPath": key}
        for path, key in (
            ("/home/mpiuser/pi.py", "pi.py"),
            ("/home/mpiuser/.sshd_config", "sshd_config"),
            ("/etc/passwd", "passwd"),
        )
    )
    job = place.submit(
        mpijob(
            "pi",
            place.image(),
            ["mpirun", "-n", "2", "python3", "/home/mpiuser/pi.py"],
            sshAuthMountPath="/home/mpiuser/.ssh",
            mpiImplementation="OpenMPI",
            policy={"cleanPodPolicy": "Running"},
            pod={"volumes": [{"name": "image", "configMap": {"name": "image"}}]},
            container={"securityContext": {"runAsUser": 1000}, "imagePullPolicy": "IfNotPresent"},
            launcher={"volumeMounts": [program]},
            worker={"volumeMounts": [program, sshd, passwd]},
            worker_command=("/usr/sbin/sshd", "-De", "-f", "/home/mpiuser/.sshd_config", "-p", "2222"),
        )
    )
    job.wait_for("Succeeded")
    assert "workers=2 pi is approximately 3.14159265" in job.log()


# -- what seeds ask for ----------------------------------------------------------------------------------
# In place of the images' programs: under the same path, started by the same line.
TRAINING = {
    "tf_cnn_benchmarks.py": HELLO[-1] + "import sys; print('arguments', *sys.argv[1:], flush=True)",
    "tensorflow2_mnist_elastic.py": HELLO[-1],
    "python": '#!/bin/sh\nexec python3 "$@"\n',
    # horovodrun -np N --min-np N --max-np N --host-discovery-script FILE COMMAND...
    "horovodrun": '#!/bin/sh\nranks=$2 hosts=$("$8" | paste -sd,)\necho "found $hosts"\nshift 8\n'
    'exec mpirun --allow-run-as-root -np "$ranks" --host "$hosts" "$@"\n',
}
PLACES = {
    "/scripts/tf_cnn_benchmarks/tf_cnn_benchmarks.py": "tf_cnn_benchmarks.py",
    "/examples/elastic/tensorflow2_mnist_elastic.py": "tensorflow2_mnist_elastic.py",
    "/usr/local/bin/python": "python",
    "/usr/local/bin/horovodrun": "horovodrun",
}


@together
def test_the_seed_of_v1_benchmarks_runs(place: Place) -> None:
    with offered(place.cluster, "nvidia.com/gpumem", "nvidia.com/vgpu"):
        job = place.submit(seed(place, "tensorflow-benchmarks-v1"))
        assert hosts_after_success(job) == workers_of(job)
    assert job.log().count("arguments --model=resnet101 --batch_size=64 --variable_update=horovod") == 2


@together
def test_the_seed_of_v2beta1_benchmarks_runs(place: Place) -> None:
    with offered(place.cluster, "nvidia.com/gpu"):
        job = place.submit(seed(place, "tensorflow-benchmarks-v2beta1"))
        assert hosts_after_success(job) == workers_of(job)
    assert job.log().count("arguments --model=resnet101 --batch_size=64 --variable_update=horovod") == 2


@together
def test_the_seed_of_elastic_training_runs(place: Place) -> None:
    job = place.submit(seed(place, "tensorflow-mnist-elastic"))
    job.wait_for("Succeeded")
    log = job.log()
    assert sorted(hosts_in(log)) == workers_of(job)
    found = [line.removeprefix("found ").split(",") for line in log.splitlines() if line.startswith("found ")]
    assert [[host.split(".")[0].split(":")[0] for host in hosts] for hosts in found] == [workers_of(job)]


def seed(place: Place, name: str) -> Object:
    """As it is, with images that are here, fewer CPUs than this machine may have, and without what a server writes."""
    job: Object = yaml.safe_load((ROOT / "examples" / "seeds" / f"{name}.yaml").read_text())
    job["metadata"] = {"name": job["metadata"]["name"]}
    volume = {"name": "training", "configMap": {"name": "training", "defaultMode": 0o755}}
    for role in job["spec"]["mpiReplicaSpecs"].values():
        spec = role["template"]["spec"]
        spec["volumes"] = [volume]
        (container,) = spec["containers"]
        container["image"] = place.image()
        mounts = [{"name": "training", "mountPath": path, "subPath": key} for path, key in PLACES.items()]
        container["volumeMounts"] = mounts
        for amounts in container.get("resources", {}).values():
            amounts.update({"cpu": "100m"} if "cpu" in amounts else {})
    place.cluster.apply(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "training"}, "data": TRAINING},
        namespace=place.namespace,
    )
    return job


@contextlib.contextmanager
def offered(cluster: Cluster, *resources: str) -> Iterator[None]:
    """Nodes that say they have that: no pod can tell that there is nothing behind it."""
    try:
        _offer(cluster, dict.fromkeys(resources, "2k"))
        yield
    finally:
        _offer(cluster, dict.fromkeys(resources))


def _offer(cluster: Cluster, amounts: dict[str, str | None]) -> None:
    for node in cluster.get("nodes")["items"]:
        name = node["metadata"]["name"]
        status = {"capacity": amounts, "allocatable": amounts}
        for _ in range(10):  # the kubelet writes there too
            node = cluster.get("node", name)
            for part, added in status.items():
                known = {**node["status"][part], **added}
                node["status"][part] = {what: amount for what, amount in known.items() if amount is not None}
            path = f"/api/v1/nodes/{name}/status"
            if not cluster.kubectl("replace", "--raw", path, "-f", "-", stdin=json.dumps(node), check=False).returncode:
                break


# -- when the launcher comes, and what it may know -------------------------------------------------------
@together
def test_a_launcher_that_waits_for_ready_workers_is_made_after_them(place: Place) -> None:
    job = place.submit(mpijob("patient", place.image(), launcherCreationPolicy="WaitForWorkersReady"))
    assert hosts_after_success(job) == workers_of(job)
    launcher = place.cluster.get("job", "patient-launcher", place.namespace)
    ready = [
        condition["lastTransitionTime"]
        for pod in job.pods("worker")
        for condition in pod["status"]["conditions"]
        if condition["type"] == "Ready"
    ]
    assert launcher["metadata"]["creationTimestamp"] >= max(ready)


@together
def test_the_log_of_a_job_is_found_by_its_labels(place: Place) -> None:
    job = place.submit(mpijob("labels", place.image()))
    job.wait_for("Succeeded")
    selector = "training.kubeflow.org/job-name=labels,training.kubeflow.org/job-role=launcher"
    said = job.kubectl("logs", f"--selector={selector}", "--tail=-1")
    assert hosts_in(said) == workers_of(job)


@together
def test_keys_are_where_they_belong_and_a_host_with_the_key_of_another_is_refused(place: Place) -> None:
    job = place.submit(mpijob("keys", place.image(), ["sleep", "infinity"]))
    job.wait_for("Running")
    stored = place.cluster.get("secret", "keys-ssh", place.namespace)["data"]
    private = ("ssh-privatekey", "host-key-0", "host-key-1")
    keys = {name: base64.b64decode(stored[name]).decode().splitlines()[2] for name in private}
    (launcher,) = job.pod_names("launcher")

    def found_in(pod: str, key: str) -> bool:
        search = ("sh", "-c", f"grep -rasqF '{keys[key]}' /etc /run /root /home /tmp /var")
        return not place.cluster.kubectl(
            f"--namespace={place.namespace}", "exec", pod, "--", *search, check=False
        ).returncode

    assert found_in(launcher, "ssh-privatekey")
    for own, other in ((0, 1), (1, 0)):
        pod = job.worker(own)
        assert not found_in(pod, "ssh-privatekey"), "the key that opens workers is for the launcher alone"
        assert found_in(pod, f"host-key-{own}")
        assert not found_in(pod, f"host-key-{other}")

    def log_in(*options: str) -> tuple[int, str]:
        words = ("ssh", "-F", "/etc/mpi/ssh_config", *options, "keys-worker-0.keys", "hostname")
        done = place.cluster.kubectl(
            f"--namespace={place.namespace}", "exec", launcher, "--container=mpi", "--", *words, check=False
        )
        return done.returncode, done.stdout + done.stderr

    assert log_in() == (0, "keys-worker-0\n")
    code, said = log_in("-o", "HostKeyAlias=keys-worker-1")
    assert code != 0
    assert "Host key verification failed" in said
