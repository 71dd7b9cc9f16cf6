"""The numbers that dashboards read: upstream's names, no endless labels, nothing left of jobs that are gone."""

from __future__ import annotations

import pytest
from prometheus_client.parser import text_string_to_metric_families

from oarsman import __version__
from oarsman.control.health import Metrics

UPSTREAM = {
    "mpi_operator_jobs_created_total",
    "mpi_operator_jobs_successful_total",
    "mpi_operator_jobs_failed_total",
    "mpi_operator_is_leader",
}


@pytest.fixture
def metrics() -> Metrics:
    return Metrics(process=False)


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(name, labels)


def names(metrics: Metrics) -> set[str]:
    families = text_string_to_metric_families(metrics.expose()[0].decode())
    return {sample.name for family in families for sample in family.samples}


def test_upstreams_names_are_there_from_the_start_and_count_from_zero(metrics: Metrics) -> None:
    assert names(metrics) >= UPSTREAM
    assert {value(metrics, name) for name in UPSTREAM} == {0.0}


def test_each_fact_counts_once(metrics: Metrics) -> None:
    metrics.created.inc()
    metrics.created.inc()
    metrics.successful.inc()
    metrics.failed.inc()
    metrics.status_writes.inc()
    assert value(metrics, "mpi_operator_jobs_created_total") == 2
    assert value(metrics, "mpi_operator_jobs_successful_total") == 1
    assert value(metrics, "mpi_operator_jobs_failed_total") == 1
    assert value(metrics, "oarsman_status_writes_total") == 1


def test_the_series_of_a_job_goes_with_the_job(metrics: Metrics) -> None:
    metrics.launcher_seen("ns", "pi-launcher")
    metrics.launcher_seen("ns", "tau-launcher")
    metrics.launcher_seen("ns", "pi-launcher")
    assert value(metrics, "mpi_operator_job_info", namespace="ns", launcher="pi-launcher") == 1
    metrics.job_gone("ns", "pi-launcher")
    metrics.job_gone("ns", "never-seen")
    assert value(metrics, "mpi_operator_job_info", namespace="ns", launcher="pi-launcher") is None
    assert value(metrics, "mpi_operator_job_info", namespace="ns", launcher="tau-launcher") == 1


def test_leading_is_one_and_following_is_zero(metrics: Metrics) -> None:
    metrics.leader.set(1)
    assert value(metrics, "mpi_operator_is_leader") == 1
    metrics.leader.set(0)
    assert value(metrics, "mpi_operator_is_leader") == 0


def test_turns_are_measured_by_result_and_an_unknown_result_is_an_error(metrics: Metrics) -> None:
    metrics.turn("ok", 0.2)
    metrics.turn("odd", 0.1)
    assert value(metrics, "oarsman_reconcile_seconds_count", result="ok") == 1
    assert value(metrics, "oarsman_reconcile_seconds_count", result="error") == 1
    assert value(metrics, "oarsman_reconcile_seconds_count", result="retry") == 0


def test_a_clock_that_runs_ahead_makes_no_negative_start(metrics: Metrics) -> None:
    metrics.started_after(-1)
    metrics.started_after(7)
    assert value(metrics, "oarsman_job_start_seconds_sum") == 7
    assert value(metrics, "oarsman_job_start_seconds_bucket", le="0.5") == 1


def test_requests_are_counted_by_verb_resource_and_code(metrics: Metrics) -> None:
    metrics.request("get", "pods", 200, 0.01)
    metrics.request("get", "pods", 404, 0.01)
    metrics.request("create", "pods", None, 5)
    metrics.request("create", "pods", 0, 5)
    assert value(metrics, "oarsman_api_requests_total", verb="get", resource="pods", code="404") == 1
    assert value(metrics, "oarsman_api_requests_total", verb="create", resource="pods", code="0") == 2
    assert value(metrics, "oarsman_api_request_seconds_count", verb="get") == 2


def test_labels_are_bounded(metrics: Metrics) -> None:
    for number in range(1000):
        metrics.request(f"verb{number}", f"plural{number}", number, 0.01)
    metrics.request("verb0", "plural0", 200, 0.01)
    series = [line for line in metrics.expose()[0].decode().splitlines() if line.startswith("oarsman_api_requests")]
    assert len(series) < 2 * 65 + 600
    assert 'resource="other"' in "".join(series)
    assert value(metrics, "oarsman_api_requests_total", verb="verb0", resource="plural0", code="200") == 1


def test_a_state_without_jobs_falls_to_zero(metrics: Metrics) -> None:
    metrics.jobs({"Running": 3, "Queued": 1})
    metrics.jobs({"Running": 2})
    assert value(metrics, "oarsman_jobs", state="Running") == 2
    assert value(metrics, "oarsman_jobs", state="Queued") == 0


def test_the_queue_is_asked_when_somebody_scrapes(metrics: Metrics) -> None:
    queue = [1, 2]
    metrics.queue_depth.set_function(lambda: len(queue))
    queue.append(3)
    assert value(metrics, "oarsman_queue_depth") == 3
    metrics.queue_depth.set_function(lambda: 7)  # leads a second time
    assert value(metrics, "oarsman_queue_depth") == 7


def test_the_version_is_told(metrics: Metrics) -> None:
    assert value(metrics, "oarsman_build_info", version=__version__) == 1


def test_two_operators_share_no_numbers_and_readers_get_the_form_they_accept() -> None:
    one, other = Metrics(), Metrics()
    one.created.inc()
    assert value(other, "mpi_operator_jobs_created_total") == 0
    text, plain = one.expose()
    assert plain.startswith("text/plain")
    assert b"process_resident_memory_bytes" in text
    openmetrics, kind = one.expose("application/openmetrics-text; version=1.0.0")
    assert kind.startswith("application/openmetrics-text")
    assert openmetrics.endswith(b"# EOF\n")
