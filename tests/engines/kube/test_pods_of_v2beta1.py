"""The launcher Job and the worker pods of v2beta1, field by field (upstream's C25-C27)."""

from __future__ import annotations

from typing import Any

import pytest

from oarsman.engines.kube.objects.common import KubeOptions
from oarsman.engines.kube.objects.launcher import launcher
from oarsman.engines.kube.objects.pod import fingerprint
from oarsman.engines.kube.objects.preparation import PodPreparation
from oarsman.engines.kube.objects.worker import worker
from oarsman.job.job import Job

from .kube_jobs import UID, a_kube_job

OPTIONS = KubeOptions()
OWNER = {
    "apiVersion": "kubeflow.org/v2beta1",
    "kind": "MPIJob",
    "name": "pi",
    "uid": UID,
    "controller": True,
    "blockOwnerDeletion": True,
}
LABELS = {"training.kubeflow.org/operator-name": "mpi-operator", "training.kubeflow.org/job-name": "pi"}
INDEX = "training.kubeflow.org/replica-index"
PI = {"name": "mpi", "image": "pi"}


def variables(container: dict[str, Any]) -> dict[str, str]:
    return {variable["name"]: variable.get("value", "") for variable in container.get("env", ())}


def pod_of(job: Job) -> dict[str, Any]:
    """The pod template of the launcher's Job."""
    found: dict[str, Any] = launcher(job, 1, OPTIONS)["spec"]["template"]
    return found


def items(*keys: str, mode: int | None = None) -> list[dict[str, Any]]:
    return [{"key": key, "path": key, "mode": mode} for key in keys]


def test_the_launcher_of_a_silent_manifest() -> None:
    job = a_kube_job()
    barrier_variables = {
        "OARSMAN_AGENT": "/etc/mpi/ssh.sh",
        "OARSMAN_LAUNCHER": "pi-launcher.pi.default.svc",
        "OARSMAN_EXPECTED": "2",
    }
    main = {
        **PI,
        "command": ["/bin/sh", "/etc/mpi/launch.sh", "mpirun", "./pi"],
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "env": [
            {"name": name, "value": value}
            for name, value in {
                "K_MPI_JOB_ROLE": "launcher",
                "OMPI_MCA_plm": "rsh",
                "OMPI_MCA_plm_rsh_agent": "/etc/mpi/ssh.sh",
                "OMPI_MCA_orte_default_hostfile": "/etc/mpi/hostfile",
                "OMPI_MCA_orte_keep_fqdn_hostnames": "true",
                "OMPI_MCA_orte_set_default_slots": "1",
                "PRTE_MCA_plm": "ssh",
                "PRTE_MCA_plm_ssh_agent": "/etc/mpi/ssh.sh",
                "PRTE_MCA_prte_default_hostfile": "/etc/mpi/hostfile",
                "PRTE_MCA_prte_keep_fqdn_hostnames": "true",
                "PRTE_MCA_prte_set_default_slots": "1",
                "PRTE_MCA_odls_base_max_threads": "0",
                "HYDRA_LAUNCHER": "ssh",
                "HYDRA_LAUNCHER_EXEC": "/etc/mpi/ssh.sh",
                "HYDRA_HOST_FILE": "/etc/mpi/hostfile",
                "I_MPI_HYDRA_BOOTSTRAP": "ssh",
                "I_MPI_HYDRA_BOOTSTRAP_EXEC": "/etc/mpi/ssh.sh",
                "I_MPI_HYDRA_HOST_FILE": "/etc/mpi/hostfile",
                "I_MPI_PERHOST": "1",
                "OMPI_MCA_plm_rsh_no_tree_spawn": "1",
                "PRTE_MCA_plm_ssh_no_tree_spawn": "1",
                **barrier_variables,
                "NVIDIA_VISIBLE_DEVICES": "",
                "NVIDIA_DRIVER_CAPABILITIES": "",
            }.items()
        ],
        "volumeMounts": [
            {"name": "oarsman-ssh", "mountPath": "/etc/oarsman/ssh"},
            {"name": "ssh-auth", "mountPath": "/root/.ssh"},
            {"name": "mpi-job-config", "mountPath": "/etc/mpi"},
            {"name": "oarsman-run", "mountPath": "/run/oarsman"},
        ],
    }
    barrier = {
        "name": "oarsman-barrier",
        "image": "pi",
        "command": ["/bin/sh", "/etc/mpi/barrier.sh"],
        "env": [
            {"name": name, "value": value}
            for name, value in {**barrier_variables, "OARSMAN_BARRIER_SECONDS": "300"}.items()
        ],
        "volumeMounts": [
            {"name": "oarsman-ssh", "mountPath": "/etc/oarsman/ssh"},
            {"name": "mpi-job-config", "mountPath": "/etc/mpi"},
            {"name": "oarsman-run", "mountPath": "/run/oarsman"},
        ],
    }
    keys = [{"key": "known_hosts", "path": "known_hosts"}, {"key": "ssh-privatekey", "path": "id"}]
    scripts = items("discover_hosts.sh", "ssh.sh", "passwd.sh", "barrier.sh", "launch.sh", mode=0o555)
    volumes = [
        {
            "name": "oarsman-ssh",
            "projected": {"sources": [{"secret": {"name": "pi-ssh", "items": keys}}], "defaultMode": 0o444},
        },
        {
            "name": "ssh-auth",
            "secret": {
                "secretName": "pi-ssh",
                "items": [
                    {"key": "ssh-privatekey", "path": "id_rsa"},
                    {"key": "ssh-publickey", "path": "authorized_keys"},
                    {"key": "known_hosts", "path": "known_hosts"},
                ],
                "defaultMode": 0o600,
            },
        },
        {
            "name": "mpi-job-config",
            "configMap": {
                "name": "pi-config",
                "items": [*items("hostfile", mode=0o444), *scripts, *items("ssh_config", mode=0o444)],
            },
        },
        {"name": "oarsman-run", "emptyDir": {"medium": "Memory"}},
    ]
    assert launcher(job, 3, OPTIONS) == {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": "pi-launcher",
            "namespace": "default",
            "labels": {"app": "pi", **LABELS},
            "annotations": {"oarsman.dev/attempt": "3"},
            "ownerReferences": [OWNER],
        },
        "spec": {
            "backoffLimit": 0,
            "podReplacementPolicy": "Failed",
            "template": {
                "metadata": {
                    "labels": {**LABELS, "training.kubeflow.org/job-role": "launcher"},
                    "annotations": {
                        "oarsman.dev/attempt": "3",
                        "oarsman.dev/template": fingerprint(job.launcher.template),
                    },
                },
                "spec": {
                    "hostname": "pi-launcher",
                    "subdomain": "pi",
                    "restartPolicy": "Never",
                    "dnsConfig": {"searches": ["pi.default.svc.cluster.local"]},
                    "initContainers": [barrier],
                    "containers": [main],
                    "volumes": volumes,
                },
            },
        },
    }


