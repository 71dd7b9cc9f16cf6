"""The words of real programs. Each text is what the program named beside it prints."""

from __future__ import annotations

import pytest
from for_every import for_every_row

from oarsman.job.job import Implementation
from oarsman.status.known_errors import KNOWN, recognise

MESSAGES = [
    # Open MPI 4 and 5
    ("not-enough-slots", "There are not enough slots available in the system to satisfy the 512"),
    ("root", "mpirun has detected an attempt to run as root."),
    ("root", "prterun has detected an attempt to run as root."),
    ("mpirun-option", '/usr/bin/mpirun: Error: unknown option "--frobnicate"'),
    ("mpirun-option", "An unrecognized option was included on the mpirun command line:"),
    ("mpirun-option", "   Executable: none"),
    ("hostfile", "Open RTE was unable to open the hostfile:"),
    ("hostfile", "PRTE was unable to open the hostfile:"),
    ("command-not-found", "mpirun was unable to launch the specified application as it could not access"),
    ("command-not-found", "prterun was unable to launch the specified application as it could not"),
    ("command-not-found", "prterun was unable to find the specified executable file, and therefore did"),
    ("btl-tcp", "WARNING: Open MPI failed to TCP connect to a peer MPI process.  This"),
    (
        "btl-tcp",
        "[pi-worker-1][[4870,1],1][btl_tcp_endpoint.c:625:mca_btl_tcp_endpoint_recv_connect_ack] received unexpected process identifier",
    ),
    ("daemon", "ORTE was unable to reliably start one or more daemons."),
    ("daemon", "A daemon failed to report back after being spawned. This could"),
    ("mpi-mismatch", "It looks like MPI_INIT failed for some reason; your parallel process is"),
    ("mpi-mismatch", "OPAL ERROR: Unreachable in file ext3x_client.c at line 112: pmix"),
    ("mpi-mismatch", 'The application appears to have been direct launched using "srun",'),
    # MPICH and Intel MPI
    (
        "mpirun-option",
        "[mpiexec@pi-launcher] match_arg (lib/utils/args.c:166): unrecognized argument allow-run-as-root",
    ),
    (
        "command-not-found",
        "[proxy:0@pi-worker-0] HYDU_create_process (lib/utils/launch.c:73): execvp error on file ./nope (No such file or directory)",
    ),
    (
        "name",
        "[mpiexec@pi-launcher] HYDU_sock_connect (lib/utils/sock.c:110): unable to get host address for pi-launcher (-2)",
    ),
    ("mpi-mismatch", "Fatal error in PMPI_Init_thread: Other MPI error: PMI2_Init failed"),
    # ssh
    ("ssh-key", "mpiuser@pi-worker-0: Permission denied (publickey)."),
    ("ssh-key", "root@pi-worker-0: Permission denied (publickey,password,keyboard-interactive)."),
    ("ssh-key", "@         WARNING: UNPROTECTED PRIVATE KEY FILE!          @"),
    ("host-key", "Host key verification failed."),
    ("host-key", "@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @"),
    ("name", "ssh: Could not resolve hostname pi-worker-0: Name or service not known"),
    ("name", "ssh: Could not resolve hostname pi-worker-0: Temporary failure in name resolution"),
    ("connection", "ssh: connect to host pi-worker-0 port 22: Connection refused"),
    ("no-answer", "ssh: connect to host pi-worker-0 port 22: Connection timed out"),
    ("no-route", "ssh: connect to host pi-worker-0 port 22: No route to host"),
    ("connection", "kex_exchange_identification: Connection closed by remote host"),
    # shells
    ("relative-path", "./solver: command not found in /home/ada/work"),
    ("relative-path", "oarsman: bin/solver: No such file or directory in /home/ada/work"),
    ("command-not-found", "bash: line 1: prted: command not found"),
    ("command-not-found", "sh: 1: orted: not found"),
    ("command-not-found", "/bin/sh: /opt/openmpi/bin/orted: No such file or directory"),
    # Python, mpi4py
    ("python-module", "ModuleNotFoundError: No module named 'torch'"),
    ("python-module", "/venv/bin/python3.11: No module named torch"),
    ("command-not-found", "oarsman: mpirn: No such file or directory"),
    ("script", "python: can't open file '/home/me/train.py': [Errno 2] No such file or directory"),
    ("missing-file", "FileNotFoundError: [Errno 2] No such file or directory: 'data.csv'"),
    ("mpi-mismatch", "RuntimeError: cannot load MPI library"),
    ("mpi-mismatch", "ImportError: libmpi.so.12: cannot open shared object file: No such file or directory"),
    ("mpi-mismatch", "ImportError: /usr/lib/python3/dist-packages/mpi4py/MPI.so: undefined symbol: ompi_mpi_logical8"),
    ("name", "socket.gaierror: [Errno -3] Temporary failure in name resolution"),
    ("address-in-use", "OSError: [Errno 98] Address already in use"),
    ("no-space", "OSError: [Errno 28] No space left on device"),
    ("memory", "MemoryError"),
    (
        "memory",
        "numpy._core._exceptions._ArrayMemoryError: Unable to allocate 8.00 TiB for an array with shape (1048576,)",
    ),
    ("memory", "terminate called after throwing an instance of 'std::bad_alloc'"),
    ("permission", "PermissionError: [Errno 13] Permission denied: '/data/part-0'"),
    # Our shim, the loader, bash
    ("shared-library", "./a.out: error while loading shared libraries: libhdf5.so.200: cannot open shared object file"),
    ("instructions", "./a.out: CPU ISA level is lower than required"),
    (
        "instructions",
        "The TensorFlow library was compiled to use AVX2 instructions, but these aren't available on your machine.",
    ),
    ("instructions", "RuntimeError: NumPy was built with baseline optimizations: (X86_V2) but your machine doesn't"),
    ("interpreter", "./run.sh: bad interpreter"),
    ("interpreter", "bash: ./run.sh: cannot execute: required file not found"),
    # Containers and user namespaces
    ("user-namespaces", "unshare: write failed /proc/self/uid_map: Operation not permitted"),
    ("user-namespaces", "bwrap: setting up uid map: Permission denied"),
    # Shared and locked memory, GPUs
    ("shared-memory", "RuntimeError: DataLoader worker (pid 71) is killed by signal: Bus error. out of shared memory"),
    ("locked-memory", "ucx: ibv_create_cq() failed: Cannot allocate memory : Please set max locked memory (ulimit -l)"),
    ("no-gpu", "RuntimeError: No CUDA GPUs are available"),
    ("no-gpu", "CUDA failure 100: no CUDA-capable device is detected"),
    # Our own, on one machine and on Kubernetes
    ("install-commands", "oarsman: the install commands failed with code 3"),
    # PyTorch, NCCL, CUDA
    (
        "cuda-out-of-memory",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 15.77 GiB",
    ),
    ("cuda-out-of-memory", "RuntimeError: CUDA error: out of memory"),
    (
        "nccl-timeout",
        "[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1, OpType=ALLREDUCE, Timeout(ms)=600000)",
    ),
    (
        "nccl-timeout",
        "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1970, ncclRemoteError: A call failed possibly due to a network error",
    ),
    ("address-in-use", "RuntimeError: The server socket has failed to listen on any local network address. EADDRINUSE"),
]


