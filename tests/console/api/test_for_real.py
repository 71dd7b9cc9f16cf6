"""`oarsman serve` on one machine: real processes, real MPI, real streams."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from .running import OARSMAN, Served, events, served

JOBS = "/api/v1/jobs"
ROOT_IS_FINE = [{"name": f"OMPI_ALLOW_RUN_AS_ROOT{more}", "value": "1"} for more in ("", "_CONFIRM")]


def a_document(name: str, script: str, ranks: int = 2) -> dict[str, Any]:
    command = ["mpirun", "-n", str(ranks), "sh", "-c", script]
    launcher = {"name": "l", "command": command, "env": ROOT_IS_FINE}
    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": name},
        "spec": {
            "runPolicy": {"backoffLimit": 0},
            "mpiReplicaSpecs": {
                "Launcher": {"restartPolicy": "Never", "template": {"spec": {"containers": [launcher]}}},
                "Worker": {"replicas": ranks, "template": {"spec": {"containers": [{"name": "w"}]}}},
            },
        },
    }


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("served") / "state") as found:
        yield found


@pytest.fixture(scope="module")
def client(server: Served) -> Iterator[httpx.Client]:
    with server.client() as found:
        yield found


def the_end_of(client: httpx.Client, key: str) -> dict[str, Any]:
    """The job once it has ended."""
    with client.stream("GET", f"{JOBS}/{key}/watch") as response:
        for _, _, data in events(response):
            job: dict[str, Any] = json.loads(data)
            if job["summary"]["state"] in ("Succeeded", "Failed"):
                return job
    raise AssertionError(f"{key} went away")


@pytest.mark.mpi
def test_a_job_is_made_followed_cloned_explained_and_deleted(client: httpx.Client) -> None:
    script = 'echo "rank ${OMPI_COMM_WORLD_RANK:-$PMI_RANK} is here"'
    made = client.post(JOBS, json={"document": a_document("story", script)})
    assert (made.status_code, made.headers["location"]) == (201, f"{JOBS}/default/story")

    with client.stream("GET", f"{JOBS}/default/story/log/stream") as response:
        heard = list(events(response))
    assert heard[-1][0] == "end"
    lines = [line for kind, _, data in heard if kind == "message" for line in json.loads(data)["lines"]]
    assert {"rank 0 is here", "rank 1 is here"} <= {line["text"] for line in lines}
    assert {line["rank"] for line in lines if "is here" in line["text"]} == {0, 1}
    place = heard[0][1]
    with client.stream("GET", f"{JOBS}/default/story/log/stream", headers={"Last-Event-ID": place}) as response:
        rest = [line for kind, _, data in events(response) if kind == "message" for line in json.loads(data)["lines"]]
    first = len(json.loads(heard[0][2])["lines"])
    assert rest == lines[first:]

    ended = the_end_of(client, "default/story")
    assert ended["summary"]["state"] == "Succeeded"
    assert [rank["exitCode"] for rank in ended["ranks"]] == [0, 0]
    assert {"submitted", "launched", "firstOutput", "ended"} <= {step["name"] for step in ended["timeline"]}
    downloaded = client.get(f"{JOBS}/default/story/log/download")
    assert downloaded.headers["content-disposition"] == 'attachment; filename="story.log"'
    assert downloaded.text.count("is here\n") == 2

    failing = ["mpirun", "-n", "2", "sh", "-c", "echo no luck >&2; exit 7"]
    launcher = {"containers": [{"name": "l", "command": failing, "env": ROOT_IS_FINE}]}
    patch = {"spec": {"mpiReplicaSpecs": {"Launcher": {"template": {"spec": launcher}}}}}
    clone = client.post(f"{JOBS}/default/story/clone", json={"patch": patch})
    assert (clone.status_code, clone.json()["summary"]["key"]) == (201, "default/story-2")
    failed = the_end_of(client, "default/story-2")
    assert failed["summary"]["state"] == "Failed"
    assert (failed["cause"]["exitCode"], failed["cause"]["lastLines"]) == (7, ["no luck"])
    assert "exited with code 7" in failed["summary"]["cause"]
    failures = client.get("/api/v1/overview").json()["failures"]
    assert [found["key"] for found in failures] == ["default/story-2"]

    for key in ("default/story", "default/story-2"):
        assert client.delete(f"{JOBS}/{key}").status_code == 204
        with client.stream("GET", f"{JOBS}/{key}/watch") as response:
            if response.status_code == 200:
                assert list(events(response))[-1][0] == "end"
        assert client.get(f"{JOBS}/{key}").status_code == 404


@pytest.mark.mpi
def test_the_stream_of_jobs_tells_a_whole_life(client: httpx.Client) -> None:
    seen: list[str] = []
    with client.stream("GET", f"{JOBS}/stream") as response:
        heard = (json.loads(data) for _, _, data in events(response))
        assert next(heard) == {"reset": True}
        client.post(JOBS, json={"document": a_document("life", "true")})
        for change in heard:
            if change.get("removed") == "default/life":
                break
            if change.get("changed", {}).get("key") == "default/life":
                state = change["changed"]["state"]
                seen += [state] if state not in seen else []
                if state == "Succeeded" and "Deleting" not in seen:
                    client.delete(f"{JOBS}/default/life")
    assert seen[0] == "Pending"
    assert "Succeeded" in seen


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_server_ends_at_once_although_streams_are_open(tmp_path: Path, number: int) -> None:
    with served(tmp_path / "state") as server, server.client() as client:
        with client.stream("GET", f"{JOBS}/stream") as response:
            heard = events(response)
            assert json.loads(next(heard)[2]) == {"reset": True}
            said = server.end(number)
            assert list(heard) == []  # no `end`: whoever comes back goes on
        assert server.process.returncode == 0
        assert said == "the console has ended; jobs go on\n"


def test_a_port_that_is_taken_is_a_clear_error(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = subprocess.run(
            [OARSMAN, "serve", "--port", port],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            env={"OARSMAN_STATE": str(tmp_path / "state"), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        )
    assert done.returncode == 2
    assert f"127.0.0.1:{port} cannot be listened on: Address already in use" in done.stderr


def test_a_server_that_others_can_reach_does_not_start_without_tls_and_accounts(tmp_path: Path) -> None:
    for options in ((), ("--insecure",)):
        done = subprocess.run(
            [OARSMAN, "serve", "--host", "0.0.0.0", "--port", "0", *options],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            env={"OARSMAN_STATE": str(tmp_path / "state"), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        )
        assert (done.returncode, "can be reached by others" in done.stderr) == (2, True)
