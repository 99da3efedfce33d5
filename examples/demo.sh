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
    local words="$*"
    printf '\n$ %s\n' "${words//$build/build}"
    "$@"
}

# count PATTERN FILE: how many lines of the file match.
count() { grep -cE -- "$1" "$2" || true; }

echo "== One rule, stdlib/adamw.opt"
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
        "$(count '\<ld(\.[a-z]+)*\.v4' "$ptx")" \
        "$(count '\<st(\.[a-z]+)*\.v4' "$ptx")"
    printf '  fused multiply-adds: %s (the rule says none, so the code has none)\n' \
        "$(count '\<fma\.' "$ptx")"
else
    echo "  No PTX on this machine, for the reason above; everything else works without it."
fi

echo
echo "== The same rule as C for any compiler"
show "$dsoptc" stdlib/adamw.opt -o "$out/adamw.c"
printf '  %s lines, and a header; the call for one tensor:\n' "$(wc -l <"$out/adamw.c")"
sed -nE '/^int adamw_step\(/,/;/p' "$out/adamw.h" | sed 's/^/    /'
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
echo
echo "The files are in $out"
