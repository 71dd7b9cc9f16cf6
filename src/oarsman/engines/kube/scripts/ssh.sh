#!/bin/sh
# mpirun's way to a worker: ssh with the job's own key, ports and known hosts. Whom it went to is written down.
run=/run/oarsman
at=0 # the place of the host among the words
skip=
for word in "$@"; do
    at=$((at + 1))
    if [ -n "$skip" ]; then skip=; continue; fi
    case $word in
    -[bcDEeFIiJLlmOopQRSWw]) skip=yes ;;
    -*) ;;
    *) host=${word#*@}; break ;;
    esac
done
echo "${host:-}" >>"$run/contacted"
if [ -n "${OARSMAN_LAUNCHER:-}" ] && [ "${host%%.*}" = "${OARSMAN_LAUNCHER%%.*}" ]; then
    shift "$at"
    exec /bin/sh -c "$*" # Hydra does not recognise itself by its full name; there is no sshd here
fi
if [ -n "${OARSMAN_SESSION:-}" ] && [ $# -gt "$at" ]; then # goes before the command, which follows the host
    count=$# place=0
    for word in "$@"; do
        place=$((place + 1))
        set -- "$@" "$word"
        [ "$place" -ne "$at" ] || set -- "$@" "$OARSMAN_SESSION"
    done
    shift "$count"
fi
exec ssh -F /etc/mpi/ssh_config "$@"
