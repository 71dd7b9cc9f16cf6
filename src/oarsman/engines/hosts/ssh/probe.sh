#!/bin/sh
# What a host says about itself: lines of a key and values, separated by tabs, between "oarsman-probe" and "end".
#
# Python puts three assignments before this text: oarsman_folder (where jobs would keep their files), oarsman_mpi (the MPI
# that the inventory names) and oarsman_patience (seconds). Whatever hangs, a tool or a file server, hangs behind a pipe:
# what has come through by then is the answer.
exec 2>/dev/null # what tools complain about is not an answer
LC_ALL=C # so that messages read the same everywhere
export LC_ALL
: "${oarsman_folder:=.oarsman}" "${oarsman_mpi:=}" "${oarsman_patience:=2}"
limit=$((oarsman_patience > 1 ? oarsman_patience - 1 : 1)) # of one tool, so that a hanging one costs its own answer alone
tab=$(printf '\t')
home=${HOME:-/}

say() {
    key=$1
    shift
    for value in "$@"; do key=$key$tab$value; done
    printf '%s\n' "$key"
}

# One line at a time, in a single write, so that lines of different writers do not mix.
relay() { while IFS= read -r line; do printf '%s\n' "$line"; done; }

# What start-up files began may clear up after itself before it is killed: pyenv's lock, left behind, delays every login.
if timeout -k 1 1 true; then
    bound="timeout -k 1 $limit"
elif timeout 1 true; then
    bound="timeout -s KILL $limit"
elif timeout -t 1 true; then # busybox before 1.30
    bound="timeout -t $limit -s KILL"
else
    bound=
fi
# shellcheck disable=SC2086 # words
bounded() { $bound "$@"; }

who() {
    now=$(date +%s.%N)
    case $now in *[!0-9.]* | *.) now=$(date +%s) ;; esac
    say clock "$now"
    say hostname "$(uname -n)"
    say user "$(id -un)" "$(id -u)"
    say home "$home"
    say system "$(uname -s)" "$(uname -m)"
    say processors "$(nproc || getconf _NPROCESSORS_ONLN || grep -c '^processor' /proc/cpuinfo)"
    say memory "$(sed -n 's/^MemTotal: *\([0-9]*\) kB.*/\1/p' /proc/meminfo)" \
        "$(sed -n 's/^MemAvailable: *\([0-9]*\) kB.*/\1/p' /proc/meminfo)"
    say load "$(sed 's/ .*//' /proc/loadavg)"
    say path "$PATH"
    # shellcheck disable=SC2086 # client's address and port, then this side's
    set -- ${SSH_CONNECTION:-}
    say reached "${3:-}"
}

interface() { # NAME FLAGS
    speed=
    read -r speed <"/sys/class/net/$1/speed"
    say interface "$1" "$2" "$speed"
}

networks() {
    bounded ip -o addr | sed -n 's/^[0-9]*: *\([^ @]*\)[^ ]* *inet6* \([^ ]*\) peer [^ ]*\/\([0-9]*\).*/\1 \2\/\3/p
        t
        s/^[0-9]*: *\([^ @]*\)[^ ]* *inet6* \([^ ]*\) .*/\1 \2/p' | while read -r name address; do
        say address "$name" "$address"
    done
    # What there is without the command ip: addresses of this host, and the routes that tell where they belong.
    last=
    while read -r mark address kind; do
        case $mark in
        '|--') last=$address ;;
        /32) [ "$address $kind" = "host LOCAL" ] && say local "$last" ;;
        esac
    done </proc/net/fib_trie
    while read -r name destination _ _ _ _ _ mask _; do say route "$name" "$destination" "$mask"; done </proc/net/route
    while read -r number _ prefix _ _ name; do say local6 "$name" "$number" "$prefix"; done </proc/net/if_inet6
    while read -r destination prefix rest; do
        [ "$destination$prefix" = 0000000000000000000000000000000000 ] && say route6 "${rest##* }"
    done </proc/net/ipv6_route
    for link in /sys/class/net/*/flags; do
        name=${link%/flags}
        read -r flags <"$link" && interface "${name##*/}" "$flags"
    done
    bounded ip -o link | sed -n 's/^[0-9]*: *\([^ :@]*\)[^<]*<\([^>]*\)>.*/\1 \2/p' | while read -r name flags; do
        interface "$name" "$flags"
    done
    for device in /sys/class/infiniband/*; do
        [ -e "$device" ] && say rdma "${device##*/}"
    done
}

