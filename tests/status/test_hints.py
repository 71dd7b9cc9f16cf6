"""Failures that cannot be made on one machine, replayed: what their cause says, and the hint, or that there is none.

The texts are what programs print. Failures that can be made are in tests/engines/hosts/test_hints.py.
"""

from __future__ import annotations

from dataclasses import replace

from for_every import for_every_row

from oarsman import names
from oarsman.job.launch import LaunchLine
from oarsman.job.observed import Exit, Observed, Phase, RankReport
from oarsman.job.state import Cause
from oarsman.status import causes
from tests.builders import a_job, a_launcher, a_rank, at

PYTHON = LaunchLine(launcher="mpirun", path="mpirun", program=("/opt/env/bin/python3", "train.py"), processes=2)
REFUSED = """\
WARNING: Open MPI failed to TCP connect to a peer MPI process.  This
should not happen.
  Message:    connect() to 10.77.1.2:1024 failed
  Error:      Connection refused (111)
[pi-worker-0:00000] *** An error occurred in Socket closed
[pi-worker-0:00000] *** reported by process [2417819649,0]
[pi-worker-0:00000] *** on a NULL communicator
"""
DROPPED = REFUSED.split("[pi-worker-0")[0].replace("Connection refused (111)", "Connection timed out (110)")
NO_PROXY = """\
[proxy:1@b] HYDU_sock_connect (sock.c:140): unable to connect from "b" to "10.88.3.11" (Connection timed out)
[proxy:1@b] main (pmip.c:100): unable to connect to server 10.88.3.11 at port 44111 (check for firewalls!)
[mpiexec@a] ui_cmd_cb (pmiserv_pmci.c:51): Launch proxy failed.
[mpiexec@a] main (mpiexec.c:270): process manager error waiting for completion
"""
SEGFAULT = "mpirun noticed that process rank 1 with PID 6 on node pi-worker-1 exited on signal 11 (Segmentation fault)."
QUARREL = "[pi-launcher:00002] plm:ssh: Warning: setpgid(5,5) failed in parent with errno=Permission denied(13)"
CODE_77 = "Process name: [[9703,1],1]\nExit code:    77"


def of_rank(*lines: str, code: int = 1, launcher: str = "", **given: object) -> Cause:
    """Rank 1 failed, with these words."""
    failed = a_rank(1, code=code, last_lines=lines, finished_at=at(9), **given)
    return of_ranks(a_rank(0), failed, launcher=launcher)


def of_ranks(*ranks: RankReport, launcher: str = "") -> Cause:
    seen = Observed(ranks=ranks, launcher_lines=tuple(launcher.splitlines()))
    return causes.of_failed_launcher(a_job(launch=PYTHON), seen, a_launcher(Phase.FAILED, code=1))


def of_launcher(text: str, code: int = 1) -> Cause:
    """No rank reports, as on Kubernetes."""
    seen = Observed(launcher_lines=tuple(text.splitlines()), ranks_report=False)
    return causes.of_failed_launcher(a_job(launch=PYTHON), seen, a_launcher(Phase.FAILED, code=code))


NO_PROGRAM = "oarsman: train.py: No such file or directory"


def test_logins_are_spoken_of_only_where_hosts_are_logged_in_to() -> None:
    seen = Observed(ranks=(a_rank(0), a_rank(1, code=127, last_lines=(NO_PROGRAM,), finished_at=at(9))))
    on_hosts = replace(a_job(launch=PYTHON), annotations={names.ANNOTATION_INVENTORY: "/hosts"})
    for job, logs_in in ((a_job(launch=PYTHON), False), (on_hosts, True)):
        hint = causes.of_failed_launcher(job, seen, a_launcher(Phase.FAILED, code=127)).hint
        assert hint is not None
        assert hint.startswith("check the spelling")
        assert ("logins" in hint) == logs_in
    assert "logins" in str(of_launcher(NO_PROGRAM, code=127).hint)


