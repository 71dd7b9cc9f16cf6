"""Errors that MPI users meet again and again, recognised by their words.

Each entry has a name, a pattern that is looked for in single lines, and a hint that says what to do.
The order matters: the first entry that matches any line wins, so the precise ones come first. Those that
come last also appear when a rank has failed for a reason of its own (a refused connection: nobody listens
any more), and are no evidence then. Tests hold the real text of each message.

Some are errors only for jobs that name the other kind of MPI; of those the line says less than the
entry's own sentence.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from oarsman.errors import did_you_mean
from oarsman.job.job import Implementation
from oarsman.text.sentence import Text


@dataclass(frozen=True, slots=True)
class KnownError:
    name: str
    pattern: re.Pattern[str]
    hint: str
    jobs_of: tuple[Implementation, ...] = ()  # an error only for jobs set up for one of these; (): for all
    sentence: str = ""  # tells what is wrong where the line itself does not
    on_one_machine: str = ""  # the hint where no login comes between mpirun and a rank; empty: the same
    code: int = 0  # an error only if the process ended with this one; 0: with any
    aftermath: bool = False  # others say so as well when a rank has failed, whatever the reason


def _known(name: str, pattern: str, hint: str, **more: Any) -> KnownError:
    return KnownError(name, re.compile(pattern, re.IGNORECASE), hint, **more)


_HOST_NETWORK: Final = Text("set the annotation oarsman.dev/network: host, or run with --network host")

KNOWN: Final = (
    _known(
        "install-commands",
        r"^oarsman: the install commands failed",
        Text("their output is in the log; they come from the annotation oarsman.dev/install"),
        sentence=Text("the install commands failed"),
    ),
    _known(
        "mpich-for-open-mpi",
        r"^\[mpiexec@[^\]]+\] .*(?:unrecognized argument|error parsing hostfile|token slots not supported)",
        Text("name the image's MPI: --mpi mpich, or spec.mpiImplementation: MPICH (for Intel MPI: intel, Intel)"),
        jobs_of=(Implementation.OPENMPI,),
        sentence=Text("the image's mpirun is MPICH's (Hydra), while the job says Open MPI, which is the default"),
    ),
    _known(
        "open-mpi-for-mpich",
        r"\b(?:mpirun|mpiexec|orterun|prterun): Error: unknown option|"
        r"An unrecognized option was included on the (?:mpirun|mpiexec|prterun) command line",
        Text("name the image's MPI: --mpi openmpi, or spec.mpiImplementation: OpenMPI"),
        jobs_of=(Implementation.MPICH, Implementation.INTEL),
        sentence=Text("the image's mpirun is Open MPI's, while the job says MPICH or Intel MPI"),
    ),
    _known(
        "cuda-out-of-memory",
        r"CUDA out of memory|CUDA error: out of memory|CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation",
        Text("the GPU's memory is full: use a smaller batch, or fewer ranks per GPU"),
    ),
    _known(
        "no-gpu",
        r"no CUDA-capable device is detected|No CUDA GPUs are available|Found no NVIDIA driver|CUDA_ERROR_NO_DEVICE",
        Text("that rank sees no GPU: request GPUs in the job (nvidia.com/gpu), and check nvidia-smi on that host"),
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
        r"(?:(?:ModuleNotFound|Import)Error|(?:^|/)(?:python|pypy)[\d.]*): No module named '?(?P<module>[\w-]+)",
        Text("install the module in the Python that the workers run, not only where the job was submitted"),
    ),
    _known(
        "shared-memory",
        r"not enough space for \S*/dev/shm|out of shared memory|insufficient shared memory|memory segment \S*/dev/shm",
        Text("give the host more shared memory: an emptyDir volume with medium Memory on /dev/shm"),
    ),
    _known(
        "locked-memory",
        r"max locked memory|allocate some locked memory|ulimit -l\b",
        Text(
            "InfiniBand locks memory: set memlock to unlimited for this user on the hosts (/etc/security/limits.conf)"
        ),
    ),
    _known(
        "memory",
        r"^\S*MemoryError\b|std::bad_alloc|Cannot allocate memory|Out of memory: Killed process",
        Text("it asked for more memory than it could get: use less per rank, or raise the memory limit"),
    ),
    _known(
        "user-namespaces",
        r"/proc/self/uid_map.*(?:not permitted|denied)|setting up uid map: Permission denied|"
        r"(?:creat\w+|unshare\w*) user namespace.*(?:not permitted|denied|disabled)|unshare failed: .*not permitted",
        Text(
            "that host restricts user namespaces: on Ubuntu see sysctl kernel.apparmor_restrict_unprivileged_userns, "
            "elsewhere user.max_user_namespaces"
        ),
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
            "or give mpirun --oversubscribe"
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
        Text("remove the hostfile option: the job passes its own hostfile to mpirun, /etc/mpi/hostfile"),
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
            "other names, {way}",
            way=_HOST_NETWORK,
        ),
    ),
    _known(
        "mpi-mismatch",
        r"undefined symbol: \w*(?:MPI|PMI|ompi|opal|PMPI)\w*|libmpi\w*\.so[.\d]*: cannot open shared object file|"
        r"cannot load MPI library|PMIx?_Init\w* failed|PMI2?_(?:Init|KVS\w*).*(?:fail|error)|"
        r"OPAL ERROR: Unreachable.*pmix|application appears to have been direct launched|"
        r"It looks like MPI_INIT failed|unable to (?:initialize|open) PMI|uses unsupported PMI version|"
        r"^its MPI library is that of|PMIx? server (?:is )?(?:not|un)\w* ?(?:found|reachable|available)",
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
        "shared-library",
        r"error while loading shared libraries|cannot open shared object file",
        Text("that host lacks a shared library: install it there, or pass LD_LIBRARY_PATH to the ranks (mpirun -x)"),
    ),
    _known(
        "instructions",
        r"CPU ISA level is lower than required|compiled to use .* instructions, but these aren't available|"
        r"was built with baseline optimizations",
        Text("the program uses instructions this CPU lacks: build it for the hosts it runs on"),
    ),
    _known(
        "interpreter",
        r"bad interpreter|cannot execute: required file not found",
        Text("the interpreter in the script's first line (#!), or the loader of a binary, is missing on that host"),
    ),
    _known(
        "not-executable",
        r"Permission denied|Exec format error|cannot execute|Is a directory",
        Text(
            "check that it is a program for this CPU, or a script that begins with #!, and may be executed (chmod +x)"
        ),
        code=126,
    ),
    _known(
        "permission",
        r"PermissionError|: Permission denied$",
        Text("the user lacks the permission there: check the owner and the mode of the file on that host"),
    ),
    _known(
        "relative-path",
        r"^(?:oarsman: )?[^/\s:][^\s:]*/[^\s:]*: (?:command not found|No such file or directory) in /",
        Text(
            "a relative path starts in the folder where the job was submitted, or in its workingDir: submit the job "
            "where the program is, or write the absolute path"
        ),
    ),
    _known(
        "script",
        r"can't open file .*No such file or directory",
        Text(
            "check the spelling, and that the file is there on every worker; a relative path starts in the folder "
            "where the job was submitted, or in its workingDir"
        ),
    ),
    _known(
        "command-not-found",
        r"command not found|: not found$|unable to (?:launch|find) the specified (?:application|executable)|"
        r"execvp error on file|execve failed|^oarsman: [^\s:/]+: No such file or directory$|"
        r"(?:^|\W)(?:exec|env|bash|sh|orted|prted|hydra_\w+)\b.*: No such file or directory",
        Text(
            "check the spelling and that the program is installed at the same path on every worker, and that "
            "PATH is set for logins that are not interactive"
        ),
        on_one_machine=Text("check the spelling, and that the program is in a folder of the PATH that the job got"),
    ),
    _known(
        "missing-file",
        r"FileNotFoundError|(?<!\.txt): No such file or directory|No such file or directory:",
        Text("a file is missing on that host: every worker needs the files a rank reads, at the same path"),
    ),
    _known(
        "no-route",
        r"No route to host|Network is unreachable",
        Text(
            "that host cannot be reached: check its address and the network; with a private network, {way}",
            way=_HOST_NETWORK,
        ),
        aftermath=True,
    ),
    _known(
        "no-answer",
        r"Connection timed out|Operation timed out",
        Text("no answer came: that host is switched off, or a firewall on the way drops the connection"),
        aftermath=True,
    ),
    _known(
        "connection",
        r"Connection refused|Connection closed by remote host|kex_exchange_identification",
        Text("that host was reached, but nothing listened there: the server or process had not started, or had ended"),
        aftermath=True,
    ),
    _known(
        "btl-tcp",
        r"Open MPI failed to (?:TCP connect|handshake)|received unexpected process identifier|"
        r"at least one (?:pair of )?MPI process(?:es)? (?:is|are) (?:unreachable|unable to reach)",
        Text(
            "ranks on different hosts cannot connect to each other: name the network that connects the hosts "
            "(--mca btl_tcp_if_include eth0 --mca oob_tcp_if_include eth0)"
        ),
        aftermath=True,
    ),
    _known(
        "daemon",
        r"unable to reliably start one or more daemons|A daemon failed to report back after being spawned|"
        r"daemon has unexpectedly failed after launch",
        Text(
            "mpirun's daemon did not start on a host, or could not connect back: install the same MPI there, "
            "and let no firewall stand between the hosts; on SSH hosts 'oarsman hosts check' shows what is "
            "wrong"
        ),
        aftermath=True,
    ),
)


_LAUNCHERS: Final = ("mpirun", "mpiexec", "orterun", "prterun", "horovodrun", "torchrun")
_NOT_FOUND: Final = re.compile(
    r"(?:^|\s)(?P<word>[^\s:/]+): (?:command not found|not found|No such file or directory)$"
)


def misspelt_launcher(line: str) -> str | None:
    """What to write instead, if this line misses a program that is called almost like a launcher."""
    found = _NOT_FOUND.search(line)
    near = difflib.get_close_matches(found["word"], _LAUNCHERS, n=1, cutoff=0.8) if found is not None else []
    return did_you_mean(near[0]) if near else None


# Open MPI was slower than its own child, which it tells with an error's words.
_NOTHING_WRONG: Final = re.compile(r"\(ignored\)$|plm:[rsh|]+: Warning: setpgid\(")


def recognise(
    lines: Iterable[str],
    implementation: Implementation | None = None,
    *,
    code: int | None = None,
    aftermath: bool = True,
) -> tuple[KnownError, str] | None:
    """The first known error in the table that some line shows, with that line.

    `implementation`: the MPI the job was set up for, where the image and not the engine decides which one runs.
    `aftermath`: whether what others say when a rank has failed is evidence, too.
    """
    said = [line.strip() for line in lines if line.strip() and not _NOTHING_WRONG.search(line)]
    fitting = [known for known in KNOWN if not known.jobs_of or implementation in known.jobs_of]
    fitting = [known for known in fitting if known.code in (0, code) and aftermath >= known.aftermath]
    return next(((known, line) for known in fitting for line in said if known.pattern.search(line)), None)
