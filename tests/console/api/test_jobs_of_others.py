"""What a job can do that somebody with an account hands in: real servers, real MPI, and jobs that try."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .shared import SECRET, SOMEBODY, Shared, a_job, shared

pytestmark = [
    pytest.mark.mpi,
    pytest.mark.timeout(600),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can start servers of several users"),
]

# One line of JSON per attempt. Words: the state, the supervisor's socket, where a file must not come to be.
TRY = r"""
import ctypes, glob, json, os, socket, sqlite3, struct, subprocess, sys
state, supervisor, planted, home = sys.argv[1:5]
tried = {}

def attempt(do):
    try:
        tried[do.__name__] = do()
    except BaseException as error:
        tried[do.__name__] = f"no: {type(error).__name__}"

@attempt
def change_a_role():
    with sqlite3.connect(f"file:{state}/console.db?mode=rw", uri=True) as db:
        return db.execute("UPDATE accounts SET role = 'admin' WHERE name = 'ann'").rowcount

@attempt
def the_state_through_proc():
    return [path for root in glob.glob("/proc/[0-9]*/root") for path in glob.glob(root + state + "/*")]

@attempt
def the_state():
    return os.listdir(state)

@attempt
def other_jobs():
    return os.listdir(f"{state}/jobs")

@attempt
def other_runs():
    mine = os.path.basename(os.environ["OARSMAN_RUN"])
    return [name for name in os.listdir(os.path.dirname(supervisor)) if name != mine]

@attempt
def variables():
    found = b"".join(open(path, "rb").read() for path in glob.glob("/proc/[0-9]*/environ") if os.access(path, os.R_OK))
    return [name for name in ("SERVER_SECRET",) if name in os.environ or name.encode() in found]

@attempt
def command_the_supervisor():
    with socket.socket(socket.AF_UNIX) as asked:
        asked.settimeout(5)
        asked.connect(supervisor)
        asked.sendall(b'{"pid": true}\n')
        return asked.recv(100).decode()

@attempt
def command_its_agent():
    order = {"do": "publish", "hosts": [], "files": {"hosts": "", "../../../../../../../../../.." + planted: "mine"}}
    body = json.dumps(order).encode()
    with socket.socket(socket.AF_UNIX) as asked:
        asked.settimeout(5)
        asked.connect(os.environ["OARSMAN_RUN"] + "/k")
        asked.sendall(struct.pack("!I", len(body)) + body)
        return asked.recv(1000).decode(errors="replace")

@attempt
def an_order_as_its_supervisor():
    return os.listdir(os.environ["OARSMAN_RUN"] + "/o")

@attempt
def what_is_at_home():
    with open(f"{home}/key") as file:
        return file.read()

@attempt
def a_file_at_home():
    with open(f"{home}/.bashrc", "w") as file:
        return file.write("mine")

@attempt
def a_file_elsewhere():
    with open(f"{os.path.dirname(home)}/planted", "w") as file:
        return file.write("mine")

@attempt
def look_into_process_1():
    libc = ctypes.CDLL(None, use_errno=True)
    return [libc.ptrace(16, 1, 0, 0), os.access("/proc/1/environ", os.R_OK), os.access("/proc/1/root", os.R_OK)]

@attempt
def undo_the_view():
    script = f"umount -R {state} {home} /tmp; mount --rbind / /mnt; ls {state}/jobs /mnt{state}/jobs"
    return subprocess.run(["unshare", "-Urm", "sh", "-c", script], capture_output=True, text=True).stdout

rights = ("CapInh", "CapPrm", "CapEff", "CapAmb", "NoNewPrivs")
with open("/proc/self/status") as status:
    tried["rights"] = [int(line.split()[1], 16) for line in status if line.startswith(rights)]
tried["open files"] = [os.readlink(path) for path in glob.glob("/proc/self/fd/*") if os.path.lexists(path)]
tried["processes"] = len([name for name in os.listdir("/proc") if name.isdigit()])
tried["id"] = [os.getuid(), os.geteuid(), os.getgid(), sorted(os.getgroups())]
with open(f"made-by-{os.environ.get('OMPI_COMM_WORLD_RANK', 'launcher')}", "w") as made:
    made.write("x")
print("tried " + json.dumps(tried), flush=True)
"""


# A build backend, which is a program like any other: pip runs it.
BACKEND = """
import os, zipfile
try:
    open("{planted}", "w").close()
except OSError:
    pass
