#!/bin/sh
# From nothing to an answer: installs the packages, builds the program, and asks what four loader processes would do for a
# training loop that prepares its input itself. All but the answer goes to stderr.
set -eu
cd "$(dirname "$0")/.."
scripts/setup.sh product
scripts/configure.sh -DFORETRACE_TESTS=OFF >&2
cmake --build build --target foretrace manuals >&2
exec build/foretrace predict traces/resnet18-v100-loader0.pt.trace.json.gz --with loader:workers=4
