"""What a process finds on its host: names, addresses, variables, files, volumes, limits."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from oarsman import names
from oarsman.text import units

from .machine import EVERY_MPI, ONE_OF_EACH, PATIENCE, Machine, mpi_folder, mpijob, python

pytestmark = pytest.mark.mpi
TELLS = """
import json, os, socket
from mpi4py import MPI
wanted = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "K_MPI_JOB_ROLE",
          "GREETING", "MY_NAME", "MY_ADDRESS", "MY_NAMESPACE", "COMBINED", "FROM_PROMPT", "CUDA_VISIBLE_DEVICES")
print(json.dumps({name: os.environ.get(name) for name in wanted} | {
    "host": socket.gethostname(), "address": socket.gethostbyname(socket.gethostname()),
    "folder": os.getcwd(), "tmp": os.environ["TMPDIR"], "shm": os.listdir("/dev/shm"),
    "hostfile": open("/etc/mpi/hostfile").read(),
    "rank": MPI.COMM_WORLD.rank}), flush=True)
"""


@pytest.mark.parametrize("mpi", ["openmpi5", "openmpi4", "mpich"])
def test_every_rank_is_told_what_it_needs(mpi: str, machine_with: Callable[..., Machine]) -> None:
    machine = machine_with(mpi, FROM_PROMPT="kept")
    environment = [
        {"name": "GREETING", "value": "hello"},
        {"name": "COMBINED", "value": "$(GREETING) $(MY_NAME) $$(GREETING) $(UNKNOWN)"},
        {"name": "MY_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "MY_ADDRESS", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        {"name": "MY_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
    ]
    environment = [environment[0], environment[2], environment[1], *environment[3:]]
    document = mpijob("told", ["mpirun", "-n", "4", *python(TELLS)], slots=2, worker={"env": environment})
    key = machine.submit(document)
    assert machine.until_finished(key).status.is_true(names.SUCCEEDED), machine.log_of(key)
    told = {fact["rank"]: fact for fact in map(json.loads, machine.rank_lines(key))}
    assert sorted(told) == [0, 1, 2, 3]
    for rank, fact in told.items():
        host = f"told-worker-{rank // 2}"
        assert fact["host"] == fact["MY_NAME"] == host
        assert fact["address"] == fact["MY_ADDRESS"]
        assert fact["MY_NAMESPACE"] == "default"
        assert (fact["RANK"], fact["LOCAL_RANK"], fact["WORLD_SIZE"], fact["LOCAL_WORLD_SIZE"]) == (
            str(rank),
            str(rank % 2),
            "4",
            "2",
        )
        assert fact["MASTER_ADDR"] == "told-worker-0"
        assert fact["MASTER_PORT"].isdigit()
        assert fact["K_MPI_JOB_ROLE"] == "worker"
        assert fact["GREETING"] == "hello"
        assert fact["COMBINED"] == f"hello {host} $(GREETING) $(UNKNOWN)"
        assert fact["FROM_PROMPT"] == "kept"
        assert fact["folder"] == str(machine.folder)
        separator = ":" if mpi == "mpich" else " slots="
        assert fact["hostfile"] == f"told-worker-0{separator}2\ntold-worker-1{separator}2\n"
    assert len({fact["address"] for fact in told.values()}) == 2
    assert len({fact["tmp"] for fact in told.values()}) == 2


def test_temporary_files_and_shared_memory_go_with_the_job(machine: Machine) -> None:
    before = set(os.listdir("/dev/shm"))
    program = "import os, tempfile; open('/dev/shm/left', 'w'); print(tempfile.mkdtemp(), flush=True)"
    key = machine.submit(mpijob("tidy", ["mpirun", "-n", "2", "python3", "-c", program]))
    assert machine.until_finished(key).status.is_true(names.SUCCEEDED), machine.log_of(key)
    folders = machine.rank_lines(key)
    machine.nothing_left(machine.uid(key))
    machine.until_journal(key, lambda seen: seen.ended)
    assert len(folders) == 2
    assert not any(Path(folder).exists() for folder in folders)
    assert set(os.listdir("/dev/shm")) == before


def test_volumes_are_mounted(machine: Machine) -> None:
    data = machine.folder / "data"
    data.mkdir()
    (data / "part").write_text("from the machine")
    mount_point = machine.folder / "mnt"
    scratch = machine.folder / "scratch"
    for folder in (mount_point, scratch):
        folder.mkdir()
    program = (
        "import os\n"
        f"print(open({str(mount_point / 'part')!r}).read(), flush=True)\n"
        f"open({str(scratch / 'note')!r}, 'w').write('x')\n"
        f"try: open({str(mount_point / 'new')!r}, 'w')\n"
        "except OSError as error: print(error.strerror, flush=True)\n"
        "print(os.statvfs('/dev/shm').f_blocks * os.statvfs('/dev/shm').f_frsize, flush=True)\n"
    )
    document = mpijob(
        "volumes",
        ["mpirun", "-n", "1", "python3", "-c", program],
        workers=1,
        worker={
            "volumeMounts": [
                {"name": "data", "mountPath": str(mount_point), "readOnly": True},
                {"name": "scratch", "mountPath": str(scratch)},
                {"name": "shm", "mountPath": "/dev/shm"},
            ]
        },
    )
    made = machine.folder / "made"
    document["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]["volumeMounts"].append(
        {"name": "made", "mountPath": str(made)}
    )
    document["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["volumes"] = [
        {"name": "made", "hostPath": {"path": str(made), "type": "DirectoryOrCreate"}},
        {"name": "data", "hostPath": {"path": str(data)}},
        {"name": "scratch", "emptyDir": {}},
        {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "8Mi"}},
    ]
    key = machine.submit(document)
    assert machine.until_finished(key).status.is_true(names.SUCCEEDED), machine.log_of(key)
    assert machine.rank_lines(key) == ["from the machine", "Read-only file system", str(8 << 20)]
    assert list(scratch.iterdir()) == []
    assert made.is_dir()


REFUSED = {
    "configMap": ({"volumes": [{"name": "v", "configMap": {"name": "c"}}]}, "configMap"),
    "claim": ({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}, "persistentVolumeClaim"),
    "missing path": ({"volumes": [{"name": "v", "hostPath": {"path": "/no/such/folder"}}]}, "/no/such/folder"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_honoured_is_refused_before_anything_starts(case: str, machine: Machine) -> None:
    addition, word = REFUSED[case]
    document = mpijob(
        "refused", ["mpirun", "-n", "1", "hostname"], worker={"volumeMounts": [{"name": "v", "mountPath": "/mnt"}]}
    )
    document["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"].update(addition)
    key = machine.submit(document)
    record = machine.until_finished(key)
    failed = record.status.condition(names.FAILED)
    assert failed is not None
    assert failed.reason == names.REASON_UNSUPPORTED
    assert word in failed.message
    assert machine.seen(key).agent is None


def test_no_mpi_at_all_is_said_with_advice(machine_with: Callable[..., Machine]) -> None:
    machine = machine_with(PATH="/nowhere")
    machine.environment["PATH"] = "/nowhere"
    document = mpijob("bare", ["mpirun", "-n", "1", "hostname"], mpiImplementation="Intel")
    key = machine.submit(document)
    failed = machine.until_finished(key).status.condition(names.FAILED)
    assert failed is not None
    assert "no Intel was found on PATH" in failed.message


def test_a_memory_limit_that_was_hit_is_named(machine: Machine) -> None:
    from oarsman.engines.hosts.core import cgroups

    if not cgroups.find().memory:
        pytest.skip("no control group can be made here: memory limits cannot be enforced (oarsman doctor says so too)")
    program = "from mpi4py import MPI; x = bytearray(300 << 20) if MPI.COMM_WORLD.rank else 0; MPI.COMM_WORLD.Barrier()"
    limits = {"resources": {"limits": {"memory": "120Mi"}, "requests": {"memory": "1Mi"}}}
    key = machine.submit(mpijob("greedy", ["mpirun", "-n", "2", *python(program)], worker=limits))
    cause = machine.until_finished(key).status.cause
    assert cause is not None
    assert (cause.rank, cause.host, cause.memory_limit_hit) == (1, "greedy-worker-1", True)
    assert "memory limit" in cause.summary


def test_a_memory_limit_that_cannot_be_kept_is_told_before_the_job_starts(own_machine: Machine) -> None:
    hidden = 'mount -t tmpfs none /sys/fs/cgroup || exit; exec "$@"'  # as on a machine where none can be made
    prefix = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", hidden, "sh")
    wanted = ("-n", "1", "--memory", "64Mi", "--", "true")
    for verb, name in (("submit", "later"), ("run", "now")):
        done = own_machine.run(verb, "--name", name, *wanted, prefix=prefix)
        told = done.stderr.splitlines()
        assert told[:1] == ["memory limits are not enforced: no control group can be made here"], done
    assert told[1].startswith("now succeeded")
    own_machine.ok("wait", "later", prefix=prefix)
    assert "Limits:     memory limits are not enforced" in own_machine.ok("describe", "later", prefix=prefix)
    own_machine.run("delete", "now", "later", prefix=prefix)
    own_machine.run("supervisor", "stop", prefix=prefix)


def test_gpus_are_handed_out_and_missing_ones_explained(
    own_machine_with: Callable[..., Machine], tmp_path: Path
) -> None:
    """The list of devices is a shim's here; which process sees which device is real."""
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    listing = bin_folder / "nvidia-smi"
    listing.write_text("#!/bin/sh\nprintf '0\\n1\\n2\\n'\n")
    listing.chmod(0o755)
    machine = own_machine_with()
    machine.environment["PATH"] = f"{bin_folder}{os.pathsep}{machine.environment['PATH']}"
    document = mpijob(
        "gpus", ["mpirun", "-n", "2", *python(TELLS)], worker={"resources": {"limits": {"nvidia.com/gpu": 1}}}
    )
    path = machine.folder / "gpus.yaml"
    path.write_text(json.dumps(document))
    machine.ok("run", str(path))  # through the command, so that the supervisor finds that nvidia-smi
    told = [json.loads(line) for line in machine.rank_lines("default/gpus")]
    assert sorted(fact["CUDA_VISIBLE_DEVICES"] for fact in told) == ["0", "1"]
    document["metadata"]["name"] = "greedy"
    document["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]["resources"]["limits"] = {
        "nvidia.com/gpu": 2
    }
    path.write_text(json.dumps(document))
    refused = machine.run("submit", str(path))
    assert refused.returncode == 2
    assert "asks for 4 GPUs (2 workers x 2), the machine has 3" in refused.stderr


