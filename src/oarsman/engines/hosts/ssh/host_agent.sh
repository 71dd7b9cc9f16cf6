# The first process of a job's host on its machine. It comes over ssh as text, with the variables it is about before it:
# BASE (the job's folder on this machine), RUN (this host's below it), MARK (what the job's processes carry; empty where
# another host of the job minds them), HANDS_ON (not empty: ranks of this machine write into files below RUN/o, and what they
# wrote is handed on from there), SILENCE (seconds), PORTS, FOLDER, and a function write_files.
#
# Orders come on standard input, one per line. What it, the ranks and the stand-ins have to say goes out on standard output,
# through a pipe with a name, so that lines never mix. Everything that carries MARK in its environment ends when it is told
# so, when its connection closes, and when nothing was heard for SILENCE seconds, whichever is first.

umask 077

marked() {
    [ -n "$MARK" ] || return 0
    # Not -F: with it BusyBox looks no further than the first variable.
    grep -ls -e "$MARK" /proc/[0-9]*/environ 2>/dev/null | while IFS=/ read -r _ _ pid _; do echo "$pid"; done
}

end_all() { # end_all SIGNAL; to kill takes more than one look, because a process may fork meanwhile
    for _ in 1 2 3 4 5; do
        found=$(marked)
        [ -n "$found" ] || return 0
        # shellcheck disable=SC2086 # one word for each process
        kill "-$1" $found 2>/dev/null
        [ "$1" = KILL ] || return 0
    done
}

end_commands() { # one that is only starting carries no mark yet: its group is known, or it sees the sign
    true >"$RUN/p/end"
    for file in "$RUN"/p/*; do
        pid=''
        read -r pid 2>/dev/null <"$file"
        [ -z "$pid" ] || kill -KILL "-$pid"
    done
} 2>/dev/null

clear_away() { # the files of this host; those of the job with the last of its hosts
    rm -rf "$RUN" || rm -rf "$RUN" # what was killed may have written its last in between
    rm -rf "$BASE/__pycache__" # where a Python of a rank has compiled what it read there
    for other in "$BASE"/*/; do [ ! -d "$other" ] || return 0; done
    rm -rf "$BASE"
}

end_host() { # unless another host agent has taken its place, because this one was thought to be gone
    agent=''
    read -r agent 2>/dev/null <"$RUN/agent.pid"
    [ "${agent:-$$}" = $$ ] || return 0
    end_commands
    end_all KILL
    [ -z "$agent" ] || clear_away
}

say_the_rest() { # until nobody writes any more, and all that was said has gone out
    [ -n "$follower" ] || return 0
    end_commands
    end_all KILL
    look_again last
    wait "$follower"
    exec 3>&-
    wait "$mouth"
}

leave() {
    trap '' HUP TERM INT
    end_host
    # shellcheck disable=SC2086 # there may be no follower
    kill "$watchdog" "$mouth" $follower 2>/dev/null
    exit 0
}

watch_over() { # watch_over PID: in case that one is killed, or the machine that gives it orders is gone
    last='' still=0
    while sleep 1; do
        [ -z "$follower" ] || echo >&4 # by its number: by its name it could be made anew while the folder is removed
        heard=''
        read -r heard 2>/dev/null <"$RUN/heard"
        if [ "$heard" = "$last" ]; then still=$((still + 1)); else still=0 last=$heard; fi
        if [ "$still" -lt "$SILENCE" ] && kill -0 "$1" 2>/dev/null; then continue; fi
        # shellcheck disable=SC2086
        kill -KILL "$1" "$mouth" $follower 2>/dev/null
        end_host
        exit 0
    done
}

look_again() { # look_again WORD: see follow; opened so, it does not wait for a reader
    [ -z "$follower" ] || echo "$1" 1<>"$RUN/look"
}

# Hand on what ranks wrote as often as somebody says so; a word is given back when nothing is left to hand on. Over when
# neither this script nor its watchdog is there any more.
follow() { # what is said comes on its standard input
    handed=''
    while read -r word; do
        while hand_on; do :; done
        [ -z "$word" ] || echo "emptied $word"
        [ "$word" != last ] || return
    done
}

