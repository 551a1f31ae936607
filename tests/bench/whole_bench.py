#!/usr/bin/env python3
"""Whole processes, from start to exit: foretrace predict with the trace read from its file, and from the cache.

    tests/bench/whole_bench.py PROGRAM TRACE [RUNS]

One warm-up run, then the median of 5 runs by default.
"""
import os
import statistics
import subprocess
import sys
import tempfile
import time


def measure(command):
    """Wall, user and system seconds, and the peak of memory in MB."""
    begin = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.monotonic() - begin
    if status != 0:
        sys.exit("failed: " + " ".join(command))
    return wall, usage.ru_utime, usage.ru_stime, usage.ru_maxrss * 1024 / 1e6


def main():
    program, trace = sys.argv[1:3]
    runs = int(sys.argv[3]) if len(sys.argv) > 3 else 5
    print(f"{trace}, median of {runs}")
    print(f"{'':44} {'wall':>9} {'user':>9} {'system':>9} {'peak memory':>12}")
    with tempfile.TemporaryDirectory() as cache:
        ask = [program, "predict", trace, "--quiet"]
        for what, question in (("as recorded", []), ("amp", ["--with", "amp"])):
            for source, options in (("read anew", ["--no-cache"]), ("from the cache", ["--cache-dir", cache])):
                command = ask + question + options
                measure(command)
                all_runs = [measure(command) for _ in range(runs)]
                wall, user, system, peak = (statistics.median(column) for column in zip(*all_runs))
                name = f"predict, {what}, {source}"
                print(f"{name:44} {wall:7.3f} s {user:7.3f} s {system:7.3f} s {peak:9.1f} MB")


if __name__ == "__main__":
    main()
