#!/bin/sh
# Finds headers that rely on the includes of the file that includes them.
#     scripts/check_headers.sh [COMPILER]
# To compile each header alone would be exact, but takes ten times as long. Instead,
#   * check_includes.py reads the text of all headers: it finds names of libraries, and types, constants and called functions of this
#     repository, that no included header declares;
#   * one translation unit per module includes all headers of the module, those that reach the fewest others first: it finds whatever
#     else is missing, unless a header before has it, and what a second inclusion of a header breaks;
#   * headers that were changed (see changed.sh) are compiled alone, at most twenty, the most changed first.
# A header that is not changed can so lack the definition of a type that it declares, an operator, a variable or a macro, if a header
# of its module has it and comes before.
set -u
cd "$(dirname "$0")/.." || exit 2
export compiler="${1:-${CXX:-c++}}"
units=$(mktemp -d) || exit 2
trap 'rm -rf "$units"' EXIT
status=0
scripts/check_includes.py || status=1
scripts/check_includes.py --units "$units" || status=1
if changed=$(scripts/changed.sh); then
  for header in $(printf '%s\n' "$changed" | grep '\.h$' | head -n 20); do
    printf '#include "%s"\n' "${header#*/}" "${header#*/}" >"$units/$(printf %s "$header" | tr / -).cc"
  done
else
  echo "check_headers.sh: no main branch is known, so that no header is compiled alone" >&2
fi
find "$units" -name '*.cc' | sort | xargs -P "$(nproc)" -n 1 sh -c '
  "$compiler" -std=c++20 -fsyntax-only -Wall -Wextra -Wpedantic -Iinclude -Isrc "$0" || exit 1' || status=1
exit $status
