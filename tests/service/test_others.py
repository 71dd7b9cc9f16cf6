"""What jobs of people with accounts are given, and as whom they run."""

from __future__ import annotations

import asyncio
import os
import pwd
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from console.api.memory import MemoryJobs, a_document

from oarsman import names
from oarsman.errors import ForbiddenError, UsageError
from oarsman.job.confined import confined_by
from oarsman.service import JobService
from oarsman.service.models import Create, EnvironmentSpec, Identity, Role
from oarsman.service.others import Others, RunAs
from tests.memory_environments import MemoryEnvironments

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can run jobs as others")
SERVERS = {"PATH": "/bin", "LC_ALL": "C", "AWS_SECRET_ACCESS_KEY": "x", "OARSMAN_TOKEN": "y", "HOME": "/home/server"}


def be(monkeypatch: pytest.MonkeyPatch, uid: int, home: str = "/home/server") -> None:
    monkeypatch.setattr("os.geteuid", lambda: uid)
    monkeypatch.setenv("HOME", home)


def others(folder: str = "/srv/jobs", run_as: RunAs | None = None, *, here: bool = True) -> Others:
    return Others(folder=Path(folder), hidden=("/state",), here=here, run_as=run_as)


def test_of_the_servers_variables_those_on_a_list_pass_and_what_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    be(monkeypatch, 1000)
    given = others().surroundings("ann", SERVERS, {"SEED": "7", "OARSMAN_CONFINED": "{}", "OARSMAN_STDIN": "/x"})
    confined = confined_by(given)
    del given[names.ENV_CONFINED]
    assert given == {"PATH": "/bin", "LC_ALL": "C", "HOME": "/home/server", "SEED": "7"}
    assert confined is not None
    assert (confined.folder, confined.hidden, confined.user) == ("/srv/jobs", ["/state"], "")


@pytest.mark.parametrize(("folder", "refused"), [("/home/server", True), ("/home", True), ("/home/server/jobs", False)])
def test_jobs_of_others_never_write_into_the_home_of_the_server(
    folder: str, refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What its owner's shell reads there would run with all rights."""
    be(monkeypatch, 1000)
    assert (others(folder).refusal() is not None) == refused
    if refused:
        with pytest.raises(ForbiddenError, match="--folder"):
            others(folder).surroundings("ann", SERVERS, {})


def test_jobs_of_others_never_write_where_every_user_of_the_machine_can_run_what_they_wrote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that belongs to the server's user and says so (set-user-ID) runs as that one, outside of any job."""
    be(monkeypatch, 1000)
    assert others("/usr/share").refusal() is not None
    with pytest.raises(ForbiddenError, match="chmod o-x"):
        others("/usr/share").surroundings("ann", SERVERS, {})
    tmp_path.chmod(0o700)
    assert others(str(tmp_path)).refusal() is None
    (tmp_path / "within").mkdir(mode=0o777)
    assert others(str(tmp_path / "within")).refusal() is None


def test_a_server_of_roots_runs_nothing_for_others_unless_it_is_told_as_whom(monkeypatch: pytest.MonkeyPatch) -> None:
    be(monkeypatch, 0)
    with pytest.raises(ForbiddenError, match="--run-as"):
        others().surroundings("ann", SERVERS, {})
    assert others(here=False).surroundings("ann", SERVERS, {})["PATH"] == "/bin"  # on SSH hosts


def test_whose_jobs_cannot_run_here_is_told_before_anything_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    be(monkeypatch, 0)
    ann = Identity(name="ann", role=Role.USER)
    told = asyncio.run(JobService(MemoryJobs(), ann, others=others(), by_account=True).info())
    assert "--run-as" in told.refusal
    assert told.refusal_hint == "ask the owner of the server to change that"
    for allowed in (others(here=False), None):
        told = asyncio.run(JobService(MemoryJobs(), ann, others=allowed, by_account=True).info())
        assert (told.refusal, told.refusal_hint) == ("", "")


@AS_ROOT
def test_each_account_has_its_own_user_and_that_ones_home() -> None:
    run_as = RunAs.of(["ann=daemon", "same-name"])
    given = others(run_as=run_as).surroundings("ann", SERVERS, {})
    daemon = pwd.getpwnam("daemon")
    assert [given[name] for name in ("HOME", "USER", "LOGNAME")] == [daemon.pw_dir, "daemon", "daemon"]
    confined = confined_by(given)
    assert confined is not None
    assert confined.user == "daemon"
    assert run_as is not None
    assert run_as.user_of("nobody").pw_name == "nobody"
    for account, why in (("root", "root"), ("games", "a user of the system"), ("no-such-user", "no user")):
        with pytest.raises((ForbiddenError, UsageError), match=why):
            run_as.user_of(account)
    named = RunAs.of(["ann=daemon"])
    assert named is not None
    with pytest.raises(ForbiddenError, match="ben has no user"):
        named.user_of("ben")


@AS_ROOT
@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("ann", "does not say who"),
        ("=daemon", "does not say who"),
        ("ann=no-such-user", "no user"),
        ("ann=root", "root"),
    ],
)
def test_what_run_as_cannot_mean_is_refused_at_the_start(given: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        RunAs.of([given])


def test_only_root_can_run_jobs_as_others(monkeypatch: pytest.MonkeyPatch) -> None:
    be(monkeypatch, 1000)
    with pytest.raises(UsageError, match="only root"):
        RunAs.of(["same-name"])
    assert RunAs.of([]) is None


def test_an_environment_is_built_with_the_rights_of_its_owner_whoever_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The owner of the machine may only have written another description."""
    be(monkeypatch, 1000)
    environments = MemoryEnvironments()
    jobs: Any = SimpleNamespace(environments=environments)
    ann, owner = Identity(name="ann", role=Role.USER), Identity(name="somebody", role=Role.ADMIN)
    for identity, by_account, name, confined in (
        (ann, True, "anns", True),
        (owner, False, "anns", True),
        (owner, False, "owners", False),
    ):
        service = JobService(jobs, identity, others=others(), by_account=by_account)
        asyncio.run(service.put_environment(EnvironmentSpec(name=name, requirements="numpy")))
        assert (environments.confined is not None) == confined, (identity, name)
    assert environments.records["anns"].owner == "ann"


@pytest.mark.parametrize(
    ("role", "by_account", "confined"), [(Role.USER, True, True), (Role.ADMIN, True, True), (Role.ADMIN, False, False)]
)
def test_only_the_owner_of_the_machine_has_jobs_with_all_rights_and_no_admin_with_an_account(
    role: Role, by_account: bool, confined: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    be(monkeypatch, 1000)
    jobs = MemoryJobs()
    service = JobService(
        jobs,
        Identity(name="ann", role=role),
        others=others(),
        by_account=by_account,
        folder=Path("/srv/jobs"),
        environment=SERVERS,
    )
    asyncio.run(service.create(Create(document=a_document())))
    (given,) = jobs.submitted
    assert (confined_by(given["environment"]) is not None) is confined
    assert ("AWS_SECRET_ACCESS_KEY" in given["environment"]) is not confined
