#!/bin/sh
# rank.sh LABEL MASTER PORT PROGRAM...: starts one rank, says who and where it is, reports its end.
# The launcher and the MPI library see an ordinary process: same standard input, same signals, same exit.
# Before this text stand slots (of each host of the job) and runs (the folders of those that are on this machine).
# shellcheck disable=SC2154
label=$1 master=$2 port=$3
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
say() { [ ! -p "$OARSMAN_RUN/up" ] || echo "$*" >"$OARSMAN_RUN/up"; }
say "rank $label $RANK $WORLD_SIZE $LOCAL_RANK $$"
trap : TERM INT HUP # they reach the whole group; we stay to tell how the program took them
exec 3>&2 2>/dev/null # how the program ended is not for this shell to remark on in the program's name
if command -v "$1" >/dev/null; then
    (exec "$@" 2>&3 3>&-) # in parentheses, because some shells redirect themselves for a simple command
    code=$?
elif [ -e "$1" ]; then # in words that are the same on every host, and not about this script
    echo "$1: Permission denied" >&3
    code=126
else
    echo "$1: command not found" >&3
    code=127
fi
say "done $label $RANK $code"
# Of a rank that failed Open MPI 4 reads nothing any more once it knows; it gets the time to read all before.
[ "$code" -eq 0 ] || sleep 0.2 || sleep 1
exit "$code"
