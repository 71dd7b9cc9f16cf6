#!/bin/sh
# launch.sh NAME ARGUMENTS...: mpirun and its kin, with the line made right for this job.
name=$1
shift
[ -z "$OARSMAN_PATH_OF_IMAGE" ] || [ -x "$name" ] || name=${name##*/}
case $name in */*) program=$name ;; *) program=${OARSMAN_MPIRUN:-$OARSMAN_MPI/$name} ;; esac
for candidate in mpirun mpiexec; do # Open MPI 5 has no orterun
    case $name in */*) break ;; esac
    [ ! -x "$program" ] || break
    program=$OARSMAN_MPI/$candidate
done
# Open MPI takes the folder above that of its launcher for its own: not / of /bin, which is a link on most systems.
case $program in /*/*/*) ;; /*/*) program=$(readlink -f "${program%/*}")/${program##*/} ;; esac
# Intel's mpirun is a script that calls mpiexec by name; and a rank may start an mpirun of its own.
if [ -n "$OARSMAN_LAUNCHING$OMPI_COMM_WORLD_RANK$PMI_RANK" ] || [ ! -p "$OARSMAN_RUN/up" ]; then
    exec "$program" "$@"
fi
export OARSMAN_LAUNCHING=1
# shellcheck source=/dev/null
. "$OARSMAN_RUN/ask"
here() { # here DESCRIPTOR LETTER: whether this stream ends in the job's own log, perhaps in that of the other one
    case $(readlink "/proc/$$/fd/$1") in "$OARSMAN_OUT" | "$OARSMAN_ERR") echo "$2" ;; esac
}
input=''
[ "$(readlink "/proc/$$/fd/0")" != /dev/null ] || input=n
ask launch "$(here 1 o)$(here 2 e)$input${OARSMAN_FEED:+f}" "${name##*/}" "$@"
read -r _ words <&4
exec 4>&-
rm -f "$OARSMAN_RUN/a/$$"
eval "set -- $(printf %b "$words")"
exec "$program" "$@"
