#!/bin/sh
# Runs a sweep on a Slurm cluster: submits an array of shards, and a job that merges their files when they are done.
#
#     scenarios/cluster/slurm.sh SCENARIO RESULTS.jsonl SHARDS [SBATCH OPTION]...
#
# Prints the numbers of the jobs. Scenario, traces and results must be on a file system that all nodes see. If shards
# are missing, the merge says which; the same command then does only the missing ones. FORETRACE names the program.
set -eu
if [ $# -lt 3 ]; then
  echo "usage: slurm.sh SCENARIO RESULTS.jsonl SHARDS [SBATCH OPTION]..." >&2
  exit 2
fi
scenario=$1
results=$2
shards=$3
shift 3
program=${FORETRACE:-foretrace}
here=$(cd "$(dirname "$0")" && pwd)
array=$(sbatch --parsable "$@" --array="1-$shards" "$here/sweep.sbatch" "$scenario" "$results")
if [ "$shards" -eq 1 ]; then
  echo "$array"  # A single shard writes the whole file.
  exit 0
fi
case ${results##*/} in
  ?*.*) stem=${results%.*} ending=.${results##*.} ;;
  *) stem=$results ending= ;;
esac
merge=$(sbatch --parsable "$@" --job-name=foretrace-merge --dependency="afterany:$array" \
  --wrap "'$program' sweep merge --output '$results' '$stem'.shard-*-of-$shards$ending")
echo "$array $merge"
