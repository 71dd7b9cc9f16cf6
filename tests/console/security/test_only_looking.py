"""Whoever may only look starts no process on the server and has it look at no file: every route of the API is asked, by
a viewer, with arguments that name programs and files of somebody else's choice.

Every route is walked, also those that a viewer may not use, so that a new one is covered by being there.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import traceback
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from fastapi.routing import APIRoute
from pydantic import BaseModel

from oarsman import names
from oarsman.backends.local import follow
from oarsman.console.api import PREFIX
from oarsman.console.console import Console
from oarsman.console.security.headers import security_headers
from oarsman.console.server import listen, make_app, open_console
from oarsman.console.settings import ConsoleSettings
from oarsman.engines.hosts.local import capacity
from oarsman.manifest import to_yaml
from oarsman.manifest.builder import JobSettings, Shape, document
from oarsman.service.contract import operations
from oarsman.service.models import Role
from oarsman.store.jobs import JobStore
from oarsman.store.paths import Paths

NAMED = "named-by-the-caller"  # a part of every path that a hostile argument names
STARTS = {
    "subprocess.Popen",
    "os.exec",
    "os.fork",
    "os.forkpty",
    "os.posix_spawn",
    "os.spawn",
    "os.system",
    "pty.spawn",
}
SECRET = "a-line-of-a-file-of-the-server"


class Deeds:
    """What the threads of the server did: an audit hook cannot be removed, so there is one that listens at times."""

    def __init__(self) -> None:
        self._client: int | None = None
        self.found: list[str] = []
        sys.addaudithook(self._heard)

    @contextmanager
    def noted(self) -> Iterator[list[str]]:
        """Of every thread but this one, which plays the client."""
        self.found, self._client = [], threading.get_ident()
        try:
            yield self.found
        finally:
            self._client = None

    def _heard(self, event: str, words: tuple[object, ...]) -> None:
        if self._client in (None, threading.get_ident()) or event.startswith(("object.", "code.", "sys.", "socket.")):
            return
        if event in STARTS or NAMED in repr(words):
            self.note(f"{event} {words!r}"[:300])

    def note(self, what: str) -> None:
        if self._client not in (None, threading.get_ident()):
            by = [
                f"{frame.filename}:{frame.lineno}" for frame in traceback.extract_stack() if "oarsman" in frame.filename
            ]
            self.found.append(f"{what} at {by[-2:]}")


DEEDS = Deeds()


@pytest.fixture(autouse=True)
def looks_count_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether a file is there is no audit event."""
    for name in ("stat", "lstat", "access", "readlink"):
        real = getattr(os, name)

        def looked(path: Any, *more: Any, _real: Any = real, _name: str = name, **options: Any) -> Any:
            if NAMED in str(path):
                DEEDS.note(f"os.{_name} {path}")
            return _real(path, *more, **options)

        monkeypatch.setattr(os, name, looked)


@pytest.fixture
def named(tmp_path: Path) -> Path:
    """A folder with whatever could be run or read by mistake."""
    folder = tmp_path / NAMED
    folder.mkdir()
    for name in ("mpirun", "mpiexec", "ssh", "nvidia-smi", "python3"):
        (folder / name).write_text(f"#!/bin/sh\ntouch {folder}/ran\necho 'mpirun (Open MPI) 4.1.6'\n")
        (folder / name).chmod(0o755)
    (folder / "config").write_text(f"Host *\n  ProxyCommand touch {folder}/ran\n")
    (folder / "hosts.yaml").write_text("sshConfig: config\nhosts:\n- name: elsewhere\n")
    (folder / "secret").write_text(f"{SECRET}: {{\n")
    return folder


def hostile_documents(named: Path) -> Iterator[dict[str, Any]]:
    """Every annotation that there is, and every field that can name a file or a program, one at a time."""
    upwards = f"../../../../../../../..{named}"
    for path in (str(named), f"{named}/mpirun", f"{named}/hosts.yaml", f"{named}/secret", upwards):
        for key, annotation in vars(names).items():
            if key.startswith("ANNOTATION_"):
                made = a_document()
                made["metadata"]["annotations"] = {annotation: path}
                yield made
        made = a_document()
        made["metadata"] |= {"uid": path, "annotations": {names.ANNOTATION_ENVIRONMENT: "torch"}}
        yield made
    for role in ("Launcher", "Worker"):
        for name, value in (
            ("command", [f"{named}/mpirun", "-n", "2", "true"]),
            ("command", [f"{upwards}/mpirun", "-n", "2", "true"]),
            ("args", [f"{named}/mpirun"]),
            ("workingDir", str(named)),
            ("image", str(named)),
            ("env", [{"name": "PATH", "value": str(named)}, {"name": "LD_PRELOAD", "value": str(named)}]),
            ("volumeMounts", [{"name": "v", "mountPath": str(named)}]),
        ):
            for kind in ("", "DirectoryOrCreate", "Directory") if name == "volumeMounts" else ("",):
                made = a_document()
                pod = made["spec"]["mpiReplicaSpecs"][role]["template"]["spec"]
                pod["containers"][0][name] = value
                pod["volumes"] = [{"name": "v", "hostPath": {"path": str(named), "type": kind}}]
                yield made
    made = a_document()
    made["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0] |= {
        "workingDir": str(named),
        "command": ["./mpirun", "-n", "2", "true"],
    }
    yield made


