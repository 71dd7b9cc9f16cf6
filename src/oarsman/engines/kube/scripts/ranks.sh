#!/bin/sh
# ranks.sh where|failed WORLD FILE: what the ranks of one mpirun wrote down, as a few words.
# The file has it from all hosts: WORLD begin RANK SIZE HOST, and WORLD end RANK CODE TIME HOST of those that failed.
# where: `oarsman: ranks 0-3 on pi-worker-0..1, 4 on pi-worker-2`; with the word `all`, only if
# every rank is known.
# failed: `oarsman: rank 1 on pi-worker-1 ended with code 3 at TIME`, a line for each of the first.
world=$2 file=$3 must=${4:-}
if [ "$1" = failed ]; then
    sed -n "s/^$world end \([0-9]*\) \([0-9]*\) \([0-9]*\) \(.*\)\$/\3 \1 \2 \4/p" "$file" | sort -n | head -n 4 |
        while read -r time rank code host; do
            at=$(date -u -d "@$((time / 1000))" +%Y-%m-%dT%H:%M:%S 2>/dev/null || echo "$((time / 1000))")
            at=$at.${time#"${time%???}"}
            echo "oarsman: rank $rank on $host ended with code $code at $at"
        done
    exit
fi
longest=1500
[ -n "$must" ] || longest=400
said='' size='' count=0
first='' last='' host='' # ranks without a gap on one host
from='' to='' each='' name='' begins='' ends='' # the same number of them on hosts without a gap
say() {
    [ -n "$from" ] || return
    said="$said${said:+, }$from"
    [ "$from" = "$to" ] || said=$said-$to
    said="$said on $name$begins"
    [ "$begins" = "$ends" ] || said=$said..$ends
}
add() {
    [ -n "$first" ] || return
    index=${host##*-} stem=${host%-*}-
    case $index in *[!0-9]* | 0?*) index='' stem=$host ;; esac
    if [ -n "$index" ] && [ "$stem" = "$name" ] && [ "$first" = "$((to + 1))" ] &&
        [ "$each" = "$((last - first + 1))" ] && [ "$index" = "$((ends + 1))" ]; then
        to=$last ends=$index
        return
    fi
    say
    from=$first to=$last each=$((last - first + 1)) name=$stem begins=$index ends=$index
}
sorted=$(sed -n "s/^$world begin \([0-9]*\) \([0-9]*\) \(.*\)\$/\1 \2 \3/p" "$file" | sort -n -u)
while read -r rank of where; do
    [ -n "$rank" ] || exit
    count=$((count + 1)) size=$of
    if [ "$where" = "$host" ] && [ "$rank" = "$((last + 1))" ]; then last=$rank; continue; fi
    add
    [ "${#said}" -le "$longest" ] || exit
    first=$rank last=$rank host=$where
done <<END
$sorted
END
add
say
[ "${#said}" -le "$longest" ] || exit
[ -z "$must" ] || [ "$count" = "$size" ] || exit
echo "oarsman: ranks $said"
