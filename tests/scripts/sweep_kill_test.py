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

PROGRAM = os.environ.get("FORETRACE", "foretrace")
SOURCES = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCES / "tests" / "support"))
from processes import no_signal_ignored, wait_until  # noqa: E402

TRACE = SOURCES / "traces/gpt-a100-gpu-bound.pt.trace.json.gz"
SCENARIO = """{"transforms": [{"use": "scale", "where": {"kind": "kernel"}}, {"use": "loader"}],
               "sweep": {"method": "random", "samples": %d, "seed": 3, "settings": {"scale.factor": "0.1..2",
                         "loader.workers": "0..3", "loader.batch_time": "20ms", "memory.limit": ["8GB", "16GB"]}}}"""


def start(*arguments):
    return subprocess.Popen([PROGRAM, "sweep", *map(str, arguments), "--quiet", "--no-cache"], stdout=subprocess.DEVNULL,
                            stderr=subprocess.PIPE, preexec_fn=no_signal_ignored)


def run(*arguments):
    process = start(*arguments)
    _, errors = process.communicate()
    if process.returncode != 0:
        sys.exit(f"failed with {process.returncode}: {errors.decode()}")


def lines(path):
    return path.read_bytes().count(b"\n") if path.exists() else 0


def stop_at(process, results, enough, signal_number):
    """Sends the signal when there are enough lines, or at the end. Returns what the process writes to stderr."""
    wait_until(lambda: lines(results) >= enough or process.poll() is not None)
    process.send_signal(signal_number)
    return process.communicate()[1]


def killed_ten_times(ask, results, random_lines):
    """Kills anywhere; each run continues where the last one stopped."""
    for _ in range(10):
        before = lines(results)
        stop_at(start(*ask, "--output", results), results, before + random_lines.randrange(48), signal.SIGKILL)
        assert lines(results) >= before, "answers were lost"
    run(*ask, "--output", results)


def stopped_politely(ask, results, stop):
    process = start(*ask, "--output", results)
    errors = stop_at(process, results, 3, stop)
    if process.returncode == 0:
        return  # It had already finished.
    assert process.returncode == 128 + stop, (process.returncode, errors)
    assert b"run the same command again to continue" in errors, errors
    assert results.read_bytes().endswith(b"\n"), "a line is torn"


def main():
    random_lines = random.Random(8)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        scenario = folder / "sweep.json"
        scenario.write_text(SCENARIO % 240)
        ask = [scenario, "--trace", TRACE, "--jobs", 2]
        whole = folder / "whole.jsonl"
        run(*ask, "--output", whole)
        expected = whole.read_bytes()
        assert lines(whole) == 241

        killed_ten_times(ask, folder / "killed.jsonl", random_lines)
        assert (folder / "killed.jsonl").read_bytes() == expected, "differs from a run that was never killed"

        for stop in (signal.SIGINT, signal.SIGTERM):
            stopped_politely(ask, folder / f"stopped{stop}.jsonl", stop)
            run(*ask, "--output", folder / f"stopped{stop}.jsonl")
            assert (folder / f"stopped{stop}.jsonl").read_bytes() == expected

        shards = []
        for number in (1, 2, 3):
            part = [*ask, "--shard", f"{number}/3", "--output", folder / "part.jsonl"]
            shards.append(folder / f"part.shard-{number}-of-3.jsonl")
            stop_at(start(*part), shards[-1], random_lines.randrange(60), signal.SIGKILL)
            run(*part)
        run_merge = subprocess.run([PROGRAM, "sweep", "merge", *shards, "--output", folder / "merged.jsonl"], check=False)
        assert run_merge.returncode == 0
        assert (folder / "merged.jsonl").read_bytes() == expected, "shards put together differ"


if __name__ == "__main__":
    main()
