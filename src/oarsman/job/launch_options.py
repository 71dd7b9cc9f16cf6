"""How many words each option of each launcher takes. Without this nobody can say where the program begins.

Names are kept without dashes: Open MPI and Hydra take one dash or two for most of them. Sources are
the manual pages of Open MPI 4 and 5 (PRRTE), Hydra (MPICH, Intel MPI) and horovodrun.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final


def _table(**words: str) -> dict[str, int]:
    """_N="name name ...": options that are followed by N words."""
    return {name: int(count[1:]) for count, names in words.items() for name in names.split()}


OPEN_MPI: Final[Mapping[str, int]] = _table(
    _0="""h help V version v verbose q quiet allow-run-as-root report-bindings report-child-jobs-separately
        display-map display-devel-map display-diffable-map display-topo display-allocation display-devel-allocation
        do-not-launch do-not-resolve do-not-aggregate-help nolocal oversubscribe nooversubscribe novm loadbalance
        pernode bynode byslot bycore bysocket byboard bynuma byhwthread
        bind-to-none bind-to-core bind-to-socket bind-to-board bind-to-hwthread
        use-hwthread-cpus use-regexp hetero-nodes index-argv-by-rank tag-output timestamp-output
        merge-stderr-to-stdout xml s preload-binary set-cwd-to-session-dir noprefix show-progress
        debug debug-daemons debug-daemons-file debug-devel d debug-verbose leave-session-attached daemonize
        enable-recovery disable-recovery continuous get-stack-traces report-state-on-timeout tv gdb
        enable-instant-on-support wait-for-server no-ready-msg nw terminate fwd-mpirun-port enable-instant-on staged
        stop-on-exec stop-in-init stop-in-app parsable parseable set-sid no-app-prefix singleton-mode
        display-comm display-comm-finalize rankwise-output recoverable notifyerrors autorestart""",
    _1="""np n c N host H hostfile machinefile default-hostfile add-host add-hostfile rankfile rf app
        npernode npersocket nperboard nperproc ppr bind-to map-by rank-by mapper cpu-list cpu-set slot-list
        cpus-per-proc cpus-per-rank x wdir wd path prefix pmix-prefix app-prefix tprefix
        preload-files preload-files-dest-dir output-filename output-proctable output display
        runtime-options rtos xml-file xterm stdin stream-buffering launch-agent exec-agent
        max-restarts max-vm-size ompi-server server-wait-time report-pid report-uri timeout spawn-timeout
        am tune personality dvm dvm-uri pset pmixam tmpdir forward-signals debugger keepalive
        num-connect-retries with-ft initial-errhandler gpu-support unset-env
        report-events cf cartofile display-map-file memory-profile cpu-type hnp file pool rank""",
    _2="mca gmca omca gomca prtemca gprtemca pmixmca gpmixmca set-env prepend-env append-env",
)

# With these the user wants the other ranks to go on when one fails.
SURVIVING: Final = ("with-ft", "enable-recovery", "continuous", "disable-auto-cleanup")

HYDRA: Final[Mapping[str, int]] = _table(
    _0="""h help info version V v verbose genvall genvnone envall envnone enable-x disable-x rr profile
        l prepend-rank disable-auto-cleanup disable-hostname-propagation pmi-port skip-launch-node
        hybrid-hosts print-all-exitcodes print-rank-map pmi-aggregate pmi-noaggregate nolocal localroot localonly local
        ordered-output silent-abort tv gdb mps aps check_mpi validate cleanup trace trace-collectives trace-pt2pt
        debug rdma RDMA dapl DAPL ib IB tmi TMI mx MX psm PSM psm2 PSM2 ofi OFI shm whoami mpdboot noconf""",
    _1="""np n c f host hosts hostfile machinefile machine hostos configfile wdir path arch exitinfo
        ppn perhost grr genvlist envlist launcher launcher-exec bootstrap bootstrap-exec bootstrap-exec-args rmk
        bind-to map-by membind binding topolib prepend-pattern outfile-pattern errfile-pattern nameserver
        order-nodes localhost usize gpus-per-proc gpu-subdevs-per-proc iface ckpointlib ckpoint-prefix ckpoint-num
        ckpoint-interval demux debugger branch-count hosts-group tmpdir umask gtool gtoolfile tune rankmap
        memory-alloc-kinds use-app-topology singleton-port singleton-pid pmi-connect pmi timeout port-range
        ilp64 ifhn maxtime""",
    _2="genv env",
)

HOROVOD: Final[Mapping[str, int]] = _table(
    _0="""h help v version cb check-build verbose disable-cache prefix-output-with-timestamp tcp gloo mpi jsrun
        hierarchical-allreduce no-hierarchical-allreduce hierarchical-allgather no-hierarchical-allgather
        torus-allreduce no-torus-allreduce autotune no-autotune timeline-mark-cycles no-timeline-mark-cycles
        no-stall-check stall-check mpi-threads-disable no-mpi-threads-disable
        log-hide-timestamp log-with-timestamp no-log-hide-timestamp""",
    _1="""np num-proc min-np min-num-proc max-np max-num-proc H hosts hostfile p ssh-port i ssh-identity-file
        network-interfaces network-interface output-filename start-timeout config-file gloo-timeout-seconds
        mpi-args binding-args num-nccl-streams thread-affinity fusion-threshold-mb cycle-time-ms cache-capacity
        autotune-log-file autotune-warmup-samples autotune-steps-per-sample autotune-bayes-opt-max-samples
        autotune-gaussian-process-noise slots-per-host slots elastic-timeout reset-limit host-discovery-script
        timeline-filename stall-check-warning-time-seconds stall-check-shutdown-time-seconds log-level
        jsrun-args nics""",
    _2="blacklist-cooldown-range cooldown-range",
)

# mpirun and mpiexec can be anybody's; where the two families disagree Open MPI's reading counts.
_EITHER: Final[Mapping[str, int]] = {**HYDRA, **OPEN_MPI}

LAUNCHERS: Final[Mapping[str, Mapping[str, int]]] = {
    "mpirun": _EITHER,
    "mpiexec": _EITHER,
    "orterun": OPEN_MPI,
    "prterun": OPEN_MPI,
    "mpirun.openmpi": OPEN_MPI,
    "mpiexec.openmpi": OPEN_MPI,
    "mpiexec.hydra": HYDRA,
    "mpirun.mpich": HYDRA,
    "mpiexec.mpich": HYDRA,
    "horovodrun": HOROVOD,
}

HYDRA_ONLY: Final = frozenset(("mpiexec.hydra", "mpirun.mpich", "mpiexec.mpich"))

# Both generations of Open MPI take these with two dashes. With one, generation 5 refuses them or takes their
# value for the program. The other long options of the seeds are fine with one dash in both (tried), so they stay.
NEEDS_TWO_DASHES: Final = frozenset(("bind-to", "map-by", "rank-by"))

# Options after which placement depends on what only the launcher sees at run time.
UNPREDICTABLE: Final = frozenset(
    _table(
        _0="""rankfile rf rankmap app configfile cpus-per-proc cpus-per-rank slot-list cpu-list cpu-set nolocal
        loadbalance novm dvm dvm-uri
        add-host add-hostfile ppr nperboard byboard rr grr order-nodes hosts-group branch-count mapper"""
    )
)

# Programs that only prepare the ground for the one named after their options: how many words of
# their own precede it, and which of their options take a word.
PREFIXES: Final[Mapping[str, tuple[int, frozenset[str]]]] = {
    **dict.fromkeys(("command", "builtin", "nohup", "setsid", "unbuffer", "catchsegv"), (0, frozenset())),
    **dict.fromkeys(("chrt", "taskset", "gosu", "su-exec"), (1, frozenset())),
    "exec": (0, frozenset(("-a",))),
    "time": (0, frozenset(("-f", "-o"))),
    "stdbuf": (0, frozenset(("-i", "-o", "-e"))),
    "nice": (0, frozenset(("-n",))),
    "ionice": (0, frozenset(("-c", "-n"))),
    "timeout": (1, frozenset(("-s", "--signal", "-k", "--kill-after"))),
    "numactl": (
        0,
        frozenset(_table(_1="-m -N -C -i -p --membind --cpunodebind --physcpubind --interleave --preferred")),
    ),
    "tini": (0, frozenset(("-p", "-e"))),
    "dumb-init": (0, frozenset(("-r", "--rewrite"))),
    "sudo": (0, frozenset(("-u", "-g", "-h", "-p", "-C", "-r", "-t"))),
    "env": (0, frozenset(("-u", "--unset", "-C", "--chdir"))),
}

# Programs that start ranks, and no MPI.
WITHOUT_MPI: Final = frozenset(("torchrun", "deepspeed", "accelerate"))

SHELLS: Final = frozenset(("sh", "bash", "dash", "ash", "zsh", "ksh", "busybox"))
