from __future__ import annotations

import pytest
from manifest_samples import V1, V2BETA1, command, spec, worker

from oarsman.errors import ManifestError
from oarsman.job.job import (
    ApiVersion,
    CleanPodPolicy,
    EnvVar,
    Implementation,
    LauncherCreation,
    ManagedBy,
    RestartPolicy,
    Transport,
    Volume,
    VolumeMount,
)
from oarsman.manifest import documents, job_checked_before, job_from_document, load, sketch
from tests.builders import T0


def one(text: str):
    (job,) = load(text)
    return job


def test_a_silent_manifest_of_v2beta1_gets_its_defaults() -> None:
    job = one(V2BETA1)
    assert job.launcher.restart_policy is RestartPolicy.ON_FAILURE
    assert job.worker.restart_policy is RestartPolicy.NEVER
    assert job.launcher.replicas == 1
    assert job.run_policy.clean_pod_policy is CleanPodPolicy.NONE
    assert not job.run_policy.suspend
    assert job.implementation is Implementation.OPENMPI
    assert not job.implementation_stated
    assert job.launcher_creation is LauncherCreation.AT_STARTUP
    assert job.ssh_auth_mount_path == "/root/.ssh"
    assert job.namespace == "default"
    assert (job.generation, job.uid, job.created_at) == (1, "", None)
    assert (job.worker.volumes, job.worker.init_containers) == ((), ())


def test_a_silent_manifest_of_v1_never_restarts() -> None:
    job = one(V1)
    assert (job.launcher.restart_policy, job.worker.restart_policy) == (RestartPolicy.NEVER, RestartPolicy.NEVER)


@pytest.mark.parametrize(
    ("text", "policy"),
    [
        ("cleanPodPolicy: All", CleanPodPolicy.ALL),
        ("runPolicy: {cleanPodPolicy: Running}", CleanPodPolicy.RUNNING),
        ("cleanPodPolicy: All\nrunPolicy: {cleanPodPolicy: All}", CleanPodPolicy.ALL),
        ("runPolicy: null", CleanPodPolicy.NONE),
        ("cleanPodPolicy: null", CleanPodPolicy.NONE),
    ],
)
def test_v1_takes_the_clean_policy_from_either_place(text: str, policy: CleanPodPolicy) -> None:
    assert one(spec(text, base=V1)).run_policy.clean_pod_policy is policy


def test_every_field_of_v2beta1_arrives() -> None:
    job = one(
        spec(
            """\
runLauncherAsWorker: true
launcherCreationPolicy: WaitForWorkersReady
mpiImplementation: OpenMPI
sshAuthMountPath: /home/mpi/.ssh
runPolicy:
  suspend: true
  managedBy: kueue.x-k8s.io/multikueue
  backoffLimit: 3
  activeDeadlineSeconds: 4000000000
  ttlSecondsAfterFinished: 60
  schedulingPolicy: {minAvailable: 2, queue: q, priorityClass: high, minResources: {cpu: 1.5}}"""
        )
    )
    assert job.run_launcher_as_worker
    assert job.hosts == ("pi-launcher", "pi-worker-0", "pi-worker-1")
    assert job.launcher_creation is LauncherCreation.WAIT_FOR_WORKERS_READY
    assert job.implementation_stated
    assert job.ssh_auth_mount_path == "/home/mpi/.ssh"
    policy = job.run_policy
    assert (policy.suspend, policy.managed_by, policy.backoff_limit) == (True, ManagedBy.MULTIKUEUE, 3)
    assert (policy.active_deadline_seconds, policy.ttl_seconds_after_finished) == (4_000_000_000, 60)
    assert policy.scheduling is not None
    assert str(policy.scheduling.min_resources["cpu"]) == "1.5"
    assert (policy.scheduling.min_available, policy.scheduling.queue) == (2, "q")


@pytest.mark.parametrize("limit", ["nvidia.com/gpu", "amd.com/gpu", "nvidia.com/gpumem", "gpu.intel.com/i915"])
def test_a_launcher_of_v1_with_a_gpu_limit_takes_ranks(limit: str) -> None:
    text = V1.replace("image: pi\n", f"image: pi\n            resources: {{limits: {{{limit}: 1}}}}\n", 1)
    assert one(text).run_launcher_as_worker