graphics() {
    cards=$(bounded nvidia-smi --query-gpu=name --format=csv,noheader) ||
        cards=$(cat /proc/driver/nvidia/gpus/*/information | sed -n "s/^Model:[ $tab]*//p")
    printf '%s\n' "$cards" | grep -v -e '^$' -e '^No devices' | while IFS= read -r name; do say gpu "$name"; done
}

free() { # of the file system that a folder is in
    # shellcheck disable=SC2046 # fields
    set -- $(bounded df -Pk "$1" | sed -n '$p')
    printf '%s' "${4:-}"
}

# Really writes there, and leaves nothing: neither the file nor folders that were not there before.
folder() {
    work=$oarsman_folder
    # shellcheck disable=SC2088 # as it was written, for this side to read
    case $work in
    '~') work=$home ;;
    '~/'*) work=$home/${work#??} ;;
    /*) ;;
    *) work=$home/$work ;;
    esac
    there=$work
    until [ -d "$there" ] || [ "$there" = / ]; do there=$(dirname "$there"); done
    file=$work/.probe.$(uname -n).$$
    for _ in 1 2 3; do # another, on this host or on one that shares the folder, may have made it for a moment as we do
        problem=$({ mkdir -p "$work" && echo oarsman | cat >"$file" && grep -q oarsman "$file"; } 2>&1) && break
        problem=${problem:-what is written there cannot be read}
    done
    rm -f "$file"
    made=$work
    until [ "$made" = "$there" ] || [ "$made" = / ]; do
        rmdir "$made"
        made=$(dirname "$made")
    done
    say folder "$work" "$(printf '%s' "$problem" | sed -n '$p')" "$(free "$there")"
    say temporary "$(free /tmp)"
}

login_environment() { # csh takes -l alone
    case $SHELL in
    *csh) printf 'echo oarsman-login\nenv\n' | bounded "$SHELL" -l ;;
    *) bounded "$SHELL" -lc 'echo oarsman-login; env' ;;
    esac
}

# mpi WHERE FOLDER: the MPI of a folder, by the name that people call; Debian keeps others beside it.
# What is in /bin, a link on most systems, is told where it is: / would be the MPI's own folder.
mpi() {
    case $1$2 in named* | */*/*) ;; *) set -- "$1" "$(readlink -f "$2")" ;; esac
    for name in mpirun mpiexec mpiexec.hydra; do
        if launcher "$1" "$2/$name"; then
            main=$real
            for other in "$2/mpirun.openmpi" "$2/mpirun.mpich"; do
                [ "$(readlink -f "$other")" = "$main" ] || launcher "$1" "$other"
            done
            return
        fi
    done
}

launcher() { # WHERE FILE; false: it is none
    [ -f "$2" ] && [ -x "$2" ] || return
    real=$(readlink -f "$2") || real=$2
    daemons=
    for daemon in orted prted hydra_pmi_proxy; do
        [ -x "${2%/*}/$daemon" ] && daemons=$daemons${daemons:+ }$daemon
    done
    say mpi "$1" "$2" "$real" "$daemons"
    case $asked in
    *"$tab$real$tab"*) ;;
    *)
        asked=$asked$real$tab
        version "$2" "$real" &
        ;;
    esac
}

version() { # Intel's mpirun looks for the rest of itself on PATH
    bounded env "PATH=${1%/*}:$PATH" "$1" --version 2>&1 | sed 6q | while IFS= read -r line; do say version "$2" "$line"; done
}

on_path() { # WHERE PATH
    where=$1
    ifs=$IFS
    IFS=:
    # shellcheck disable=SC2086 # folders
    set -f -- $2
    set +f
    IFS=$ifs
    for entry in "$@"; do
        case $entry in /*) mpi "$where" "${entry%/}" ;; esac
    done
}

mpis() {
    asked=$tab
    on_path path "$PATH"
    if [ -n "$oarsman_mpi" ] && ! launcher named "$oarsman_mpi"; then
        mpi named "${oarsman_mpi%/}"
        mpi named "${oarsman_mpi%/}/bin"
    fi
    for entry in /usr/lib64/openmpi*/bin /usr/lib64/mpich*/bin /usr/lib/*/openmpi*/bin /usr/local/openmpi*/bin \
        /usr/local/mpich*/bin /usr/local/bin /usr/mpi/*/*/bin /opt/openmpi*/bin /opt/mpich*/bin \
        /opt/intel/oneapi/mpi/latest/bin /opt/intel/compilers_and_libraries/linux/mpi/intel64/bin; do
        mpi usual "$entry"
    done
    login=$(login_environment | sed -n '/^oarsman-login$/,$s/^PATH=//p' | sed -n '$p')
    say login "$login"
    on_path login "$login"
    wait
}

everything() {
    who
    graphics &
    folder &
    mpis &
    networks
    wait
}

# The relay alone holds the way back, so nothing else can keep it open.
probe() {
    printf '\noarsman-probe\t1\n' # what a shell's start-up files left may not end with its line
    { everything & } | relay & # a shell waits for all of a pipeline, so what may hang must not be of it
    relay=$!
    (
        trap 'kill $nap; exit' TERM
        sleep "$oarsman_patience" &
        nap=$!
        wait "$nap"
        kill -KILL "$relay"
    ) >/dev/null &
    watch=$!
    if wait "$relay"; then
        kill "$watch"
        say end complete
    else
        say end late
    fi
}
probe </dev/null
