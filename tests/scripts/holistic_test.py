"""The columns that `info` and `diff` share with Holistic Trace Analysis have the figures that its definitions give,
worked out here from the events of the raw files.

Temporal breakdown: device work that is launched before the last profiler step begins (all work without two steps). The
kernel time reaches from its first start to its last end; it is idle while nothing runs, computes while a kernel runs
that is no collective and no copy, and is busy otherwise. Overlap: the part of the time with collectives in which another
kernel computes. Trace diff: calls of each name in an iteration, and their total time."""

import csv
import decimal
import glob
import gzip
import io
import json
import os
import re
import subprocess
import unittest

FORETRACE = os.environ.get("FORETRACE", "")
CORPUS = os.environ.get("FORETRACE_CORPUS", "")
COLLECTIVE, MEMORY = re.compile(r"nccl.*Kernel"), re.compile(r"Memcpy|Memset|dma")
NOT_COMPUTE = re.compile(r"nccl.*Kernel|.*Memcpy|Memset|.*Sync")
DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")
HOST = ("cpu_op", "user_annotation", "cuda_runtime", "cuda_driver")


def events_of(path):
    """(category, name, start, end, correlation), times in whole ns."""
    with (gzip.open if path.endswith(".gz") else open)(path) as file:
        content = json.load(file, parse_float=decimal.Decimal)
    events = content["traceEvents"] if isinstance(content, dict) else content
    found = []
    for event in events:
        if event.get("ph") == "X" and "cat" in event and "dur" in event:
            start = round(event["ts"] * 1000)
            found.append((event["cat"].lower(), event["name"], start, start + round(event["dur"] * 1000),
                          (event.get("args") or {}).get("correlation")))
    return found


def union(intervals):
    total, end = 0, None
    for start, finish in sorted(intervals):
        if end is None or start > end:
            total, end = total + finish - start, finish
        elif finish > end:
            total, end = total + finish - end, finish
    return total


def breakdown(events):
    markers = [event for event in events if event[1].startswith("ProfilerStep") and event[0].endswith("user_annotation")]
    work = [event for event in events if event[0] in DEVICE]
    if len({event[1] for event in markers}) > 1:
        last = max(event[2] for event in markers)
        launched = {event[4] for event in events if event[0] in HOST and event[2] < last}
        work = [event for event in work if event[4] in launched]
    spans = [event[2:4] for event in work]
    kernel = max(end for _, end in spans) - min(start for start, _ in spans)
    computing = [event[2:4] for event in work if not MEMORY.match(event[1]) and not NOT_COMPUTE.match(event[1])]
    moving = [event[2:4] for event in work if COLLECTIVE.match(event[1])]
    idle, compute = kernel - union(spans), union(computing)
    overlap = compute + union(moving) - union(computing + moving)
    times = {"idle_time": idle, "compute_time": compute, "non_compute_time": kernel - idle - compute, "kernel_time": kernel}
    row = {name + "(us)": time / 1e3 for name, time in times.items()}
    row |= {name + "_pctg": round(100 * time / kernel, 2) for name, time in times.items() if name != "kernel_time"}
    return row | ({"comp_comm_overlap_pctg": round(100 * overlap / union(moving), 2)} if moving else {})


def by_name(events, first, count):
    """Number and total time of what has one name in iterations that follow each other."""
    number = int(first.partition("#")[2])
    steps = {f"ProfilerStep#{number + i}" for i in range(count)}
    spans = [event[2:4] for event in events if event[0] == "user_annotation" and event[1] in steps]
    inside = [event for event in events if event[0] in HOST and any(start <= event[2] < end for start, end in spans)]
    launched = {event[4] for event in inside if event[4] is not None}
    found = {}
    for event in inside + [event for event in events if event[0] in DEVICE and event[4] in launched]:
        count, time = found.get(event[1], (0, 0))
        found[event[1]] = (count + 1, time + event[3] - event[2])
    return found


def answered(*command):
    return subprocess.run([FORETRACE, *command, "--quiet", "--no-cache"], capture_output=True, text=True, check=True).stdout


def rows_of(*command):
    return list(csv.DictReader(io.StringIO(answered(*command, "--format", "csv"))))


@unittest.skipUnless(FORETRACE and CORPUS, "needs FORETRACE and FORETRACE_CORPUS")
class Columns(unittest.TestCase):
    def check(self, row, path):
        for name, value in breakdown(events_of(path)).items():
            self.assertAlmostEqual(float(row[name]), value, delta=0.0101 if name.endswith("_pctg") else 1e-6, msg=f"{path}: {name}")

    def test_the_temporal_breakdown_of_single_ranks(self):
        for path in ("hta-dlrm-a100/control.json.gz", "hta-ddp-v100-mem/df_index_resolver.json.gz", "hta-resnet-ddp-a100/nccl_data.json.gz",
                     "hta-resnet-v100-ns/rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz", "ao-vit-int8/quantize_vit_quant_1f5f0.json.gz"):
            with self.subTest(path):
                path = os.path.join(CORPUS, path)
                row, = rows_of("info", path)
                self.check(row, path)

    def test_the_temporal_breakdown_of_all_ranks(self):
        files = sorted(glob.glob(os.path.join(CORPUS, "nanogpt-8rank", "*.json.gz")))
        rows = rows_of("info", os.path.join(CORPUS, "nanogpt-8rank"))
        self.assertEqual([row["rank"] for row in rows], [str(rank) for rank in range(len(files))])
        for row, path in zip(rows, files):
            self.check(row, path)

    def test_the_trace_diff(self):
        before, after = (os.path.join(CORPUS, "torchrec-straggler", f"{name}_rank0.json.gz") for name in ("nosleep", "straggler"))
        rank, = json.loads(answered("diff", before, after, "--format", "json"))["ranks"]
        left, right = (by_name(events_of(path), rank[side]["compared_step"], rank[side]["compared_steps"]) for path, side in ((before, "before"), (after, "after")))
        rows = rows_of("diff", before, after)
        self.assertEqual({row["name"] for row in rows}, left.keys() | right.keys())
        for row in rows:
            (count, time), (other_count, other_time) = (side.get(row["name"], (0, 0)) for side in (left, right))
            self.assertEqual([int(row[f"{side}_counts"]) for side in ("control", "test", "diff")], [count, other_count, other_count - count], row)
            for name, value in (("control_total_duration", time), ("test_total_duration", other_time), ("diff_duration", other_time - time)):
                self.assertAlmostEqual(float(row[name]), value / 1e3, places=6, msg=row)
            self.assertEqual(row["counts_change_categories"], "=" if other_count == count else "+" if other_count > count else "-")


if __name__ == "__main__":
    unittest.main()
