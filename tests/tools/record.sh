#!/bin/bash
# tools/record_torch.py against the standard library and the ported example: what it records is
# what the rules do.
#
#   in:  DSOPTC SOURCE;  DSOPT_TORCH_PYTHON: a Python that has torch (default python3)
#   out: one line a class; exit status 77, with the reason, where there is no torch
set -euo pipefail
dsoptc=$1 source=$2
python=${DSOPT_TORCH_PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
record() { "$python" "$source/tools/record_torch.py" "$@"; }

if ! "$python" -c 'import torch' 2>/dev/null; then
    echo "skipped: $python has no torch (set DSOPT_TORCH_PYTHON to one that has)"
    exit 77
fi
while read -r class arguments; do
    # shellcheck disable=SC2086 # several arguments
    record "torch.optim.$class" $arguments --none 3:w -o "$work/x.vec"
    line=$("$dsoptc" replay "$work/x.vec" --rtol 1e-11 --atol 1e-14 | tail -n 1)
    echo "$class: $line"
done <<'LIST'
AdamW --arg lr=1e-2
Adam --arg lr=1e-2 --arg weight_decay=0.1
NAdam
RAdam --steps 20
Adagrad
SGD --arg momentum=0.9 --arg nesterov=true --arg lr=0.1
RMSprop
Rprop
LIST
record "$source/examples/porting/clipped_momentum.py:ClippedMomentum" --arg lr=0.05 \
    --arg weight_decay=0.1 --none 3:w -o "$work/c.vec"
"$dsoptc" replay "$source/examples/porting/clipped_momentum.opt" "$work/c.vec" --set lr=@lr \
    --set beta=@beta --set trust=@trust --set wd=@weight_decay --rtol 1e-12 --atol 1e-15 | tail -n 1

# The same seed draws the same numbers whatever the class and the precision.
record torch.optim.SGD -o "$work/a.vec"
record torch.optim.Adam --dtype f32 -o "$work/b.vec"
diff <(grep -E '^(p 0|g) ' "$work/a.vec") <(grep -E '^(p 0|g) ' "$work/b.vec")

# Mistakes are named, and leave nothing behind.
fails() {
    local want=$1
    shift
    if record "$@" -o "$work/no.vec" 2>"$work/err"; then
        echo "FAILED: $* was accepted"; exit 1
    fi
    grep -q -- "$want" "$work/err" || { echo "FAILED: $*:"; cat "$work/err"; exit 1; }
    [ ! -e "$work/no.vec" ] || { echo "FAILED: $* left a file"; exit 1; }
}
fails "has no 'AdamX'" torch.optim.AdamX
fails "no such file" nowhere.py:X
fails "unexpected keyword" torch.optim.Adam --arg nonsense=1
fails "no tensor 'q'" torch.optim.Adam --none 3:q
fails "steps are 1 to 16" torch.optim.Adam --bad 17
fails "dims are numbers" torch.optim.Adam --tensor w=a,b
