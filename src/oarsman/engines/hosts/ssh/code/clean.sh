# Copies of jobs' folders on a host: those named by REMOVE go, with all that is in them, and each that is left is told on a
# line: its name, its KiB and the jobs that need it. FOLDER is where they lie; ~/ is the user's home here.
LC_ALL=C
export LC_ALL
# shellcheck disable=SC2088 # it is looked for, not expanded
case $FOLDER in "~/"*) FOLDER=${HOME:-}/${FOLDER#"~/"} ;; esac
cd "$FOLDER" 2>/dev/null || exit 0
for name in $REMOVE; do
    rm -rf "./$name" "./$name.brought" "./$name.jobs" "./$name.new" "./$name.lock"
done
last=''
for path in *-????????*; do
    [ -e "$path" ] || continue
    name=$path
    for end in brought jobs lock new; do name=${name%".$end"}; done
    case $name in *[!A-Za-z0-9._-]* | "$last") continue ;; esac
    last=$name
    # shellcheck disable=SC2012 # names of jobs are plain
    echo "$name $(du -sk "./$name" 2>/dev/null | cut -f 1 | grep . || echo 0) $(ls "$name.jobs" 2>/dev/null | tr '\n' ' ')"
done