assert "SERVER_SECRET" not in os.environ and not os.path.exists("{state}/console.db")
def build_wheel(folder, *_):
    name = "greeting-1-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(folder, name), "w") as wheel:
        wheel.writestr("greeting/__init__.py", "")
        wheel.writestr("greeting-1.dist-info/METADATA", "Metadata-Version: 2.1\\nName: greeting\\nVersion: 1\\n")
        about = "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n"
        wheel.writestr("greeting-1.dist-info/WHEEL", about)
        wheel.writestr("greeting-1.dist-info/RECORD", "")
    return name
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Shared]:
    with shared(SOMEBODY) as found:
        yield found


@pytest.fixture(scope="module")
def roots() -> Iterator[Shared]:
    with shared(0, "--run-as", "ann=daemon", "--run-as", "ben=games", "--run-as", "same-name") as found:
        yield found


def attempts(lines: list[str]) -> list[dict[str, Any]]:
    return [json.loads(line.partition("tried ")[2]) for line in lines if "tried {" in line]


def tries(server: Shared, person: str, name: str, *, planted: Path, **annotations: str) -> list[dict[str, Any]]:
    (server.folder / "try.py").write_text(TRY)
    (server.home / "key").write_text(SECRET)
    (server.home / "key").chmod(0o644)
    run = server.state / "run"
    words = [str(server.state), f"{os.readlink(run)}/s", str(planted), str(server.home)]
    with server.person(person) as caller:
        how, lines = caller.ended(a_job(name, ["mpirun", "-n", "2", "python3", "try.py", *words], **annotations))
    assert how.startswith("Succeeded"), (how, lines)
    found = attempts(lines)
    assert len(found) == 2, lines
    return found


def roles(server: Shared) -> dict[str, str]:
    with sqlite3.connect(server.state / "console.db") as db:
        return dict(db.execute("SELECT name, role FROM accounts"))


REFUSED = (
    [],
    "",
    "no: FileNotFoundError",
    "no: PermissionError",
    "no: OperationalError",
    "no: ConnectionRefusedError",
    "no: OSError",
)
WITHOUT_RIGHTS = (
    *("change_a_role", "the_state_through_proc", "the_state", "other_jobs", "other_runs", "variables"),
    *("command_the_supervisor", "an_order_as_its_supervisor", "undo_the_view", "what_is_at_home"),
    "a_file_elsewhere",
)


def what_it_had(server: Shared, tried: dict[str, Any], planted: Path) -> dict[str, Any]:
    """Of all that it tried."""
    had = {name: tried[name] for name in WITHOUT_RIGHTS if tried[name] not in REFUSED}
    own = (str(server.home), str(server.state), os.readlink(server.state / "run"))
    ours = [path for path in tried["open files"] if path.startswith(own)]
    checks = {
        "an open file": ours,
        "an order to its agent": [] if '"error"' in tried["command_its_agent"] else [tried["command_its_agent"]],
        "a file made by its agent": [str(planted)] if planted.exists() else [],
        "process 1": [] if tried["look_into_process_1"] == [-1, False, False] else tried["look_into_process_1"],
        "rights": [] if tried["rights"] == [0, 0, 0, 0, 1] else tried["rights"],
        "processes of others": [] if tried["processes"] < 20 else [tried["processes"]],
        "a role": [] if roles(server)["ann"] == "user" else [roles(server)["ann"]],
        "the home of the server": [] if not (server.home / ".bashrc").exists() else [".bashrc"],
    }
    return had | {name: found for name, found in checks.items() if found}


@pytest.mark.parametrize("network", ["private", "host"])
def test_a_users_job_reaches_nothing_of_the_server(server: Shared, network: str) -> None:
    planted = server.home / f"planted-{network}"
    for tried in tries(server, "ann", f"try-{network}", planted=planted, network=network):
        assert what_it_had(server, tried, planted) == {}
        assert tried["id"][:2] == [SOMEBODY, SOMEBODY]
    assert {path.name for path in server.folder.glob("made-by-*")} == {"made-by-0", "made-by-1"}


def test_a_job_runs_as_the_user_of_its_owner(roots: Shared) -> None:
    """Its ranks, the files that they make, and what stands before its launcher."""
    roots.folder.chmod(0o777)
    planted = roots.home / "planted"
    for tried in tries(roots, "ann", "as-daemon", planted=planted):
        assert what_it_had(roots, tried, planted) == {}
        assert tried["id"] == [1, 1, 1, [1]]
        assert tried["a_file_at_home"].startswith("no: ")
    assert [path.owner() for path in sorted(roots.folder.glob("made-by-*"))] == ["daemon", "daemon"]
    for path in roots.folder.glob("made-by-*"):
        path.unlink()
    roots.folder.chmod(0o755)
    with roots.person("nobody") as nobody:
        how, lines = nobody.ended(a_job("as-nobody", ["mpirun", "-n", "2", "sh", "-c", "id -un; echo $HOME $USER"]))
    assert how.startswith("Succeeded"), lines
    assert [line.split()[-1] for line in lines if line.endswith("nobody")].count("nobody") == 4, lines


