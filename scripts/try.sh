#!/bin/sh
# Gives a first answer on a bare machine: installs the packages, builds the program, and predicts the effect of four loader
# processes on a training loop that prepares its input itself. Everything except the answer goes to stderr.
set -eu
cd "$(dirname "$0")/.."
scripts/setup.sh product
scripts/configure.sh -DFORETRACE_TESTS=OFF -DFORETRACE_PYTHON=OFF -DFORETRACE_BENCHMARKS=OFF >&2
cores=$(getconf _NPROCESSORS_ONLN)
[ -x build/foretrace ] ||
  echo "try.sh: compiling takes 7 minutes of one core, so about $(((7 + cores - 1) / cores)) on this machine" >&2
cmake --build build --target foretrace manuals >&2
exec build/foretrace predict traces/resnet18-v100-loader0.pt.trace.json.gz --with loader:workers=4