def test_a_worker_of_v1_with_a_gpu_keeps_the_launcher_free_of_ranks() -> None:
    assert not one(worker("resources: {limits: {nvidia.com/gpu: 1}}", base=V1)).run_launcher_as_worker


def test_the_main_container_of_v1_is_found_in_each_role() -> None:
    text = spec("mainContainer: train", base=V1) + "          - name: train\n            image: train\n"
    job = one(text)
    assert (job.main_container, job.worker.main, job.launcher.main) == ("train", 1, 0)
    assert job.worker.container.image == "train"


def test_a_job_without_workers_runs_on_its_launcher() -> None:
    job = one(V2BETA1[: V2BETA1.index("    Worker:")])
    assert job.worker is None
    assert (job.hosts, job.slots) == (("pi-launcher",), 2)


def test_the_parts_of_a_template_that_engines_use_are_read() -> None:
    job = one(
        worker(
            """\
workingDir: /work
env:
- {name: A, value: b}
- {name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
- {name: KEY, valueFrom: {secretKeyRef: {name: s, key: k}}}
- {name: EMPTY}
envFrom: [{configMapRef: {name: settings}}]
volumeMounts: [{name: data, mountPath: /data, subPath: x, readOnly: true}, {name: shm, mountPath: /dev/shm}]"""
        )
        + "          volumes:\n"
        + "          - {name: data, hostPath: {path: /srv, type: Directory}}\n"
        + "          - {name: shm, emptyDir: {medium: Memory, sizeLimit: 1Gi}}\n"
        + "          - {name: conf, configMap: {name: c, defaultMode: 0644}}\n"
    )
    container = job.worker.container
    assert container.env == (
        EnvVar(name="A", value="b"),
        EnvVar(name="POD", field_path="metadata.name"),
        EnvVar(name="KEY", other_source="secretKeyRef"),
        EnvVar(name="EMPTY"),
    )
    assert (container.working_dir, container.env_from) == ("/work", ("settings",))
    assert container.mounts == (
        VolumeMount(name="data", mount_path="/data", sub_path="x", read_only=True),
        VolumeMount(name="shm", mount_path="/dev/shm", sub_path="", read_only=False),
    )
    data, shm, conf = job.worker.volumes
    assert data == Volume(name="data", kind="hostPath", host_path="/srv", host_path_type="Directory")
    assert (shm.medium, shm.size_limit) == ("Memory", 2**30)
    assert conf.kind == "configMap"
    assert job.worker.template["spec"]["volumes"][2]["configMap"]["defaultMode"] == 0o644


def test_numbers_are_bounded_by_what_kubernetes_can_keep() -> None:
    for field, most in (("activeDeadlineSeconds", 2**63 - 1), ("backoffLimit", 2**31 - 1)):
        one(spec(f"runPolicy: {{{field}: {most}}}"))
        with pytest.raises(ManifestError, match=f"must be at most {most}, not {most + 1}"):
            load(spec(f"runPolicy: {{{field}: {most + 1}}}"))
    with pytest.raises(ManifestError, match=f"must be at most {2**31 - 1}, not {2**31}"):
        load(V2BETA1.replace("replicas: 2", f"replicas: {2**31}"))


def test_labels_of_a_template_are_texts_or_nothing() -> None:
    text = V2BETA1.replace("template:", "template:\n        metadata: {labels: {a: b, c: null}}", 1)
    assert one(text).launcher.template["metadata"]["labels"] == {"a": "b", "c": None}
    with pytest.raises(ManifestError, match="must be a string, not 5"):
        load(text.replace("a: b", "a: 5"))


def test_containers_that_run_first_are_read_too() -> None:
    job = one(V2BETA1 + "          initContainers: [{name: fetch, image: curl}]\n")
    assert [(c.name, c.image) for c in job.worker.init_containers] == [("fetch", "curl")]


def test_what_the_server_wrote_down_of_a_job_is_read() -> None:
    for written, created in (
        ("2026-01-01T00:00:00Z", T0),
        ("2026-01-01T00:00:00", T0),
        ("2026-01-01T01:00:00+01:00", T0),
        ("soon", None),
    ):
        given = f"  name: pi\n  uid: u-1\n  generation: 7\n  creationTimestamp: '{written}'\n"
        job = one(V2BETA1.replace("  name: pi\n", given))
        assert (job.uid, job.generation, job.created_at) == ("u-1", 7, created)


