#!/bin/bash
# cli.sh - dsoptc as a user meets it: what it writes, what it says, how it exits.
#
#   in:  cli.sh build/bin/dsoptc SOURCE_DIR
#   out: a line per failure; "N checks, M failed"; status 1 if any failed
set -u
dsoptc=$1 source=$2
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
cd "$work" || exit 1
checks=0 failed=0

fail() {
    failed=$((failed + 1))
    printf 'FAILED: %s\n' "$*"
    sed 's/^/    /' out err 2>/dev/null | head -8
}

# run STATUS ARGS…: runs dsoptc, compares the exit status.
run() {
    local want=$1 got
    shift
    checks=$((checks + 1))
    "$dsoptc" "$@" >out 2>err </dev/null
    got=$?
    [ "$got" -eq "$want" ] || fail "dsoptc $*: status $got, not $want"
}

# says PATTERN: what the last run printed, on either stream.
says() {
    checks=$((checks + 1))
    cat out err | grep -qE -- "$1" || fail "nothing said like '$1'"
}

# made FILE…: exists and is not empty.
made() {
    local f
    for f in "$@"; do
        checks=$((checks + 1))
        [ -s "$f" ] || fail "no $f"
    done
}

# nothing_left DIR: nothing half-written in it.
nothing_left() {
    checks=$((checks + 1))
    [ -z "$(ls -A "$1")" ] || fail "left in $1: $(ls -A "$1")"
}

# ---- outputs
run 0 adamw -o a.c && made a.c a.h
run 0 adamw -o a.ir && made a.ir
run 0 adamw -o a.cu && made a.cu a.cuda.h
run 0 "$source/stdlib/lamb.opt" -o l.c -MD && made l.c l.h l.d
grep -qF 'r1, result of a reduction: sum(p^2)' l.h || fail "l.h: what r1 is"
grep -qF ' clip_global_norm.eps, hyperparameter, 0' l.h || fail "l.h: which eps"
grep -q 'l.c:' l.d && grep -q clip_global_norm.opt l.d || fail "l.d: $(cat l.d)"
if command -v "${CC:-cc}" >/dev/null; then
    run 0 adamw -o a.o && made a.o
    run 0 adamw -o a.so && made a.so
    # A state and its export have one name; a hyperparameter without a default is NaN until set.
    printf 'optimizer same {\n  hyper lr = 1, need\n  state mu: tensor = 1\n  mu *= need * mean(g)
  p -= lr * mu\n  export mu\n}\n' >same.opt
    run 0 same.opt -o same.o && grep -q 'double mu_2; /[*] written' same.h || fail "same.h"
    grep -q 'SAME_HYPER_DEFAULTS {1, (0.0 / 0.0)}' same.h || fail "same.h: defaults"
    printf 'optimizer top {\n  hyper limit = inf in (0, inf]\n  p -= min(limit, g)\n}\n' >top.opt
    run 0 top.opt -o top.c
    printf '#include "top.h"\ntop_hyper h = TOP_HYPER_DEFAULTS;\n' >use.c
    "${CC:-cc}" -Wall -Wextra -Werror -pedantic -c use.c -o use.o || fail "top.h: a default of inf"
fi
if "$dsoptc" --version | grep -q 'cuda .*not usable'; then
    echo "no NVRTC here: PTX and cubin are not tested, but for what is said"
    mkdir none
    run 1 adamw -o none/a.ptx && says 'NVRTC' && nothing_left none
else
    run 0 adamw -o a.ptx && made a.ptx && grep -q '\.target sm_75' a.ptx || fail "not for sm_75"
    run 0 adamw --arch=sm_90 -o a.cubin && made a.cubin
    run 0 lion --arch=90 -o l.ptx && grep -q '\.target sm_90' l.ptx || fail "not for sm_90"
    run 1 adamw --arch=sm_999 -o b.ptx
    run 1 adamw --arch=volta -o b.ptx && says "no architecture 'volta'"
