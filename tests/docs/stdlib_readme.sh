#!/bin/bash
# stdlib/README.md is what tools/stdlib_readme.sh makes of the library as it is.
#
#   in:  DSOPTC SOURCE          with DSOPT_BLESS=1 the file is written anew
#   out: the lines that differ; exit status 1 where there are any
set -euo pipefail
made=$("$2/tools/stdlib_readme.sh" "$1" "$2")
[ "${DSOPT_BLESS:-0}" = 0 ] || printf '%s\n' "$made" >"$2/stdlib/README.md"
diff "$2/stdlib/README.md" <(printf '%s\n' "$made") ||
    { echo "FAILED: stdlib/README.md is another: run this test with DSOPT_BLESS=1"; exit 1; }
