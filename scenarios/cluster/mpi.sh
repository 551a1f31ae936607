#!/bin/sh
# Runs a sweep on all ranks of an MPI launcher, one shard each. The program itself needs no MPI: the launcher tells each rank its number.
#
#     scenarios/cluster/mpi.sh RANKS SCENARIO RESULTS.jsonl [OPTION]...
#
# MPIRUN names the launcher with its options ("mpirun --hostfile hosts"). If a rank is killed, launchers end all others; the
# same command then continues where they stopped. FORETRACE names the program.
set -eu
if [ $# -lt 3 ]; then
  echo "usage: mpi.sh RANKS SCENARIO RESULTS.jsonl [OPTION]..." >&2
  exit 2
fi
ranks=$1
scenario=$2
results=$3
shift 3
program=${FORETRACE:-foretrace}
# shellcheck disable=SC2086
${MPIRUN:-mpirun} -n "$ranks" "$program" sweep "$scenario" --output "$results" --shard auto --jobs 1 "$@"
if [ "$ranks" -eq 1 ]; then exit 0; fi  # A single rank has written the whole file.
case ${results##*/} in
  ?*.*) stem=${results%.*} ending=.${results##*.} ;;
  *) stem=$results ending= ;;
esac
exec "$program" sweep merge --output "$results" "$stem".shard-*-of-"$ranks$ending"
