#!/bin/sh
# Runs the launcher's command, and looks around when it has ended: launch.sh COMMAND...
#
# Ended well: did mpirun go to the hosts it was to use? One that overlooks its hostfile runs every rank here and succeeds.
# Ended badly: on which host was memory exhausted? mpirun knows only that a rank was killed.
run=/run/oarsman
"$@" &
child=$!
trap 'kill -TERM "$child" 2>/dev/null' TERM INT HUP
wait "$child"
code=$?
while kill -0 "$child" 2>/dev/null; do # wait also returns when a signal was trapped
    wait "$child"
    code=$?
done
trap '' TERM INT HUP

oom_kills() { # oom_kills HOST
    OARSMAN_PROBE=yes "$OARSMAN_AGENT" -o ConnectTimeout=2 -o ConnectionAttempts=1 "$1" \
        "cat /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control 2>/dev/null | sed -n 's/^oom_kill //p'" </dev/null 2>/dev/null
}

ask() { # ask HOST
    before=$(cat "$run/barrier/$1.oom" 2>/dev/null)
    now=$(oom_kills "$1")
    [ "${now:-0}" -le "${before:-0}" ] || echo "oarsman: memory limit reached on ${1%%.*}" >&2
}

if [ "$code" -eq 0 ]; then
    for host in ${OARSMAN_EXPECTED:-}; do
        cut -d. -f1 "$run/contacted" 2>/dev/null | grep -qx "$host" && continue
        echo "oarsman: no rank was started on $host: mpirun never went there" >&2
        code=69
    done
elif [ "$code" -gt 0 ] && [ -n "${OARSMAN_AGENT:-}" ]; then
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
