"""`oarsman operator`: upstream's flags as they are, what they mean, how it logs, and how it stops."""

from __future__ import annotations

import io
import json
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from oarsman import __version__
from oarsman.cli import operator
from oarsman.control import process as log_lines
from oarsman.control.operator_settings import OperatorSettings
from oarsman.engines.kube.client import Access
from oarsman.errors import ClusterError, UsageError

from .fakes import FakeJobs, oarsman

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: test
contexts: [{name: test, context: {cluster: test, user: test}}]
clusters: [{name: test, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: test, user: {token: secret}}]
"""


class Called:
    """Stands for the operator's loop: remembers what it was started with."""

    def __init__(self) -> None:
        self.settings = OperatorSettings()
        self.access: Access | None = None

    async def run(self, settings: OperatorSettings, access: Access) -> None:
        self.settings, self.access = settings, access


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Called:
    called = Called()
    module = ModuleType("oarsman.control.operator")
    module.run = called.run  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    (tmp_path / "kubeconfig").write_text(KUBECONFIG)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    monkeypatch.delenv("KUBEFLOW_NAMESPACE", raising=False)
    return called


@pytest.fixture(autouse=True)
def _logging() -> Iterator[None]:
    """What the command sets up for its whole process is undone."""
    root, ours = logging.getLogger(), logging.getLogger("oarsman")
    kept = root.handlers[:], root.level, ours.level
    yield
    root.handlers[:], root.level, ours.level = kept[0], kept[1], kept[2]


def started(called: Called, *words: str, **env: str) -> OperatorSettings:
    result = oarsman(FakeJobs(), "operator", *words, **env)
    assert (result.exit_code, result.stdout) == (0, ""), result.stderr
    assert called.access is not None
    return called.settings


def refused(*words: str) -> str:
    result = oarsman(FakeJobs(), "operator", *words)
    assert result.exit_code == 2
    return result.stderr


def test_without_flags_nothing_is_limited_and_everything_is_served(called: Called) -> None:
    assert started(called) == OperatorSettings()
    assert called.settings.rate is None
    assert (called.settings.health_port, called.settings.monitoring_port) == (8080, 8081)
    assert called.settings.namespaces == ()
    assert called.access is not None
    assert called.access.server == "http://127.0.0.1:1"


def test_every_flag_of_upstream_is_understood(called: Called) -> None:
    settings = started(
        called,
        "-alsologtostderr",
        "--namespace",
        "team",
        "-threadiness=3",
        "-monitoring-port",
        "9090",
        "--gang-scheduling=volcano",
        "-lock-namespace=kubeflow",
        "--kube-api-qps=50",
        "--kube-api-burst",
        "70",
        "-controller-queue-rate-limit=20",
        "-controller-queue-burst=30",
        "-cluster-domain",
        "cluster.local.",
        "--kubectl-delivery-image=image:1",
    )
    assert settings == OperatorSettings(
        namespaces=("team",),
        threadiness=3,
        monitoring_port=9090,
        gang_scheduling="volcano",
        lock_namespace="kubeflow",
        qps=50,
        burst=70,
        cluster_domain="cluster.local",
        kubectl_delivery_image="image:1",
    )
    assert settings.rate == (50, 70)


@pytest.mark.parametrize(
    "words", [["--health-port=1"], ["-health-port=1"], ["-health-port", "1"], ["--health-port", "1"]]
)
def test_a_flag_has_one_dash_or_two_and_its_value_behind_it_or_after_it(called: Called, words: list[str]) -> None:
    assert started(called, *words).health_port == 1


@pytest.mark.parametrize(
    ("word", "leads"),
    [
        ("--leader-elect", True),
        ("-leader-elect", True),
        ("--leader-elect=true", True),
        ("-leader-elect=T", True),
        ("--leader-elect=1", True),
        ("--leader-elect=false", False),
        ("-leader-elect=0", False),
        ("--no-leader-elect", False),
    ],
)
def test_booleans_are_given_as_go_programs_take_them(called: Called, word: str, leads: bool) -> None:
    assert started(called, word).leader_elect is leads


def test_a_boolean_takes_nothing_else() -> None:
    assert refused("--leader-elect=maybe") == "error: --leader-elect takes true or false\n"


