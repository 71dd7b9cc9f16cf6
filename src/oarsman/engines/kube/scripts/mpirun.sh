#!/bin/sh
# mpirun.sh [LAUNCHER] WORDS...: in the place of mpirun and its kin on the launcher's PATH: the same line, with rank.sh before
# each program. A line that is not understood is started as it is.
# Before this text stand alone, one and two: the options that are followed by so many words; and surviving: those with which
# the other ranks may go on when one fails.
# shellcheck disable=SC2154
run=/run/oarsman etc=/etc/mpi
case ${0##*/} in mpirun.sh) launcher=$1; shift ;; *) launcher=${0##*/} ;; esac
path=:$PATH:
case $path in # what is started from here finds the launcher itself
*":$run/bin:"*)
    path=${path%%":$run/bin:"*}:${path#*":$run/bin:"}
    path=${path#:}
    PATH=${path%:}
    ;;
esac

hosts='' file='' elsewhere='' plain='' survives=''
take() { # take OPTION VALUE
    case " $surviving " in *" $1 "*) survives='~' ;; esac
    case $1 in
    host | hosts | H) hosts=$hosts,$2 ;;
    hostfile | machinefile | machine | default-hostfile | f) [ "$2" = "$etc/hostfile" ] || file=$2 ;;
    rankfile | rf | rankmap | add-host | add-hostfile | order-nodes | hosts-group | nolocal | dvm | dvm-uri) elsewhere=yes ;;
    # the program is not in these words, or is looked for or started in a way of its own
    path | app | configfile | preload-binary | s | index-argv-by-rank | xterm | tv | gdb | debugger | debug | gtool | gtoolfile) plain=yes ;;
    esac
}
place=0 skip=0 state=options starts=' ' name=''
for word in "$@"; do
    place=$((place + 1))
    if [ "$word" = : ]; then
        state=options skip=0
    elif [ "$state" = program ]; then
        continue
    elif [ "$skip" -gt 0 ]; then
        skip=$((skip - 1))
        case $name/$word in env/*=* | genv/*=*) skip=0 ;; esac
        take "$name" "$word"
    else
        case $state$word in
        options--) state=next; continue ;;
        options-?*) ;;
        *) starts="$starts$place " state=program; continue ;;
        esac
        name=${word#-}
        name=${name#-}
        value=${name#*=}
        name=${name%%=*}
        case $word in *=*) given=1 ;; *) given=0 value='' ;; esac
        case " $two  $one  $alone " in
        *" $name "*) ;;
        *) plain=yes; break ;; # how many words follow is not known
        esac
        case " $two " in *" $name "*) skip=2 ;; esac
        case " $one " in *" $name "*) skip=1 ;; esac
        [ "$skip" -eq 0 ] || skip=$((skip - given))
        [ "$skip" -gt 0 ] || take "$name" "$value"
    fi
done
if [ -n "$plain" ] || [ "$starts" = ' ' ] || [ -z "${OARSMAN_WORLDS:-}" ]; then exec "$launcher" "$@"; fi

# Where rank 0 is, and how hosts are counted.
[ "${OMPI_MCA_orte_default_hostfile:-$etc/hostfile}" = "$etc/hostfile" ] || elsewhere=yes
own=${OARSMAN_LAUNCHER%%.*} first='' nodes=-
if [ -n "$hosts" ]; then
    first=${hosts#,}
    nodes="=${hosts#,}"
    first=${first%%,*}
    first=${first%%:*}
else
    first=$(sed -n -e 's/#.*//' -e 's/^[[:space:]]*//' -e '/[^[:space:]]/{' -e 's/[[:space:]:].*//p' -e q -e '}' "${file:-$etc/hostfile}" 2>/dev/null)
    [ -n "$file" ] || { nodes=+0; [ "${first%%.*}" != "$own" ] || nodes=+1; }
fi
case ${first%%.*} in "$own" | localhost) first=$OARSMAN_LAUNCHER ;; esac
[ -z "$elsewhere" ] || first='' nodes=-

world=$OARSMAN_WORLDS-$$
echo "$world ${hosts:+named}${file:+named}${elsewhere:+named}" >>"$run/worlds"
count=$# place=0
for word in "$@"; do
    place=$((place + 1))
    case $starts in *" $place "*) set -- "$@" "$etc/rank.sh" "$world" "${first:--}" "$((20000 + $$ % 10000))" "$survives$nodes" ;; esac
    set -- "$@" "$word"
done
shift "$count"
exec "$launcher" "$@"