fi
# Names in emitted text are made in linear time. (ASan's strstr measures the whole text each time.)
{
    echo 'optimizer large { hyper lr = 1'
    for i in $(seq 2000); do echo "state m$i = 0; m$i := lerp(g, m$i, 0.5); p -= lr * m$i"; done
    echo '}'
} >large.opt
for i in c cu; do
    checks=$((checks + 1))
    (ulimit -t 20 && ASAN_OPTIONS=intercept_strstr=0 "$dsoptc" large.opt -o large.$i) ||
        fail "large.$i: not in 20 seconds"
done
for stage in tokens ast ir plan tile c cuda; do
    run 0 --emit=$stage adamw && made out
done
run 0 --emit=ir lamb -o lamb.ir && made lamb.ir
run 0 --run-pass=dce lamb.ir && cmp -s out lamb.ir || fail "dce changed what dce had made"
run 0 --dump-after=dce lamb && made out
run 0 explain lamb && says '44 bytes per element' && says '3 sweeps'
run 0 explain adamw && says '28 bytes per element'
run 0 explain lamb -D wd=0.1 && says '[+] 0[.]1 [*] p'
run 0 explain adamw -D clip=1 && says '32 bytes per element' && says '2 sweeps'
run 0 explain adafactor && says 'arm 0 [(]matrices' && says 'arm 1: 2 sweeps'
run 0 explain --arm=1 adafactor && says 'arm 1: 2 sweeps'
run 0 --emit=plan adafactor && says '^body 0 view matrix' && says '^body 1 view flat'
run 1 explain --arm=2 adafactor && says 'arms 0 to 1'
run 0 --emit=ir --entry=eval schedule_free_adamw && says '^body schedule_free_adamw eval'
run 0 --entry=train schedule_free_adamw -o train.c && made train.c train.h
run 1 explain --entry=evil schedule_free_adamw && says "did you mean 'eval'"
run 0 --list && says '^adamw '
run 0 --help && says '--storage'
run 0 help && says '--storage'
run 0 --version && says '^dsoptc [0-9]+\.[0-9]+\.[0-9]+'
cat "$source/stdlib/lion.opt" >lion2.opt
"$dsoptc" - -o stdin.c <lion2.opt && made stdin.c
run 0 lion2.opt -o /dev/null --emit=c

# ---- usage
run 2 && says 'no input'
run 2 check --rule 'nothing_like_it(lion)' && says 'no input'
run 0 explain --rule 'sam(lion) { use cautious }' && says '^sam: '
run 2 adamw && says 'what is to be made'
run 2 expain adamw && says "did you mean 'explain'"
run 2 adamw lion -o a.c && says 'one rule at a time'
run 2 adamw -o a.xyz && says "'.xyz'"
run 2 adamw -o a && says '.ptx'
run 2 adamw -o && says 'missing'
run 2 --emti=ir adamw && says "did you mean '--emit'"
run 2 --emit=irr adamw && says "did you mean 'ir'"
run 2 --run-pass=nothing lamb.ir && says "no pass 'nothing'"
run 2 -Wno-such adamw -o a.c && says "no warning 'such'"
run 2 check lion -fdiagnostics-color=maybe && says "-fdiagnostics-color 'maybe'" && says 'always'
run 2 check lion -fdiagnostics-format=xml && says 'json'
run 2 check && run 2 explain && run 2 replay

