"""The table of recorded collectives equals what is counted here, from the events of the raw files: how many kernels
each operation has, how long they run, and which of them are transfers."""

import glob
import gzip
import json
import os
import shutil
import subprocess
import tempfile
import unittest

FORETRACE = os.environ.get("FORETRACE", "")
CORPUS = os.environ.get("FORETRACE_CORPUS", "")
WORDS = {"allreduce": "all_reduce", "allgather": "all_gather", "reducescatter": "reduce_scatter",
         "sendrecv": "send_receive"}


def operation_of(name):
    return next(found for word, found in WORDS.items() if word in name.lower())


def kernels_of(path):
    """The kernels of NCCL in a Kineto trace: operation, start and duration in ns, in order."""
    with gzip.open(path) as file:
        content = json.load(file)
    events = content["traceEvents"] if isinstance(content, dict) else content
    kernels = [(operation_of(event["name"]), round(event["ts"] * 1e3), round(event["dur"] * 1e3))
               for event in events if event.get("cat") == "kernel" and "nccl" in event["name"].lower()]
    return sorted(kernels, key=lambda kernel: kernel[1])


def asked(path, *more):
    run = subprocess.run([FORETRACE, "collective", "auto", "--against", path, "--quiet", "--format", "json", *more],
                         capture_output=True, text=True, check=True)
    return json.loads(run.stdout)["recorded"]


def totals(rows):
    """Number of kernels and their time, by operation."""
    found = {}
    for row in rows:
        count, time = found.get(row["operation"], (0, 0))
        found[row["operation"]] = (count + row["kernels"], time + row["kernel_total_ns"])
    return found


@unittest.skipUnless(FORETRACE and CORPUS, "needs FORETRACE and FORETRACE_CORPUS")
class RecordedCollectives(unittest.TestCase):
    def check(self, folder, files):
        ranks = [kernels_of(file) for file in sorted(files)]
        rows = asked(folder)
        counted = {}
        for operation, _, duration in sum(ranks, []):
            count, time = counted.get(operation, (0, 0))
            counted[operation] = (count + 1, time + duration)
        found = totals(rows)
        self.assertEqual(found.keys(), counted.keys())
        for operation, (count, time) in counted.items():
            self.assertEqual(found[operation][0], count, operation)
            # Floating-point microseconds of the file round to a few ns in hundreds of kernels.
            self.assertAlmostEqual(found[operation][1], time, delta=2 * count)
        for row in rows:
            durations = [duration for rank in ranks for operation, _, duration in rank if operation == row["operation"]]
            for key in ("typical_ns", "least_ns", "most_ns"):
                self.assertLessEqual(min(abs(duration - row["transfer"][key]) for duration in durations), 2)
            self.assertGreaterEqual(row["transfer"]["least_ns"], min(durations) - 2)
        return ranks, rows

    def test_eight_ranks_of_a_language_model(self):
        folder = os.path.join(CORPUS, "nanogpt-8rank")
        _, rows = self.check(folder, glob.glob(folder + "/rank*.json.gz"))
        gather = next(row for row in rows if (row["operation"], row["bytes"]) == ("all_gather", 150994944))
        # No rank ran this all-gather in less.
        self.assertGreaterEqual(gather["transfer"]["least_ns"], 418_500)
        self.assertEqual((gather["count"], gather["ranks"]), (8, 8))

    def test_two_ranks_of_a_tensor_parallel_model(self):
        folder = os.path.join(CORPUS, "megatron-tp2")
        files = glob.glob(folder + "/kineto_*.json.gz")
        (first, second), rows = self.check(folder, files)
        self.assertEqual(len(first), len(second))
        ends = sorted(b[1] + b[2] - a[1] - a[2] for a, b in zip(first, second))
        offset = ends[len(ends) // 2]
        skews = [abs(b[1] - a[1] - offset) for a, b in zip(first, second)]
        last = [b[2] if b[1] - a[1] > offset else a[2] for a, b in zip(first, second)]
        most = max(row["skew"]["most_ns"] for row in rows)
        # The program also finds drifts, which move clocks by a microsecond or so.
        self.assertAlmostEqual(most, max(skews), delta=5_000)
        self.assertEqual(max(row["transfer"]["most_ns"] for row in rows), max(last))

    def test_four_ranks_with_a_straggler(self):
        with tempfile.TemporaryDirectory() as folder:
            for file in glob.glob(os.path.join(CORPUS, "torchrec-straggler", "straggler_rank*.json.gz")):
                shutil.copy(file, folder)
            ranks, rows = self.check(folder, glob.glob(folder + "/*.json.gz"))
            self.assertEqual(len(ranks), 4)
            # The straggler sleeps a second in each of its steps.
            self.assertGreater(max(row["skew"]["most_ns"] for row in rows), 900_000_000)

    def test_one_rank_alone_has_no_skew(self):
        path = os.path.join(CORPUS, "hta-dlrm-a100", "control.json.gz")
        rows = asked(path)
        self.assertEqual(totals(rows)["send_receive"][0], sum(k[0] == "send_receive" for k in kernels_of(path)))
        for row in rows:
            self.assertIsNone(row["skew"])
            self.assertIsNone(row["transfer"])
            self.assertIsNone(row["busbw_bytes_per_second"])


if __name__ == "__main__":
    unittest.main()
