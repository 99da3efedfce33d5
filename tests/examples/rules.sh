#!/bin/bash
# The rules of examples/rules against the recorded runs that their `# replay:` lines name: in f64
# within 1e-12, states included, and in f32 as users run them.
#
#   in:  DSOPTC SOURCE;  # replay: sgd.torch-momentum lr=@lr b=@momentum; m=momentum_buffer
#   out: "heavy_ball: worst: abs … at step …"; exit status 1 at the first that differs
set -euo pipefail
dsoptc=$1 source=$2
count=0
for rule in "$source"/examples/rules/*.opt; do
    name=$(basename "$rule" .opt)
    line=$(sed -n 's/^# replay: //p' "$rule")
    [ -n "$line" ] || { echo "FAILED: $rule has no '# replay:' line"; exit 1; }
    hypers=${line%%;*} states=${line#*;}
    file=$source/tests/data/vectors/${hypers%% *}.f64.vec
    options=()
    for hyper in ${hypers#* }; do options+=(--set "$hyper"); done
    for state in $states; do options+=(--state "$state"); done
    "$dsoptc" check -Werror "$rule"
    exact=$("$dsoptc" replay "$rule" "$file" "${options[@]}" --rtol 1e-12 --atol 1e-15) ||
        { echo "FAILED: $name in f64"; echo "$exact"; exit 1; }
    rounded=$("$dsoptc" replay "$rule" "$file" "${options[@]}" --backend c --rtol 1e-5 --atol 1e-5) ||
        { echo "FAILED: $name in f32"; echo "$rounded"; exit 1; }
    echo "$name: $(tail -n 1 <<<"$exact")"
    count=$((count + 1))
done
[ $count -ge 4 ] || { echo "FAILED: $count rules"; exit 1; }