def test_a_user_cannot_read_what_the_job_of_another_wrote(roots: Shared) -> None:
    theirs = roots.folder / "bens"
    theirs.mkdir(mode=0o700)
    os.chown(theirs, 5, 60)  # games
    with roots.person("ben") as ben:
        command = ["mpirun", "-n", "1", "sh", "-c", "umask 077; echo bens > result; cat result"]
        how, lines = ben.ended(a_job("of-ben", command), folder=str(theirs))
        assert (how.startswith("Succeeded"), lines[-1].split()[-1]) == (True, "bens")
    uid = next(path.name for path in (roots.state / "jobs").iterdir())
    read = f"cat {theirs}/result; ls {theirs} {roots.state}/jobs/{uid}/logs; cat {roots.state}/jobs/*/logs/*/*; echo so"
    with roots.person("ann") as ann:
        how, lines = ann.ended(a_job("of-ann", ["mpirun", "-n", "1", "sh", "-c", read]))
    assert how.startswith("Succeeded"), lines
    assert not [line for line in lines if line.split()[-1] in ("bens", "result", "attempt-1")]
    assert [line.split()[-1] for line in lines if line.endswith("so")] == ["so"]


def test_a_program_that_a_job_names_as_its_mpi_is_asked_who_it_is_with_the_rights_of_the_job(server: Shared) -> None:
    """By the server when it takes the job, and by the supervisor before the job has a host."""
    evil = server.folder / "mpi" / "bin"
    evil.mkdir(parents=True)
    tell = f"(id -u; env; cat {server.state}/console.db; echo mine > {server.home}/planted) > {server.folder}/told 2>&1"
    (evil / "mpirun").write_text(f"#!/bin/sh\n{tell}\necho 'mpirun (Open MPI) 5.0.0'\n")
    (evil / "mpirun").chmod(0o755)
    for path in (evil.parent, evil):
        os.chown(path, SOMEBODY, SOMEBODY)
    for name, more in (("by-annotation", {"mpi": str(evil.parent)}), ("by-path", {})):
        variables = {} if more else {"PATH": f"{evil}:/usr/bin:/bin"}
        with server.person("ann") as ann:
            ann.ended(a_job(name, ["mpirun", "-n", "1", "true"], **more), environment=variables)
        told = (server.folder / "told").read_text()
        assert SECRET not in told
        assert f"cat: {server.state}/console.db: No such file" in told
        assert not (server.home / "planted").exists()


# Says this to the agent of its job, as a rank of it.
SAY = """
import json, os, socket, struct, sys, time
with socket.socket(socket.AF_UNIX) as agent:
    agent.connect(os.environ["OARSMAN_RUN"] + "/k")
    for facts in json.loads(sys.argv[1]):
        body = json.dumps(facts).encode()
        agent.sendall(struct.pack("!I", len(body)) + body)
    time.sleep(1)
sys.exit(3)
"""
ALL_VARIABLES = "{a.__reduce__.__globals__[__loader__].__init__.__globals__[sys].modules[os].environ}"
CLAIMS: dict[str, dict[str, Any]] = {
    "a-signal": {
        "signal": {"template": ALL_VARIABLES, "arguments": {"a": {"template": "{b}", "arguments": {"b": "x"}}}}
    },
    "a-time": {"at": 1e300},
    "half-a-letter": {"lines": ["\ud83d"]},
    "a-rank": {"rank": -5},
}


def test_what_a_rank_claims_tells_nothing_of_the_server_and_keeps_nobody_from_the_jobs(server: Shared) -> None:
    (server.folder / "say.py").write_text(SAY)
    with server.person("ann") as ann, server.person("vic") as vic:
        for name, claim in CLAIMS.items():
            started = {"rank": 0, "size": 1, "local": 0, "host": f"{name}-worker-0", "attempt": 1, "world": "w"}
            said = [{**started, **claim}] if "rank" in claim else [started, {"exit": 1, **claim}]
            ann.submit(a_job(name, ["mpirun", "-n", "1", "python3", "say.py", json.dumps(said)], workers=1))
            deadline, shown = time.monotonic() + 60, ann.client.get(f"/api/v1/jobs/default/{name}")
            while shown.status_code == 200 and shown.json()["summary"]["state"] != "Failed":
                assert time.monotonic() < deadline, name
                time.sleep(0.2)
                shown = ann.client.get(f"/api/v1/jobs/default/{name}")
            answers = [shown, *(by.client.get(f"/api/v1/{path}") for by in (ann, vic) for path in ("jobs", "overview"))]
            answers.append(ann.client.get(f"/api/v1/jobs/default/{name}/events"))
            assert [answer.status_code for answer in answers] == [200] * len(answers), name
            assert not [answer.text for answer in answers if SECRET in answer.text], name


