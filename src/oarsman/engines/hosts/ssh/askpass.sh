# ask KIND WORDS...: put a question to the machine that minds this job; the answer comes line by line on descriptor 4.
# It goes out in small pieces, because larger ones of several askers could mix.
# shellcheck shell=sh
ask() {
    answers=$OARSMAN_RUN/a/$$
    mkfifo "$answers" && exec 4<>"$answers" || exit 255
    kind=$1
    shift
    printf '%s\0' "$@" | od -An -v -tx1 | tr -d ' \n' | fold -w 2000 | while read -r part || [ -n "$part" ]; do
        echo "part $$ $part"
    done >"$OARSMAN_RUN/up"
    echo "$kind $$" >"$OARSMAN_RUN/up"
}
