#!/bin/sh
# Accepts the program's current output as the expected output: shows the lines that would change in tests/golden, and asks
# before it rewrites them.
#     scripts/bless.sh           asks; without a terminal, changes nothing and exits with 1
#     scripts/bless.sh --yes     keeps the changes without asking
set -eu
case "$*" in
  "" | --yes) ;;
  *)
    echo "usage: scripts/bless.sh [--yes]" >&2
    exit 2
    ;;
esac
cd "$(dirname "$0")/.."
scripts/setup.sh tests
scripts/configure.sh -DFORETRACE_TESTS=ON
cmake --build build --target foretrace cli_tests
found=$(mktemp -d)
trap 'rm -rf "$found"' EXIT
FORETRACE_BLESS=$found build/tests/cli_tests --gtest_filter='*Golden*' --gtest_brief=1
scripts/keep.py "$found" tests/golden "$@"