# ---- inputs
run 1 missing.opt -o a.c && says 'missing.opt'
run 1 . -o a.c && says 'directory'
run 1 check adamx && says "standard library has 'adam'"
run 1 check nothing_like_it && says 'dsoptc --list'
: >empty.opt
run 1 check empty.opt && says 'empty'
echo '# nothing' >remark.opt
run 1 remark.opt -o a.c && says "no optimizer in 'remark.opt'"
run 1 explain clip && says "hint: a transform .*--rule 'sgd { use clip }'"
run 0 explain clip --rule 'sgd { use clip }' && says 'bytes per element'
run 1 schedules -o a.c && says "hint: .*--rule 'sgd[(]lr = [a-z_]+[(]"
run 0 check clip schedules lookahead sam
printf 'import "sgd.opt"\noptimizer around(inner: rule) { use inner }\n' >around.opt
run 0 check around.opt
run 1 explain around.opt && says "hint: .*'around[(]adamw[)]'"
printf 'optimizer x {\0}' >nul.opt
run 1 check nul.opt && says 'not a text file'
head -c 104857600 /dev/zero >huge.opt
run 1 check huge.opt && says 'MiB'
rm -f huge.opt
{ printf 'optimizer deep { p := '; printf '(%.0s' $(seq 100000); echo; echo '}'; } >deep.opt
run 1 check deep.opt && says 'nest|deep|too many'
echo 'import "b.opt"' >a.opt && echo 'import "a.opt"' >b.opt
run 1 check a.opt && says 'cycle|a.opt.*b.opt'
printf 'optimizer x {\n  hyper lr = 1\n  p -= lrr * g\n}\n' >typo.opt
run 1 check typo.opt && says "typo.opt:3:8" && says "did you mean 'lr'"
run 1 check typo.opt -fdiagnostics-format=json && says '"kind"'
run 1 adamw --storage m=bf17 -o a.c && says 'bf17'
run 1 rmsprop -D use_momentum=1 --storage buff=bf16 -o a.c && says "did you mean 'buf'"
run 1 adamw --storage m=bf16,m=f16 -o a.c && says 'twice'
run 1 adamw -D clop=1 -o a.c && says 'clop'
run 1 adamw --rule adamm -o a.c && says "adamm"
mkdir ro && chmod a-w ro
[ "$(id -u)" -eq 0 ] || { run 1 adamw -o ro/a.c && says 'cannot be written' && nothing_left ro; }
run 1 adamw -o nodir/a.c && says 'cannot be written'
mkdir -p taken/a.ir
run 1 adamw -o taken/a.ir && says 'cannot be written' && rmdir taken/a.ir && nothing_left taken
checks=$((checks + 1))
"$dsoptc" --emit=c adamw >/dev/full 2>err && fail "a full standard output went unnoticed"

# ---- outputs are written all or none, and never over what was read
mkdir -p pair/a.c && run 1 adamw -o pair/a.c && says 'pair/a.c: cannot be written: Is a directory'
rmdir pair/a.c && nothing_left pair
mkdir -p pair/a.h && run 1 adamw -o pair/a.c && says 'pair/a.h' && rmdir pair/a.h && nothing_left pair
mkdir -p pair/a.d && run 1 adamw -o pair/a.cu -MD && rmdir pair/a.d && nothing_left pair
if command -v "${CC:-cc}" >/dev/null; then
    mkdir -p pair/a.h && run 1 adamw -o pair/a.o && rmdir pair/a.h && nothing_left pair
fi
cp "$source/stdlib/lion.opt" over.c && cp over.c over.h && cp over.c over.ir && ln over.c link.opt
run 1 over.c -o over.c && says "over.c: would be written over 'over.c', which was read"
run 1 over.h -o over.c && says "over.h: would be written over 'over.h'"
run 1 link.opt -o over.c && says "over.c: would be written over 'link.opt'"
run 1 over.ir --emit=ir -o over.ir && run 1 over.c -o new.c -MD -MF ./over.c
checks=$((checks + 1))
for f in over.c over.h over.ir; do cmp -s "$source/stdlib/lion.opt" $f || fail "$f was overwritten"; done
[ ! -e new.c ] && [ ! -e new.h ] || fail "outputs beside an error"
mkdir 'a b#' && cp over.c 'a b#/$x.opt' && run 0 'a b#/$x.opt' -o 'a b#/y.ir' -MD
grep -qF 'a\ b\#/y.ir:' 'a b#/y.d' && grep -qF 'a\ b\#/$$x.opt' 'a b#/y.d' || fail "$(cat 'a b#/y.d')"
run 2 -xv && says "unknown option '-x'"
run 2 --list=3 && says "no argument is taken by '--list=3'"