@pytest.mark.parametrize("name", ["--kubeConfig", "-kubeConfig", "--kubeconfig", "-kubeconfig"])
def test_the_kubeconfig_named_comes_before_the_environments(called: Called, name: str, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text(KUBECONFIG.replace("127.0.0.1:1", "127.0.0.1:2"))
    started(called, name, str(other))
    assert called.access is not None
    assert called.access.server == "http://127.0.0.1:2"
    started(called, f"{name}={other}", "--master=http://127.0.0.1:3")
    assert called.access.server == "http://127.0.0.1:3"


def test_the_delivery_image_has_two_names(called: Called) -> None:
    assert started(called, "--mpi-kubectl-delivery-image=i:2").kubectl_delivery_image == "i:2"


def test_flags_of_klog_are_accepted_and_said_to_mean_nothing(called: Called) -> None:
    flags = ["-logtostderr=true", "-stderrthreshold", "INFO", "-v", "5", "--vmodule=a=1", "-skip_headers"]
    result = oarsman(FakeJobs(), "operator", *flags, "--health-port=7")
    assert result.exit_code == 0
    assert called.settings.health_port == 7
    assert called.settings.log_level == "debug"  # klog's -v from 4 on
    (line,) = [line for line in result.stderr.splitlines() if "klog" in line]
    assert line.endswith("-logtostderr=true -stderrthreshold=INFO -v=5 -vmodule=a=1 -skip_headers=true")


@pytest.mark.parametrize(
    ("words", "level"),
    [
        ([], "info"),
        (["-v=2"], "info"),
        (["-v=4"], "debug"),
        (["-v=4", "--log-level=error"], "error"),
        (["-q"], "warning"),
        (["-v=junk"], "info"),
    ],
)
def test_the_level_of_the_log(called: Called, words: list[str], level: str) -> None:
    assert started(called, *words).log_level == level


@pytest.mark.parametrize("word", ["--version", "-version", "--version=true"])
def test_the_version_is_shown_and_nothing_starts(called: Called, word: str) -> None:
    result = oarsman(FakeJobs(), "operator", word)
    assert (result.exit_code, result.stdout) == (0, f"oarsman {__version__}\n")
    assert called.access is None


def test_namespaces_are_a_list_and_the_environment_counts_only_without_a_flag(called: Called) -> None:
    assert started(called, "--namespace=a,b,,a", "--namespace", " c ").namespaces == ("a", "b", "c")
    assert started(called, KUBEFLOW_NAMESPACE="x").namespaces == ("x",)
    assert started(called, "--namespace=a", KUBEFLOW_NAMESPACE="x").namespaces == ("a",)
    assert started(called, "--namespace=", KUBEFLOW_NAMESPACE="x").namespaces == ()


@pytest.mark.parametrize("name", ["Team", "a_b", "-a", "a" * 64, "a/b"])
def test_what_cannot_be_a_namespace_is_refused(called: Called, name: str) -> None:
    assert f"'{name}' is not the name of a namespace" in refused(f"--namespace={name}")
    assert called.access is None


@pytest.mark.parametrize("word", ["--kube-api-qps=0", "--kube-api-qps=-1", "-kube-api-qps=-5"])
def test_no_rate_and_a_negative_one_mean_no_limit(called: Called, word: str) -> None:
    assert started(called, word, "--kube-api-burst=10").rate is None


def test_a_rate_without_a_burst_has_twice_as_much(called: Called) -> None:
    assert started(called, "--kube-api-qps=30").rate == (30, 60)


def test_mistakes_are_explained() -> None:
    assert "did you mean --threadiness?" in refused("-threadines=2")
    assert "--threadiness takes a whole number, 1 or more" in refused("--threadiness=0")
    assert "--health-port takes a whole number" in refused("--health-port=http")
    assert "--log-format takes one of: text, json" in refused("--log-format=xml")
    assert "unexpected argument: start" in refused("start")


def test_a_missing_library_is_named_with_the_way_to_get_it(called: Called, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("oarsman.control.operator", "oarsman.control.health"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    assert refused() == (
        "error: the operator needs prometheus_client, which is not installed\n"
        "  hint: install it with: pip install 'oarsman[kube]'\n"
    )


def test_the_lease_lies_in_the_pods_own_namespace_or_upstreams(tmp_path: Path) -> None:
    assert operator.own_namespace(tmp_path) == "mpi-operator"
    (tmp_path / "namespace").write_text("kubeflow\n")
    assert operator.own_namespace(tmp_path) == "kubeflow"


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (ClusterError("somebody has taken the lease"), 75, "somebody has taken the lease"),
        (UsageError("port 1 is taken", hint="choose another"), 2, "port 1 is taken (choose another)"),
        (ZeroDivisionError("oh"), 70, "the operator failed"),
    ],
)
def test_what_ends_the_operator_is_a_line_of_its_log(
    called: Called, monkeypatch: pytest.MonkeyPatch, error: Exception, code: int, message: str
) -> None:
    async def run(settings: object, access: object) -> None:
        raise error

    monkeypatch.setattr(sys.modules["oarsman.control.operator"], "run", run)
    result = oarsman(FakeJobs(), "operator", "--log-format=json")
    assert result.exit_code == code
    (line,) = map(json.loads, result.stderr.splitlines())
    assert (line["level"], line["message"]) == ("error", message)
    assert ("ZeroDivisionError" in line.get("error", "")) == (code == 70)


# -- the log ---------------------------------------------------------------------------------------------


def logged(**settings: Any) -> list[str]:
    stream = io.StringIO()
    log_lines.set_up("info", stream=stream, **settings)
    log = logging.getLogger("oarsman.test")
    log.debug("not shown")
    log.info("one\ntwo \x1b[31mred 作业", extra={"job": "ns/pi"})
    try:
        raise ValueError("a\nb")
    except ValueError:
        log.exception("failed")
    logging.getLogger("library").info("not shown either")
    return stream.getvalue().splitlines()


def test_every_record_is_one_line_of_text() -> None:
    first, second = logged()
    moment, rest = first.split(" ", 1)
    assert rest == "info oarsman.test: one\\ntwo \\x1b[31mred 作业"
    assert moment.endswith("Z")
    assert "failed\\nTraceback" in second
    assert second.endswith("ValueError: a\\nb")


def test_every_record_is_one_object_of_json() -> None:
    first, second = map(json.loads, logged(as_json=True))
    assert first["message"] == "one\ntwo \x1b[31mred 作业"
    assert (first["level"], first["logger"], first["job"]) == ("info", "oarsman.test", "ns/pi")
    assert second["error"].endswith("ValueError: a\nb")


# -- the end ---------------------------------------------------------------------------------------------

SCRIPT = """
import asyncio, sys
from oarsman.errors import RetryableError
from oarsman.control import process
from oarsman.control.process import run_until_told

async def work():
    print(type(asyncio.get_running_loop()).__module__, flush=True)
    try:
        await asyncio.sleep(600)
    finally:
        await asyncio.sleep({drain})
        print("in order", flush=True)

process.set_up("info")
run_until_told(work(), patience={patience})
print("after", flush=True)
"""


def process(drain: float, patience: float) -> subprocess.Popen[str]:
    script = SCRIPT.format(drain=drain, patience=patience)
    child = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ}
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "uvloop\n"
    return child


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_things_be_put_in_order_and_the_end_is_a_good_one(number: signal.Signals) -> None:
    with process(drain=0.2, patience=120) as child:
        child.send_signal(number)
        out, err = child.communicate(timeout=120)
    assert (child.returncode, out) == (0, "in order\nafter\n")
    assert [line.split(": ", 1)[1] for line in err.splitlines()] == [f"{number.name}: stopping", "stopped"]


def test_the_second_signal_ends_it_at_once() -> None:
    with process(drain=500, patience=600) as child:
        assert child.stderr is not None
        child.send_signal(signal.SIGTERM)
        assert "stopping" in child.stderr.readline()
        child.send_signal(signal.SIGTERM)
        assert child.wait(120) == 128 + signal.SIGTERM
        assert child.stdout is not None
        assert child.stdout.read() == ""


def test_what_does_not_stop_in_time_is_ended() -> None:
    with process(drain=500, patience=0.2) as child:
        child.send_signal(signal.SIGTERM)
        out, err = child.communicate(timeout=120)
    assert (child.returncode, out) == (1, "")
    assert "did not stop within 0 s" in err