def test_a_version_that_is_nearly_right_is_read_as_the_one_that_was_meant() -> None:
    text = V1.replace("kubeflow.org/v1", "kubeflow.org/v1.").replace(
        "Launcher:", "Launcher:\n      restartPolicy: Always"
    )
    with pytest.raises(ManifestError) as caught:
        load(text)
    assert [(problem.field, problem.meant) for problem in caught.value.problems] == [("apiVersion", "kubeflow.org/v1")]


def test_what_is_not_checked_in_a_template_passes_through_untouched() -> None:
    text = V2BETA1 + "          affinity: {nodeAffinity: {anything: [1, {b: null}]}}\n"
    assert one(text).worker.template["spec"]["affinity"] == {"nodeAffinity": {"anything": [1, {"b": None}]}}


def test_a_field_of_a_template_that_is_not_known_is_a_warning_and_reaches_the_pod() -> None:
    text = V2BETA1 + "          schedulingGroups: {podGroupName: together}\n          hostNetwrok: true\n"
    job = one(text)
    assert job.worker.template["spec"]["schedulingGroups"] == {"podGroupName": "together"}
    assert [(found.line, found.message, found.meant) for found in job.warnings] == [
        (22, "unknown field 'schedulingGroups'", "schedulingGroup"),
        (23, "unknown field 'hostNetwrok'", "hostNetwork"),
    ]
    again = one(f"\n{text}")
    assert [found.line for found in again.warnings] == [23, 24]
    assert job_from_document(job.document).warnings


def test_volumes_that_the_operator_adds_may_be_mounted_without_being_named() -> None:
    mounts = "[{name: mpi-job-config, mountPath: /etc/mpi}, {name: ssh-auth, mountPath: /keys}]"
    looks = "{name: look, image: pi, volumeMounts: " + mounts + "}"
    assert len(one(V2BETA1 + f"          initContainers: [{looks}]\n").worker.init_containers) == 1
    with pytest.raises(ManifestError, match="the pod has no volume 'mpi-job-confog'"):
        one(V2BETA1 + f"          initContainers: [{looks.replace('config', 'confog')}]\n")


def test_a_misspelled_field_that_the_job_needs_is_a_mistake() -> None:
    mounts = worker("volumeMounts: [{name: data, mountPath: /data}]")
    text = mounts + "          volumez: [{name: data, emptyDir: {}}]\n"
    with pytest.raises(ManifestError) as caught:
        load(text)
    assert [(found.meant, found.warning) for found in caught.value.problems] == [("volumes", False)]


@pytest.mark.parametrize(
    "words",
    [
        "[mpirun, --oversubscribe, -np, '99', ./pi]",
        "[mpirun, --map-by, 'slot:OVERSUBSCRIBE', -np, '99', ./pi]",
        "[mpirun, -mca, rmaps_base_oversubscribe, '1', -np, '99', ./pi]",
        "[mpirun, --hostfile, /my/hosts, -np, '99', ./pi]",
        "[mpirun, --hostfile, /etc/mpich/hosts, -np, '99', ./pi]",
        "[sh, -c, 'mpirun $OPTIONS -np 99 ./pi']",
        "[mpirun, -np, $(UNKNOWN), ./pi]",
        "[python, launcher.py]",
    ],
)
def test_more_processes_than_slots_are_fine_when_asked_for_or_not_visible(words: str) -> None:
    assert one(command(words)).slots == 4


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("[mpirun, --hostfile, /etc/mpi/hostfile, -np, '5', ./pi]", "asks for 5 processes but there are 4 slots"),
        ("[mpirun, --host, 'a:2,b:3', -np, '6', ./pi]", "asks for 6 processes but there are 5 slots"),
        ("[mpirun, --host, a, -np, '2', ./pi]", "asks for 2 processes but there is 1 slot"),
        ("[mpirun, --host, 'a:2,b:3', -np, '5', ./pi]", None),
        ("[mpirun, -npernode, '2', ./pi]", None),
        ("[mpirun, -npernode, '3', ./pi]", "asks for 3 processes per node but a node has 2 slots"),
        ("[mpirun, --host, 'a:3', -npernode, '3', ./pi]", None),
        ("[mpirun, -np, '4', ./pi]", None),
        ("[mpirun, -np, '5', ./pi]\n            env: [{name: OMPI_MCA_rmaps_base_oversubscribe, value: '1'}]", None),
        ("[mpirun, -np, '5', ./pi]\n            env: [{name: A, value: ':OVERSUBSCRIBE'}]", None),
        ("[mpirun, -np, '99', ./pi, 5]", "must be a string, not 5"),  # nothing is concluded from broken words
        ("[horovodrun, --min-np, '4', ./pi]", None),
        ("[horovodrun, --min-np, '5', ./pi]", "waits for 5 processes but there are 4 slots"),
        ("[horovodrun, --min-np, '2', --max-np, '2', -np, '2', ./pi]", None),
        ("[horovodrun, --min-np, '2', -np, '1', ./pi]", "starts 1 processes but wants at least 2"),
        ("[horovodrun, --min-np, '1', --max-np, '2', -np, '3', ./pi]", "starts 3 processes but wants at most 2"),
        ("[horovodrun, --min-np, '0', ./pi]", "must allow at least 1 process, but at least 0 are asked for"),
        (
            "[horovodrun, --min-np, '1', --max-np, '0', ./pi]",
            "must allow at least 1 process, but at most 0 are asked for",
        ),
        ("[horovodrun, -np, '99', ./pi]", None),
    ],
)
def test_processes_are_compared_with_slots(words: str, message: str | None) -> None:
    if message is None:
        assert one(command(words)).launch is not None
        return
    with pytest.raises(ManifestError) as caught:
        load(command(words))
    assert [message in problem.message for problem in caught.value.problems] == [True]


