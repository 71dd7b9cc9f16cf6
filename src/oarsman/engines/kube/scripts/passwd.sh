#!/bin/sh
# Gives a user id that the image does not know a name, without which neither ssh nor sshd starts.
# The file made here is mounted over /etc/passwd in the containers that follow.
set -eu
run=/run/oarsman
mkdir -p "$run/home"
cat /etc/passwd >"$run/passwd" 2>/dev/null || : >"$run/passwd"
uid=$(id -u)
if ! cut -d: -f3 "$run/passwd" | grep -qx "$uid"; then
    echo "user$uid:x:$uid:$(id -g)::$run/home:/bin/sh" >>"$run/passwd"
fi