def test_a_worker_of_a_silent_manifest() -> None:
    job = a_kube_job()
    own = [{"key": "host-key-1", "path": "host_key"}, {"key": "ssh-publickey", "path": "authorized_keys"}]
    assert worker(job, 1, OPTIONS) == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "pi-worker-1",
            "namespace": "default",
            "labels": {**LABELS, "training.kubeflow.org/job-role": "worker", INDEX: "1"},
            "annotations": {"oarsman.dev/template": fingerprint(job.worker.template if job.worker else {})},
            "ownerReferences": [OWNER],
        },
        "spec": {
            "hostname": "pi-worker-1",
            "subdomain": "pi",
            "restartPolicy": "Never",
            "dnsConfig": {"searches": ["pi.default.svc.cluster.local"]},
            "containers": [
                {
                    **PI,
                    "command": ["/bin/sh", "/etc/mpi/worker.sh"],
                    "env": [
                        {"name": "K_MPI_JOB_ROLE", "value": "worker"},
                        {"name": "OARSMAN_SSH_PORT", "value": "2222"},
                    ],
                    "volumeMounts": [
                        {"name": "ssh-auth", "mountPath": "/root/.ssh"},
                        {"name": "mpi-job-config", "mountPath": "/etc/mpi"},
                        {"name": "oarsman-run", "mountPath": "/run/oarsman"},
                        {"name": "oarsman-ssh", "mountPath": "/etc/oarsman/ssh"},
                    ],
                }
            ],
            "volumes": [
                {
                    "name": "ssh-auth",
                    "secret": {
                        "secretName": "pi-ssh",
                        "items": [
                            {"key": "host-key-1", "path": "id_rsa"},
                            {"key": "ssh-publickey", "path": "authorized_keys"},
                        ],
                        "defaultMode": 0o600,
                    },
                },
                {
                    "name": "mpi-job-config",
                    "configMap": {
                        "name": "pi-config",
                        "items": items("passwd.sh", "worker.sh", "ssh.sh", mode=0o555),
                    },
                },
                {"name": "oarsman-run", "emptyDir": {"medium": "Memory"}},
                {
                    "name": "oarsman-ssh",
                    "projected": {"sources": [{"secret": {"name": "pi-ssh", "items": own}}], "defaultMode": 0o444},
                },
            ],
        },
    }


