#!/bin/sh
# Configures build/ for the other scripts in this folder: scripts/configure.sh [CMAKE OPTION]...
set -eu
cd "$(dirname "$0")/.."
# A folder that was configured before keeps its generator, because CMake does not allow changing it.
if [ -f build/CMakeCache.txt ]; then
  cmake -S . -B build -DFORETRACE_UNITY=ON "$@" >/dev/null
else
  cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=Release -DFORETRACE_UNITY=ON "$@" >/dev/null
fi
