# What `hosts trust` does in the ssh folder of a user, on a host or here. The calls of these functions follow.
# Nothing here reads standard input, from which the shell itself reads. Answers are lines of words between tabs.
# shellcheck shell=sh
LC_ALL=C
export LC_ALL
umask 077
cd || exit 97
echo
echo oarsman-trust

say() {
    printf '%s' "$1"
    shift
    [ $# -eq 0 ] || printf '\t%s' "$@"
    echo
}

hex() { od -An -v -tx1 | tr -d ' \n'; }

sum() { if [ -e "$1" ]; then cksum <"$1"; else echo none; fi; }

describe() {
    say user "$(id -un)"
    say node "$(uname -n)"
    say home "$(ls -di .)"
    # shellcheck disable=SC2086
    say reached ${SSH_CONNECTION:-}
    addresses | while read -r name address; do say address "$name" "$address"; done
    for program in ssh ssh-keygen od cksum; do
        command -v "$program" >/dev/null || say missing "$program"
    done
    for file in . .ssh .ssh/authorized_keys; do
        [ ! -e "$file" ] || say mode "$file" "$(ls -ldL "$file")"
    done
    [ ! -e .ssh/id_oarsman ] || say key "$(public)"
}

addresses() {
    { env PATH="$PATH:/usr/sbin:/sbin" ip -o addr || env PATH="$PATH:/usr/sbin:/sbin" ifconfig -a; } 2>/dev/null |
        sed -n 's/^[0-9]*: *\([^ @]*\).* inet6* \([^ /]*\).*/\1 \2/p; t
            s/.*inet6* \(addr:\)\{0,1\} *\([^ /%]*\).*/- \2/p'
}

public() {
    if [ -s .ssh/id_oarsman.pub ]; then cat .ssh/id_oarsman.pub; else
        ssh-keygen -y -P '' -f .ssh/id_oarsman </dev/null
    fi
}

tell() { # LABEL FILE: the sum comes first, so that a change in between is noticed later
    before=$(sum "$2") || { say unreadable "$1" && return; }
    say file "$1" "$before" "$([ "$before" = none ] || hex <"$2")"
}

make_key() { # MARK: two that make it at once, in a home that they share, end up with the same
    [ -d .ssh ] || { mkdir .ssh && folder=:folder; }
    new=.ssh/.id_oarsman.$$
    ssh-keygen -q -t ed25519 -N '' -C "$1${folder:-} $(id -un)@$(uname -n)" -f "$new" </dev/null >/dev/null &&
        { ln "$new" .ssh/id_oarsman || { [ ! -e .ssh/id_oarsman ] && mv "$new" .ssh/id_oarsman; }; } 2>/dev/null &&
        mv "$new.pub" .ssh/id_oarsman.pub && say changed key
    rm -f "$new" "$new.pub"
    say key "$(public)"
}

delete_key() { # only if it was made here; the folder as well, if it was
    case $(cat .ssh/id_oarsman.pub) in
        *" oarsman-trust:"*:folder\ *) rm -f .ssh/id_oarsman .ssh/id_oarsman.pub && say changed key && rmdir .ssh 2>/dev/null ;;
        *" oarsman-trust:"*) rm -f .ssh/id_oarsman .ssh/id_oarsman.pub && say changed key ;;
    esac
    :
}

replace() { # LABEL FILE SUM FUNCTION: the file becomes what the function prints, if it is still the one that was seen
    file=$(readlink -f "$2" 2>/dev/null) # what a link points to is replaced, not the link
    file=${file:-$2}
    new=$file.oarsman.$$
    [ "$(sum "$file")" = "$3" ] || { say moved "$1" && return; }
    [ -d "${file%/*}" ] || mkdir "${file%/*}"
    if { [ ! -e "$file" ] || cp -p "$file" "$new"; } && "$4" >"$new" && mv -f "$new" "$file"; then
        say changed "$1"
    else
        rm -f "$new"
        say failed "$1"
    fi
}

delete() { # LABEL FILE SUM
    [ "$(sum "$2")" = "$3" ] || { say moved "$1" && return; }
    if rm -f "$2"; then say changed "$1"; else say failed "$1"; fi
}

visit() { # NAME: one line, written at once, because several are written at the same time
    said=$(ssh -n -T -x -a -o BatchMode=yes -o StrictHostKeyChecking=yes -o UpdateHostKeys=no -o ConnectTimeout=10 \
        -o ServerAliveInterval=5 -o LogLevel=ERROR -o ControlPath=none -- "$1" true 2>&1 >/dev/null)
    code=$?
    printf 'visit\t%s\t%s\t%s\n' "$1" "$code" "$(printf %s "$said" | dd bs=1500 count=1 2>/dev/null | hex)"
}
