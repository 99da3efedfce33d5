#!/bin/bash
# Both libraries from the outside: what they export, and programs with functions called next, step,
# tok and file linked against them, from the build tree, by CMake package and by pkg-config.
#
#   in:  SOURCE BUILD CC CMAKE
#   out: one line per check; exit status 1 at the first that fails
set -euo pipefail
source=$1 build=$2 cc=$3 cmake=$4
header=$source/runtime/dsopt.h
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

fail() {
    echo "FAILED: $*"
    exit 1
}

# What is declared (declarations begin with DSOPT_API) and what each library has.
sed -nE 's/^DSOPT_API [^(]*[ *](dsopt_[a-z0-9_]+)\(.*/\1/p' "$header" | sort -u >declared
[ -s declared ] || fail "no declaration found in dsopt.h"
nm -D --defined-only "$build/lib/libdsopt.so" | awk '{print $3}' | sort -u >so
nm -g --defined-only "$build/lib/libdsopt.a" | awk 'NF == 3 {print $3}' | sort -u >a
for library in so a; do
    grep -v '^dsopt_' $library && fail "libdsopt.$library exports the above"
    missing=$(comm -23 declared $library)
    [ -z "$missing" ] || fail "libdsopt.$library lacks: $missing"
done
extra=$(comm -13 declared so)
[ -z "$extra" ] || fail "libdsopt.so exports what dsopt.h does not declare: $extra"
echo "exports: $(wc -l <declared) functions"
readelf -d "$build/lib/libdsopt.so" | grep -q TEXTREL && fail "libdsopt.so has text relocations"
readelf -lW "$build/lib/libdsopt.so" | grep -q 'GNU_STACK.*RWE' && fail "executable stack"

for flags in -O2 "-O0 -static-pie" "-O2 -no-pie" "-O2 -Wl,--gc-sections"; do
    # A static program lacks dlopen of NVRTC, which the linker warns of; all else works.
    $cc $flags -Wall -Werror "$source/tests/link/user.c" -I"$source/runtime" \
        "$build/lib/libdsopt.a" -lm -lpthread -ldl -o user 2>link.log ||
        { cat link.log; fail "static link with $flags"; }
    ./user || fail "static with $flags"
done
$cc -Wall -Werror "$source/tests/link/user.c" -I"$source/runtime" -L"$build/lib" \
    -Wl,-rpath,"$build/lib" -ldsopt -o user
./user || fail "shared"
echo "static and shared programs run"

for language in "c -std=c99" "c -std=c11" "c++ -std=c++11" "c++ -std=c++20"; do
    case $language in c++*) compiler=$(command -v g++ || command -v clang++ || true) ;;
    *) compiler=$cc ;; esac
    if [ -z "$compiler" ]; then
        echo "skipped: no C++ compiler for $language"
        continue
    fi
    $compiler -x $language -pedantic -Wall -Wextra -Werror -fsyntax-only "$header" ||
        fail "dsopt.h as $language"
done

"$cmake" --install "$build" --prefix "$work/prefix" >/dev/null
mkdir project
cp "$source/tests/link/user.c" project/
cat >project/CMakeLists.txt <<'EOF'
cmake_minimum_required(VERSION 3.25)
project(user C)
find_package(dsopt 0.1 REQUIRED)
add_executable(user_shared user.c)
target_link_libraries(user_shared dsopt::dsopt)
add_executable(user_static user.c)
target_link_libraries(user_static dsopt::static)
EOF
"$cmake" -S project -B out -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_C_COMPILER="$cc" >cmake.log &&
    "$cmake" --build out >>cmake.log || { cat cmake.log; fail "find_package(dsopt)"; }
out/user_shared && out/user_static || fail "programs built by find_package"
"$work/prefix/bin/dsoptc" --version >/dev/null || fail "installed dsoptc"
if command -v pkg-config >/dev/null; then
    export PKG_CONFIG_PATH
    PKG_CONFIG_PATH=$(dirname "$(find "$work/prefix" -name dsopt.pc)")
    $cc "$source/tests/link/user.c" $(pkg-config --cflags --libs dsopt) \
        -Wl,-rpath,"$(dirname "$PKG_CONFIG_PATH")" -o user ||
        fail "pkg-config"
    ./user || fail "program built by pkg-config"
fi
[ -s "$(find "$work/prefix" -name LICENSE)" ] || fail "no licence is installed"
echo "installed: CMake package and pkg-config work"
