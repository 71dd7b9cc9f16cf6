#!/bin/sh
# rank.sh LEDGER SECONDS BAD CODE TIMES AWAITED: a rank, which writes into the ledger when it begins, lives and ends.
# BAD: the rank that ends with CODE half-way, TIMES times. AWAITED: a file to wait for ("-": none).
ledger=$1 seconds=$2 bad=$3 code=$4 times=$5 awaited=$6
# Whoever started it knows the attempt, on every host and with every MPI: the shim before it has it as its first word.
label=$(tr '\0' '\n' <"/proc/$PPID/cmdline" | grep -m 1 -E '^[0-9]+:[0-9]') || label=$OARSMAN_ATTEMPT:plain
rank=${RANK:-0}
note() {
    read -r now _ </proc/uptime
    echo "$1 $label $rank $now" >>"$ledger"
}
note begin
echo "begin $rank"
left=$((seconds * 4))
[ "$rank" != "$bad" ] || left=$((left / 2))
limit=1200
while [ "$left" -gt 0 ] || { [ "$awaited" != - ] && [ ! -e "$awaited" ] && [ "$limit" -gt 0 ]; }; do
    sleep 0.25
    left=$((left - 1)) limit=$((limit - 1))
    note lives
done
if [ "$rank" = "$bad" ]; then
    for time in 1 2 3; do
        if [ "$time" -le "$times" ] && mkdir "$ledger.$time" 2>/dev/null; then
            note fails
            exit "$code"
        fi
    done
fi
echo "end $rank"
note end