# -- a launcher that takes ranks (C26) ----------------------------------------------------------------
def test_a_launcher_that_takes_ranks_is_number_0_sees_its_gpus_and_does_not_log_in_to_itself() -> None:
    job = a_kube_job(runLauncherAsWorker=True)
    made, first = pod_of(job), worker(job, 0, OPTIONS)
    assert (made["metadata"]["labels"][INDEX], first["metadata"]["labels"][INDEX]) == ("0", "1")
    seen = variables(made["spec"]["containers"][0])
    assert "NVIDIA_VISIBLE_DEVICES" not in seen
    assert "NVIDIA_DRIVER_CAPABILITIES" not in seen
    assert seen["PRTE_MCA_prte_keep_fqdn_hostnames"] == "false"
    assert seen["OMPI_MCA_orte_keep_fqdn_hostnames"] == "true"


def test_a_launcher_without_workers_sees_its_gpus_and_waits_for_nobody() -> None:
    made = pod_of(a_kube_job(workers=None))
    assert "NVIDIA_VISIBLE_DEVICES" not in variables(made["spec"]["containers"][0])
    assert "initContainers" not in made["spec"]


# -- what the manifest says is kept (C27) -------------------------------------------------------------
OVERRIDES: dict[str, Any] = {
    "slotsPerWorker": 5,
    "mpiImplementation": "Intel",
    "sshAuthMountPath": "/home/mpiuser/.ssh",
    "runPolicy": {"ttlSecondsAfterFinished": 1, "activeDeadlineSeconds": 2, "backoffLimit": 3},
    "launcher_role": {
        "restartPolicy": "OnFailure",
        "template": {
            "metadata": {
                "labels": {"foo": "bar", "training.kubeflow.org/job-name": "not-mine"},
                "annotations": {"note": "kept"},
            },
            "spec": {
                "containers": [
                    {
                        "name": "mpi",
                        "image": "pi",
                        "command": ["mpirun", "./pi"],
                        "securityContext": {"runAsUser": 1000},
                        "env": [
                            {"name": "FOO", "value": "bar"},
                            {"name": "I_MPI_PERHOST", "value": "1"},
                            {"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"},
                        ],
                        "volumeMounts": [{"name": "fool-vol", "mountPath": "/mnt/foo"}],
                    },
                    {"name": "second", "image": "side"},
                ],
                "nodeSelector": {"disk": "fast"},
                "volumes": [{"name": "fool-vol", "emptyDir": {}}],
            },
        },
    },
    "worker_role": {
        "replicas": 13,
        "restartPolicy": "OnFailure",
        "template": {
            "spec": {
                "containers": [{"name": "mpi", "image": "pi", "command": ["/entrypoint.sh"]}],
                "hostNetwork": True,
            }
        },
    },
}


def test_a_launcher_keeps_what_its_template_says() -> None:
    job = a_kube_job(**OVERRIDES)
    made = pod_of(job)
    main, second = made["spec"]["containers"]
    assert made["metadata"]["labels"]["foo"] == "bar"
    assert made["metadata"]["labels"]["training.kubeflow.org/job-name"] == "pi"
    assert made["metadata"]["annotations"]["note"] == "kept"
    assert second == {"name": "second", "image": "side"}
    assert made["spec"]["nodeSelector"] == {"disk": "fast"}
    assert made["spec"]["volumes"][0] == {"name": "fool-vol", "emptyDir": {}}
    assert main["volumeMounts"][0] == {"name": "fool-vol", "mountPath": "/mnt/foo"}
    assert [v["name"] for v in main["env"]][:3] == ["FOO", "I_MPI_PERHOST", "NVIDIA_VISIBLE_DEVICES"]


