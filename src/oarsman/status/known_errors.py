"""Errors that MPI users meet again and again, recognised by their words.

Each entry has a name, a pattern that is looked for in single lines, and a hint that says what to do.
The order matters: the first entry that matches any line wins, so the precise ones come first and the
ones that also appear as a consequence of others (a refused connection) come last. Tests hold the real
text of each message.

Some are errors only for jobs that name the other kind of MPI; of those the line says less than the
entry's own sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from oarsman.job.job import Implementation
from oarsman.text.sentence import Text


@dataclass(frozen=True, slots=True)
class KnownError:
    name: str
    pattern: re.Pattern[str]
    hint: str
    jobs_of: tuple[Implementation, ...] = ()  # an error only for jobs set up for one of these; (): for all
    sentence: str = ""  # tells what is wrong where the line itself does not


def _known(
    name: str, pattern: str, hint: str, *, jobs_of: tuple[Implementation, ...] = (), sentence: str = ""
) -> KnownError:
    return KnownError(name, re.compile(pattern, re.IGNORECASE), hint, jobs_of, sentence)


_HOST_NETWORK: Final = Text("set the annotation oarsman.dev/network: host, or run with --network host")

KNOWN: Final = (
    _known(
        "install-commands",
        r"^oarsman: the install commands failed",
        Text("what they wrote is in the log; they are the annotation oarsman.dev/install"),
        sentence=Text("the install commands failed"),
    ),
    _known(
        "mpich-for-open-mpi",
        r"^\[mpiexec@[^\]]+\] .*(?:unrecognized argument|error parsing hostfile|token slots not supported)",
        Text("say which MPI the image has: --mpi mpich, or spec.mpiImplementation: MPICH (of Intel MPI: intel, Intel)"),
        jobs_of=(Implementation.OPENMPI,),
        sentence=Text("the image's mpirun is MPICH's (Hydra), while the job says Open MPI, which is the default"),
    ),
    _known(
        "open-mpi-for-mpich",
        r"\b(?:mpirun|mpiexec|orterun|prterun): Error: unknown option|"
        r"An unrecognized option was included on the (?:mpirun|mpiexec|prterun) command line",
        Text("say which MPI the image has: --mpi openmpi, or spec.mpiImplementation: OpenMPI"),
        jobs_of=(Implementation.MPICH, Implementation.INTEL),
        sentence=Text("the image's mpirun is Open MPI's, while the job says MPICH or Intel MPI"),
    ),
    _known(
        "cuda-out-of-memory",
        r"CUDA out of memory|CUDA error: out of memory|CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation",
        Text("the GPU's memory is full: use a smaller batch, or fewer ranks per GPU"),
    ),
    _known(
        "nccl-timeout",
        r"Watchdog caught collective operation timeout|NCCL.*timed? ?out|nccl(?:Remote|System|Internal)Error",
        Text(
            "a collective never completed: another rank ended or hangs, or the network between hosts is "
            "blocked; NCCL_DEBUG=INFO and NCCL_SOCKET_IFNAME help to find out which"
        ),
    ),
    _known(
        "python-module",
        r"ModuleNotFoundError: No module named|ImportError: No module named",
        Text("install the module in the Python that the workers run, not only where the job was submitted"),
    ),
    _known(
        "no-space",
        r"No space left on device|ENOSPC|Disk quota exceeded",
        Text(
            "a disk is full on that host: free some room, or write to a larger volume (a full /dev/shm says the same)"
        ),
    ),
    _known(
        "not-enough-slots",
        r"There are not enough slots available in the system|not enough slots available|"
        r"All nodes which are allocated for this job are already filled",
        Text(
            "more ranks were asked for than slots: raise slotsPerWorker or the number of workers, lower -np, "
            "or add --oversubscribe"
        ),
    ),
    _known(
        "root",
        r"has detected an attempt to run as root|running as root is \*strongly\* discouraged|--allow-run-as-root",
        Text("add --allow-run-as-root to mpirun, or run as another user"),
    ),
    _known(
        "hostfile",
        r"unable to (?:open|parse) (?:the )?hostfile|could not open (?:the )?host ?file",
        Text("leave the hostfile to the job: it is given to mpirun already and lies at /etc/mpi/hostfile"),
    ),
    _known(
        "mpirun-option",
        r"unrecognized argument|unrecognized option|error: unknown option|invalid option -- |"
        # Open MPI 5 reads `-bind-to none` as a request to run the program `none`.
        r"Executable: (?:none|core|hwthread|socket|package|numa|node|slot|l[123]cache)$",
        Text(
            "this mpirun does not know that option: Open MPI 5 wants two dashes (--bind-to, --map-by), and "
            "MPICH and Intel MPI have other options than Open MPI"
        ),
    ),
    _known(
        "host-key",
        r"Host key verification failed|REMOTE HOST IDENTIFICATION HAS CHANGED",
        Text(
            "a worker's ssh host key is not trusted: set StrictHostKeyChecking no for the job's hosts, or "
            "add the key to known_hosts"
        ),
    ),
    _known(
        "ssh-key",
        r"Permission denied \((?:publickey|[a-z,-]*publickey[a-z,-]*)\)|Too many authentication failures|"
        r"UNPROTECTED PRIVATE KEY FILE|bad permissions: ignore key",
        Text(
            "ssh was refused: check that sshAuthMountPath is the home of the user that logs in, and that the "
            "key files belong to that user with mode 0600"
        ),
    ),
    _known(
        "name",
        r"Could not resolve hostname|Name or service not known|Temporary failure in name resolution|"
        r"nodename nor servname provided|getaddrinfo (?:failed|error)|unable to get host address|unknown host|"
        r"gethostbyname failed",
        Text(
            "a host name does not resolve. Names of this job's hosts only resolve inside its network; for "
            "names of the world outside, {way}",
            way=_HOST_NETWORK,
        ),
    ),
    _known(
        "mpi-mismatch",
        r"undefined symbol: \w*(?:MPI|PMI|ompi|opal|PMPI)\w*|libmpi\w*\.so[.\d]*: cannot open shared object file|"
        r"cannot load MPI library|PMIx?_Init\w* failed|PMI2?_(?:Init|KVS\w*).*(?:fail|error)|"
        r"OPAL ERROR: Unreachable.*pmix|application appears to have been direct launched|"
        r"It looks like MPI_INIT failed|unable to (?:initialize|open) PMI|"
        r"RuntimeError: cannot load MPI library",
        Text(
            "the program was built for another MPI than the one that starts it: use the mpirun of the same "
            "installation, and the same image or environment on every host"
        ),
    ),
    _known(
        "address-in-use",
        r"Address already in use|EADDRINUSE|bind\(\) failed.*in use",
        Text("another process has that port: choose another MASTER_PORT, or leave the choice to the launcher"),
    ),
    _known(
        "command-not-found",
        r"command not found|: not found$|unable to (?:launch|find) the specified (?:application|executable)|"
        r"execvp error on file|execve failed|can't open file .*No such file or directory|"
        r"(?:^|\W)(?:exec|env|bash|sh|orted|prted|hydra_\w+)\b.*: No such file or directory",
        Text(
            "check the spelling and that the program is installed at the same path on every worker, and that "
            "PATH is set for logins that are not interactive"
        ),
    ),
    _known(
        "btl-tcp",
        r"\[btl_tcp|mca_btl_tcp|Open MPI failed to (?:TCP connect|handshake)|tcp_peer_(?:send|recv)|"
        r"at least one MPI process is unreachable|unable to reliably start one or more daemons|"
        r"A daemon failed to report back after being spawned|daemon has unexpectedly failed after launch|"
        r"lost communication with a remote daemon",
        Text(
            "hosts can log in to each other but not talk: name the network interface (--mca "
            "btl_tcp_if_include eth0 --mca oob_tcp_if_include eth0) and check for a firewall"
        ),
    ),
    _known(
        "no-route",
        r"No route to host|Network is unreachable",
        Text(
            "there is no way to that host: check its address and the network; with a private network, {way}",
            way=_HOST_NETWORK,
        ),
    ),
    _known(
        "connection",
        r"Connection refused|Connection timed out|Operation timed out|connect to host \S+ port \d+|"
        r"Connection closed by remote host|kex_exchange_identification",
        Text("a host did not answer: its ssh server or the process there was not running, or a firewall is in the way"),
    ),
    _known(
        "missing-file",
        r"FileNotFoundError|No such file or directory",
        Text("a file is missing on that host: every worker needs the files a rank reads, at the same path"),
    ),
)


def recognise(lines: Iterable[str], implementation: Implementation | None = None) -> tuple[KnownError, str] | None:
    """The first known error in the table that some line shows, with that line.

    `implementation`: the MPI the job was set up for, where the image and not the engine decides which one runs.
    """
    said = [line.strip() for line in lines if line.strip()]
    fitting = [known for known in KNOWN if not known.jobs_of or implementation in known.jobs_of]
    return next(((known, line) for known in fitting for line in said if known.pattern.search(line)), None)
