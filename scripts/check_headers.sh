#!/bin/sh
# Compiles every header alone, public and private, so that no header relies on the includes of the file that includes it.
#     scripts/check_headers.sh [COMPILER]
set -u
cd "$(dirname "$0")/.." || exit 2
export compiler="${1:-${CXX:-c++}}"
# Each header is included twice, because a second inclusion must change nothing. Headers that exist only to give another compiler
# (wasm) what it lacks are left out.
find include/foretrace src -name '*.h' ! -path '*/explorer/wasm/*' | sort | xargs -P "$(nproc)" -n 1 sh -c '
  if ! printf "#include \"%s\"\n#include \"%s\"\n" "$PWD/$0" "$PWD/$0" |
      "$compiler" -std=c++20 -fsyntax-only -Wall -Wextra -Wpedantic -Iinclude -Isrc -x c++ -; then
    echo "$0: does not compile alone" >&2
    exit 1
  fi'
status=$?
[ $status -eq 0 ] || exit 1
