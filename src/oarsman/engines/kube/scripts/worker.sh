#!/bin/sh
# Starts this worker's sshd, as whichever user the pod runs: worker.sh [options of sshd]
#
# Host key, port and who may log in are the job's own; nothing of the image's sshd configuration is used.
set -eu
run=/run/oarsman keys=/etc/oarsman/ssh
umask 077
cat "$keys/host_key" >"$run/host_key" # a copy, because sshd refuses a key that a group may read, as fsGroup makes them
sshd=$(command -v sshd || echo /usr/sbin/sshd)
[ -x "$sshd" ] || { echo "oarsman: there is no sshd in this image: install openssh-server" | tee /dev/termination-log >&2; exit 127; }

pam=no
if [ "$(id -u)" = 0 ]; then
    mkdir -p /run/sshd 2>/dev/null || true # where sshd locks its unprivileged half in
    if grep -qs '^root:!' /etc/shadow; then pam=yes; fi # a locked account may log in by key only if PAM is asked
fi
settings() {
    cat <<END
Port $OARSMAN_SSH_PORT
HostKey $run/host_key
AuthorizedKeysFile $keys/authorized_keys
PidFile none
StrictModes no
UsePAM $pam
PasswordAuthentication no
PermitRootLogin prohibit-password
MaxStartups 200
MaxSessions 200
X11Forwarding no
PrintMotd no
END
}
# What the container was given reaches the ranks too: PATH, LD_LIBRARY_PATH, NCCL_DEBUG, ... One SetEnv line is all sshd reads.
variables() {
    printf SetEnv
    for name in $(env | sed -n 's/^\([A-Za-z_][A-Za-z0-9_]*\)=.*/\1/p'); do
        case $name in
        HOME | USER | LOGNAME | SHELL | PWD | OLDPWD | SHLVL | TERM | HOSTNAME | _ | OARSMAN_SSH_PORT) continue ;;
        KUBERNETES_* | *_SERVICE_HOST | *_SERVICE_PORT* | *_PORT_*_TCP* | *_PORT_*_UDP*) continue ;;
        esac
        value=
        eval "value=\${$name-}"
        case $value in
        *'"'* | *\\* | *'
'*) continue ;; # sshd's file format cannot carry these
        esac
        printf ' "%s=%s"' "$name" "$value"
    done
    echo
}
{ settings; variables; } >"$run/sshd_config"
"$sshd" -t -f "$run/sshd_config" 2>/dev/null || settings >"$run/sshd_config" # an older sshd knows no SetEnv
exec "$sshd" "$@" -D -e -f "$run/sshd_config"
