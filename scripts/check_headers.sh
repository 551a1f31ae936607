#!/bin/sh
# Compiles every header alone, public and private, so that none leans on what its includer included.
#     scripts/check_headers.sh [COMPILER]
set -u
cd "$(dirname "$0")/.." || exit 2
compiler=${1:-${CXX:-c++}}
failed=0
for header in $(find include/foretrace src -name "*.h" | sort); do
  # A second inclusion must change nothing.
  if ! printf '#include "%s"\n#include "%s"\n' "$PWD/$header" "$PWD/$header" |
      "$compiler" -std=c++20 -fsyntax-only -Wall -Wextra -Wpedantic -Iinclude -Isrc -x c++ -; then
    echo "$header: does not compile alone" >&2
    failed=1
  fi
done
exit $failed
