#!/bin/sh
# rsh_agent.sh [OPTIONS] HOST COMMAND...: what a launcher calls instead of ssh. The machine that minds this job has a connection
# to every host already, and starts the command over it.
while [ $# -gt 0 ]; do
    case $1 in
    -[BbcDEeFIiJLlmOopQRSWw]) shift 2 ;;
    -*) shift ;;
    *) break ;;
    esac
done
[ $# -gt 1 ] || { echo "usage: ssh [options] host command" >&2; exit 255; }
host=$1
shift
# shellcheck source=/dev/null
. "$OARSMAN_RUN/ask"
ask start "$host" "$*"
trap 'echo "drop $$" >"$OARSMAN_RUN/up"; rm -f "$OARSMAN_RUN/a/$$"; exit 255' TERM INT HUP PIPE
while read -r kind rest <&4; do
    case $kind in
    out) printf %b "$rest" 2>/dev/null ;;
    err) printf %b "$rest" >&2 ;;
    ended) break ;;
    esac
    echo "more $$" >"$OARSMAN_RUN/up" # only now: whoever answers does not wait for us
done
rm -f "$OARSMAN_RUN/a/$$"
exit "${rest:-255}"
