#!/bin/sh
# Installs the packages, builds everything, runs the tests, and lists the skipped ones with the reasons: scripts/test.sh [CTEST OPTION]...
set -eu
cd "$(dirname "$0")/.."
scripts/setup.sh tests
scripts/configure.sh -DFORETRACE_TESTS=ON -DFORETRACE_PYTHON=ON -DFORETRACE_BENCHMARKS=ON
cmake --build build
results=$PWD/build/tests.xml
rm -f "$results"
status=0
ctest --test-dir build --output-on-failure --test-output-size-passed 100000 --output-junit "$results" -j "$(nproc)" "$@" || status=$?
scripts/skipped.py "$results"
exit $status
