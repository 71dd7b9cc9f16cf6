# The host's side of a copy. It comes over ssh as text, with the variables it is about before it: TARGET (the folder; ~/ is
# the user's home here), PATIENCE (seconds to wait for another copy), LIFELESS (seconds without a sign of life after which
# another copy is taken for dead), JOB (whose it is) and DROP (1: that job is gone).
#
# It says what earlier copies brought, then obeys orders, one per line on standard input: "look N" (N bytes of names follow,
# each ended by a zero byte; it says what they are), "take" (a tar follows, and nothing else) or "done". Names begin with ./,
# and are ended by zero bytes or, by stat, with two slashes, which no name has. What comes on standard error and begins with
# "oarsman:" is a sign of life; all else there is a reason.

umask 077
LC_ALL=C EXTRACT_UNSAFE_SYMLINKS=1 # without the latter busybox leaves out links that lead elsewhere
export LC_ALL EXTRACT_UNSAFE_SYMLINKS
# shellcheck disable=SC2088 # it is looked for, not expanded
case $TARGET in "~/"*) TARGET=${HOME:-}/${TARGET#"~/"} ;; esac
lock=$TARGET.lock new=$TARGET.new brought=$TARGET.brought jobs=$TARGET.jobs
me=$$.$(cat /proc/sys/kernel/random/boot_id).$(readlink /proc/self/ns/pid)
beats='' # process that shows that this copy goes on

for tool in cat find head mkdir mv readlink rm rmdir stat tar touch xargs; do
    command -v "$tool" >/dev/null 2>&1 || { echo "$tool is not installed" >&2; exit 127; }
done

fail() { echo "$*" >&2; exit 1; }

# -- one copy at a time ---------------------------------------------------------------------------------------------
# shellcheck disable=SC2329 # called by the trap
leave() {
    trap '' HUP INT TERM PIPE
    [ -z "$beats" ] || kill "$beats" 2>/dev/null # not waited for: if it has only just begun, this may be lost on it
    [ -f "$lock/$me" ] && rm -rf "$new" && rm "$lock/$me" && rmdir "$lock"
}

owner() { for mark in "$lock"/*; do [ ! -f "$mark" ] || echo "${mark##*/}"; done; }

is_dead() { # is_dead MARK: one of this machine, of this boot, whose process is gone
    [ "${1#*.}" = "${me#*.}" ] && ! kill -0 "${1%%.*}" 2>/dev/null
}

break_lock() { # break_lock MARK: whoever removes the mark that both saw is the only one to go on
    if [ -z "$1" ] || rm "$lock/$1" 2>/dev/null; then rmdir "$lock" 2>/dev/null; fi
}

acquire() { # looks five times a second; a copy that shows no life for long is none
    seen='' still=0 waited=0 missing=0
    until trouble=$(mkdir "$lock" 2>&1); do
        if [ -d "$lock" ]; then missing=0; else missing=$((missing + 1)); fi # once: it was removed just now
        [ "$missing" -le 5 ] || fail "$trouble"
        mark=$(owner)
        now="$mark $(stat -c %Y "$lock/$mark" 2>/dev/null)"
        if [ "$now" = "$seen" ]; then still=$((still + 1)); else still=0 seen=$now; fi
        if [ "$still" -ge $((LIFELESS * 5)) ] || { [ -n "$mark" ] && is_dead "$mark"; }; then
            break_lock "$mark"
            seen=''
        fi
        waited=$((waited + 1))
        [ "$waited" -lt $((PATIENCE * 5)) ] || { echo "another copy to $TARGET is still under way" >&2; exit 75; }
        echo "oarsman: waits" >&2
        sleep 0.2 2>/dev/null || sleep 1
    done
    touch "$lock/$me" || exit 1
}

check_owner() { # what somebody else put there before us could be anything; by what is made there, as some disks rename owners
    me_there=$(stat -c %u "$lock") || exit 1
    for place in "${TARGET%/*}" "$TARGET"; do
        [ -e "$place" ] || [ -h "$place" ] || continue
        case $(stat -c %u "$place") in
        "$me_there") ;;
        0) [ "$place" != "$TARGET" ] || fail "$place belongs to somebody else" ;;
        *) fail "$place belongs to somebody else" ;;
        esac
    done
}

