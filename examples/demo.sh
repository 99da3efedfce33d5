#!/bin/bash
# What dsopt does, in a minute: ./dev demo runs it after a build.
#
#   in:  the build folder (default build)
#   out: BUILD/demo/adamw.{ptx,c,h}, what is in them, and three optimizers training the same network
#
# Every number printed is read from the files or measured in this run.
set -euo pipefail
build=$(cd "${1:-build}" && pwd)
cd "$(dirname "${BASH_SOURCE[0]}")/.."
dsoptc=$build/bin/dsoptc
out=$build/demo
mkdir -p "$out"

show() {
    printf '\n$ %s\n' "$(echo "$*" | sed "s#$build#build#g")"
    "$@"
}

# count PATTERN FILE: how many lines of the file match.
count() { grep -cE -- "$1" "$2" || true; }

echo "== One rule: $(sed -n 1p stdlib/adamw.opt)"
grep -v '^ *#' stdlib/adamw.opt | sed 's/^/    /'

echo
echo "== The rule as CUDA code for a GPU: PTX"
if show "$dsoptc" stdlib/adamw.opt -o "$out/adamw.ptx"; then
    ptx=$out/adamw.ptx
    printf '  %s lines of PTX ISA %s for %s\n' "$(wc -l <"$ptx")" \
        "$(sed -nE 's/^\.version +//p' "$ptx")" "$(sed -nE 's/^\.target +//p' "$ptx")"
    printf '  entry points: %s\n' \
        "$(sed -nE 's/.*\.entry +([A-Za-z0-9_]+).*/\1/p' "$ptx" | tr '\n' ' ')"
    printf '  16-byte loads: %s, stores: %s\n' \
        "$(count 'ld\.global(\.[a-zA-Z]+)*\.v4' "$ptx")" \
        "$(count 'st\.global(\.[a-zA-Z]+)*\.v4' "$ptx")"
    printf '  fused multiply-adds in f32: %s (the rule has none, so neither has the code)\n' \
        "$(count 'fma\.rn\.f32' "$ptx")"
else
    echo "  No PTX on this machine, for the reason above; everything else works without it."
fi

echo
echo "== The same rule as C for any compiler"
show "$dsoptc" stdlib/adamw.opt -o "$out/adamw.c"
printf '  %s lines; functions that a program calls:\n' "$(wc -l <"$out/adamw.c")"
grep -hE '^[a-z].*\(' "$out"/adamw.h | sed 's/^/    /' || true
${CC:-cc} -O3 -fno-math-errno -c "$out/adamw.c" -o "$out/adamw.o" -I"$out"
printf '  compiled by %s to %s bytes of code\n' "${CC:-cc}" \
    "$(size -A "$out/adamw.o" | awk '$1 ~ /^\.text/ {n += $2} END {print n}')"

echo
echo "== What it costs and where each value is computed"
show "$dsoptc" explain stdlib/adamw.opt

echo
echo "== Three optimizers train the same network on handwritten digits"
picture=()
if command -v gnuplot >/dev/null; then
    picture=(--svg "$out/curves.svg")
fi
show "$build/bin/digits" "${picture[@]}" adamw lion sgd
if [ -s "$out/curves.svg" ]; then
    echo
    echo "The curves as a picture: $out/curves.svg"
fi
echo "The files: $out"
