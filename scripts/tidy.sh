#!/bin/sh
# Checks names and sizes with clang-tidy, as .clang-tidy says: whatever is an error there. For its advice, use `cmake --preset tidy`.
#     scripts/tidy.sh FILE...    checks these files of include/ and src/
#     scripts/tidy.sh            checks those that changed (see changed.sh), at most 60, the most changed first
#     scripts/tidy.sh --all      checks all files
# Functions in tidy_known.txt may be as complex as it says, and no more.
set -eu
cd "$(dirname "$0")/.."
case "${1:-}" in
  --all) files=$(find include src \( -name '*.cc' -o -name '*.h' \) ! -path '*/wasm/*' ! -name readers_left_out.cc | sort) ;;
  '')
    if ! files=$(scripts/changed.sh); then
      echo "tidy.sh: no main branch is known, so that no file counts as changed" >&2
      exit 0
    fi
    left=$(printf '%s\n' "$files" | tail -n +61 | wc -l)
    [ "$left" -eq 0 ] || echo "tidy.sh: $left more changed files are not checked" >&2
    files=$(printf '%s\n' "$files" | head -n 60)
    ;;
  *) files=$(printf '%s\n' "$@") ;;
esac
python=$(python3-config --includes 2>/dev/null) || files=$(printf '%s\n' "$files" | grep -v '^src/python/' || true)
[ -n "$files" ] || exit 0

units=$(mktemp -d)
trap 'rm -rf "$units"' EXIT
# Most time goes into the headers that files share, so up to sixteen of a folder are read in one go. Alone are files whose names meet
# those of others (see CMakeLists.txt).
printf '%s\n' "$files" | sort | awk -v root="$PWD" -v units="$units" '{
  group = $0
  if (!/^src\/python\/|^src\/(cli|collect)\/[a-z]*\.cc$|^include\/foretrace\/collect\.h$/) sub("/[^/]*$", "", group)
  unit = group "-" int(count[group] / 16)
  ++count[group]
  gsub("/", "-", unit)
  print "#include \"" root "/" $0 "\"" >(units "/" unit ".cc")
}'
checks=$(sed -n '/^WarningsAsErrors:/,/^[^ ]*:$/s/^  \([a-z]\)/\1/p' .clang-tidy | tr -d '\n')
export checks python
# Errors and sizes are kept; the steps by which clang-tidy counts them are left out, and errors in headers of C++, as clang-tidy 14 does
# not know that C++20 initializes aggregates by parentheses.
find "$units" -name '*.cc' | sort | xargs -P "$(nproc)" -n 1 sh -c '
  clang-tidy --quiet --config-file=.clang-tidy --checks="-*,$checks" "$0" -- \
    -std=c++20 -w -Iinclude -Isrc $python >"$0.found" 2>/dev/null ||
    [ -s "$0.found" ] || echo "$0: error: clang-tidy fails" >"$0.found"'
sort -u "$units"/*.found | sed -n "\|^/usr/|d; s|^$PWD/||; /: error: /p; /: note: .* lines including/p" | awk '
  NR == FNR { if (!/^#/) known[$1 " " $2] = $3; next }
  / has cognitive complexity of / {
    split($0, place, ":"); split($0, name, "\047")
    match($0, /complexity of [0-9]+/)
    if (substr($0, RSTART + 14, RLENGTH - 14) + 0 <= known[place[1] " " name[2]]) next
  }
  { print; bad = 1 }
  END { exit bad }' scripts/tidy_known.txt -
