#!/bin/sh
# How fast the way to another host is: `reach` logs in there; TRIPS and MEBIBYTES say how much is tried.
# The first line through ssh is not counted, as that is logging in; of the bandwidth an empty transfer is taken off.
moment() { date "+$1 %s.%N"; }
folder=$(mktemp -d) && mkfifo "$folder/there" "$folder/back" && {
    reach cat <"$folder/there" >"$folder/back" 2>/dev/null &
    exec 3>"$folder/there" 4<"$folder/back"
    echo >&3; read -r _ <&4 && {
        moment trip
        n=0; while [ "$n" -lt "$TRIPS" ]; do echo >&3; read -r _ <&4; n=$((n + 1)); done
        moment trip
    }
    exec 3>&- 4<&-
}
rm -rf "$folder"
send() { head -c $(($1 * 1048576)) /dev/zero | reach 'cat >/dev/null'; }
moment send; send 0; moment send; send "$MEBIBYTES" && moment send