def a_document(name: str = "other") -> dict[str, Any]:
    made = document(["true"], Shape(processes=2, workers=2), JobSettings(name=name))
    made["metadata"]["namespace"] = "default"
    return made


def hostile_bodies(kind: type[BaseModel], named: Path) -> Iterator[Mapping[str, Any]]:
    """Every field on its own, and every document in every way it can be sent."""
    fields = [field.alias or name for name, field in kind.model_fields.items()]
    for number, made in enumerate(hostile_documents(named)):
        for name in fields:
            if name in ("document", "patch"):
                yield {name: made, "apiVersion": "v1"} if "apiVersion" in fields else {name: made}
            elif name == "manifest" and number % 7 == 0:  # a text becomes the same document
                yield (
                    {name: to_yaml([made]), "name": "swept", "grid": {"n": [1]}}
                    if "grid" in fields
                    else {name: to_yaml([made])}
                )
    for name in fields:
        for path in (str(named), f"{named}/secret"):
            for value in (path, [path], {"PATH": path, "LD_PRELOAD": path}, f"-r {path}"):
                usual = {"document": a_document(), "name": "torch", "requirements": ""}  # where there are such fields
                yield {field: of for field, of in usual.items() if field in fields} | {name: value}


class Route:
    """One route of the API, and requests for it whose arguments name what they should not."""

    def __init__(self, route: APIRoute, named: Path) -> None:
        self.method, self.path = next(iter(route.methods)), route.path
        self._route, self._named = route, named

    def requests(self) -> Iterator[tuple[str, dict[str, Any]]]:
        usual = {"namespace": "default", "name": "torch" if "/environments" in self.path else "pi", "id": "1"}
        usual |= {one.name: "1" for one in self._route.dependant.path_params if one.name not in usual}
        address = self.path.format(**usual)
        yield address, {}
        strings = (str(self._named), f"../../{self._named}", f"{self._named}/secret", f"1:{self._named}")
        for one in self._route.dependant.path_params:
            for text in strings:
                quoted = text.replace("/", "%2F")
                yield self.path.format(**{**usual, one.name: quoted}), {}
        for dependant in (self._route.dependant, *self._route.dependant.dependencies):
            for one in dependant.query_params:
                yield from ((address, {"params": {one.alias: text}}) for text in strings)
            for one in dependant.header_params:
                yield from ((address, {"headers": {one.alias: text}}) for text in strings)
        for one in self._route.dependant.body_params:
            kind = one.field_info.annotation
            assert isinstance(kind, type), kind
            assert issubclass(kind, BaseModel), kind
            yield from ((address, {"json": body}) for body in hostile_bodies(kind, self._named))


def routes_of(found: Iterable[Any], named: Path) -> list[Route]:
    """Also those of routers that were included, which newer frameworks keep apart."""
    routes: list[Route] = []
    for one in found:
        if isinstance(one, APIRoute):
            routes.append(Route(one, named))
        elif (router := getattr(one, "original_router", None)) is not None:
            routes += routes_of(router.routes, named)
    return routes


@contextmanager
def serving(settings: ConsoleSettings) -> Iterator[tuple[str, Console, Any]]:
    """The real application, in a thread of this process: where processes are started, the hook hears of it."""
    with listen(settings) as sock:
        console = open_console(settings, sock.getsockname()[1])
        app = make_app(console)
        # Of processes that uvloop starts Python hears nothing.
        config = uvicorn.Config(
            security_headers(app, console.gate.site), loop="asyncio", log_config=None, lifespan="on"
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]})
        thread.start()
        try:
            yield console.gate.site.address, console, app
        finally:
            console.streams.stop()
            server.should_exit = True
            thread.join(60)


def a_client(address: str) -> httpx.Client:
    """A connection for each request: after an accident the server ends it."""
    return httpx.Client(base_url=address, trust_env=False, limits=httpx.Limits(max_keepalive_connections=0))


