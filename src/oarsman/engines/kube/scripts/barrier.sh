#!/bin/sh
# Lets the launcher start when every worker can be logged in to and finds the way back.
# Needs a shell with the usual small tools, and ssh.
#
# A worker that has no address yet may be waiting for a place; how long that may take is not decided here. One that has an
# address and does not answer gets OARSMAN_BARRIER_SECONDS. What is wrong is said in the log whenever it changes, and in
# the end as the reason of this container.
set -u
trap 'exit 143' TERM # a container's first process is not ended by a signal it does not handle
run=/run/oarsman
self=$OARSMAN_LAUNCHER agent=$OARSMAN_AGENT limit=$OARSMAN_BARRIER_SECONDS at_once=32
export OARSMAN_PROBE=yes
mkdir -p "$run/barrier" "$run/home"

say() { echo "oarsman: $*"; }
give_up() {
    echo "$*" | tee /dev/termination-log >&2
    exit 1
}

for tool in sed grep; do command -v "$tool" >/dev/null || give_up "there is no $tool in the launcher's image, which the start barrier needs"; done
if [ -d /etc/oarsman/ssh ]; then
    command -v ssh >/dev/null || give_up "there is no ssh in the launcher's image: install openssh-client"
    (umask 077; mkdir -p "$run/ssh" "$run/home/.ssh"; cat /etc/oarsman/ssh/id >"$run/ssh/id")
    echo "Include /etc/mpi/ssh_config" >"$run/home/.ssh/config" # the mounted file, which knows workers that come later
fi
[ -n "$limit" ] || exit 0 # not to wait for anybody

# Run on the worker: can it find us, and how often was memory exhausted there so far?
there="if command -v getent >/dev/null 2>&1 && ! getent hosts $self >/dev/null 2>&1; then echo 'it cannot resolve $self' >&2; exit 97; fi
cat /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control 2>/dev/null | sed -n 's/^oom_kill //p'"

probe() { # probe HOST; of the launcher itself, whether mpirun will find it
    case $1:$agent in
    "${self%%.*}":* | "${self%%.*}".*)
        ! command -v getent >/dev/null || getent hosts "$1" >/dev/null || { echo "it cannot find itself as $1" >&2; false; } ;;
    *kubexec.sh) "$agent" "$1" "$there" ;;
    *) ssh -F /etc/mpi/ssh_config -o ConnectionAttempts=1 -o ConnectTimeout=5 "$1" "$there" ;;
    esac >"$run/barrier/$1.new" 2>"$run/barrier/$1.why" </dev/null && mv "$run/barrier/$1.new" "$run/barrier/$1.oom"
}

why() { # the last word of a failed probe, without the prefix that names the program
    sed -e 's/\r$//' -e '/^Warning: Permanently added/d' -e '/^command terminated with exit code/d' -e '/^$/d' "$run/barrier/$1.why" | tail -n 1
}

pending=$(sed -e 's/[ :].*//' /etc/mpi/hostfile)
said=
since=
while :; do
    started=0
    for host in $pending; do
        probe "$host" &
        started=$((started + 1))
        [ $((started % at_once)) -ne 0 ] || wait
    done
    wait
    left=
    absent= # the first that has no address yet, and the first that has one and does not answer
    refusing=
    for host in $pending; do
        [ -e "$run/barrier/$host.oom" ] && continue
        left="$left $host"
        reason=$(why "$host")
        case $reason in
        *"resolve hostname"* | *"(NotFound)"* | *"does not have a host assigned"*) absent=${absent:-"${host%%.*}: $reason"} ;;
        *) refusing=${refusing:-"${host%%.*}: $reason"} ;;
        esac
    done
    [ -n "$left" ] || break
    pending=$left
    first=${refusing:-$absent}
    if [ "$first" != "$said" ]; then
        say "waiting for $first"
        said=$first
    fi
    now=$(date +%s)
    if [ -n "$absent" ]; then since=; else since=${since:-$now}; fi
    if [ -n "$since" ] && [ $((now - since)) -ge "$limit" ]; then
        give_up "$first (waited $limit s)"
    fi
    sleep 0.3 2>/dev/null || sleep 1
done
