#!/usr/bin/env python3
"""Finds how far measured steps of a source that nothing was fitted to are from their price (src/price/calibration.cc).

    FORETRACE=build/foretrace scripts/fit_intervals.py --data FOLDER

FOLDER has tables of steps that others have measured, as `foretrace generate --against` reads them. Two standard
deviations, for steps that are faster and slower than their price, leave 10 % of the steps outside on each side; each
source counts once, however many rows it has. Each line is a source: how many of its rows the intervals contain that
all other sources lead to, beside those of the program as it is. The constants of prices began as a fit to vTrain,
which is therefore not as foreign as the others.

Left out are two collections of exercises, and the half of ultrascale with the lower MFU: most of these rows are below
a tenth of the peak, for causes that their layouts do not say.
"""

import argparse
import collections
import csv
import json
import math
import os
import pathlib
import re
import statistics
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[1]
VTRAIN = ["--machine", "dgx-a100", "--layout", "recompute=full,precision=fp16,fused_attention=false"]
TABLES = {"measured/training.csv": [], "measured/training_more.csv": [], "measured/mlperf_v4.1.csv": [],
          "measured/mlperf_v5.csv": [], "measured/ultrascale.csv": [], "vtrain/single_node.csv": VTRAIN,
          "vtrain/multi_node.csv": VTRAIN}
WITHOUT = ("ccl-bench", "cs336")
HALF_WIDTH = 1.2816  # Standard deviations to either side that contain 80 %.


def constant(name):
    source = (ROOT / "src" / "price" / "calibration.cc").read_text()
    return float(re.search(rf"\b{name} = ([\d.]+)", source).group(1))


def source_of(table, row):
    """The people who measured it: a submission round and a folder of tables are one source each."""
    for part, name in (("vtrain", "vTrain"), ("ultrascale", "ultrascale"), ("mlperf", "MLPerf")):
        if part in table:
            return name
    return row["source"].removesuffix(" cards")


def read(folder, program):
    """Returns by source the pairs {logarithm of measured / price, other variance of the interval}."""
    sources = collections.defaultdict(list)
    for table, options in TABLES.items():
        rows = list(csv.DictReader((folder / table).open()))
        mfu = [float(row["mfu_percent"]) for row in rows if "ultrascale" in table and row["mfu_percent"]]
        answer = json.loads(subprocess.run([program, "generate", "--against", folder / table, "--format", "json",
                                            *options], check=True, capture_output=True).stdout)
        for priced in answer["rows"]:
            row = rows[priced["row"] - 1]
            if priced["measured_out_of_memory"] or not priced["measured_ns"] or priced["shapes"] == "guessed layout":
                continue
            source = source_of(table, row)
            if any(word in source for word in WITHOUT) or (
                    mfu and float(row["mfu_percent"]) < statistics.median(mfu)):
                continue
            width = math.log(priced["upper_ns"] / priced["time_ns"]) / HALF_WIDTH
            sources[source].append((math.log(priced["measured_ns"] / priced["time_ns"]),
                                    max(0, width**2 - constant("kSlower")**2)))
    return sources


def inside(rows, faster, slower):
    def half(side, other):
        return HALF_WIDTH * math.sqrt(side**2 + other)
    return statistics.mean(-half(faster, other) <= error <= half(slower, other) for error, other in rows)


def deviation(sources, side):
    """The least deviation beyond which 10 % of the steps are on a side (-1: faster, 1: slower)."""
    low, high = 0, 2
    for _ in range(30):
        middle = (low + high) / 2
        beyond = statistics.mean(
            statistics.mean(side * error > HALF_WIDTH * math.sqrt(middle**2 + other) for error, other in rows)
            for rows in sources)
        low, high = (middle, high) if beyond > .1 else (low, middle)
    return high


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=pathlib.Path, required=True)
    sources = read(parser.parse_args().data, os.environ.get("FORETRACE", "foretrace"))
    shares = []
    for name, rows in sorted(sources.items()):
        others = [other for source, other in sources.items() if source != name]
        found = deviation(others, -1), deviation(others, 1)
        shares.append((len(rows), inside(rows, constant("kFaster"), constant("kSlower")), inside(rows, *found)))
        print(f"{name:60} {len(rows):4} rows  {found[0]:.3f} {found[1]:.3f}  inside {shares[-1][1]:.0%}, left out "
              f"{shares[-1][2]:.0%}")
    print(f"mean of sources: inside {statistics.mean(s[1] for s in shares):.0%}, left out "
          f"{statistics.mean(s[2] for s in shares):.0%}; of rows, left out "
          f"{sum(s[0] * s[2] for s in shares) / sum(s[0] for s in shares):.0%}")
    print(f"kFaster = {deviation(sources.values(), -1):.3f}, kSlower = {deviation(sources.values(), 1):.3f}")


if __name__ == "__main__":
    main()
