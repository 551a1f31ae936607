#!/bin/sh
# Compiles every header alone, public and private, so that none leans on what its includer included.
#     scripts/check_headers.sh [COMPILER]
set -u
cd "$(dirname "$0")/.." || exit 2
export compiler="${1:-${CXX:-c++}}"
# A second inclusion must change nothing. What another compiler lacks (wasm) is there already for this one.
find include/foretrace src -name '*.h' ! -path '*/explorer/wasm/*' | sort | xargs -P "$(nproc)" -n 1 sh -c '
  if ! printf "#include \"%s\"\n#include \"%s\"\n" "$PWD/$0" "$PWD/$0" |
      "$compiler" -std=c++20 -fsyntax-only -Wall -Wextra -Wpedantic -Iinclude -Isrc -x c++ -; then
    echo "$0: does not compile alone" >&2
    exit 1
  fi'
status=$?
[ $status -eq 0 ] || exit 1