@pytest.mark.parametrize("mpi", ["openmpi5", "openmpi4", "mpich"])
def test_a_machine_without_namespaces_still_runs_the_job(mpi: str, own_machine_with: Callable[..., Machine]) -> None:
    machine = own_machine_with(mpi, OARSMAN_SEPARATION="none")
    program = "from mpi4py import MPI; w = MPI.COMM_WORLD; print(w.allreduce(w.rank), flush=True)"
    (machine.folder / "job.yaml").write_text(
        json.dumps(mpijob("plain", ["mpirun", "-n", "4", *python(program)], slots=2))
    )
    machine.ok("run", "job.yaml")
    record = machine.jobs.get("default/plain")
    assert machine.rank_lines("default/plain") == ["6"] * 4
    assert record.status.placement == {rank: f"plain-worker-{rank // 2}" for rank in range(4)}
    assert any("one host" in event.message for event in machine.jobs.events("default/plain"))
    assert "one host" in machine.ok("doctor")
    machine.nothing_left(record.job.uid)


@pytest.mark.parametrize("mpi", ["openmpi5", "openmpi4", "mpich"])
def test_an_ordinary_user_gets_the_same_hosts(mpi: str, own_machine_with: Callable[..., Machine]) -> None:
    machine = own_machine_with(mpi)
    prefix = ()
    if os.getuid() == 0:  # be somebody else, with that one's rights, over the same files
        prefix = ("unshare", "--user", "--map-user=12345", "--map-group=12345")
    program = "from mpi4py import MPI; import os; print(os.getuid(), MPI.Get_processor_name(), flush=True)"
    output = machine.ok("run", "-n", "4", "--workers", "2", "--name", "user", "--", *python(program), prefix=prefix)
    uid = 12345 if os.getuid() == 0 else os.getuid()
    assert sorted(line.partition("] ")[2] for line in output.splitlines()) == [
        f"{uid} user-worker-0",
        f"{uid} user-worker-0",
        f"{uid} user-worker-1",
        f"{uid} user-worker-1",
    ]
    machine.run("delete", "user", prefix=prefix)
    machine.run("supervisor", "stop", prefix=prefix)