def a_token(console: Console, name: str, role: Role) -> Mapping[str, str]:
    console.gate.store.accounts.add(name, role, console.gate.store.accounts.hash("correct horse battery"))
    return {"Authorization": f"Bearer {console.gate.store.tokens.make(name, name)[1]}"}


@pytest.fixture(params=["local", "ssh"])
def settings(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ConsoleSettings]:
    """A machine with a GPU, a job that goes on and one that has ended, and hosts that nobody has asked yet."""
    made_real = follow.LocalChanges.__init__

    def made_late(changes: follow.LocalChanges, *given: Any) -> None:
        made_real(changes, *given)
        changes._start_at = time.monotonic() + 3600  # the server itself would have one for the job that goes on

    monkeypatch.setattr(follow.LocalChanges, "__init__", made_late)
    monkeypatch.setattr(follow, "_GRACE", 3600.0)
    monkeypatch.setattr("oarsman.service.others.Others.refusal", lambda _: None)  # where the tests are root's
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "nvidia-smi").write_text("#!/bin/sh\necho '0, 0, 0'\n")
    (tools / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    capacity.gpus.cache_clear()
    (tmp_path / "hosts.yaml").write_text("hosts:\n- name: node1.invalid\n  slots: 4\n")
    paths = Paths(tmp_path / "state")
    paths.make()
    store = JobStore(paths.database)
    for name, finished in (("pi", False), ("over", True)):
        engine = request.param
        made = a_document(name)
        if engine == "ssh":
            made["metadata"]["annotations"] = {names.ANNOTATION_INVENTORY: str(tmp_path / "hosts.yaml")}
        job = store.add(
            uid=f"uid-{name}",
            namespace="default",
            name=name,
            engine=engine,
            owner="vera",
            folder="/",
            document=made,
            environment={},
            now=datetime.now(UTC),
        )
        if finished:
            conditions = [{"type": names.CREATED, "status": "True"}, {"type": names.SUCCEEDED, "status": "True"}]
            store.write_status(job.uid, {"conditions": conditions}, finished=True, now=datetime.now(UTC))
    store.close()
    (tmp_path / "work").mkdir(mode=0o700)
    hosts = str(tmp_path / "hosts.yaml")
    yield ConsoleSettings(port=0, engine=request.param, hosts=hosts, folder=tmp_path / "work", paths=paths)
    capacity.gpus.cache_clear()


def test_a_viewer_starts_no_process_and_has_no_file_looked_at(settings: ConsoleSettings, named: Path) -> None:
    wrong: list[str] = []
    statuses: dict[str, list[int]] = {}
    with serving(settings) as (address, console, app), a_client(address) as client:
        client.headers.update(a_token(console, "vera", Role.VIEWER))
        walked = routes_of(app.routes, named)
        described = {(operation.method, PREFIX + operation.path) for operation in operations().values()}
        assert described <= {(route.method, route.path) for route in walked}
        for route in walked:
            if route.path.startswith("/login") or (route.method, route.path) == ("DELETE", f"{PREFIX}/session"):
                continue
            heard = statuses.setdefault(f"{route.method} {route.path}", [])
            for path, more in route.requests():
                if heard[-3:] == [403] * 3:  # whatever is sent
                    break
                with DEEDS.noted() as deeds, client.stream(route.method, path, **more, timeout=30) as answer:
                    said = b"" if "event-stream" in answer.headers.get("content-type", "") else answer.read()
                heard.append(answer.status_code)
                wrong += [f"{route.method} {path} {str(more)[:300]}: {deed}" for deed in deeds]
                if SECRET.encode() in said:
                    wrong.append(f"{route.method} {path} {str(more)[:300]} tells what is in a file")
                if answer.status_code >= 500:
                    wrong.append(f"{route.method} {path} {str(more)[:300]} is answered with {answer.status_code}")
    assert not wrong, f"{len(wrong)} times:\n" + "\n".join(wrong[:20])
    assert not (named / "ran").exists()
    # None of it was refused before anything looked at it.
    for asked in ("POST /preview", "GET /hosts", "GET /overview", "GET /jobs/{namespace}/{name}", "POST /convert"):
        method, _, path = asked.partition(" ")
        assert 200 in statuses[f"{method} {PREFIX}{path}"], (asked, statuses)


def test_what_a_viewer_is_shown_of_a_job_is_what_its_manifest_says(settings: ConsoleSettings) -> None:
    with serving(settings) as (address, console, _), a_client(address) as client:
        client.headers.update(a_token(console, "vera", Role.VIEWER))
        seen = client.post(f"{PREFIX}/preview", json={"document": a_document()}).json()
        assert (seen["ranks"], seen["slots"], seen["problems"]) == (2, 2, [])
        assert seen["launchLine"] == "mpirun -n 2 true"
        assert seen["placement"] == {"other-worker-0": [0], "other-worker-1": [1]}
        assert client.post(f"{PREFIX}/plan", json={"document": a_document()}).status_code == 403


def test_nobody_names_hosts_to_a_server_that_was_not_started_with_them(settings: ConsoleSettings, named: Path) -> None:
    """Not even an admin: what a page of theirs is made to send is not what they typed."""
    made = a_document()
    made["metadata"]["annotations"] = {names.ANNOTATION_INVENTORY: str(named / "hosts.yaml")}
    with serving(settings) as (address, console, _), a_client(address) as client:
        client.headers.update(a_token(console, "root", Role.ADMIN))
        for path in ("/preview", "/plan", "/jobs", "/sweeps"):
            more = {"manifest": to_yaml([made]), "name": "s", "grid": {"n": [1]}} if path == "/sweeps" else {}
            with DEEDS.noted() as deeds:
                answer = client.post(PREFIX + path, json=more or {"document": made}, timeout=30)
            said = answer.json()
            problems = said["problems"] if path == "/preview" else said["errors"]
            assert [problem["field"] for problem in problems] == [f"metadata.annotations[{names.ANNOTATION_INVENTORY}]"]
            assert not [deed for deed in deeds if NAMED in deed]
    assert not (named / "ran").exists()


@pytest.mark.parametrize("settings", ["ssh"], indirect=True)
def test_what_is_wrong_with_the_file_of_the_hosts_is_not_told_with_its_text(settings: ConsoleSettings) -> None:
    """It is of whoever started the server, and was sound then."""
    with serving(settings) as (address, console, _), a_client(address) as client:
        Path(str(settings.hosts)).write_text(f"root:x:{SECRET}\n")
        for name, role in (("vera", Role.VIEWER), ("ada", Role.USER)):
            client.headers.update(a_token(console, name, role))
            said = [client.get(PREFIX + path).text for path in ("/hosts", "/overview", "/queue")]
            made = {"document": a_document()}
            said += [client.post(PREFIX + path, json=made, timeout=60).text for path in ("/preview", "/plan")]
            assert [text for text in said if SECRET in text] == []
            assert "has mistakes" in said[0]


def test_a_users_manifest_has_nothing_run_or_looked_at_before_the_job_starts(
    settings: ConsoleSettings, named: Path
) -> None:
    """What is installed on the server's own PATH is asked; what the caller names is not."""
    wrong: list[str] = []
    answered: set[tuple[str, int]] = set()
    with serving(settings) as (address, console, app), a_client(address) as client:
        client.headers.update(a_token(console, "ada", Role.USER))
        for route in routes_of(app.routes, named):
            if route.path not in (f"{PREFIX}/preview", f"{PREFIX}/plan"):
                continue
            for path, more in route.requests():
                if "folder" in str(more):  # where a user's job begins has to be there
                    continue
                with DEEDS.noted() as deeds:
                    answer = client.request(route.method, path, **more, timeout=60)
                wrong += [f"{path} {str(more)[:300]}: {deed}" for deed in deeds if NAMED in deed]
                wrong += [f"{path} {str(more)[:300]}: {answer.text}"] if answer.status_code >= 500 else []
                answered.add((route.path, answer.status_code))
    assert {(f"{PREFIX}/preview", 200), (f"{PREFIX}/plan", 200)} <= answered
    assert not wrong, f"{len(wrong)} times:\n" + "\n".join(wrong[:20])
    assert not (named / "ran").exists()


def test_a_job_with_an_mpi_of_its_own_is_taken_unseen(tmp_path: Path, named: Path) -> None:
    """The early look at an MPI is for those who own the machine; others hear of it from their job."""
    import asyncio

    from oarsman.backends.local.backend import LocalBackend
    from oarsman.errors import UsageError

    backend = LocalBackend(Paths(tmp_path / "state"))
    made = a_document()
    made["metadata"]["annotations"] = {names.ANNOTATION_MPI: str(named / "mpirun")}
    trusting = backend.limited(asks=True, trusts=True)
    job = replace(backend._read(made), uid="")

    async def look() -> None:
        await backend.limited(asks=True, trusts=False)._check_mpi(job, "local", {}, tmp_path)
        assert not (named / "ran").exists()
        (named / "mpirun").unlink()
        with pytest.raises(UsageError, match="there is no MPI at"):
            await trusting._check_mpi(job, "local", {"PATH": ""}, tmp_path)
        await backend.close()

    asyncio.run(look())
