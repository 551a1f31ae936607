#!/bin/sh
# Formats all C++ in place. With --check, only lists the files that are not formatted, and fails if there are any.
set -eu
cd "$(dirname "$0")/.."
files=$(find include src tests \( -name '*.cc' -o -name '*.h' \) | sort)
if [ "${1:-}" = --check ]; then
  # shellcheck disable=SC2086
  exec clang-format --dry-run --Werror $files
fi
# shellcheck disable=SC2086
exec clang-format -i $files
