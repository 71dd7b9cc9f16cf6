#!/bin/sh
# agent.sh [OPTIONS] HOST COMMAND...: what a launcher calls instead of ssh. The machine that minds this job has a connection
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
trap 'echo "drop $$" >"$OARSMAN_RUN/up"; rm -f "$OARSMAN_RUN/a/$$"; exit 255' TERM INT HUP
while read -r kind rest <&4; do
    case $kind in
    said) printf %b "$rest" >&2 ;;
    ended) break ;;
    esac
done
rm -f "$OARSMAN_RUN/a/$$"
exit "${rest:-255}"
