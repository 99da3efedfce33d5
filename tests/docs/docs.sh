#!/bin/bash
# What README.md and docs/ show: C programs compile and print what stands below them, rules are
# accepted, the launches of outputs.md fit cuda.h and the generated header, files that are named
# exist.
#
#   in:  SOURCE BUILD CC
#   out: one line per check; exit status 1 at the first that fails
set -euo pipefail
source=$1 build=$2 cc=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

fail() {
    echo "FAILED: $*"
    exit 1
}

# blocks LANGUAGE FILE: its fenced blocks, one after another.
blocks() {
    awk -v fence="\`\`\`$1" '$0 == fence {on = 1; next} /^```$/ {on = 0} on' "$2"
}

# indented WORD FILE: the first indented block with a line that begins with WORD, without the indent.
indented() {
    awk -v word="$1" '
        /^    / {text = text substr($0, 5) "\n"; if (index($0, "    " word) == 1) hit = 1; next}
        /^$/ && text != "" {text = text "\n"; next}
        {if (hit) exit; text = ""}
        END {if (hit) printf "%s", text}' "$2"
}

for page in README.md docs/api.md; do
    blocks c "$source/$page" >page.c
    blocks text "$source/$page" >want
    [ -s page.c ] && [ -s want ] || fail "$page: no program, or nothing that it prints"
    $cc -std=c11 -Wall -Wextra -Werror page.c -I"$source/runtime" "$build/lib/libdsopt.a" \
        -lm -lpthread -ldl -o page || fail "$page: its program does not compile"
    ./page >got || fail "$page: its program fails"
    diff want got || fail "$page: its program prints something else"
    echo "$page: the program prints what it should"
done

indented "optimizer lion" "$source/README.md" >readme.opt
indented "optimizer adamw" "$source/docs/language.md" >language.opt
for rule in readme language; do
    [ -s $rule.opt ] || fail "$rule.opt: nothing was found"
    "$build/bin/dsoptc" check -Werror $rule.opt || fail "$rule.opt: not accepted"
done
echo "rules: accepted"

"$build/bin/dsoptc" adafactor -o adafactor.cu
indented "CUresult adafactor_enqueue" "$source/docs/outputs.md" >launch.c
[ -s launch.c ] || fail "outputs.md: no adafactor_enqueue"
cuda=${CUDA_HOME:-${CUDA_PATH:-/usr/local/cuda}}/include
if [ -e "$cuda/cuda.h" ]; then
    $cc -std=c11 -Wall -Wextra -Werror -I. -isystem "$cuda" -c launch.c ||
        fail "outputs.md: adafactor_enqueue does not compile"
    echo "outputs.md: adafactor_enqueue compiles"
else
    echo "not run: outputs.md's adafactor_enqueue, there is no $cuda/cuda.h"
fi

# Pages that are named in backticks are there: `docs/x.md`, `bench/README.md`, or `x.md` of docs.
grep -oE '`([a-z]+/)?[A-Za-z_]+\.md`' "$source"/README.md "$source"/docs/*.md | tr -d '`' | sort -u >names
while IFS=: read -r page name; do
    [ -e "$source/$name" ] || [ -e "$source/docs/$name" ] || fail "${page#"$source/"} names $name, which is not there"
done <names
echo "pages: $(wc -l <names) names, all there"
