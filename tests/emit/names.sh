#!/bin/bash
# names.sh - rules may be named as they like: words of C, C++ and CUDA, macros of headers, and names
# that the emitted text uses for itself, as hyperparameters, states, exports and rules.
#
#   in:  names.sh build/bin/dsoptc gcc
#   out: a line per failure, with the compiler's; status 1 if there is one
set -u
dsoptc=$1 cc=$2
command -v "$cc" >/dev/null || { echo "no $cc here: not tested"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
words='
    alignas alignof and_eq asm auto bitand bitor bool break case catch char char8_t char16_t
    char32_t class compl concept consteval constexpr constinit const_cast continue co_await
    co_return co_yield decltype default delete do double dynamic_cast enum explicit extern float
    friend goto inline int long mutable namespace new noexcept not_eq nullptr operator or_eq
    private protected public register reinterpret_cast requires restrict short signed sizeof
    static static_assert static_cast struct switch template this thread_local throw try typedef
    typeid typename union unsigned using virtual void volatile wchar_t while xor xor_eq typeof
    typeof_unqual _Bool _Complex _Imaginary _Alignas _Generic _Noreturn _Static_assert
    _Thread_local _Atomic true false linux unix i386 NULL EOF errno stdin stdout stderr assert
    INFINITY NAN HUGE_VAL I complex M_PI FLT_MAX DBL_MAX INT64_MAX UINT64_C INT64_C int64_t
    uint16_t uint64_t size_t step main k0 s0_global s0_group s0_class s0_tensor commit_global v0
    v1 v10 x0 x1 x2 x x1_m a b c d e f h i j k l m n o q r u w y z args row tensors tensor
    global group cls chunk chunks partial tree ptr begin end count first index lane lanes acc
    scratch thread width stride root left out hypers grid ds ds_x ds_exp ds_expf ds_temp0
    ds_sqrtf ds_push_sum ds_root_sum ds_lane DS_CHUNK DS_LANES DsRow DsArgs DsTensorRow dsopt
    dsopt_step DSOPT_KERNEL_ABI memcpy memset sqrt sqrtf fabs fabsf exp_ isnan pow_ fma_
    threadIdx blockIdx blockDim gridDim warpSize __global__ __device__ __shared__ __restrict__
    __launch_bounds__ __syncthreads dim3 float2 float4 double2 uint4 cudaStream_t half __half
    bf16 cuda inf_ nan nan_ INFINITY_ load store round_ min_ max_ abs_ none level rate p_ g_ t_
    _ __ _x _X __x x__1 x_ X double_ int_ float_ u8 u16 u32 u64 i8 i32 f16 f64 __builtin_fmaf
    __asm__ __attribute__ __extension__ __inline __FILE__ __LINE__ defined elif ifdef include
    pragma line error import_ module signal final override far near interface small min8 BLOCK
    base where from to pass uniform warp shuffle sum_ spans span active present vector roots
    slot values value type nrows nspans kind phase
'
failed=0

fail() {
    failed=1
    echo "FAILED: $*"
    head -c 1500 log
}

each() { # each FORMAT: the format with every word for its WORDs
    local w
    for w in $words; do printf '%s\n' "${1//WORD/$w}"; done
}

rule() { # rule NAME < body
    { echo "optimizer $1 {"; cat; echo "}"; } >"$1.opt"
}

sum=$(each ' + WORD' | tr -d '\n')
{ each 'hyper WORD = 1'; echo "p -= g * (0$sum)"; } | rule hypers
{ each 'state WORD: tensor = 0'; each 'WORD := WORD + 1'; each 'export WORD'; echo "p -= g * (0$sum)"; } | rule scalars
{ each 'state WORD: global = 0'; each 'WORD := WORD + norm[all](g)'; each 'export WORD'; echo "p -= g * (0$sum)"; } | rule globals
{ each 'state WORD = 0' | head -100; each 'WORD := WORD + g' | head -100; each 'p -= WORD' | head -100; } | rule first
{ each 'state WORD = 0' | tail -n +100 | head -110; each 'WORD := WORD + g' | tail -n +100 | head -110
  each 'p -= WORD' | tail -n +100 | head -110; } | rule second
{ each 'state WORD = 0' | tail -n +210; each 'WORD := WORD + g' | tail -n +210
  each 'p -= WORD' | tail -n +210; } | rule third
for name in int class linux ds dsopt main _x x1_m; do
    { echo 'state m = 0, k: tensor = 0'; echo 'm := m + g'; echo 'k := k + norm(g)'; echo 'export k'
      echo 'p -= m * k'; } | rule "$name"
done

ptx=no
"$dsoptc" adamw -o probe.ptx 2>/dev/null && ptx=yes
for file in *.opt; do
    rule=${file%.opt}
    "$dsoptc" "$file" -o "$rule.c" 2>log || { fail "$file"; continue; }
    for std in c99 gnu17; do
        "$cc" -std=$std -pedantic -Wall -Wextra -Werror -fsyntax-only "$rule.c" 2>log || fail "$rule.c as $std"
    done
    "$dsoptc" "$file" -o "$rule.cu" 2>log || fail "$file as CUDA"
    printf '#include <errno.h>\n#include <math.h>\n#include <stdio.h>\n#include "%s"\n#include "%s"\n' \
        "$rule.h" "$rule.cuda.h" >user.c
    "$cc" -std=c99 -pedantic -Wall -Wextra -Werror -fsyntax-only user.c 2>log || fail "$rule.h"
    if command -v "${CXX:-g++}" >/dev/null; then
        "${CXX:-g++}" -x c++ -std=c++17 -Wall -Wextra -Werror -fsyntax-only user.c 2>log || fail "$rule.h in C++"
    fi
    [ $ptx = no ] || "$dsoptc" "$file" -o "$rule.ptx" 2>log || fail "$file through NVRTC"
done
[ $ptx = yes ] || echo "no NVRTC here: CUDA text is not compiled"
grep -q '^int dsopt__step(' dsopt.h || fail "rule dsopt has the library's own dsopt_step"
exit $failed