def test_a_job_that_left_a_very_deep_folder_ends_and_can_be_deleted(server: Shared) -> None:
    make = """
import os
at = os.open(os.environ["TMPDIR"], os.O_PATH)
for _ in range(3000):
    os.mkdir("d", dir_fd=at)
    below = os.open("d", os.O_PATH, dir_fd=at)
    os.close(at)
    at = below
"""
    with server.person("ann") as ann:
        how, lines = ann.ended(a_job("deep", ["mpirun", "-n", "1", "python3", "-c", make]))
        assert how.startswith("Succeeded"), (how, lines)
        assert ann.client.delete("/api/v1/jobs/default/deep").status_code == 204
        deadline = time.monotonic() + 60
        while ann.client.get("/api/v1/jobs/default/deep").status_code != 404:
            assert time.monotonic() < deadline
            time.sleep(0.1)


@pytest.mark.parametrize("run_by", ["server", "roots"])
def test_an_environment_is_built_with_the_rights_of_whoever_wrote_it(
    run_by: str, request: pytest.FixtureRequest
) -> None:
    """What is built runs as it likes, and is there for the jobs of its owner."""
    server: Shared = request.getfixturevalue(run_by)
    user = SOMEBODY if run_by == "server" else 1
    package = server.folder / "package"
    (package / "greeting").mkdir(parents=True)
    (package / "greeting" / "__init__.py").write_text("")
    planted = server.home / "planted"
    (package / "backend.py").write_text(BACKEND.format(planted=planted, state=server.state))
    (package / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    )
    for path in (package, *package.rglob("*")):
        os.chown(path, user, user)
    with server.person("ann") as ann:
        wanted = {"name": "hers", "requirements": f"--no-index\n{package}\n"}
        assert ann.client.put("/api/v1/environments/hers", json=wanted).status_code in (200, 201)
        while (built := ann.client.get("/api/v1/environments/hers").json())["state"] in ("Waiting", "Building"):
            time.sleep(0.2)
        log = ann.client.get("/api/v1/environments/hers/log").json()["text"]
        assert built["state"] == "Ready", log
        assert "greeting==1" in built["packages"]
        command = ["mpirun", "-n", "1", "python", "-c", "import greeting; print(greeting.__file__)"]
        how, lines = ann.ended(a_job("in-hers", command, environment="hers"))
    assert how.startswith("Succeeded"), lines
    assert "site-packages/greeting" in lines[-1]
    assert SECRET not in log
    assert not planted.exists()


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"folder": "/etc"}, (400, "is not below")),
        ({"folder": "{home}"}, (400, "is not below")),
        ({"folder": "{folder}/out"}, (400, "is not below")),
        ({"inventory": "{folder}/hosts"}, (422, "this server uses only the hosts that it was started with")),
    ],
    ids=str,
)
def test_where_a_job_writes_is_the_servers_to_say(server: Shared, how: dict[str, str], said: tuple[int, str]) -> None:
    out = server.folder / "out"
    if not out.is_symlink():
        out.symlink_to(server.home)
    given = {name: text.format(home=server.home, folder=server.folder) for name, text in how.items()}
    annotations = {"inventory": given.pop("inventory")} if "inventory" in given else {}
    with server.person("ann") as ann:
        answer = ann.submit(a_job("elsewhere", ["mpirun", "true"], **annotations), **given)
    assert (answer.status_code, said[1] in answer.text) == (said[0], True), answer.text


def test_nobody_asks_for_what_is_between_our_own_parts(server: Shared) -> None:
    """With variables of those names a job would choose its own confinement, or have its agent connect anywhere."""
    asked = {"OARSMAN_CONFINED": "", "OARSMAN_STDIN": f"{os.readlink(server.state / 'run')}/s", "MINE": "yes"}
    with server.person("ann") as ann:
        script = f'echo "$MINE"; ls {server.state}/jobs; printenv OARSMAN_CONFINED OARSMAN_STDIN'
        how, lines = ann.ended(a_job("asks", ["mpirun", "-n", "1", "sh", "-c", script]), environment=asked)
    assert [line.split()[-1] for line in lines if " 0 " in line and " out " in line] == ["yes"], (how, lines)