def test_nothing_is_concluded_from_misspelled_words() -> None:
    job = one(command("[mpirun, -np, '99', ./pi]").replace("command:", "comand:"))
    assert [problem.message for problem in job.warnings] == ["unknown field 'comand'"]


TRAIN = spec("mainContainer: train", base=V1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TRAIN + "          - {nmae: train, image: t}\n", "unknown field 'nmae'"),
        (TRAIN + "          - {name: 5, image: t}\n", "must be a string, not 5"),
        (TRAIN.partition("    Worker:")[0] + "    Worker: 5\n", "must be a mapping, not 5"),
        (TRAIN.replace("\n    Worker:", "\nWorker:"), "unknown field 'Worker'"),
        (spec("mainContainer: 5", base=command("[mpirun, -np, '99', ./pi]", base=V1)), "must be a string, not 5"),
    ],
)
def test_nothing_is_concluded_from_a_main_container_while_it_is_not_clear_which_one_it_is(
    text: str, message: str
) -> None:
    with pytest.raises(ManifestError) as caught:
        load(text)
    assert [problem.message for problem in caught.value.problems] == [message]


@pytest.mark.parametrize(
    "text",
    [
        spec("mpiImplementation: MPICH", base=command("[mpirun, -np, '99', ./pi]")),
        spec("mpiImplementation: Intel", base=command("[mpirun, -np, '99', ./pi]")),
        command("[mpiexec.hydra, -np, '99', ./pi]"),
        command("[mpirun, -np, '99', ./pi]").replace(
            "name: pi", "name: pi\n  annotations: {oarsman.dev/mpi: mpich}", 1
        ),
        command("[mpirun, -np, '99', ./pi]").replace(
            "name: pi", "name: pi\n  annotations: {oarsman.dev/mpi: /opt/mpi}", 1
        ),
    ],
)
def test_other_mpis_put_as_many_processes_on_a_host_as_they_are_told_to(text: str) -> None:
    assert one(text).launch.processes == 99


def test_a_variable_of_the_container_is_read_into_the_launch_line() -> None:
    text = command("[mpirun, -np, $(NP), ./pi]\n            env: [{name: NP, value: '3'}]")
    assert one(text).launch.processes == 3
    text = command("[sh, -c, 'exec mpirun -np $NP ./pi']\n            env: [{name: NP, value: '3'}]")
    assert one(text).launch.processes == 3


@pytest.mark.parametrize("source", ["fieldRef: {fieldPath: metadata.uid}", "secretKeyRef: {name: a, key: b}"])
def test_a_variable_whose_value_is_elsewhere_stays_as_it_is_written(source: str) -> None:
    text = command(f"[mpirun, -np, $(NP), -x, A, ./pi]\n            env: [{{name: NP, valueFrom: {{{source}}}}}]")
    assert one(text).launch.options == ("-np", "$(NP)", "-x", "A")


