#!/bin/sh
# Installs the packages, builds everything and runs the tests: scripts/test.sh [CTEST OPTION]...
set -eu
cd "$(dirname "$0")/.."
scripts/setup.sh tests
scripts/configure.sh -DFORETRACE_TESTS=ON -DFORETRACE_PYTHON=ON
cmake --build build
exec ctest --test-dir build --output-on-failure -j "$(nproc)" "$@"