@pytest.mark.parametrize("volume", [{"hostPath": {"path": "{state}"}}, {"emptyDir": {}}], ids=["hostPath", "subPath"])
def test_no_volume_leads_to_what_a_job_does_not_see(server: Shared, volume: dict[str, Any]) -> None:
    kind, of = next(iter(volume.items()))
    document = a_job(f"volume-{kind.lower()}", ["mpirun", "-n", "1", "ls", "/mnt"])
    spec = document["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]
    given = {name: text.format(state=server.state) for name, text in of.items()}
    mount = {"name": "v", "mountPath": "/mnt", **({} if given else {"subPath": "../../../.."})}
    spec["volumes"] = [{"name": "v", kind: given}]
    spec["containers"][0]["volumeMounts"] = [mount]
    with server.person("ann") as ann:
        how, lines = ann.ended(document)
    assert "has its own name" in how
    assert not lines


def test_no_link_in_one_volume_leads_the_other_to_the_processes_of_the_machine(roots: Shared) -> None:
    """Where the first one is mounted is a link in the folder of all jobs. In its second attempt it leads to the state,
    where the second volume lies, or what the first attempt has put into the first one for it."""
    roots.folder.chmod(0o777)
    way = roots.folder / "way"
    way.symlink_to("/mnt")
    script = f"""
if [ "$(readlink {way})" = /mnt ]; then
    mine=/mnt/jobs/$OARSMAN_JOB/volumes/$OARSMAN_HOST
    mkdir -p $mine && ln -s /proc $mine/second && ln -sfn {roots.state} {way}
    exit 1
fi
echo "sees $(ls /media | grep -c '[0-9]')"
"""
    document = a_job("volumes", ["sh", "-c", script])
    document["spec"]["runPolicy"]["backoffLimit"] = 1
    launcher = document["spec"]["mpiReplicaSpecs"]["Launcher"]
    launcher["restartPolicy"] = "OnFailure"
    spec = launcher["template"]["spec"]
    spec["volumes"] = [{"name": name, "emptyDir": {}} for name in ("first", "second")]
    mounts = {"first": str(way), "second": "/media"}
    spec["containers"][0]["volumeMounts"] = [{"name": name, "mountPath": path} for name, path in mounts.items()]
    with roots.person("ann") as ann:
        how, lines = ann.ended(document)
    roots.folder.chmod(0o755)
    assert [line.partition(" out ")[2] for line in lines if "sees" in line] == ["sees 0"], (how, lines)


def test_where_namespaces_cannot_be_had_the_jobs_of_others_are_not_run() -> None:
    with shared(SOMEBODY, variables={"OARSMAN_SEPARATION": "none"}) as server:
        with server.person("ann") as ann:
            how, lines = ann.ended(a_job("apart", ["mpirun", "-n", "1", "echo", "it ran"]))
        assert "cannot confine jobs of accounts" in how
        assert not lines
        with server.owner() as owner:
            how, _ = owner.ended(a_job("mine", ["mpirun", "-n", "1", "echo", "it ran"]))
        assert how.startswith("Succeeded")


def test_root_keeps_nobody_apart_and_says_so() -> None:
    with shared(0) as server:
        with server.person("ann") as ann:
            answer = ann.submit(a_job("as-root", ["mpirun", "-n", "1", "id"]))
            built = ann.client.put("/api/v1/environments/hers", json={"name": "hers", "requirements": ""})
        assert (answer.status_code, "the server runs as root" in answer.text) == (403, True)
        assert (built.status_code, "the server runs as root" in built.text) == (403, True)


def test_a_job_is_run_again_with_the_rights_of_its_owner_whoever_asks(server: Shared) -> None:
    """Not with those of the owner of the machine, who may only have been asked to."""
    script = f'ls {server.state}/jobs; echo "has $SERVER_SECRET"'
    with server.person("ann") as ann:
        ann.ended(a_job("again", ["mpirun", "-n", "1", "sh", "-c", script]))
    with server.owner() as owner:
        assert owner.client.post("/api/v1/jobs/default/again/rerun").status_code == 201
        _, lines = owner.end_of("default/again")
    assert [line.partition(" out ")[2] for line in lines if " 0 " in line and " out " in line] == ["has "]


def test_the_owner_of_the_machine_has_what_was_always_there(server: Shared) -> None:
    with server.owner() as owner:
        script = f'echo "$SERVER_SECRET"; ls -d {server.state}/console.db'
        how, lines = owner.ended(a_job("mine", ["mpirun", "-n", "1", "sh", "-c", script]))
    assert how.startswith("Succeeded"), lines
    assert SECRET in "\n".join(lines)
    assert f"{server.state}/console.db" in "\n".join(lines)