show_life() { # to others by the mark; on the connection, so that a dead one is noticed
    trap 'kill $! 2>/dev/null; exit 0' TERM
    while kill -0 $$ 2>/dev/null && touch -c "$lock/$me"; do
        sleep 2 2>/dev/null &
        wait $!
        echo "oarsman: beats" >&2
    done
}

# -- orders ---------------------------------------------------------------------------------------------------------
# shellcheck disable=SC2016 # for the inner shell
look() {
    mkdir -p "$TARGET" && cd "$TARGET" || exit 1
    head -c "$1" | xargs -0 /bin/sh -c '
        stat -c "%f %s %Y %n//" "$@" 2>/dev/null
        printf "\0"
        for name do
            [ ! -h "$name" ] || { printf "%s\0" "$name" && readlink "$name" && printf "\0"; }
        done
        printf "\0"' sh
    printf 'end\0'
}

# shellcheck disable=SC2016
put_in_place() { # a file replaces another in one step, so that whoever reads sees the old one or the new one
    cd "$new/tree" || exit 1
    find . -type d -print0 | TARGET=$TARGET xargs -0 /bin/sh -c '
        for folder do
            [ -d "$TARGET/$folder" ] || mkdir "$TARGET/$folder" || exit 1
            find "$folder" -maxdepth 1 ! -type d -exec /bin/sh -c "
                exec mv -f \"\$@\" \"\$0/\"" "$TARGET/$folder" {} + || exit 1
            echo "oarsman: moves" >&2
        done' sh || exit 1
    [ -z "$(find . ! -type d | head -n 1)" ] || fail "not all files could be put in place" # not every find says so
}

take() {
    rm -rf "$new" && mkdir "$new" && cd "$new" && tar -xopf - || exit 1
    [ -f after ] || fail "the copy ended early"
    [ -f "$lock/$me" ] || fail "another copy took this one for dead"
    mv -f before "$brought" || exit 1
    cd "$TARGET" || exit 1
    [ ! -s "$new/files" ] || xargs -0 rm -f <"$new/files" || exit 1
    [ ! -s "$new/folders" ] || xargs -0 rmdir <"$new/folders" 2>/dev/null # those in which jobs left something stay
    [ ! -s "$new/obstacles" ] || xargs -0 rmdir <"$new/obstacles" || exit 1
    [ ! -d "$new/tree" ] || put_in_place
    mv -f "$new/after" "$brought" || exit 1
    echo taken
    exit 0
}

# shellcheck disable=SC2016
drop() { # with the last job that needs it goes what was brought; what jobs wrote stays
    rm -f "$jobs/$JOB"
    [ ! -d "$jobs" ] || rmdir "$jobs" 2>/dev/null || exit 0
    cd "$TARGET" || exit 1
    # Through a folder that a job made a link, something else would be removed.
    xargs -0 /bin/sh -c '
        for name do [ "$name" = "${name%/}" ] || [ ! -h "${name%/}" ] || exit 255; done' sh <"$brought" || exit 1
    xargs -0 rm -f <"$brought" 2>/dev/null # it minds folders
    find . -depth -type d -exec rmdir {} \; 2>/dev/null
    rm -f "$brought"
    cd / && rmdir "$TARGET" 2>/dev/null
    exit 0
}

[ "$DROP" = 0 ] || [ -f "$brought" ] || exit 0
mkdir -p "${TARGET%/*}" || exit 1
trap leave EXIT
trap 'exit 1' HUP INT TERM PIPE
acquire
check_owner
[ "$DROP" = 0 ] || drop
[ -z "$JOB" ] || { mkdir -p "$jobs" && : >"$jobs/$JOB"; } || exit 1
show_life </dev/null >/dev/null &
beats=$!
printf '\0begin\0'
[ ! -f "$brought" ] || cat "$brought"
printf '\0end-of-names\0'
while read -r order count; do
    case $order in
    look) look "$count" ;;
    take) take ;;
    done) exit 0 ;;
    esac
done
exit 1
