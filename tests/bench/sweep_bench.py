#!/usr/bin/env python3
"""Points a second of whole sweeps, from start to exit, over a made-up recording of 100,000 tasks.

    tests/bench/sweep_bench.py PROGRAM [RUNS]

Only durations change, so that all points share one structure. The best of 3 runs by default; user time is that of all cores.
"""
import gzip
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

KERNELS, STEPS = 50_000, 10  # And as many launches.

SWEEPS = {
    "grid, kernels and launches": ({"transforms[0].factor": "0.1..1/99", "transforms[1].factor": "0.5..1.5/99"}, {}),
    "random, kernels and launches": ({"transforms[0].factor": "0.1..1", "transforms[1].factor": "0.5..1.5"},
                                     {"method": "random", "samples": 10_000, "seed": 1}),
    "random, kernels": ({"transforms[0].factor": "0.1..1"}, {"method": "random", "samples": 10_000, "seed": 1}),
}


def write_trace(path):
    numbers = random.Random(1)
    events, now, free = [], 0.0, 0.0
    for step in range(STEPS):
        begin = now
        for i in range(KERNELS // STEPS):
            correlation = step * (KERNELS // STEPS) + i + 1
            call, work = round(numbers.uniform(2, 6), 3), round(numbers.uniform(1, 12), 3)
            events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": round(now, 3),
                           "dur": call, "args": {"correlation": correlation}})
            start = max(free, now + call)
            events.append({"ph": "X", "cat": "kernel", "name": f"ampere_sgemm_{i % 40}", "pid": 0, "tid": 7, "ts": round(start, 3),
                           "dur": work, "args": {"correlation": correlation, "stream": 7, "device": 0}})
            free = start + work
            now += call + 0.5
        events.append({"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "pid": 1, "tid": 1,
                       "ts": round(begin, 3), "dur": round(now - begin, 3)})
    with gzip.open(path, "wt") as file:
        json.dump({"schemaVersion": 1, "traceEvents": events}, file)


def write_scenario(path, settings, method):
    steps = [{"use": "scale", "where": {"kind": kind}} for kind in ("kernel", "launch")]
    sweep = {"settings": settings, **method} if method else settings
    path.write_text(json.dumps({"transforms": steps, "sweep": sweep}))


def measure(command):
    begin = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit("failed: " + " ".join(command))
    return time.monotonic() - begin, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024 / 1e6


def main():
    program = sys.argv[1]
    runs = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        trace = folder / "made_up.pt.trace.json.gz"
        write_trace(trace)
        print(f"{'10,000 points on 100,000 tasks':40} {'wall':>9} {'user':>9} {'points/s':>10} {'each core':>10} {'memory':>9}"
              "   (limit: 3,000 points/s on 2 cores)")
        for name, (settings, method) in SWEEPS.items():
            scenario = folder / "sweep.json"
            write_scenario(scenario, settings, method)
            command = [program, "sweep", str(scenario), "--trace", str(trace), "--output", str(folder / "results.jsonl"),
                       "--fresh", "--quiet", "--cache-dir", str(folder / "cache")]
            wall, user, memory = min(measure(command) for _ in range(runs))
            print(f"{name:40} {wall:7.2f} s {user:7.2f} s {10_000 / wall:10,.0f} {10_000 / user:10,.0f} {memory:6.0f} MB")


if __name__ == "__main__":
    main()