def test_the_users_variables_win_over_ours() -> None:
    main = pod_of(a_kube_job(**OVERRIDES))["spec"]["containers"][0]
    values = [(v["name"], v.get("value")) for v in main["env"]]
    assert [value for name, value in values if name == "I_MPI_PERHOST"] == ["1"]
    assert [value for name, value in values if name == "NVIDIA_VISIBLE_DEVICES"] == ["all"]
    assert ("I_MPI_HYDRA_HOST_FILE", "/etc/mpi/hostfile") in values
    assert ("OARSMAN_HYDRA", "yes") in values


def test_limits_of_the_job_are_not_given_to_the_launchers_job_which_never_retries() -> None:
    spec = launcher(a_kube_job(**OVERRIDES), 1, OPTIONS)["spec"]
    assert set(spec) == {"backoffLimit", "podReplacementPolicy", "template"}
    assert spec["backoffLimit"] == 0
    assert spec["template"]["spec"]["restartPolicy"] == "Never"


def test_keys_outside_of_root_have_the_mode_that_another_user_can_read() -> None:
    job = a_kube_job(**OVERRIDES)
    for pod in (pod_of(job), worker(job, 12, OPTIONS)):
        [keys] = [v for v in pod["spec"]["volumes"] if v["name"] == "ssh-auth"]
        assert "defaultMode" not in keys["secret"]
        mounts = pod["spec"]["containers"][0]["volumeMounts"]
        assert {"name": "ssh-auth", "mountPath": "/home/mpiuser/.ssh"} in mounts


def test_a_worker_keeps_what_its_template_says() -> None:
    made = worker(a_kube_job(**OVERRIDES), 12, OPTIONS)
    spec, [main] = made["spec"], made["spec"]["containers"]
    assert made["metadata"]["labels"][INDEX] == "12"
    assert (spec["hostname"], spec["subdomain"]) == ("pi-worker-12", "pi")
    assert (spec["hostNetwork"], spec["dnsPolicy"]) == (True, "ClusterFirstWithHostNet")
    assert spec["restartPolicy"] == "OnFailure"
    assert main["command"] == ["/entrypoint.sh"]
    assert variables(main) == {"K_MPI_JOB_ROLE": "worker"}
    assert [m["name"] for m in main["volumeMounts"]] == ["ssh-auth", "mpi-job-config"]  # nothing of ours runs there


def test_templates_are_copied_and_never_changed() -> None:
    job = a_kube_job(**OVERRIDES)
    before = fingerprint(job.launcher.template), fingerprint(job.worker.template if job.worker else {})
    launcher(job, 1, OPTIONS)
    worker(job, 0, OPTIONS)
    assert (fingerprint(job.launcher.template), fingerprint(job.worker.template if job.worker else {})) == before


# -- the network ----------------------------------------------------------------------------------------
@pytest.mark.parametrize(("domain", "search"), [("", "cluster.local"), ("example.org", "example.org")])
def test_names_are_searched_in_the_clusters_domain_after_the_users_own(domain: str, search: str) -> None:
    job = a_kube_job(worker={"dnsConfig": {"searches": ["mine.example"]}})
    made = worker(job, 0, KubeOptions(cluster_domain=domain))
    assert made["spec"]["dnsConfig"]["searches"] == ["mine.example", f"pi.default.svc.{search}"]


@pytest.mark.parametrize(
    ("given", "stays"),
    [
        pytest.param({}, False, id="mpirun would take a worker on its own host for itself"),
        pytest.param({"runLauncherAsWorker": True}, True, id="it takes ranks itself"),
        pytest.param({"workers": None}, True, id="there are no workers"),
    ],
)
def test_whether_a_launcher_stays_on_the_network_of_its_host(given: dict[str, Any], stays: bool) -> None:
    spec = pod_of(a_kube_job(launcher={"hostNetwork": True}, **given))["spec"]
    assert spec.get("hostNetwork", False) is stays
    assert spec.get("dnsPolicy") == ("ClusterFirstWithHostNet" if stays else None)


def test_on_a_hosts_network_a_worker_has_a_port_of_its_own_that_the_scheduler_knows() -> None:
    job = a_kube_job(worker={"hostNetwork": True})
    ports = [worker(job, i, OPTIONS)["spec"]["containers"][0]["ports"] for i in range(2)]
    numbers = [port["hostPort"] for [port] in ports]
    assert numbers[1] == numbers[0] + 1
    assert all(20000 <= number < 30000 for number in numbers)
    assert [port["containerPort"] for [port] in ports] == numbers
    main = worker(job, 1, OPTIONS)["spec"]["containers"][0]
    assert variables(main)["OARSMAN_SSH_PORT"] == str(numbers[1])