@pytest.mark.parametrize("mpi", ONE_OF_EACH)
def test_the_machines_network_can_be_shared(mpi: str, machine_with: Callable[..., Machine]) -> None:
    """Names that resolve to the machine itself would make Open MPI 4 run everything on the launcher."""
    machine = machine_with(mpi)
    program = "from mpi4py import MPI; w = MPI.COMM_WORLD; print(w.allreduce(1), MPI.Get_processor_name(), flush=True)"
    output = machine.ok("run", "-n", "2", "--network", "host", "--name", "open", "--", *python(program))
    assert sorted(line.partition("] ")[2] for line in output.splitlines()) == ["2 open-worker-0", "2 open-worker-1"]


def test_what_an_image_or_a_batch_system_says_of_launching_does_not_count(machine_with: Callable[..., Machine]) -> None:
    machine = machine_with("openmpi4", OMPI_MCA_plm="isolated", OMPI_MCA_plm_rsh_agent="false", SLURM_JOB_ID="1")
    key = machine.submit(mpijob("surrounded", ["mpirun", "-n", "2", "hostname"]))
    assert machine.until_finished(key).status.is_true(names.SUCCEEDED), machine.log_of(key)
    assert sorted(machine.rank_lines(key)) == ["surrounded-worker-0", "surrounded-worker-1"]


