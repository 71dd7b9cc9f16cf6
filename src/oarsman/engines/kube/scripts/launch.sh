#!/bin/sh
# Runs the launcher's command, and looks around when it has ended: launch.sh COMMAND...
#
# Ended well: did mpirun go to the hosts it was to use? One that overlooks its hostfile runs every rank here and succeeds.
# Ended badly: on which host was memory exhausted? mpirun knows only that a rank was killed.
run=/run/oarsman
# Hydra's mpiexec does not notice that a rank on another host has failed: it stays although every session is over.
ended_sessions() { # succeeds if there were sessions and none of them lives; prints who started them
    living=0
    parent=
    for stat in /proc/[0-9]*/stat; do
        line=
        read -r line 2>/dev/null <"$stat" || continue
        case $line in *"(ssh)"* | *"(kubectl)"*) ;; *) continue ;; esac
        line=${line##*) }
        case $line in
        Z*) line=${line#* }; parent=${line%% *} ;;
        *) living=1 ;;
        esac
    done
    [ "$living" = 0 ] && [ -n "$parent" ] && echo "$parent"
}
watch_sessions() {
    over=0
    while sleep 5; do
        if parent=$(ended_sessions); then over=$((over + 1)); else over=0; fi
        [ "$over" -ge 3 ] || continue
        echo "oarsman: the sessions on all hosts have ended, mpiexec has not; it is ended" >&2
        kill -KILL "$parent"
        return
    done
}

# Set before the command starts: a shell that is the first process of its pod is deaf to signals it has no trap for.
told_to_end=
child=
trap 'told_to_end=yes; [ -z "$child" ] || kill -TERM "$child" 2>/dev/null' TERM INT HUP
# A launcher alone is the host of its ranks. mpirun looks its name up, which only DNS may know, a moment after the pod runs.
if [ -n "${OARSMAN_OWN_NAME_SECONDS:-}" ] && command -v getent >/dev/null 2>&1; then
    own=$(sed -e 's/[ :].*//' -e q /etc/mpi/hostfile) waited=0
    while [ -z "$told_to_end" ] && [ "$waited" -lt "$OARSMAN_OWN_NAME_SECONDS" ] && ! getent hosts "$own" >/dev/null 2>&1; do
        [ "$waited" -ne 0 ] || echo "oarsman: waiting for the name $own" >&2
        sleep 1
        waited=$((waited + 1))
    done
    [ -z "$told_to_end" ] || exit 143
fi
"$@" &
child=$!
[ -z "$told_to_end" ] || kill -TERM "$child" 2>/dev/null
watcher=
if [ -n "${OARSMAN_HYDRA:-}" ]; then
    watch_sessions &
    watcher=$!
fi
wait "$child"
code=$?
while kill -0 "$child" 2>/dev/null; do # wait also returns when a signal was trapped
    wait "$child"
    code=$?
done
trap '' TERM INT HUP
# Not a signal that could be trapped: one that was forked a moment ago may still have our traps, and would forget it.
[ -z "$watcher" ] || kill -KILL "$watcher" 2>/dev/null

oom_kills() { # oom_kills HOST
    OARSMAN_PROBE=yes "$OARSMAN_AGENT" -o ConnectTimeout=2 -o ConnectionAttempts=1 "$1" \
        "cat /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control 2>/dev/null | sed -n 's/^oom_kill //p'" </dev/null 2>/dev/null
}

ask() { # ask HOST
    before=$(cat "$run/barrier/$1.oom" 2>/dev/null)
    now=$(oom_kills "$1")
    [ "${now:-0}" -le "${before:-0}" ] || echo "oarsman: memory limit reached on ${1%%.*}" >&2
}

expected() { # the workers that mpirun was to use: so many of the hostfile's, or those named
    case $OARSMAN_EXPECTED in
    [0-9]*) sed -e 's/[ :.].*//' /etc/mpi/hostfile | grep -vx "${OARSMAN_LAUNCHER%%.*}" | sed -n "1,${OARSMAN_EXPECTED}p" ;;
    *) for host in $OARSMAN_EXPECTED; do echo "$host"; done ;;
    esac
}

if [ "$code" -eq 0 ] && [ -n "${OARSMAN_EXPECTED:-}" ]; then
    sed -e 's/\..*//' "$run/contacted" >"$run/went_to" 2>/dev/null
    for host in $(expected | grep -vxFf "$run/went_to"); do
        echo "oarsman: no rank was started on $host: mpirun never went there" >&2
        code=69
    done
elif [ "$code" -ne 0 ] && [ -z "$told_to_end" ] && [ -n "${OARSMAN_AGENT:-}" ]; then
    asked=0
    for host in $(sed -e 's/[ :].*//' /etc/mpi/hostfile 2>/dev/null); do
        [ "${host%%.*}" = "${OARSMAN_LAUNCHER%%.*}" ] && continue
        ask "$host" &
        asked=$((asked + 1))
        [ $((asked % 32)) -ne 0 ] || wait
    done
    wait
fi
exit "$code"