# Errors only for jobs that were set up for the other kind of MPI.
MISMATCHES = [
    (
        "mpich-for-open-mpi",
        Implementation.OPENMPI,
        "[mpiexec@sh-w26v6-launcher] match_arg (lib/utils/args.c:166): unrecognized argument tag-output",
    ),
    (
        "mpich-for-open-mpi",
        Implementation.OPENMPI,
        "[mpiexec@plain-mpich-launcher] HYDU_process_mfile_token (lib/utils/args.c:301): token slots not supported at this time",
    ),
    ("open-mpi-for-mpich", Implementation.MPICH, 'mpirun: Error: unknown option "-prepend-rank"'),
    ("open-mpi-for-mpich", Implementation.INTEL, "An unrecognized option was included on the mpirun command line:"),
]


@for_every_row(MESSAGES)
def test_a_real_message_is_recognised(name: str, message: str) -> None:
    found = recognise(["starting", message, "--------"])
    assert found is not None
    assert found[0].name == name
    assert found[1] == message.strip()


def test_every_entry_of_the_table_has_a_real_message() -> None:
    assert {known.name for known in KNOWN if not known.code} == {name for name, *_ in (*MESSAGES, *MISMATCHES)}


def test_what_cannot_be_executed_is_known_by_the_code_as_well() -> None:
    found = recognise(["./run.sh: Permission denied"], code=126)
    assert found is not None
    assert found[0].name == "not-executable"


@pytest.mark.parametrize(("name", "implementation", "message"), MISMATCHES)
def test_the_other_kind_of_mpi_is_recognised_where_the_image_decides(
    name: str, implementation: Implementation, message: str
) -> None:
    found = recognise([message], implementation)
    assert found is not None
    assert found[0].name == name
    assert found[0].sentence
    unasked = recognise([message])
    assert unasked is None or unasked[0].name != name


@pytest.mark.parametrize(
    ("implementation", "message"),
    [
        (Implementation.OPENMPI, 'mpirun: Error: unknown option "--frobnicate"'),
        (
            Implementation.MPICH,
            "[mpiexec@pi-launcher] match_arg (lib/utils/args.c:166): unrecognized argument frobnicate",
        ),
    ],
)
def test_a_wrong_option_of_the_right_mpi_is_only_a_wrong_option(implementation: Implementation, message: str) -> None:
    found = recognise([message], implementation)
    assert found is not None
    assert found[0].name == "mpirun-option"


@pytest.mark.parametrize(
    "line",
    [
        "step 3, loss 0.12",
        "Traceback (most recent call last):",
        "ValueError: x",
        "loading model from ./btl",
        "",
        # Open MPI's, of no account
        "mca_base_component_repository_open: unable to open mca_mtl_psm2: libpsm2.so.2: cannot open shared object file: No such file or directory (ignored)",
        "    /opt/openmpi/share/openmpi/help-mpi-runtime.txt: No such file or directory",
        # The end of another process, seen from its peer
        "[pi-worker-0][[33205,1],0][btl_tcp.c:559:mca_btl_tcp_recv_blocking] recv(18) failed: Connection reset by peer (104)",
        "PRTE has lost communication with a remote daemon.",
    ],
)
def test_ordinary_words_are_not_mistaken(line: str) -> None:
    assert recognise([line]) is None


def test_a_name_that_does_not_resolve_points_to_the_network_setting() -> None:
    found = recognise(["ssh: Could not resolve hostname example.org: Name or service not known"])
    assert found is not None
    assert "oarsman.dev/network: host" in found[0].hint
    assert "--network host" in found[0].hint


def test_the_precise_error_wins_over_its_consequence() -> None:
    found = recognise(
        [
            "ORTE was unable to reliably start one or more daemons.",
            "ssh: connect to host pi-worker-0 port 22: Connection refused",
            "root@pi-worker-0: Permission denied (publickey).",
        ]
    )
    assert found is not None
    assert found[0].name == "ssh-key"