def test_scripts_and_shells_reach_the_stand_in_too(machine: Machine) -> None:
    script = machine.folder / "go.sh"
    script.write_text("#!/bin/sh\necho before\nmpirun -n 2 hostname | sort > sorted.txt\ncat sorted.txt\n")
    script.chmod(0o755)
    key = machine.submit(mpijob("script", ["sh", "-c", f"env X=1 {script}"]))
    assert machine.until_finished(key).status.is_true(names.SUCCEEDED), machine.log_of(key)
    assert machine.lines(key, launcher_only=True, stream="out") == ["before", "script-worker-0", "script-worker-1"]
    logs = machine.paths.job(machine.uid(key)) / "logs/attempt-1"
    assert (logs / "rank-0.out").read_text() == "script-worker-0\n"


def test_v1_jobs_find_kubexec_under_its_name(machine: Machine) -> None:
    document = mpijob("exec", ["sh", "-c", "/etc/mpi/kubexec.sh exec-worker-1 hostname && /etc/mpi/discover_hosts.sh"])
    document["apiVersion"] = "kubeflow.org/v1"
    key = machine.submit(document)
    assert machine.until_finished(key).status.is_true(names.SUCCEEDED), machine.log_of(key)
    assert machine.lines(key) == ["exec-worker-1", "exec-worker-0:1", "exec-worker-1:1"]


def test_a_program_is_born_with_every_signal_as_the_kernel_has_it(machine: Machine) -> None:
    signals = ["sh", "-c", "grep -E 'Sig(Ign|Blk)' /proc/self/status"]
    for name, command in (("rank", ["mpirun", "-n", "1", *signals]), ("launcher", signals)):
        key = machine.submit(mpijob(f"signals-{name}", command, workers=1))
        machine.until_finished(key)
        masks = {line.split(":")[0]: int(line.split()[1], 16) for line in machine.lines(key)}
        theirs = 3 << 31  # 32 and 33 belong to the C library, which lets nobody touch them
        assert {name: mask & ~theirs for name, mask in masks.items()} == {"SigBlk": 0, "SigIgn": 0}


def test_files_of_a_job_are_as_readable_as_those_of_its_user(machine: Machine) -> None:
    command = ["mpirun", "-n", "1", "sh", "-c", "umask > shared; umask"]
    for mask in ("022", "027"):
        shell = ("sh", "-c", f'umask {mask}; exec "$@"', "sh")
        path = machine.folder / "umask.yaml"
        path.write_text(json.dumps(mpijob(f"umask-{mask}", command, workers=1)))
        assert f"0{mask}" in machine.ok("run", str(path), prefix=shell)
        assert (machine.folder / "shared").stat().st_mode & 0o777 == 0o666 & ~int(mask, 8)
        (machine.folder / "shared").unlink()


@pytest.mark.parametrize("mpi", ["openmpi5", "openmpi4", "mpich"])
def test_functions_that_a_bash_has_exported_reach_the_ranks(mpi: str, machine_with: Callable[..., Machine]) -> None:
    machine = machine_with(mpi)
    exported = ("bash", "-c", 'greet() { echo "hello, $1"; }; export -f greet; exec "$@"', "bash")
    for name, workers in (("one", "1"), ("two", "2")):
        job = ["--name", name, "-n", "2", "--workers", workers, "--", "bash", "-c", "greet rank"]
        assert machine.ok("run", "-q", "--no-tags", *job, prefix=exported).splitlines().count("hello, rank") == 2


