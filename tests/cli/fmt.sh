#!/bin/bash
# dsoptc fmt: one layout, the same meaning, nothing lost.
#
#   in:  DSOPTC SOURCE
#   out: one line a check; exit status 1 at the first that fails
set -euo pipefail
dsoptc=$1 source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

fail() {
    echo "FAILED: $*"
    exit 1
}

cat >messy.opt <<'OPT'


# AdamW  
optimizer   adamw(lr=1e-3 in[0,inf),const K=2){#head
hyper b1=0.9 in [0,1)  , b2 = .999 # averages


	state m=0,v = 0; state R : tensor=-1

  when (lr>0)and not(b1==0) {p-=lr*wd*p}else  when b1>0{
      m:=lerp(g,m,b1)   # é, of two bytes
      v := lerp( g*g , v,b2 ) # long
   }
   hyper beta[K]=[0,0.9], wd: global=1e-2

   direction u=1/(1-b1 ^ -t)*m
     /(sqrt(v)/sqrt(1-b2^t)+1e-8)
   repeat i in 0 .. K{ u:=u*beta[i]-(-m) }
   shape[ .. ,r,c]when min(r,c)>=128{ state Q: row=0
     Q:=mean [row](g*g)  } else{
     # nothing here
   }
   use clip( 1 )as c2
   p-=lr * ( b1>0?u:b2<1 ? -u: 0 )

}


transform clip(limit=1):gradient{ g:=g*min(1,limit/norm[ all ](g)) }
recipe gpt {
group nodecay:ndim<2->adamw(lr=0)
store p:bf16 stochastic master f32,*.m :bf16
default->adamw( lr=3e-4 ){use clip}
}
# the end
OPT
cat >want.opt <<'OPT'
# AdamW
optimizer adamw(lr = 1e-3 in [0, inf), const K = 2) {  #head
  hyper b1 = 0.9 in [0, 1), b2 = .999                  # averages

  state m = 0, v = 0; state R: tensor = -1

  when (lr > 0) and not (b1 == 0) { p -= lr * wd * p } else when b1 > 0 {
    m := lerp(g, m, b1)      # é, of two bytes
    v := lerp(g * g, v, b2)  # long
  }
  hyper beta[K] = [0, 0.9], wd: global = 1e-2

  direction u = 1 / (1 - b1^-t) * m
      / (sqrt(v) / sqrt(1 - b2^t) + 1e-8)
  repeat i in 0..K { u := u * beta[i] - (-m) }
  shape [.., r, c] when min(r, c) >= 128 { state Q: row = 0
    Q := mean[row](g * g) } else {
    # nothing here
  }
  use clip(1) as c2
  p -= lr * (b1 > 0 ? u : b2 < 1 ? -u : 0)
}

transform clip(limit = 1) : gradient { g := g * min(1, limit / norm[all](g)) }
recipe gpt {
  group nodecay : ndim < 2 -> adamw(lr = 0)
  store p : bf16 stochastic master f32, *.m : bf16
  default -> adamw(lr = 3e-4) { use clip }
}
# the end
OPT
"$dsoptc" fmt - <messy.opt >got.opt || fail "the messy file was refused"
diff want.opt got.opt || fail "laid out otherwise"
"$dsoptc" fmt - <got.opt | cmp - got.opt || fail "not idempotent"
diff <(grep -o '#.*' messy.opt | sed 's/ *$//') <(grep -o '#.*' got.opt) || fail "comments were lost"
echo "layout: as it should be"

# In place: the file alone, its mode and links kept; --check writes nothing.
cp messy.opt here.opt
chmod 640 here.opt
ln -s here.opt link.opt
if "$dsoptc" fmt --check here.opt want.opt >names; then fail "--check says all is well"; fi
[ "$(cat names)" = here.opt ] || fail "--check names $(cat names)"
cmp -s messy.opt here.opt || fail "--check wrote"
"$dsoptc" fmt link.opt want.opt
cmp here.opt want.opt || fail "not formatted in place"
[ -L link.opt ] && [ "$(stat -c %a here.opt)" = 640 ] || fail "link or mode lost"
"$dsoptc" fmt --check here.opt link.opt want.opt || fail "--check after fmt"
[ "$(ls)" = "$(printf '%s\n' got.opt here.opt link.opt messy.opt names want.opt)" ] ||
    fail "left behind: $(ls)"
echo "in place: link and mode kept"

# What is write-protected stays as it is, though its folder would let it be replaced.
if [ "$(id -u)" = 0 ]; then
    echo "write-protected files: not tested as root"
else
    cp messy.opt locked.opt && chmod 444 locked.opt
    if "$dsoptc" fmt locked.opt 2>err; then fail "a write-protected file was formatted"; fi
    grep -q 'locked.opt: cannot be written' err || fail "locked.opt is not named: $(cat err)"
    cmp locked.opt messy.opt || fail "a write-protected file was changed"
    rm -f locked.opt
fi

# A semicolon may stand where a line's end has ended the statement.
printf 'optimizer x {\n  hyper lr = 1\n  ;\n  p -= lr*g;\n}\n' >semi.opt
printf 'optimizer x {\n  hyper lr = 1\n  ;\n  p -= lr * g;\n}\n' >semi.want
"$dsoptc" fmt semi.opt
diff semi.want semi.opt || fail "semicolons"

# A file with a mistake is left alone, and the mistake is named; the others are done.
printf 'optimizer x{\n p-=*g\n}\n' >bad.opt
cp bad.opt bad.before
cp messy.opt good.opt
if "$dsoptc" fmt bad.opt good.opt 2>err; then fail "a mistake was accepted"; fi
grep -q '^bad.opt:2:' err || fail "the mistake has no place: $(cat err)"
cmp bad.opt bad.before || fail "a file with a mistake was changed"
cmp good.opt want.opt || fail "the good file was not formatted"
: >empty.opt
if "$dsoptc" fmt nowhere.opt 2>err; then fail "a missing file"; fi
grep -q 'nowhere.opt' err || fail "the missing file is not named"
if "$dsoptc" fmt 2>err; then fail "nothing to format"; else [ $? = 2 ] || fail "usage is 2"; fi
echo "mistakes: named, nothing lost"

"$dsoptc" fmt --check "$source"/stdlib/*.opt "$source"/examples/*/*.opt ||
    fail "run: dsoptc fmt stdlib/*.opt examples/*/*.opt"
echo "stdlib and examples: formatted"