hand_on() { # at most a megabyte of each file, lest one keeps the others waiting; true if there is more
    [ -d "$RUN/o" ] || return 1
    handing=$({
        printf '%s\n/\n' "$handed" # kept in memory: a full disk must not make it forget
        find "$RUN/o" -type f -name 'std???' -size +0c -exec stat -c '%s %n' {} + 2>/dev/null
    } | awk -v most=1048576 '
        $0 == "/" { now = 1; next }
        !now { handed[$3] = $2; next }
        { from = handed[$2] + 0; to = $1; if (to - from > most) { to = from + most; more = 1 } }
        { printf "%.0f %.0f %s\n", from, to, $2 }
        END { exit !more }
    ')
    more=$?
    [ "$more" -le 1 ] || return 1
    printf '%s\n' "$handing" | while read -r from to file; do
        [ "${from:-0}" -lt "${to:-0}" ] || continue
        echo ":${file#"$RUN/o/"}"
        tail -c "+$((from + 1))" "$file" | head -c $((to - from)) | base64
        # What was handed on need not stay on the disk, where there is a tool for that.
        [ $((from / 1048576)) -eq $((to / 1048576)) ] || fallocate -p -l "$to" "$file" 2>/dev/null
    done | awk '
        function say() { if (data != "") { print "said " name " " data; fflush() } data = "" }
        /^:/ { say(); name = substr($0, 2); next }
        { data = data $0; if (length(data) > 2000) say() } # small enough that lines of others do not mix with it
        END { say() }'
    handed=$handing
    return "$more"
}

used() { # seconds of processors, bytes of memory, number of processes, bytes received, bytes sent
    for pid in $(marked); do
        read -r line 2>/dev/null <"/proc/$pid/stat" && echo "${line##*) }"
    done | awk -v ticks="$(getconf CLK_TCK 2>/dev/null || echo 100)" -v page="$(getconf PAGESIZE 2>/dev/null || echo 4096)" '
        { t += $12 + $13 + $14 + $15; m += $22; n++ }
        END { printf "%.2f %.0f %d ", t / ticks, m * page, n }'
    sed -n 's/^ *\([^:]*\): *\([0-9]*\) *\([0-9]* *\)\{7\}\([0-9]*\) .*/\1 \2 \4/p' /proc/net/dev 2>/dev/null |
        awk '$1 != "lo" { i += $2; o += $3 } END { printf "%.0f %.0f\n", i, o }'
}

free_port() { # one that nobody listens on, out of those that were proposed
    taken=$(cat /proc/net/tcp /proc/net/tcp6 2>/dev/null)
    for port in $PORTS; do
        case $taken in *":$(printf %04X "$port") "*) ;; *) echo "$port" && return ;; esac
    done
    echo 0
}

write_file() { # write_file NAME MODE TEXT: whole, as it was or as it is now
    printf %b "$3" >"$RUN/$1.new" && chmod "$2" "$RUN/$1.new" && mv -f "$RUN/$1.new" "$RUN/$1"
}

obey() { # obey WORDS: one order
    case $1 in
    heard) echo "$2" 1<>"$RUN/heard" && echo "alive $2" >&3 ;; # in place, which needs no room on a full disk
    write) if trouble=$(write_file "$3" "$4" "$5" 2>&1); then echo "wrote $2" >&3; else echo "trouble $trouble" >&3; fi ;;
    kill) # kill SIGNAL ID: the command of that number, with all that it started; if it only comes later, it sees the sign
        pid=''
        true >"$RUN/p/$3.end"
        read -r pid 2>/dev/null <"$RUN/p/$3"
        [ -z "$pid" ] || kill "-$2" "-$pid" 2>/dev/null
        [ "$2" != KILL ] || rm -f "$RUN/p/$3" # its number may be another's later
        ;;
    answer) [ ! -p "$RUN/a/$2" ] || printf '%s %s\n' "$3" "$4" 1<>"$RUN/a/$2" ;; # opened so, it does not wait for a reader
    usage) echo "usage $(used)" >&3 ;;
    sweep) # sweep NUMBER: which is given back when all is handed on that was written until then
        end_all KILL
        look_again "$2"
        ;;
    end) # end SECONDS: a request first
        end_all TERM
        left=$2
        while [ "$left" -gt 0 ] && [ -n "$(marked)" ]; do
            sleep 1
            left=$((left - 1))
            echo "$left left" 1<>"$RUN/heard" # the watchdog waits, too
        done
        say_the_rest
        leave
        ;;
    esac
}