# -- commands -------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("given", "command"),
    [
        pytest.param({"command": ["mpirun", "-np", "2", "a"]}, ["mpirun", "-np", "2", "a"], id="as it is"),
        pytest.param({"command": ["mpirun", "-x", "A"]}, ["mpirun", "-x", "A"], id="nothing to spell anew"),
        pytest.param({"command": ["mpirun", "-bind-to", "none", "a"]}, ["mpirun", "--bind-to", "none", "a"], id="two"),
        pytest.param(
            {"command": ["mpirun", "-bind-to", "none", "a"], "mpiImplementation": "MPICH"},
            ["mpirun", "-bind-to", "none", "a"],
            id="Hydra takes one dash",
        ),
        pytest.param(
            {
                "command": ["mpirun", "-bind-to", "none", "a"],
                "annotations": {"oarsman.dev/rewrite-launch-line": "false"},
            },
            ["mpirun", "-bind-to", "none", "a"],
            id="not wanted",
        ),
        pytest.param(
            {
                "command": ["mpirun", "a"],
                "annotations": {"oarsman.dev/tag-output": "true"},
                "mpiImplementation": "MPICH",
            },
            ["mpirun", "-prepend-rank", "a"],
            id="tagged by Hydra",
        ),
    ],
)
def test_the_command_runs_under_our_script(given: dict[str, Any], command: list[str]) -> None:
    main = pod_of(a_kube_job(**given))["spec"]["containers"][0]
    assert main["command"] == ["/bin/sh", "/etc/mpi/launch.sh", *command]
    assert "args" not in main


def test_what_an_image_starts_by_itself_is_left_to_it() -> None:
    job = a_kube_job(launcher={"containers": [{"name": "mpi", "image": "pi", "args": ["-np", "2"]}]})
    main = pod_of(job)["spec"]["containers"][0]
    assert "command" not in main
    assert main["args"] == ["-np", "2"]


@pytest.mark.parametrize(
    ("container", "command"),
    [
        pytest.param({}, ["/bin/sh", "/etc/mpi/worker.sh"], id="none: our sshd"),
        pytest.param(
            {"command": ["/usr/sbin/sshd"], "args": ["-De"]},
            ["/bin/sh", "/etc/mpi/worker.sh", "-De"],
            id="an sshd",
        ),
        pytest.param(
            {"command": ["/usr/sbin/sshd", "-De", "-f", "/home/mpiuser/.sshd_config"]},
            ["/usr/sbin/sshd", "-De", "-f", "/home/mpiuser/.sshd_config", "-h", "/root/.ssh/id_rsa"],
            id="an sshd with a file of its own: our host key",
        ),
        pytest.param({"command": ["sh", "-c", "start"]}, ["sh", "-c", "start"], id="something else"),
    ],
)
def test_the_sshd_of_a_worker(container: dict[str, Any], command: list[str]) -> None:
    job = a_kube_job(worker={"containers": [{**PI, **container}]})
    main = worker(job, 0, OPTIONS)["spec"]["containers"][0]
    assert main["command"] == command
    assert "args" not in main


# -- users ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("given", "named"),
    [
        pytest.param({}, False, id="root, or whom the image says"),
        pytest.param({"pod": {"securityContext": {"runAsUser": 1000}}}, True, id="of the pod"),
        pytest.param({"main": {"securityContext": {"runAsUser": 1000}}}, True, id="of the container"),
        pytest.param(
            {"pod": {"securityContext": {"runAsUser": 1000}}, "main": {"securityContext": {"runAsUser": 0}}},
            False,
            id="the container's root wins",
        ),
        pytest.param({"annotations": {"oarsman.dev/any-user": "true"}}, True, id="whom an admission plugin chooses"),
    ],
)
def test_a_user_the_image_may_not_know_gets_a_name(given: dict[str, Any], named: bool) -> None:
    pod = {"containers": [{**PI, "command": ["mpirun", "a"], **given.get("main", {})}], **given.get("pod", {})}
    worker_pod = {"containers": [{**PI, **given.get("main", {})}], **given.get("pod", {})}
    job = a_kube_job(launcher=pod, worker=worker_pod, annotations=given.get("annotations"))
    passwd = {"name": "oarsman-run", "mountPath": "/etc/passwd", "subPath": "passwd", "readOnly": True}
    for made in (pod_of(job)["spec"], worker(job, 0, OPTIONS)["spec"]):
        before = made.get("initContainers", [])
        assert [c["command"] for c in before if c["name"] == "oarsman-user"] == [
            ["/bin/sh", "/etc/mpi/passwd.sh"]
        ] * int(named)
        others = [c for c in (*before, *made["containers"]) if c["name"] != "oarsman-user"]
        assert all((passwd in c["volumeMounts"]) is named for c in others)
        if named and before:
            assert before[0]["name"] == "oarsman-user"  # the others mount what it makes


