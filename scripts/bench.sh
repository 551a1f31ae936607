#!/bin/sh
# Builds the benchmarks and prints their tables. The tables and tests/bench/README.md state targets and limits for comparison.
# With FORETRACE_CORPUS, whole predictions from a large trace are measured as well.
#
#     scripts/bench.sh [build folder]       build/bench by default
set -eu
cd "$(dirname "$0")/.."
case $#${1:-} in
  0 | 1[!-]*) build=${1:-build/bench} ;;
  *)
    echo "usage: scripts/bench.sh [build folder]" >&2
    exit 2
    ;;
esac
cmake -S . -B "$build" -DCMAKE_BUILD_TYPE=Release -DFORETRACE_BENCHMARKS=ON -DFORETRACE_TESTS=ON -DFORETRACE_UNITY=ON >/dev/null
benches=$(ls tests/bench/*_bench.cc | xargs -n1 basename | sed 's/\.cc$//')
# shellcheck disable=SC2086
cmake --build "$build" --parallel 2 --target foretrace $benches >/dev/null
for bench in $benches; do
  echo "== $bench"
  "$build/tests/bench/$bench"
done
echo "== whole sweeps"
tests/bench/sweep_bench.py "$build/foretrace"
if [ -n "${FORETRACE_CORPUS:-}" ]; then
  echo "== whole processes"
  tests/bench/whole_bench.py "$build/foretrace" "$FORETRACE_CORPUS/hta-ddp-v100-mem/df_index_resolver.json.gz"
fi