forget_others() { # what lies here of jobs whose agents went with this machine's power; a living one writes every second
    for other in "${BASE%/*}"/oarsman-????????????; do
        # shellcheck disable=SC3067
        if [ ! -O "$other" ] || [ -h "$other" ] || ! ls "$other"/*/agent.pid; then continue; fi
        recent=$(find "$other" -maxdepth 2 -name heard -mmin -10) && [ -z "$recent" ] && rm -rf "$other"
    done
} >/dev/null 2>&1

own_base() {
    mkdir -m 700 "$BASE" 2>/dev/null || [ -d "$BASE" ] || mkdir "$BASE" || return 1
    # shellcheck disable=SC3067 # not in the standard, and in every shell
    if [ ! -O "$BASE" ] || [ -h "$BASE" ]; then echo "$BASE belongs to somebody else" && return 1; fi
}

prepare() { # after an earlier host agent of this host, which may be alive, too: what it left ends before anything begins
    for tool in ${HANDS_ON:+awk base64 find head stat tail}; do
        command -v "$tool" >/dev/null || { echo "$tool is not installed" && return 1; }
    done
    if [ -e "$RUN/agent.pid" ]; then
        echo $$ >"$RUN/agent.pid" && end_commands
        end_all KILL
        rm -rf "$RUN/p" "$RUN/a" "$RUN/o" "$RUN/up" "$RUN/look"
    fi
    mkdir -p "$RUN/bin" "$RUN/p" "$RUN/a" "$RUN/t" "$RUN/etc/mpi" "$FOLDER" && echo 0 >"$RUN/heard" &&
        echo $$ >"$RUN/agent.pid" && write_files && mkfifo "$RUN/up" "$RUN/look" || return 1
    [ ! -e "$BASE/ssh" ] || "$BASE/ssh" </dev/null >/dev/null 2>&1
    [ $? -ne 126 ] || { echo "no program can be started from ${BASE%/*} (is it mounted noexec?)" && return 1; }
}

echo # what the login shell said may not end with its line
if ! trouble=$(own_base 2>&1); then
    echo "failed $RUN $trouble" | head -n 1
    exit 1
fi
if ! trouble=$(prepare 2>&1); then
    room=$(df -Pk "${BASE%/*}" 2>/dev/null | sed -n '$p' | { read -r _ _ _ free _ && echo "$free"; }) # few shells say why
    [ "${room:-64}" -ge 64 ] || trouble="the disk is full: nothing more can be written to ${BASE%/*}"
    echo "failed $RUN $trouble" | head -n 1
    clear_away
    exit 1
fi
# All ends are opened here, where it cannot block: whoever opened theirs after we were killed would wait for ever. Each has
# one direction, for whoever can write to a pipe and read from it does not notice that nobody else is there.
exec 3<>"$RUN/up" 4<>"$RUN/look" 5<"$RUN/up" 6<"$RUN/look" 7>"$RUN/up"
cat <&5 3>&- 4>&- 5<&- 6<&- 7>&- &
mouth=$!
follower=''
if [ -n "$HANDS_ON" ]; then
    { exec >&7 <&6 3>&- 4>&- 5<&- 6<&- 7>&- && follow; } & # with exec, because a shell keeps what it closes for a function alone
    follower=$!
fi
{ exec 3>&- 5<&- 6<&- 7>&- >/dev/null 2>&1 </dev/null && watch_over $$; } &
watchdog=$!
exec 5<&- 6<&- 7>&-
trap leave HUP TERM INT
echo "up $RUN $(free_port)" >&3
forget_others
while IFS=' ' read -r a b c d e; do
    obey "$a" "$b" "$c" "$d" "$e"
done
leave