RANK_1 = "rank 1 on pi-worker-1 "
FAILURES = [
    # A rank that fails leaves others who cannot reach it: that is no fault of the network.
    ("Open MPI 5, code 77", of_rank(code=77, launcher=REFUSED), RANK_1 + "exited with code 77", None),
    ("Open MPI 5, segfault", of_rank(code=139, launcher=REFUSED), "signal 11 (Segmentation fault)", None),
    (
        "Open MPI's quarrel with its own child",
        of_rank(code=126, launcher=QUARREL),
        RANK_1 + "exited with code 126",
        None,
    ),
    ("segfault on Kubernetes", of_launcher(REFUSED + SEGFAULT), RANK_1 + "was killed by signal 11", None),
    ("code 77 on Kubernetes", of_launcher(REFUSED + CODE_77), RANK_1 + "exited with code 77", None),
    (
        "code 77, lost daemon",
        of_rank(code=77, launcher="ORTE has lost communication with a remote daemon."),
        "77",
        None,
    ),
    (
        "left alone",
        of_ranks(a_rank(1, code=0, finished_at=at(1)), a_rank(0, code=14, finished_at=at(2)), launcher=REFUSED),
        "rank 0 on pi-worker-0 exited with code 14",
        "rank 1 had ended with code 0 while others still needed it",
    ),
    (
        "alone at last",
        of_ranks(a_rank(1, code=0, finished_at=at(3)), a_rank(0, code=14, finished_at=at(2)), launcher=REFUSED),
        "rank 0 on pi-worker-0 exited with code 14",
        None,
    ),
    # With evidence, the network is to blame.
    ("a firewall", of_launcher(DROPPED), "Connection timed out", "a firewall on the way drops the connection"),
    (
        "a firewall, ssh",
        of_launcher("ssh: connect to host a port 22: Connection timed out", 255),
        "timed out",
        "firewall",
    ),
    (
        "a firewall, MPICH, after some ranks had begun",
        of_ranks(a_rank(0, code=137), a_rank(1, code=137), launcher=NO_PROXY),
        "the launcher exited with code 1: [proxy:1@b] HYDU_sock_connect (sock.c:140): unable to connect",
        "a firewall on the way drops the connection",
    ),
    (
        "a firewall, MPICH, and a rank that failed by itself",
        of_ranks(a_rank(0), a_rank(1, code=3), launcher=NO_PROXY),
        RANK_1 + "exited with code 3",
        None,
    ),
    ("no sshd", of_launcher("ssh: connect to host a port 22: Connection refused", 255), "refused", "nothing listened"),
    ("no route", of_launcher("ssh: connect to host a port 22: No route to host", 255), "route", "cannot be reached"),
    ("a daemon", of_launcher("A daemon failed to report back after being spawned."), "daemon", "not connect back"),
    # Who killed it is only said where somebody knows.
    ("a kill", of_rank(code=137), "signal 9 (Killed); who sent it is not known", None),
    ("a kill on Kubernetes", of_launcher("", 137), "signal 9 (Killed); who sent it is not known", None),
    (
        "the cgroup's word",
        of_rank("step 3", exit=Exit(code=137, signal=9, memory_limit_hit=True)),
        "its memory limit was reached",
        "raise the memory limit",
    ),
    ("a bus error", of_rank(code=135), "signal 7 (Bus error)", None),
    ("a full /dev/shm", of_rank("RuntimeError: insufficient shared memory (shm)", code=135), "Bus error", "/dev/shm"),
    ("a trap", of_rank("step 3", code=132), "signal 4 (Illegal instruction)", None),
    (
        "another CPU",
        of_rank("The TensorFlow library was compiled to use AVX instructions, but these aren't available", code=132),
        "signal 4 (Illegal instruction)",
        "instructions this CPU lacks",
    ),
    # The wrong MPI
    (
        "MPICH by Open MPI",
        of_rank("check_PMI_VERSION(167): Runtime environment uses unsupported PMI version PMIx. Aborting.", code=16),
        "code 16",
        "built for another MPI",
    ),
    (
        "Open MPI by MPICH",
        of_rank(
            "rank 0 of 1",
            code=3,
            reason="its MPI library is that of Open MPI, but the launcher is MPICH's: each rank ran alone",
        ),
        "each rank ran alone",
        "built for another MPI",
    ),
    (
        "mpi4py of the other",
        of_rank("ImportError: libmpi.so.12: cannot open shared object file"),
        "libmpi",
        "another MPI",
    ),
    ("mpi4py without MPI", of_rank("RuntimeError: cannot load MPI library"), "cannot load", "another MPI"),
    # Where what is missing is to be installed
    (
        "no mpi4py",
        of_rank("ModuleNotFoundError: No module named 'mpi4py'"),
        "No module named 'mpi4py'",
        "install mpi4py in the Python that ran on pi-worker-1, with /opt/env/bin/python3 -m pip",
    ),
    (
        "missing on one host only",
        of_ranks(a_rank(0, last_lines=("up",), code=143), a_rank(1, code=127, last_lines=("./pi: command not found",))),
        RANK_1 + "exited with code 127: ./pi: command not found",
        "pi-worker-1 lacks the program, pi-worker-0 started it",
    ),
    (
        "missing on one host of many",
        of_ranks(
            *(a_rank(n, last_lines=("up",), code=143) for n in (0, 2, 3, 4)),
            a_rank(1, code=127, last_lines=("./pi: command not found",)),
        ),
        RANK_1 + "exited with code 127: ./pi: command not found",
        "pi-worker-1 lacks the program, pi-worker-0, pi-worker-2, pi-worker-3 started it",
    ),
    (
        "missing on all hosts",
        of_ranks(*(a_rank(n, code=127, last_lines=("./pi: command not found",)) for n in (0, 1))),
        "./pi: command not found",
        "check the spelling",
    ),
    # What the machine lacks
    (
        "AppArmor of Ubuntu 24.04",
        of_rank("unshare: write failed /proc/self/uid_map: Operation not permitted"),
        "uid_map",
        "kernel.apparmor_restrict_unprivileged_userns",
    ),
    (
        "InfiniBand, ulimit -l",
        of_rank("UCX  ERROR ibv_reg_mr() failed: Cannot allocate memory. Please set max locked memory (ulimit -l)"),
        "max locked memory",
        "memlock",
    ),
    ("no GPU", of_rank("RuntimeError: No CUDA GPUs are available"), "No CUDA GPUs", "sees no GPU"),
    ("a full GPU", of_rank("torch.OutOfMemoryError: CUDA out of memory. Tried to"), "CUDA", "GPU's memory is full"),
    (
        "NCCL",
        of_rank("DistBackendError: NCCL error in: x.cpp:19, ncclRemoteError: A call failed"),
        "nccl",
        "collective",
    ),
    # Programs that say it themselves
    (
        "Fortran",
        of_rank("Fortran runtime error: End of file", code=2),
        "code 2: Fortran runtime error: End of file",
        None,
    ),
    (
        "C++",
        of_rank("terminate called after throwing", "  what():  odd", code=134),
        "(Aborted): terminate called",
        None,
    ),
    ("Open MPI's help", of_rank("help-mpi-runtime.txt: No such file or directory", code=3), "code 3", None),
    (
        "Open MPI's plugins",
        of_rank("unable to open mca_x: libx.so: cannot open shared object file (ignored)"),
        "",
        None,
    ),
    # What was mistyped
    ("a launcher", of_launcher("oarsman: mpirn: No such file or directory", 127), "127: oarsman: mpirn", "'mpirun'?"),
    ("a launcher's, of a shell", of_launcher("sh: 1: mpiexc: not found", 127), "mpiexc: not found", "'mpiexec'?"),
    ("another program", of_launcher("oarsman: slover: No such file or directory", 127), "slover", "check the spelling"),
    (
        "a script",
        of_rank("python3: can't open file '/w/no.py': [Errno 2] No such file or directory", code=2),
        "/w/no.py",
        "a relative path starts in the folder where the job was submitted",
    ),
    (
        "a module",
        of_rank("/env/bin/python3: No module named trian"),
        "No module named trian",
        "check the spelling of trian, or install it with /opt/env/bin/python3 -m pip on pi-worker-1",
    ),
    ("no disk", of_rank("OSError: [Errno 28] No space left on device"), "No space left", "a disk is full"),
]


@for_every_row(FAILURES)
def test_a_failure_has_its_cause_and_a_hint_only_with_evidence(
    name: str, cause: Cause, words: str, hint: str | None
) -> None:
    assert words in cause.summary, (name, cause.summary)
    assert (cause.hint is None) == (hint is None), (cause.summary, cause.hint)
    assert (hint or "") in (cause.hint or "")
