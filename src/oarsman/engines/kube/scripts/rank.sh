#!/bin/sh
# rank.sh WORLD MASTER PORT NODES PROGRAM...: starts one rank of an mpirun, with the variables by which programs that know
# nothing of MPI find each other, and writes down that it began and how it ended, for launch.sh to ask for.
# mpirun and the MPI library see an ordinary process: same signals, same exit.
# NODES tells how hosts are counted: +1, as workers are, from 1; =A:2,B in the order of these names; -, not known. With ~
# before that the other ranks may go on when this one fails.
world=$1 master=$2 port=$3 nodes=$4
shift 4
rank=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-${PMIX_RANK:-}}}
[ -n "$rank" ] || exec "$@"
export RANK="$rank" WORLD_SIZE="${OMPI_COMM_WORLD_SIZE:-${PMI_SIZE:-1}}"
export LOCAL_RANK="${OMPI_COMM_WORLD_LOCAL_RANK:-${MPI_LOCALRANKID:-0}}"
export LOCAL_WORLD_SIZE="${OMPI_COMM_WORLD_LOCAL_SIZE:-${MPI_LOCALNRANKS:-1}}"
case $nodes in # what every Python of a rank reads first
'~'*) nodes=${nodes#?} ;;
*) [ ! -e /etc/mpi/sitecustomize.py ] || export PYTHONPATH="/etc/mpi${PYTHONPATH:+:$PYTHONPATH}" ;;
esac

here=''
read -r here </proc/sys/kernel/hostname
here=${here%%.*} node=''
case $nodes in
+*)
    case $here in
    *-launcher) node=0 ;;
    *-worker-*[!0-9]*) ;;
    *-worker-?*) node=$((${here##*-worker-} + ${nodes#+})) ;;
    esac
    ;;
=*)
    names=${nodes#=}, count=0 known=' '
    while [ -n "$names" ]; do
        name=${names%%,*} names=${names#*,}
        name=${name%%:*}
        name=${name%%.*}
        case $known in *" $name "*) continue ;; esac
        [ "$name" != "$here" ] || node=$count
        known="$known$name " count=$((count + 1))
    done
    ;;
esac
[ -z "$node" ] || export NODE_RANK="$node"
[ "$master" = - ] || export MASTER_ADDR="${MASTER_ADDR:-$master}" MASTER_PORT="${MASTER_PORT:-$port}"

file=/run/oarsman/ranks/$world
mkdir -p "${file%/*}" 2>/dev/null
note() { echo "$world $*" 2>/dev/null >>"$file"; }
note begin "$RANK" "$WORLD_SIZE"
there() { case $1 in */*) [ -x "$1" ] && [ ! -d "$1" ] ;; *) command -v "$1" >/dev/null ;; esac }
give_up() { # in words that are the same on every host, and not about this script
    echo "$2" >&2
    note end "$RANK" "$1" "$(date +%s)000"
    exit "$1"
}
case ${OMPI_COMM_WORLD_RANK:+openmpi}/$1 in
*/*/*) ;;
openmpi/*) # which looks for programs where it is, too
    if ! there "$1" && there "$PWD/$1"; then
        program=$PWD/$1
        shift
        set -- "$program" "$@"
    fi
    ;;
esac
if ! there "$1"; then
    case $1 in
    */*) [ ! -e "$1" ] || give_up 126 "$1: Permission denied" ;;
    esac
    case $1 in
    [!/]*/*) give_up 127 "$1: command not found in $PWD" ;;
    *) give_up 127 "$1: command not found" ;;
    esac
fi
# With a shell that stays in between, mpiexec of MPICH may end with 9 or 255 for a rank that ended with 3. How ranks of Hydra
# end only mpiexec tells, and of a Python that leaves only after MPI_Abort.
if [ -z "${OMPI_COMM_WORLD_RANK:-}" ]; then
    export OARSMAN_ABORT=1
    exec "$@"
fi

uptime() { # in milliseconds; from a file, because mpirun may end this shell before another program has started
    up=''
    read -r up _ </proc/uptime
    up=${up%.*}${up#*.}
    while [ "${up#0}" != "$up" ]; do up=${up#0}; done
    up=$((${up:-0} * 10))
}
now=$(date +%s%N)
case $now in *[!0-9]* | '') now=$(date +%s)000 ;; *) now=${now%??????} ;; esac
uptime
booted=$((now - up))
trap : TERM INT HUP USR1 USR2 ALRM # they reach the whole group; we stay to tell how the program took them
exec 3>&2 2>/dev/null # how the program ended is not for this shell to remark on in the program's name
(exec "$@" 2>&3 3>&-) # in parentheses, because some shells redirect themselves for a simple command
code=$?
[ "$code" -ne 0 ] || exit 0
uptime
note end "$RANK" "$code" "$((booted + up))"
case $code in
129 | 130 | 131 | 132 | 134 | 135 | 136 | 137 | 139 | 141 | 142 | 143) # by a signal, as mpirun is to see
    # shellcheck disable=SC3045
    ulimit -c 0
    trap - TERM INT HUP USR1 USR2 ALRM
    kill -"$((code - 128))" $$
    ;;
esac
exit "$code"