# ---- habits from papers and other languages are answered with what is written here
# habit STATEMENT ANSWER
habit() {
    printf 'optimizer habit {\n  hyper lr = 1, wd = 2\n  %s\n  p -= lr * wd * g\n}\n' "$1" >habit.opt
    run 1 check habit.opt && says "hint: .*$2"
}
habit 'w -= lr * g' "the parameter is 'p'"
habit 'p -= lr * grad' "the gradient is 'g'"
habit 'p -= lr / step' "is 't'"
habit 'hyper nesterov = False' 'flags are numbers'
habit 'p -= lr * square(g)' 'x\^2'
habit 'p -= where(g > 0, g, 0)' 'c [?] a : b'
habit 'p -= rl * g' "did you mean 'lr'"
habit 'p -= lr * g / norm(g)[all]' 'norm\[all\]\(g\)'
habit 'hyper betas = (0.9, 0.999)' 'no tuples'
habit 'export norm(g) as n' "then 'export x'"
sed '1i import "clip_global_norm.opt"' habit.opt | sed 's/export.*/use clip_global_norm(max_norm = 1)/' >use.opt
run 1 check use.opt && says 'hint: it has limit, eps'

# ---- replay
vec=$source/tests/data/vectors
run 0 replay "$vec/adamw.torch.f64.vec" --rtol 1e-12 --atol 1e-15 && says '^worst: abs .* rel .* ulp .* at step [0-9]+ tensor'
run 0 replay "$vec/adamw.torch.f64.vec" --backend c --rtol 1e-5 --atol 1e-6
run 1 replay "$vec/adamw.torch.f64.vec" --rtol 1e-12 --atol 1e-15 --set wd=0.5
run 0 replay adam "$vec/adamw.torch.f64.vec" --set b1=@betas[0] --set b2=@betas[1] --set lr=@lr --set eps=@eps
run 1 replay "$vec/adamw.torch.f64.vec" --set b1=@nothing && says "'nothing'"
run 1 replay "$vec/adamw.torch.f64.vec" --set bb=1 && says 'bb'
run 1 replay "$vec/adamw.torch.f64.vec" --set clip=1 && says "adamw.clip is fixed .*-D clip="
cat >own.opt <<'EOF'
optimizer own {
  hyper lr = 1, b1 = 0, b2 = 0, eps = 1e-8, wd = 0
  state exp_avg = 0, v = 0
  p -= lr * wd * p
  exp_avg := lerp(g, exp_avg, b1)
  v := lerp(g * g, v, b2)
  p -= lr / (1 - b1^t) * exp_avg / (sqrt(v) / sqrt(1 - b2^t) + eps)
}
optimizer other { p -= g }
EOF
own="--rule own --set lr=@lr --set b1=@betas[0] --set b2=@betas[1] --set eps=@eps"
run 0 replay own.opt "$vec/adamw.torch.f64.vec" $own --set wd=@weight_decay --rtol 1e-12 --atol 1e-15 --state v=exp_avg_sq &&
    says '^state w.exp_avg  ' && says '^state w.exp_avg_sq  '
run 1 replay own.opt "$vec/adamw.torch.f64.vec" $own --rtol 1e-12 && says 'not used of the file: .*weight_decay 0' &&
    says '^state w.exp_avg_sq +not compared'
run 1 replay own.opt "$vec/adamw.torch.f64.vec" $own --state v=nothing && says "no state 'nothing'"
run 1 replay own.opt "$vec/adamw.torch.f64.vec" $own --state nothing=exp_avg && says "'nothing'"
run 2 replay "$vec/adamw.torch.f64.vec" --backend c --precision f64 && says 'interpreter'
run 1 replay adamw.opt && says 'not a recorded trajectory|no file|No such'
sed 's/^steps .*/steps 99/' "$vec/adamw.torch.f64.vec" >cut.vec
run 1 replay cut.vec && says 'incomplete'
sed 's/^hyper eps/hyper epsilon/' "$vec/adamw.torch.f64.vec" >name.vec
run 1 replay name.vec && says 'epsilon'
sed 's/^p 3 w [^ ]*/p 3 w abc/' "$vec/adamw.torch.f64.vec" >word.vec
run 1 replay word.vec && says 'word.vec:[0-9]+: not a number: abc'

echo "$checks checks, $failed failed"
[ "$failed" -eq 0 ]