SHOWS_LIMITS = "echo $(ulimit -S -s) $(ulimit -S -n) $(nice) $(grep Cpus_allowed_list /proc/self/status | cut -f2)"


def test_limits_of_a_job_are_those_of_the_shell_that_asked_for_it(own_machine: Machine) -> None:
    """Whichever shell the supervisor was started from: here one with a small stack, on one processor."""

    def seen(name: str, command: list[str], *shell: str) -> list[str]:
        (path := own_machine.folder / "job.yaml").write_text(json.dumps(mpijob(name, command)))
        own_machine.ok("run", str(path), prefix=shell)
        return [
            line for line in own_machine.lines(f"default/{name}") if "setpgid" not in line
        ]  # a remark of Open MPI 5

    cpus = sorted(os.sched_getaffinity(0))
    first, last = str(cpus[0]), str(cpus[-1])
    shows = ["sh", "-c", SHOWS_LIMITS]
    seen("yesterday", ["true"], "taskset", "-c", first, "sh", "-c", 'ulimit -S -s 1024; exec "$@"', "sh")
    limited = 'ulimit -S -s 9216; ulimit -S -n 777; exec "$@"'
    today = ("taskset", "-c", last, "nice", "-n", "5", "sh", "-c", limited, "sh")
    assert seen("launcher", shows, *today) == [f"9216 777 5 {last}"]
    assert seen("ranks", ["mpirun", "-n", "2", *shows], *today) == [f"9216 777 5 {last}"] * 2
    [told] = [line for line in own_machine.ok("describe", "ranks").splitlines() if line.startswith("Limits")]
    assert told.split(maxsplit=1)[1] == f"nofile 777, stack 9.0 MiB, niceness 5, CPUs {last}"
    [unconfined] = seen("unconfined", shows)
    assert unconfined.split()[2:] == ["0", units.ranges(cpus).replace(" ", "")]
    everything = {"resources": {"requests": {"cpu": str(len(cpus))}}}
    (own_machine.folder / "job.yaml").write_text(json.dumps(mpijob("big", shows, workers=1, worker=everything)))
    own_machine.ok("run", "job.yaml")  # the supervisor's one processor is not all there is to give


def test_nothing_of_the_variables_is_left_when_a_job_has_ended(machine: Machine) -> None:
    """They reach its ranks, and are nowhere in the state afterwards."""
    secret = "a password of the shell"
    machine.environment["SHELLS_SECRET"] = secret
    key = machine.submit(mpijob("keeps", ["mpirun", "-n", "1", "sh", "-c", 'echo "has ${#SHELLS_SECRET}"']))
    machine.until_finished(key)
    assert machine.rank_lines(key) == [f"has {len(secret)}"]
    deadline = time.monotonic() + PATIENCE
    looked_for = ["grep", "-rlF", secret, str(machine.paths.state)]  # a program: to read it here would undo its locks
    while left := subprocess.run(looked_for, capture_output=True, text=True).stdout:
        assert time.monotonic() < deadline, left
        time.sleep(0.1)


def test_a_job_from_before_limits_were_recorded_still_runs(machine: Machine) -> None:
    key = machine.submit(mpijob("old", ["sh", "-c", "ulimit -S -s"], run_policy={"suspend": True}))
    with sqlite3.connect(machine.paths.database) as store:
        store.execute("UPDATE jobs SET environment = json_remove(environment, '$.OARSMAN_LIMITS')")
    store.close()
    machine.jobs.resume(key)
    assert machine.until_finished(key).status.is_true(names.SUCCEEDED), machine.log_of(key)
    assert machine.jobs.get(key).limits == ""


@pytest.mark.parametrize(
    ("wanted", "launcher"),
    [
        pytest.param("/usr/bin/mpirun-of-yesterday", "mpirun", id="no such file"),
        pytest.param("/usr/openmpi-9", "mpirun", id="no such folder"),
        pytest.param("", "/usr/bin/openmpi-9/mpirun", id="launch line"),
        pytest.param("", "bin/mpirun", id="launch line in its folder"),
    ],
)
def test_an_mpi_named_by_its_path_is_that_one_or_none(wanted: str, launcher: str, machine: Machine) -> None:
    (machine.folder / "job.yaml").write_text(json.dumps(mpijob("other", [launcher, "-n", "1", "true"], workers=1)))
    done = machine.run("run", "job.yaml", *(["--mpi", wanted] if wanted else []))
    assert done.returncode == 2, done.stderr
    assert f"there is no MPI at {wanted or launcher}; what was found instead: Open MPI 5." in done.stderr
    assert "--mpi" in done.stderr
    assert machine.jobs.list() == []


