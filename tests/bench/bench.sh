#!/bin/bash
# bench_step: every contestant takes part and leaves, the table has the columns that it promises,
# and what is not known is refused. PyTorch is played by a script.
#
#   in:  bench_step
#   out: one line per check; exit status 1 at the first that fails
set -euo pipefail
bench=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "FAILED: $*"
    exit 1
}

cat >"$work/python" <<'SH'
#!/bin/sh
echo ready
while read -r steps; do echo $((steps * 1000000)); done
SH
chmod +x "$work/python"

want="libtcc stream torch-fused torch-foreach"
if command -v gcc >/dev/null; then want="libtcc gcc stream torch-fused torch-foreach"; fi
for dtype in f32 bf16; do
    CC=/none timeout 140 "$bench" --rules adamw --dtypes $dtype --sizes 4K,10x10 --threads 1,2 \
        --rounds 3 --csv --no-latency --torch "$work/python" >"$work/csv" || fail "status $?"
    head -1 "$work/csv" |
        grep -qx 'rule,dtype,backend,threads,tensors,elements,ns_per_param,gbps' ||
        fail "the head is $(head -1 "$work/csv")"
    for case in 1,1,4096 2,1,4096 1,10,100 2,10,100; do
        got=$(awk -F, -v case=$case 'NR > 1 && $4 "," $5 "," $6 == case && $7 > 0 && $8 > 0 {
            printf "%s%s", sep, $3; sep = " "}' "$work/csv")
        [ "$got" = "$want" ] || fail "adamw $dtype $case: '$got', not '$want'"
    done
    awk -F, '$3 ~ /torch/ && $6 == 4096 && $7 != "244.1406" {print; bad = 1} END {exit bad}' \
        "$work/csv" || fail "a step of 1 ms over 4096 elements is 244.1406 ns each"
    echo "bench: adamw $dtype, $want"
done

for words in "--rules adamx" "--dtypes f33" "--sizes 4Q" "--threads 0" "--rounds 2" "more"; do
    status=0
    "$bench" $words --no-latency >/dev/null 2>&1 || status=$?
    [ $status = 2 ] || fail "bench_step $words: status $status, not 2"
done
echo "bench: mistakes are told"
