"""The door to SSH hosts: the same store as this machine's, and jobs that stay where they were meant to run."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from waiting import waiting

from backends.local.local_backends import document, finished, listening, local_backend, without_a_supervisor
from oarsman import names
from oarsman.backends.base import HostFinding, current_user
from oarsman.backends.local.backend import LocalBackend
from oarsman.backends.ssh.backend import SshBackend
from oarsman.control import host_state
from oarsman.engines.hosts.ssh.diagnose.judge import Finding
from oarsman.engines.hosts.ssh.host_facts import InventoryFacts
from oarsman.engines.hosts.ssh.inventory_file import load
from oarsman.errors import UsageError, UserError
from oarsman.job.state import Attempt, Cause, Status
from oarsman.job.sweep import Sweep
from oarsman.manifest import to_yaml
from oarsman.service import JobService
from oarsman.service.models import Clone, Identity, Role
from oarsman.service.sweep_runs import Handing, SweepRunner
from oarsman.status.codec import to_wire
from oarsman.store.jobs import JobStore
from oarsman.store.paths import Paths
from tests.builders import at

HERE = Path("/")


@pytest.fixture
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Paths:
    without_a_supervisor(monkeypatch)
    return Paths(tmp_path / "state")


@pytest.fixture
def rack(tmp_path: Path, paths: Paths) -> SshBackend:
    (tmp_path / "hosts").write_text("node1 slots=2\nnode2 slots=2\n")
    return waiting(SshBackend(str(tmp_path / "hosts"), paths))


@pytest.fixture
def machine(paths: Paths) -> LocalBackend:
    return local_backend(paths)


def test_a_job_keeps_the_hosts_it_was_submitted_for(rack: SshBackend, tmp_path: Path) -> None:
    record = rack.submit(document(), environment={}, folder=HERE)
    assert record.engine == "ssh"
    assert record.job.annotation(names.ANNOTATION_INVENTORY) == str(tmp_path / "hosts")


def test_hosts_that_attempts_failed_on_are_known_with_the_time(rack: SshBackend, paths: Paths) -> None:
    record = rack.submit(document(), environment={}, folder=HERE)
    assert rack.failed_on() == {}
    causes = [
        Cause(summary="lost", host="pi-worker-0"),
        Cause(summary="no host"),
        Cause(summary="x", host="pi-worker-0"),
    ]
    attempts = tuple(Attempt(number=n + 1, ended=at(n), cause=cause) for n, cause in enumerate(causes))
    status = Status(attempts=(*attempts, Attempt(number=4)), machines={"pi-worker-0": "node2"})
    JobStore(paths.database).write_status(record.job.uid, to_wire(status), finished=True, now=at(9))
    assert rack.failed_on() == {"node2": at(2).timestamp()}


def test_a_job_that_grows_beyond_all_hosts_is_refused_and_stays_as_it_is(rack: SshBackend) -> None:
    wanted = document()
    replicas = wanted["spec"]["mpiReplicaSpecs"]
    replicas["Worker"] = {"replicas": 1, "template": {"spec": {"containers": [{"name": "w"}]}}}
    rack.submit(wanted, environment={}, folder=HERE)
    assert rack.scale("default/pi", 4).job.workers == 4
    with pytest.raises(UserError, match=r"^default/pi can never have 5 workers: asks for 5 slots") as refused:
        rack.scale("default/pi", 5)
    assert refused.value.exit_code == 2
    assert rack.get("default/pi").job.workers == 4
    assert rack.scale("default/pi", 2).job.workers == 2


def test_a_job_of_hosts_goes_there_again_through_the_door_of_this_machine(
    rack: SshBackend, machine: LocalBackend
) -> None:
    finished(rack)
    service = waiting(JobService(machine.here, Identity(name=current_user(), role=Role.ADMIN)))
    assert service.clone("default/pi", Clone(name="tau")).summary.engine == "ssh"
    assert machine.submit(document("rho"), environment={}, folder=HERE).engine == "local"


def test_each_door_finds_every_job_by_name_but_that_of_hosts_lists_its_own(
    rack: SshBackend, machine: LocalBackend
) -> None:
    rack.submit(document("far"), environment={}, folder=HERE)
    machine.submit(document("near"), environment={}, folder=HERE)
    assert [record.job.name for record in rack.list()] == ["far"]
    assert [record.job.name for record in machine.list()] == ["far", "near"]
    assert rack.get("default/near").engine == "local"
    assert machine.get("default/far").engine == "ssh"


def test_only_jobs_on_hosts_are_followed(rack: SshBackend, machine: LocalBackend) -> None:
    machine.submit(document("near"), environment={}, folder=HERE)
    with listening(rack.follow()) as heard:
        assert heard.next().whole
        rack.submit(document("far"), environment={}, folder=HERE)
        assert [record.job.name for record in heard.next().records] == ["far"]


def test_whether_a_job_of_hosts_fits_is_asked_of_them_through_either_door(
    rack: SshBackend, machine: LocalBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = object()

    async def fit(_self: SshBackend, _document: object, *, owner: str) -> object:
        return answer, owner

    monkeypatch.setattr(SshBackend, "fit", fit)
    record = rack.submit(document("far"), environment={}, folder=HERE)
    assert machine.fit(record.job.document, owner="ada") == (answer, "ada")
    assert machine.fit(document("near")).now


def test_a_host_tells_what_the_last_check_found_of_it_that_is_not_well(
    rack: SshBackend, paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def as_known(self: SshBackend) -> InventoryFacts:
        return self._known_inventories.of(str(self.inventory))

    monkeypatch.setattr(SshBackend, "inventory_facts", as_known)  # nobody is asked
    assert [(host.checked, host.findings) for host in rack.hosts()] == [(None, ())] * 2
    findings = [
        Finding(host="node1", step="login", level="ok", message="it lets us log in"),
        Finding(host="node1", step="clock", level="warn", message="node1: its clock is 9 s behind", hint="set it"),
        Finding(host="", step="real run", level="fail", message="mpirun was not tried: no host passed"),
    ]
    host_state.checked(load(rack.inventory), findings, fit=["node1"], unfit={}, clock=lambda: 60.0, paths=paths)
    first, second = rack.hosts()
    assert first.checked == datetime(1970, 1, 1, 0, 1, tzinfo=UTC)
    assert first.findings == (HostFinding(level="warn", message="node1: its clock is 9 s behind", hint="set it"),)
    assert (second.checked, second.findings) == (None, ())


@pytest.mark.parametrize("text", [None, "node1 slots=many\n"])
def test_what_is_wrong_with_the_hosts_is_told_to_whoever_submits(
    tmp_path: Path, paths: Paths, text: str | None
) -> None:
    if text is not None:
        (tmp_path / "hosts").write_text(text)
    rack = waiting(SshBackend(str(tmp_path / "hosts"), paths))
    with pytest.raises(UserError):
        rack.submit(document(), environment={}, folder=HERE)
    assert not rack.list()


def test_without_any_inventory_the_usual_places_are_named(
    paths: Paths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("OARSMAN_HOSTS", raising=False)
    with pytest.raises(UsageError, match="no hosts are known"):
        waiting(SshBackend(None, paths)).submit(document(), environment={}, folder=HERE)
    assert waiting(SshBackend(None, paths)).list() == []  # looking at jobs needs no hosts


def test_a_sweep_of_hosts_is_gone_on_with_on_them_through_the_door_of_this_machine(
    rack: SshBackend, machine: LocalBackend
) -> None:
    sweep = Sweep(name="rates", namespace="default", manifest=to_yaml([document("{{lr}}")]), grid={"lr": [1, 2, 3]})
    handing = Handing(environment={}, folder=HERE)
    waiting(waiting(SweepRunner(rack.here)).begin(sweep, handing)).hand_in(1)
    waiting(waiting(SweepRunner(machine.here)).resume("default/rates", handing)).hand_in()
    assert [record.engine for record in machine.list()] == ["ssh", "ssh", "ssh"]


def test_what_hosts_say_is_kept_in_the_state_that_was_given_and_no_other(
    paths: Paths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OARSMAN_STATE", str(tmp_path / "usual"))
    (tmp_path / "ssh_config").write_text("")
    file = tmp_path / "hosts.yaml"
    file.write_text("sshConfig: ssh_config\nhosts:\n- {name: node1, address: 127.0.0.1, port: 1}\n- node2\n")
    inventory = load(file)
    host_state.checked(inventory, [], fit=[], unfit={"node2": "it is noisy"}, paths=paths)
    found = {host.name: host.message for host in waiting(SshBackend(str(file), paths)).hosts()}
    kept = host_state.known(inventory, paths)["node1"].trouble
    assert found == {"node1": str(kept), "node2": "it is noisy"}
    assert kept is not None
    assert kept.kind == "refused", "whoever reads it later has all of it, with what to do"
    assert "nothing listens" in found["node1"]
    assert not (tmp_path / "usual").exists()
