#!/bin/sh
# Runs the launcher's command, and looks around when it has ended: launch.sh COMMAND...
#
# Ended well: where did the ranks run? An mpirun that overlooks its hostfile runs every rank here and succeeds.
# Ended badly: which rank failed first, and where was memory exhausted? mpirun may not tell, or know only that a rank was killed.
run=/run/oarsman
most=64 # workers that are asked where ranks ran after they ended well
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
if [ -n "${OARSMAN_SHIM:-}" ]; then # see mpirun.sh
    OARSMAN_WORLDS=$(date +%s)
    export OARSMAN_WORLDS
    mkdir -p "$run/bin"
    for name in mpirun mpiexec orterun prterun mpirun.openmpi mpiexec.openmpi mpiexec.hydra mpirun.mpich mpiexec.mpich; do
        ! command -v "$name" >/dev/null || ln -sf /etc/mpi/mpirun.sh "$run/bin/$name"
    done
    PATH=$run/bin:$PATH
    case ${1##*/} in
    "$1") ;;
    mpirun | mpiexec | orterun | prterun | mpiexec.hydra) [ ! -x "$1" ] || set -- /bin/sh /etc/mpi/mpirun.sh "$@" ;;
    esac
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

ask() { # ask HOST: what its ranks wrote down, into the file told; if the command failed, also whether memory was exhausted
    short=${1%%.*} before=$(cat "$run/barrier/$1.oom" 2>/dev/null)
    answer=$(OARSMAN_PROBE=yes "$OARSMAN_AGENT" -o ConnectTimeout=2 -o ConnectionAttempts=1 "$1" \
        "cat /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control 2>/dev/null | sed -n 's/^oom_kill //p'
        cd $run/ranks 2>/dev/null && cat /dev/null $worlds 2>/dev/null; :" </dev/null 2>/dev/null)
    while read -r one rest; do
        case $one/$rest in
        *[!0-9]*/begin\ * | *[!0-9]*/end\ *) echo "$one $rest $short" >>"$run/told" ;;
        */?* | *[!0-9]*/ | /) ;;
        *) [ "$code" -eq 0 ] || [ "$one" -le "${before:-0}" ] || echo "oarsman: memory limit reached on $short" >&2 ;;
        esac
    done <<END
$answer
END
}

ask_all() { # ask_all HOSTS: 32 at a time
    asked=0
    for host in "$@"; do
        [ "${host%%.*}" = "${OARSMAN_LAUNCHER%%.*}" ] && continue
        ask "$host" &
        asked=$((asked + 1))
        [ $((asked % 32)) -ne 0 ] || wait
    done
    wait
}

expected() { # the workers that mpirun was to use: so many of the hostfile's, or those named
    case $OARSMAN_EXPECTED in
    [0-9]*) sed -e 's/[ :.].*//' /etc/mpi/hostfile | grep -vx "${OARSMAN_LAUNCHER%%.*}" | sed -n "1,${OARSMAN_EXPECTED}p" ;;
    *) for host in $OARSMAN_EXPECTED; do echo "$host"; done ;;
    esac
}

worlds= # the last that the command had mpirun start, and the one to tell about
world=
if [ -e "$run/worlds" ]; then
    worlds=$(tail -n 3 "$run/worlds" | sed 's/ .*//' | tr '\n' ' ')
    (cd "$run/ranks" 2>/dev/null && cat $worlds 2>/dev/null) | sed "s/\$/ ${OARSMAN_LAUNCHER%%.*}/" >"$run/told" # of ranks in here
fi
if [ "$code" -eq 0 ]; then
    sed -e 's/\..*//' "$run/contacted" >"$run/went_to" 2>/dev/null
    where=
    last=$(tail -n 1 "$run/worlds" 2>/dev/null)
    case $last in
    *' ') # of one that was told on which hosts to run nobody knows whether it did right
        world=${last% }
        where=$(/bin/sh /etc/mpi/ranks.sh where "$world" "$run/told" all)
        if [ -z "$where" ] && [ -z "$told_to_end" ] && [ "$OARSMAN_SHIM" != quiet ]; then
            # shellcheck disable=SC2046
            set -- $(sed -e 's/[ :].*//' /etc/mpi/hostfile | grep -F -f "$run/went_to" | head -n $((most + 1)))
            [ $# -gt "$most" ] || ask_all "$@"
            where=$(/bin/sh /etc/mpi/ranks.sh where "$world" "$run/told" all)
        fi
        ;;
    esac
    # Where it is known from which words each rank was to run where, that is judged by rank, and not here.
    if [ -n "${OARSMAN_EXPECTED:-}" ] && [ "${where:+$OARSMAN_SHIM}" != planned ]; then
        for host in $(expected | grep -vxFf "$run/went_to"); do
            echo "oarsman: no rank was started on $host: mpirun never went there" >&2
            code=69
        done
    fi
    case $code in
    0) [ -z "$where" ] || [ -s /dev/termination-log ] || echo "$where" 2>/dev/null >/dev/termination-log ;;
    *) [ -z "$where" ] || echo "$where" >&2 ;;
    esac
elif [ -z "$told_to_end" ] && [ -n "${OARSMAN_AGENT:-}" ]; then
    # shellcheck disable=SC2046
    ask_all $(sed -e 's/[ :].*//' /etc/mpi/hostfile 2>/dev/null)
    for each in $worlds; do # the newest that a rank failed in with the code of the command; else the newest
        if [ -z "$world" ] || grep -q "^$each end [0-9]* $code " "$run/told"; then world=$each; fi
    done
    if [ -n "$world" ]; then
        /bin/sh /etc/mpi/ranks.sh where "$world" "$run/told" >&2
        /bin/sh /etc/mpi/ranks.sh failed "$world" "$run/told" >&2
    fi
fi
exit "$code"
