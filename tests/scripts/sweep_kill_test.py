#!/usr/bin/env python3
"""A sweep that is killed again and again, at any time, loses nothing and does nothing twice: its final file is the same as that of a
sweep that was never stopped. Shards that are killed, or asked to stop politely, are merged to the same bytes."""
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

PROGRAM = os.environ.get("FORETRACE", "foretrace")
SOURCES = pathlib.Path(__file__).resolve().parents[2]
TRACE = SOURCES / "traces/gpt-a100-gpu-bound.pt.trace.json.gz"
SCENARIO = """{"transforms": [{"use": "scale", "where": {"kind": "kernel"}}, {"use": "loader"}],
               "sweep": {"method": "random", "samples": %d, "seed": 3, "settings": {"scale.factor": "0.1..2",
                         "loader.workers": "0..3", "loader.batch_time": "20ms", "memory.limit": ["8GB", "16GB"]}}}"""


def start(*arguments):
    return subprocess.Popen([PROGRAM, "sweep", *map(str, arguments), "--quiet", "--no-cache"], stdout=subprocess.DEVNULL,
                            stderr=subprocess.PIPE)


def run(*arguments):
    process = start(*arguments)
    _, errors = process.communicate(timeout=60)
    if process.returncode != 0:
        sys.exit(f"failed with {process.returncode}: {errors.decode()}")


def lines(path):
    return path.read_bytes().count(b"\n") if path.exists() else 0


def killed_ten_times(ask, results, took, random_times):
    """Kills at random times; each run continues where the last one stopped."""
    for _ in range(10):
        before = lines(results)
        process = start(*ask, "--output", results)
        try:
            process.wait(random_times.uniform(0, took / 3))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
        process.communicate()
        assert lines(results) >= before, "answers were lost"
    run(*ask, "--output", results)


def stopped_politely(ask, results, stop):
    process = start(*ask, "--output", results)
    while lines(results) < 3 and process.poll() is None:
        time.sleep(0.005)
    process.send_signal(stop)
    _, errors = process.communicate(timeout=60)
    if process.returncode == 0:
        return  # It had already finished.
    assert process.returncode == 128 + stop, (process.returncode, errors)
    assert b"run the same command again to continue" in errors, errors
    assert results.read_bytes().endswith(b"\n"), "a line is torn"


def main():
    random_times = random.Random(8)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        scenario = folder / "sweep.json"
        scenario.write_text(SCENARIO % 240)
        ask = [scenario, "--trace", TRACE, "--jobs", 2]
        whole = folder / "whole.jsonl"
        begin = time.monotonic()
        run(*ask, "--output", whole)
        took = time.monotonic() - begin
        expected = whole.read_bytes()
        assert lines(whole) == 241

        killed_ten_times(ask, folder / "killed.jsonl", took, random_times)
        assert (folder / "killed.jsonl").read_bytes() == expected, "differs from a run that was never killed"

        for stop in (signal.SIGINT, signal.SIGTERM):
            stopped_politely(ask, folder / f"stopped{stop}.jsonl", stop)
            run(*ask, "--output", folder / f"stopped{stop}.jsonl")
            assert (folder / f"stopped{stop}.jsonl").read_bytes() == expected

        shards = []
        for number in (1, 2, 3):
            part = [*ask, "--shard", f"{number}/3", "--output", folder / "part.jsonl"]
            process = start(*part)
            time.sleep(random_times.uniform(0, took / 4))
            process.kill()
            process.communicate()
            run(*part)
            shards.append(folder / f"part.shard-{number}-of-3.jsonl")
        run_merge = subprocess.run([PROGRAM, "sweep", "merge", *shards, "--output", folder / "merged.jsonl"], check=False)
        assert run_merge.returncode == 0
        assert (folder / "merged.jsonl").read_bytes() == expected, "shards put together differ"


if __name__ == "__main__":
    main()
