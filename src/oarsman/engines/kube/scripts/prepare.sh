#!/bin/sh
# Prepares a pod, and then becomes what the pod is for: prepare.sh COMMAND...
#
# The programs of the job's environment come first on PATH, and the install commands of the job have run. Whatever they
# print is in the pod's log; if they fail, the pod ends with the reason.
run=/run/oarsman commands=/etc/mpi/install.sh
if [ -n "${OARSMAN_ENVIRONMENT:-}" ]; then
    VIRTUAL_ENV=$OARSMAN_ENVIRONMENT PATH=$OARSMAN_ENVIRONMENT/bin:$PATH
    export VIRTUAL_ENV PATH
    if [ ! -d "$VIRTUAL_ENV" ]; then
        echo "oarsman: the environment is not in the claim any more: there is no $VIRTUAL_ENV" | tee /dev/termination-log >&2
        exit 1
    fi
fi
install() {
    { /bin/sh -e "$commands" 2>&1 || echo $? >"$run/install-failed"; } | {
        last=
        while IFS= read -r line || [ -n "$line" ]; do
            printf '%s\n' "$line"
            last=${line:-$last}
        done
        [ -e "$run/install-failed" ] || exit 0
        read -r code <"$run/install-failed"
        echo "oarsman: the install commands failed with code $code${last:+: $last}" | tee /dev/termination-log >&2
        exit 1
    }
}
if [ -e "$commands" ]; then
    rm -f "$run/install-failed"
    trap 'exit 143' TERM # a container's first process is not ended by a signal it does not handle
    install &
    wait $! || exit 1
    trap - TERM
    : >"$run/prepared" # for sessions that nothing but a file can hold back
fi
exec "$@"