def test_what_runs_before_has_the_containers_image_user_and_cpu_but_not_its_devices() -> None:
    amounts = {"limits": {"cpu": "2", "memory": "1Gi", "nvidia.com/gpu": 1}, "requests": {"cpu": "1"}}
    extras = {"imagePullPolicy": "Always", "securityContext": {"runAsUser": 5}, "resources": amounts}
    job = a_kube_job(launcher={"containers": [{**PI, "command": ["mpirun", "a"], **extras}]})
    for container in pod_of(job)["spec"]["initContainers"]:
        assert (container["image"], container["imagePullPolicy"]) == ("pi", "Always")
        assert container["securityContext"] == {"runAsUser": 5}
        assert container["resources"] == {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}}


def test_the_users_init_containers_come_first() -> None:
    job = a_kube_job(launcher={"initContainers": [{"name": "data", "image": "fetch"}]})
    before = pod_of(job)["spec"]["initContainers"]
    assert [c["name"] for c in before] == ["data", "oarsman-barrier"]
    assert before[0] == {"name": "data", "image": "fetch"}


# -- the start barrier --------------------------------------------------------------------------------------
def test_a_launcher_without_the_barrier_starts_at_once() -> None:
    job = a_kube_job(annotations={"oarsman.dev/start-barrier": "false"})
    (before,) = pod_of(job)["spec"]["initContainers"]  # it still lays out the key
    assert {"name": "OARSMAN_BARRIER_SECONDS", "value": ""} in before["env"]


LED_ELSEWHERE = {
    "name": "mpi",
    "image": "pi",
    "command": ["mpirun", "a"],
    "env": [{"name": "OMPI_MCA_plm_rsh_agent", "value": "ssh"}],
}


def test_a_launcher_alone_is_told_to_wait_for_its_own_name_unless_nothing_is_to_be_waited_for() -> None:
    (main,) = pod_of(a_kube_job(workers=None))["spec"]["containers"]
    assert variables(main)["OARSMAN_OWN_NAME_SECONDS"] == "300"
    (main,) = pod_of(a_kube_job())["spec"]["containers"]
    assert "OARSMAN_OWN_NAME_SECONDS" not in variables(main)
    (main,) = pod_of(a_kube_job(workers=None, annotations={"oarsman.dev/start-barrier": "false"}))["spec"]["containers"]
    assert "OARSMAN_OWN_NAME_SECONDS" not in variables(main)


def test_how_long_the_barrier_waits_is_the_operators_to_say() -> None:
    made = launcher(a_kube_job(), 1, KubeOptions(barrier_seconds=7))["spec"]["template"]["spec"]
    assert variables(made["initContainers"][0])["OARSMAN_BARRIER_SECONDS"] == "7"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({"command": ["mpirun", "-np", "1", "a"]}, "1", id="one rank, one host"),
        pytest.param({"command": ["mpirun", "a"]}, "2", id="all slots"),
        pytest.param({"command": ["mpirun", "-host", "pi-worker-1", "a"]}, "pi-worker-1", id="one that it names"),
        pytest.param({"command": ["mpirun", "a"], "runLauncherAsWorker": True}, "2", id="but itself"),
        pytest.param({"command": ["sh", "train.sh"]}, "", id="nobody knows"),
        pytest.param({"command": ["mpirun", "-mca", "plm_rsh_agent", "x", "a"]}, "", id="by a way of its own"),
        pytest.param({"command": ["horovodrun", "-np", "2", "a"]}, "", id="horovod finds its own"),
        pytest.param(
            {"launcher": {"containers": [LED_ELSEWHERE]}},
            "",
            id="led another way by a variable",
        ),
    ],
)
def test_hosts_that_mpirun_must_go_to_are_told_to_the_script_that_checks(given: dict[str, Any], expected: str) -> None:
    main = pod_of(a_kube_job(**given))["spec"]["containers"][0]
    assert variables(main)["OARSMAN_EXPECTED"] == expected


