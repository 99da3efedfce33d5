#!/bin/bash
# Runs the examples: minimal fits its line, digits learns with rules of the library and of one's own.
#
#   in:  the folder of the programs
#   out: one line per check; exit status 1 at the first that fails
set -euo pipefail
bin=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "FAILED: $*"
    exit 1
}

line=$("$bin/minimal")
[ "$line" = "a 3.000 b 1.000" ] || fail "minimal says '$line'"
echo "minimal: $line"

cat >"$work/my.opt" <<'OPT'
optimizer my {
  hyper lr = 0.1, beta = 0.9 in [0, 1)
  state m = 0
  m := beta * m + g
  p -= lr * (1 - beta) * m
}
OPT
# Every optimizer ends above 95 % of the test images, the same number with 1 thread and 2.
"$bin/digits" adamw lion sgd lamb rprop "$work/my.opt" --threads 1 >"$work/one"
"$bin/digits" adamw lion sgd lamb rprop "$work/my.opt" --threads 2 >"$work/two"
summary() { sed -nE 's/^   [^ ] ([^ ]+) +test +([0-9.]+) %  loss ([0-9.]+).*/\1 \2 \3/p' "$1"; }
summary "$work/one" >"$work/one.txt"
summary "$work/two" | cmp - "$work/one.txt" || fail "1 and 2 threads differ"
[ "$(wc -l <"$work/one.txt")" = 6 ] || fail "not six optimizers in the summary"
awk '$2 < 95 {print; bad = 1} END {exit bad}' "$work/one.txt" || fail "below 95 %"
sed 's/^/digits: /' "$work/one.txt"

# Mistakes: a clear message, status 1 (usage: 2).
message() { # status, text, arguments …
    local want=$1 text=$2 status=0
    shift 2
    "$bin/digits" "$@" >"$work/out" 2>&1 || status=$?
    [ $status = "$want" ] || fail "digits $*: status $status, not $want"
    grep -qF -- "$text" "$work/out" || fail "digits $*: $(cat "$work/out")"
}
message 1 "did you mean 'adamw'?" adamww
message 1 "did you mean 'lr'?" adamw --set lrr=1
message 1 "is outside of [0, inf)" adamw --set lr=-1
message 1 "--set takes NAME=NUMBER" adamw --set lr
message 1 "no_such" adamw -D no_such=1
message 1 "no-such.csv" -d "$work/no-such.csv"
message 2 "--epochs takes a number" --epochs many
message 2 "usage: digits" --no-such-option
printf 'optimizer x { p -= lr * g }\n' >"$work/bad.opt"
message 1 "bad.opt:1:20: error:" "$work/bad.opt"
echo "digits: mistakes are told"

if command -v gnuplot >/dev/null; then
    for kind in svg png; do
        "$bin/digits" --epochs 2 --svg "$work/curves.$kind" adamw sgd >/dev/null
        [ -s "$work/curves.$kind" ] || fail "no curves.$kind"
    done
    grep -q '<svg' "$work/curves.svg" || fail "curves.svg is none"
    echo "digits: curves drawn"
else
    echo "not run: drawing of curves, gnuplot is not installed"
fi
