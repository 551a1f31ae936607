#!/bin/sh
# Takes what the program says now as what it should say: rewrites expected.txt in every folder of tests/golden. Review the
# difference before you commit it.
set -eu
cd "$(dirname "$0")/.."
scripts/setup.sh tests
scripts/configure.sh -DFORETRACE_TESTS=ON
cmake --build build --target foretrace cli_tests
FORETRACE_BLESS=1 build/tests/cli_tests --gtest_filter='*Golden*'
git --no-pager diff --stat -- tests/golden