def test_an_image_may_say_itself_what_becomes_of_its_last_words() -> None:
    job = a_kube_job(launcher={"containers": [{**PI, "command": ["mpirun"], "terminationMessagePolicy": "File"}]})
    assert pod_of(job)["spec"]["containers"][0]["terminationMessagePolicy"] == "File"


@pytest.mark.parametrize(("policy", "of_the_pod"), [("Never", "Never"), ("OnFailure", "OnFailure")])
def test_restart_policy_of_workers(policy: str, of_the_pod: str) -> None:
    made = worker(a_kube_job(worker_role={"restartPolicy": policy}), 0, OPTIONS)
    assert made["spec"]["restartPolicy"] == of_the_pod


def test_the_key_of_worker_1000_comes_from_a_second_secret() -> None:
    job = a_kube_job(workers=1001, slotsPerWorker=1)
    made = worker(job, 1000, OPTIONS)["spec"]
    [keys] = [v for v in made["volumes"] if v["name"] == "oarsman-ssh"]
    assert keys["projected"]["sources"] == [
        {"secret": {"name": "pi-ssh-1", "items": [{"key": "host-key-1000", "path": "host_key"}]}},
        {"secret": {"name": "pi-ssh", "items": [{"key": "ssh-publickey", "path": "authorized_keys"}]}},
    ]
    [known] = [v for v in pod_of(job)["spec"]["volumes"] if v["name"] == "oarsman-ssh"]
    paths = [item["path"] for source in known["projected"]["sources"] for item in source["secret"]["items"]]
    assert paths == ["known_hosts", "id", "known_hosts-1"]


def test_worker_1000_gets_its_keys_also_where_an_sshd_of_its_own_looks_for_them() -> None:
    command = {"containers": [{**PI, "command": ["/usr/sbin/sshd", "-De", "-f", "/home/u/.sshd_config"]}]}
    job = a_kube_job(workers=1001, slotsPerWorker=1, sshAuthMountPath="/home/u/.ssh", worker=command)
    made = worker(job, 1000, OPTIONS)["spec"]
    assert {"name": "ssh-auth", "mountPath": "/home/u/.ssh"} in made["containers"][0]["volumeMounts"]
    [keys] = [v for v in made["volumes"] if v["name"] == "ssh-auth"]
    assert keys["projected"]["sources"] == [
        {"secret": {"name": "pi-ssh-1", "items": [{"key": "host-key-1000", "path": "id_rsa"}]}},
        {"secret": {"name": "pi-ssh", "items": [{"key": "ssh-publickey", "path": "authorized_keys"}]}},
    ]


def test_a_launcher_of_many_hosts_finds_the_list_of_the_moment_where_the_others_are() -> None:
    job = a_kube_job(workers=2000, command=["mpirun", "a"])
    made = launcher(job, 1, OPTIONS, PodPreparation(many_hosts=True))["spec"]["template"]["spec"]
    [volume] = [v for v in made["volumes"] if v["name"] == "mpi-job-config"]
    config, hosts = (source["configMap"] for source in volume["projected"]["sources"])
    assert (config["name"], hosts["name"]) == ("pi-config", "pi-hosts")
    assert [item["key"] for item in hosts["items"]] == ["discover_hosts.sh"]
    assert "discover_hosts.sh" not in [item["key"] for item in config["items"]]
    assert sum(len(part["name"]) + len(part.get("value", "")) for part in made["containers"][0]["env"]) < 2**17


def test_a_volume_of_ours_that_the_template_mounts_is_mounted_once_at_a_place() -> None:
    mount = {"name": "mpi-job-config", "mountPath": "/etc/mpi"}
    main = {"name": "mpi", "image": "pi", "command": ["mpirun", "./pi"], "volumeMounts": [mount]}
    looks = {"name": "look", "image": "pi", "volumeMounts": [mount, {"name": "ssh-auth", "mountPath": "/keys"}]}
    job = a_kube_job(launcher={"containers": [main], "initContainers": [looks]})
    spec = launcher(job, 1, OPTIONS)["spec"]["template"]["spec"]
    assert spec["containers"][0]["volumeMounts"].count(mount) == 1
    assert spec["initContainers"][0] == looks
    names = [volume["name"] for volume in spec["volumes"]]
    assert (names.count("mpi-job-config"), names.count("ssh-auth")) == (1, 1)
