from __future__ import annotations

from decimal import Decimal

import pytest
from manifest_samples import SEEDS

from oarsman.job.job import ApiVersion, CleanPodPolicy, LauncherKind, RestartPolicy, Transport
from oarsman.manifest import documents, job_checked_before, job_from_document, load


@pytest.mark.parametrize("file", sorted(SEEDS.glob("*.yaml")), ids=lambda file: file.stem)
def test_every_seed_loads_as_printed_and_again_from_its_document(file) -> None:
    (job,) = load(file.read_bytes(), file.name)
    (document,) = documents(file.read_bytes(), file.name)
    assert job_from_document(document) == job
    assert job_checked_before(document) == job
    assert job.document == document


def test_the_benchmark_of_v1_has_two_single_slot_workers_with_a_virtual_gpu() -> None:
    (job,) = load((SEEDS / "tensorflow-benchmarks-v1.yaml").read_text())
    assert (job.api_version, job.transport, job.launcher_kind) == (ApiVersion.V1, Transport.EXEC, LauncherKind.POD)
    assert job.hosts == ("tensorflow-benchmarks-worker-0", "tensorflow-benchmarks-worker-1")
    assert (job.slots, job.total_replicas) == (2, 3)
    assert job.run_policy.clean_pod_policy is CleanPodPolicy.RUNNING
    assert job.launcher.restart_policy is RestartPolicy.NEVER
    assert job.worker is not None
    assert job.worker.container.resources.limits == {
        "cpu": Decimal(2),
        "memory": Decimal(4 * 2**30),
        "nvidia.com/gpumem": Decimal(1000),
        "nvidia.com/vgpu": Decimal(1),
    }
    assert job.worker.container.resources.gpus == 1
    assert not job.run_launcher_as_worker
    assert job.launch is not None
    assert job.launch.processes == 2
    assert job.launch.program[0] == "python"


def test_the_elastic_seed_says_how_far_it_grows_and_shrinks() -> None:
    (job,) = load((SEEDS / "tensorflow-mnist-elastic.yaml").read_text())
    assert job.elastic
    assert job.launch is not None
    assert (job.launch.min_processes, job.launch.processes, job.launch.max_processes) == (1, 2, 3)
    assert job.launch.host_discovery_script == "/etc/mpi/discover_hosts.sh"
    assert job.run_policy.clean_pod_policy is CleanPodPolicy.RUNNING


def test_the_benchmark_of_v2beta1_keeps_what_the_server_wrote() -> None:
    (job,) = load((SEEDS / "tensorflow-benchmarks-v2beta1.yaml").read_text())
    assert (job.transport, job.launcher_kind) == (Transport.SSH, LauncherKind.JOB)
    assert job.uid == "1c5b470f-a297-11e9-964d-88d7f67c6e6d"
    assert job.created_at is not None
    assert job.created_at.isoformat() == "2019-07-09T22:15:51+00:00"
    assert job.launcher.restart_policy is RestartPolicy.ON_FAILURE
    assert not job.implementation_stated
    assert job.worker is not None
    assert job.worker.container.resources.gpus == 2
