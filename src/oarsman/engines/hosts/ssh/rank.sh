#!/bin/sh
# rank.sh LABEL input=WHO MASTER PORT PROGRAM...: starts one rank, says who and where it is, reports its end.
# The launcher and the MPI library see an ordinary process: same signals, same exit.
# WHO reads what the launcher hands on: all, first (rank 0 alone), none. With "feed" the job agent itself feeds rank 0, once
# it knows where that is: of what Open MPI 5 hands on the end never comes.
# Before this text stand slots (of each host of the job) and runs (the folders of those that are on this machine).
# shellcheck disable=SC2154
label=$1 input=first
case $2 in input=*) input=${2#input=} && shift ;; esac # an older job agent does not say it
master=$2 port=$3
shift 3
export RANK="${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}}" WORLD_SIZE="${OMPI_COMM_WORLD_SIZE:-${PMI_SIZE:-1}}"
export LOCAL_RANK="${OMPI_COMM_WORLD_LOCAL_RANK:-${MPI_LOCALRANKID:-0}}"
seat=$LOCAL_RANK
for run in $runs; do # hosts that share a machine are one to MPI; a rank belongs to the one whose slot it has
    [ "$seat" -ge "$slots" ] || break
    seat=$((seat - slots))
done
[ -r "$run/own" ] || run=${0%/*}/run
# shellcheck source=/dev/null
. "$run/own" # a launcher may send its own variables along; what belongs to this host is put right again
export LOCAL_WORLD_SIZE="${OMPI_COMM_WORLD_LOCAL_SIZE:-${MPI_LOCALNRANKS:-1}}"
export MASTER_ADDR="${MASTER_ADDR:-$master}" MASTER_PORT="${MASTER_PORT:-$port}"
case $label in # what every Python of a rank reads first, unless the others may go on when this rank fails
*:1) ;;
*) export PYTHONPATH="${0%/*}${PYTHONPATH:+:$PYTHONPATH}" ;;
esac
say() { [ ! -p "$OARSMAN_RUN/up" ] || echo "$*" >"$OARSMAN_RUN/up"; }
look() { # which MPI library the program has loaded: the first rank tells, twice if need be, for some take long to load
    trap 'kill -KILL $! 2>/dev/null; exit' TERM # its sleep, if there is one by now
    by=''
    for name in OMPI_COMM_WORLD_RANK OMPI_MCA_ess_base_jobid PRTE_LAUNCHED PMI_RANK HYDRA_BSTRAP_NODE_ID; do
        eval "[ -z \"\${$name:-}\" ]" || by=$by,$name
    done
    for seconds in 5 20; do
        sleep "$seconds" &
        wait "$!"
        files=$(grep -ls "^PPid:[^0-9]*$$\$" /proc/[0-9]*/status | while read -r status; do
            sed -n 's/.* \(\/[^ ]*\/lib\(mpi\|mpich\|open-rte\|open-pal\)\.so[^ ]*\)$/\1/p' "${status%status}maps"
        done | sort -u | head -n 9)
        library=$(echo "$files" | grep -e /libmpi | head -n 1)
        [ -n "$library" ] || continue
        # What it says itself tells where the name of its file does not.
        said=$(grep -a -o -e 'libmpi\.so\.[0-9][0-9]*' -e 'Intel(R) MPI' "$library" | sort -u | tr -d ' ')
        say "mapped $label $RANK $by $library $(echo "$files $said" | tr '\n' ' ')"
        return
    done
}
case $input/$RANK in feed/0) rm -f "$OARSMAN_RUN/in" && mkfifo "$OARSMAN_RUN/in" || input=none ;; esac
say "rank $label $RANK $WORLD_SIZE $LOCAL_RANK $$"
case $input/$RANK in
feed/0) exec <"$OARSMAN_RUN/in" ;; # waits until it is fed
all/* | first/0) ;;
*) exec </dev/null ;;
esac
# Before there is a trap: one that was forked a moment ago would still have it, and forget that it is to end. It has our
# streams open until it ends, and mpirun waits for that.
looker=''
case $RANK in 0) look </dev/null >/dev/null 2>&1 & looker=$! ;; esac
trap : TERM INT HUP # they reach the whole group; we stay to tell how the program took them
exec 3>&2 2>/dev/null # how the program ended is not for this shell to remark on in the program's name
if command -v "$1" >/dev/null; then
    (exec "$@" 2>&3 3>&-) # in parentheses, because some shells redirect themselves for a simple command
    code=$?
elif [ -e "$1" ]; then # in words that are the same on every host, and not about this script
    echo "$1: Permission denied" >&3
    code=126
else
    case $1 in
    /*) echo "$1: command not found" >&3 ;;
    */*) echo "$1: command not found in $PWD" >&3 ;;
    *) echo "$1: command not found" >&3 ;;
    esac
    code=127
fi
[ -z "$looker" ] || kill "$looker"
say "done $label $RANK $code"
# Of a rank that failed Open MPI 4 reads nothing any more once it knows; it gets the time to read all before.
[ "$code" -eq 0 ] || sleep 0.2 || sleep 1
exit "$code"