def test_several_documents_and_lists_hold_several_jobs() -> None:
    second = V2BETA1.replace("name: pi\n", "name: pj\n", 1)
    assert [job.name for job in load(f"---\n{V2BETA1}---\n\n---\n{second}")] == ["pi", "pj"]
    items = "".join(f"- {text.replace(chr(10), chr(10) + '  ').rstrip()}\n" for text in (V2BETA1, second))
    assert [job.name for job in load(f"apiVersion: v1\nkind: List\nitems:\n{items}")] == ["pi", "pj"]


def test_only_a_list_stands_for_its_items() -> None:
    with pytest.raises(ManifestError) as caught:
        load(f"{V2BETA1}items: []\n")
    assert [problem.message for problem in caught.value.problems] == ["unknown field 'items'"]


def test_anchors_and_merge_keys_work_as_in_any_yaml() -> None:
    text = V2BETA1.replace("      template:\n", "      template: &pod\n", 1)
    text = text[: text.index("    Worker:")] + "    Worker:\n      replicas: 1\n      template:\n        <<: *pod\n"
    job = one(text)
    assert job.worker.container == job.launcher.container


def test_json_is_yaml() -> None:
    import json

    (document,) = documents(V2BETA1)
    assert one(json.dumps(document, indent=1)).document == document


def test_status_and_server_written_metadata_are_accepted() -> None:
    written = (
        "  creationTimestamp: null\n  managedFields: [{manager: kubectl}]\n  finalizers: [a/b]\n  ownerReferences: []\n"
    )
    assert one(V2BETA1.replace("  name: pi\n", f"  name: pi\n{written}") + "status: {conditions: []}\n").name == "pi"


def test_a_copy_that_a_cluster_printed_in_another_version_is_read_as_it_was_written() -> None:
    job = one(spec("writtenAs: kubeflow.org/v2beta1\nmpiImplementation: MPICH", base=V1))
    assert (job.api_version, job.transport, job.implementation) == (
        ApiVersion.V2BETA1,
        Transport.SSH,
        Implementation.MPICH,
    )
    assert job.document["apiVersion"] == "kubeflow.org/v2beta1"
    with pytest.raises(ManifestError, match="unknown field 'writtenAs'"):
        one(spec("writtenAs: v3"))


def test_rules_that_came_later_do_not_hide_a_job_that_was_taken_before() -> None:
    (document,) = documents(V2BETA1)
    document["metadata"]["name"] = "Not_a_name_any_more"
    with pytest.raises(ManifestError):
        job_from_document(document)
    assert job_checked_before(document).name == "Not_a_name_any_more"


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"apiVersion": "kubeflow.org/v3", "kind": "MPIJob"},
        {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "metadata": {"name": "pi"}},
        {**documents(V2BETA1)[0], "spec": {"mpiReplicaSpecs": {"Launcher": {"template": {}}}}},
        {
            **documents(V2BETA1)[0],
            "spec": {"mpiReplicaSpecs": {"Launcher": {"template": {"spec": {"containers": []}}}}},
        },
        {**documents(V2BETA1)[0], "spec": {"mpiReplicaSpecs": {"Launcher": {"template": {"spec": [1]}}}}},
    ],
)
def test_what_cannot_be_read_is_told_like_any_other_mistake(document) -> None:
    with pytest.raises(ManifestError) as told:
        job_checked_before(document)
    with pytest.raises(ManifestError) as checked:
        job_from_document(document)
    assert told.value.problems == checked.value.problems


def test_of_a_document_that_is_no_job_as_much_is_shown_as_there_is() -> None:
    container = {"name": "c", "image": "i", "command": ["sh"], "args": ["-c", 1]}
    role = {"replicas": 3, "template": {"spec": {"containers": [container]}}}
    metadata = {"name": "a", "namespace": "b", "creationTimestamp": T0.isoformat()}
    found = sketch({"metadata": metadata, "spec": {"mpiReplicaSpecs": {"Launcher": role, "Worker": role}}})
    assert (found.key, found.generation, found.created_at) == ("b/a", 1, T0)
    assert (found.launcher.replicas, found.workers, found.launcher.container.argv) == (1, 3, ("sh", "-c"))