def test_an_mpi_named_by_its_path_is_used_although_another_one_is_beside_it(machine: Machine) -> None:
    """As Debian has them; the job's own options and hosts are in the words of the one that is named."""
    for name, script in {"mpirun": "exit 9", "mpirun.mpich": f'exec {mpi_folder("mpich")}/bin/mpirun "$@"'}.items():
        (machine.folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (machine.folder / name).chmod(0o755)
    shows = ["-n", "2", "sh", "-c", "echo ${PMI_SIZE-none}"]
    path = str(machine.folder / "mpirun.mpich")
    chosen = machine.submit(mpijob("chosen", ["mpirun", *shows], annotations={names.ANNOTATION_MPI: path}))
    in_line = machine.submit(mpijob("in-line", [f"{mpi_folder('mpich')}/bin/mpiexec", *shows]))
    for key in (chosen, in_line):
        assert machine.until_finished(key).status.is_true(names.SUCCEEDED), machine.log_of(key)
        assert machine.rank_lines(key) == ["2", "2"]


@pytest.mark.parametrize("mpi", EVERY_MPI)
def test_an_mpi_named_by_its_path_leaves_programs_where_the_users_path_has_them(mpi: str, machine: Machine) -> None:
    """In its folder is another python3, as in /usr/bin."""
    mine = machine.folder / "mine"
    mine.mkdir()
    (mine / "python3").symlink_to("/usr/bin/python3")
    machine.environment["PATH"] = f"{mine}:{machine.environment['PATH']}"
    launcher = mpi_folder(mpi) / "bin/mpirun"
    path = str(launcher if launcher.exists() else "/usr/bin/mpirun")
    line = "command -v python3; exec mpirun -n 2 sh -c 'command -v python3; echo $PATH'"
    key = machine.submit(mpijob("mine", ["sh", "-c", line], annotations={names.ANNOTATION_MPI: path}))
    assert machine.until_finished(key).status.is_true(names.SUCCEEDED), machine.log_of(key)
    assert machine.jobs.get(key).mpi.endswith(f"({path})")
    found = machine.lines(key)
    assert found.count(f"{mine}/python3") == 3, found
    assert found.count(f"{machine.environment['PATH']}:{os.path.dirname(path)}") == 2, found


@pytest.mark.parametrize("mpi", ["mpich", "openmpi5"])
def test_the_page_of_a_job_names_the_mpi_that_it_uses(mpi: str, machine_with: Callable[..., Machine]) -> None:
    machine = machine_with(mpi)
    (machine.folder / "job.yaml").write_text(json.dumps(mpijob("used", ["mpirun", "-n", "1", "true"], workers=1)))
    machine.ok("run", "job.yaml")
    [told] = [
        line.split(maxsplit=1)[1] for line in machine.ok("describe", "used").splitlines() if line.startswith("  MPI:")
    ]
    kind = {"mpich": "MPICH", "openmpi5": "Open MPI"}[mpi]
    assert re.fullmatch(rf"{kind} [0-9.]+ \({mpi_folder(mpi)}/bin/mpirun\)", told)


@pytest.mark.parametrize("launcher", ["mpirun", "/bin/mpirun"])
def test_an_mpirun_in_bin_is_that_of_usr(launcher: str, machine_with: Callable[..., Machine]) -> None:
    """Open MPI takes the folder above that of its launcher for its own, and that of /bin is none."""
    machine = machine_with("debian")
    machine.environment["PATH"] = f"/bin:{machine.environment['PATH']}"
    (machine.folder / "job.yaml").write_text(json.dumps(mpijob("in-bin", [launcher, "-n", "2", "hostname"])))
    done = machine.run("run", "job.yaml", "--mpi", "/bin") if launcher == "mpirun" else machine.run("run", "job.yaml")
    assert done.returncode == 0, done.stderr + machine.log_of("default/in-bin")
    assert sorted(machine.rank_lines("default/in-bin")) == ["in-bin-worker-0", "in-bin-worker-1"]
