#!/bin/sh
# One host's part in checking the ways between hosts. It is spoken with on standard input and answers in lines of words
# separated by tabs:
#
#   clock                     its clock, so that whoever asks can measure how long the answer took
#   listen MPIRUN KIND        start that mpirun, which listens as it always does, and tell the port (KIND: tcp or tcp6)
#   logins NAME TARGET USER PORT ...      try ssh to each of them, one after the other; - stands for nothing
#   calls NAME ADDRESS PORT ...           connect to each of them, one after the other
#   finish                    wait for all logins and calls, and tell whether the mpirun still listens
#
# At the end of the input the mpirun is ended, with all that carries its mark.
exec 2>/dev/null
trap : PIPE # whoever asked may be gone before an answer: what was started for it is still to be ended
LC_ALL=C # so that messages read the same everywhere
export LC_ALL
tab=$(printf '\t')
mark=OARSMAN_CHECK=$$.$(date +%s)
login_patience=8
call_patience=4
listener=
lanes=

say() {
    text=$1
    shift
    for word in "$@"; do text=$text$tab$word; done
    printf '%s\n' "$text"
}

nap() { sleep 0.1 || sleep 1; }

now() {
    time=$(date +%s.%N)
    case $time in *[!0-9.]* | *.) time=$(date +%s) ;; esac
    printf '%s' "$time"
}

marked() { # processes that carry the mark; one grep for all: they may be many, and are looked for ten times a second
    grep -ls -e "$mark" /proc/[0-9]*/environ | while IFS=/ read -r _ _ id _; do printf '%s\n' "$id"; done
}

port_of_listener() { # KIND
    sockets=' '
    for id in $(marked); do
        # shellcheck disable=SC2012 # names of sockets are plain
        for inode in $(ls -l "/proc/$id/fd" | sed -n 's/.*socket:\[\([0-9]*\)\]$/\1/p'); do sockets="$sockets$inode "; done
    done
    while read -r _ own _ state _ _ _ _ _ inode _; do
        [ "$state" = 0A ] || continue
        case $own in 0100007F:* | 00000000000000000000000001000000:*) continue ;; esac
        case $sockets in *" $inode "*) printf '%s' "$((0x${own#*:}))" && return ;; esac
    done <"/proc/net/$1"
}

listen() { # MPIRUN KIND
    env "$mark" PATH="${1%/*}:$PATH" OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_ALLOW_RUN_AS_ROOT=1 \
        PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1 "$1" -n 1 sleep 120 </dev/null >/dev/null &
    listener=$!
    tries=0
    while [ "$tries" -lt 100 ] && kill -0 "$listener"; do
        port=$(port_of_listener "$2")
        [ -n "$port" ] && say listening "$port" && return
        tries=$((tries + 1))
        nap
    done
    say silent
}

logins() {
    while [ "$#" -ge 4 ]; do
        said=$(log_in "$2" "$3" "$4" 2>&1 >/dev/null)
        say login "$1" "$?" "$(printf '%s' "$said" | tr '\n\t' '\037 ')"
        shift 4
    done
}

log_in() { # TARGET USER PORT
    target=$1 user=$2 port=$3
    set -- -T -x -a -o BatchMode=yes -o "ConnectTimeout=$login_patience" -o LogLevel=ERROR -o ClearAllForwardings=yes
    [ "$user" = - ] || set -- "$@" -l "$user"
    [ "$port" = - ] || set -- "$@" -p "$port"
    ssh "$@" -- "$target" true </dev/null
}

calls() {
    while [ "$#" -ge 3 ]; do
        say call "$1" "$(call "$2" "$3")"
        shift 3
    done
}

# ssh connects to any port, and says so before it waits for the other side to speak, which an mpirun never does.
call() { # ADDRESS PORT
    if command -v ssh >/dev/null; then
        # shellcheck disable=SC2016 # of the inner shell
        sh -c 'echo "process $$"; exec ssh -v -F /dev/null -o BatchMode=yes -o "ConnectTimeout=$3" -p "$2" -- "$1" true' \
            sh "$1" "$2" "$call_patience" 2>&1 </dev/null | while read -r line; do
            case $line in
            'process '*) id=${line#* } ;;
            'debug1: Connection established'*) printf connected && kill "$id" && break ;;
            'ssh: '*) printf '%s' "$line" ;;
            esac
        done
    elif command -v bash >/dev/null; then
        # shellcheck disable=SC2016 # of the inner shell: what another host says of itself is not for a shell to read
        timeout "$call_patience" bash -c 'exec 3<>"/dev/tcp/$1/$2"' bash "$1" "$2" 2>&1 && printf connected
    else
        printf 'no tool'
    fi | tr -d '\r\n'
}

finish() {
    for lane in $lanes; do wait "$lane"; done
    if [ -n "$listener" ] && kill -0 "$listener"; then say finished listening; else say finished silent; fi
}

# An mpirun whose process ended does so as well, and at once, and removes its files; told to end, it takes its time.
end() {
    [ -n "$listener" ] || return
    for id in $(marked); do grep -q '^sleep' "/proc/$id/cmdline" && kill "$id"; done
    tries=0
    while [ "$tries" -lt 20 ] && [ -n "$(marked)" ]; do
        tries=$((tries + 1))
        nap
    done
    for id in $(marked); do kill -KILL "$id"; done
}

main() {
    say ready
    while read -r word rest; do
        # shellcheck disable=SC2086 # words
        set -f -- $rest
        set +f
        case $word in
        clock) say clock "$(now)" ;;
        listen) listen "$@" ;;
        logins) logins "$@" & lanes="$lanes $!" ;;
        calls) calls "$@" & lanes="$lanes $!" ;;
        finish) finish ;;
        esac
    done
    end
}
main
