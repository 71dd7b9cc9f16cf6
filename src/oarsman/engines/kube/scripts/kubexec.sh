#!/bin/sh
# mpirun's way to a worker through the API server: kubexec.sh [options of ssh, ignored] POD COMMAND...
while [ $# -gt 0 ]; do
    case $1 in
    -[bcDEeFIiJLlmOopQRSWw]) shift 2 ;;
    -*) shift ;;
    *) break ;;
    esac
done
pod=${1%%.*}
shift
[ -n "${OARSMAN_PROBE:-}" ] || echo "$pod" >>/run/oarsman/contacted
if [ "$pod" = "${OARSMAN_LAUNCHER%%.*}" ]; then exec /bin/sh -c "$*"; fi
exec /opt/kube/kubectl exec "$pod" ${OARSMAN_CONTAINER:+--container "$OARSMAN_CONTAINER"} -- /bin/sh -c "${OARSMAN_SESSION:+$OARSMAN_SESSION }$*"
