"""Compares predictions with trainings that were measured on real GPUs (traces/ground_truth*.json), and looks at curves of
what-ifs on those recordings and on the samples. FORETRACE names the program; skipped without it.

The limits are what is reached today and a little more: they guard against getting worse, and are not fitted to."""

import concurrent.futures
import json
import os
import pathlib
import statistics
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
sys.dont_write_bytecode = True

from ground_truth import evaluate  # noqa: E402

FORETRACE = os.environ.get("FORETRACE")
TRACES = ROOT / "traces"
FACTORS = (0, 0.1, 0.2, 0.5, 0.8, 0.95, 1, 1.05, 1.25, 2, 5)
KINDS = ("kernel", "copy_in", "copy_out", "host", "launch", "sync")
RECORDINGS = ("gpt-a100-launch-bound.pt.trace.json.gz", "resnet18-v100-loader4.pt.trace.json.gz",
              "ground_truth/gpt2-small.amp.ftrace", "ground_truth/resnet50.fp32.ftrace",
              "ground_truth/gpt2-small.amp.compile.pt.trace.json.zst")


def curve(asked):
    """Step times by factor, or None where the recording has no such task."""
    path, kind = asked
    command = [FORETRACE, "predict", str(TRACES / path), "--with", f"scale:where.kind={kind},factor=0.5", "--vary",
               "scale.factor=" + ",".join(map(str, FACTORS)), "--format", "json", "--no-cache", "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return None
    return [point["step_time_ns"] for point in json.loads(done.stdout)["points"]]


def answer(model, precision, *changes):
    trace = TRACES / "ground_truth" / f"{model}.{precision}.pt.trace.json.zst"
    command = [FORETRACE, "predict", str(trace), *changes, "--format", "json", "--no-cache", "--quiet"]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


@unittest.skipUnless(FORETRACE, "FORETRACE names no program")
class Curves(unittest.TestCase):
    def test_more_work_never_makes_a_step_much_shorter(self):
        asked = [(path, kind) for path in RECORDINGS for kind in KINDS]
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            curves = dict(zip(asked, pool.map(curve, asked)))
        self.assertGreater(sum(times is not None for times in curves.values()), 4 * len(RECORDINGS))
        for which, times in curves.items():
            longest = 0
            for time in times or []:
                self.assertGreaterEqual(time, 0.99 * longest, (which, times))
                longest = max(longest, time)


@unittest.skipUnless(FORETRACE, "FORETRACE names no program")
class Predictions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            files = [TRACES / "ground_truth.json", TRACES / "ground_truth_h200.json"]
            cls.rows = sum(pool.map(lambda file: evaluate.rows(file, FORETRACE), files), [])
        cls.rows = [row for row in cls.rows if "message" not in row]

    def chosen(self, source, change=None):
        rows = [row for row in self.rows if row["source"] == source and change in (None, row["change"])]
        self.assertGreaterEqual(len(rows), 2)
        return rows

    def test_without_the_profilers_work_step_times_are_right(self):
        rows = self.chosen("kineto")
        self.assertLess(statistics.median(abs(evaluate.best_error(row)) for row in rows), 0.2)
        slowed = [row for row in rows if row["baseline_error"] > 0.1]  # The others have no such work to leave out.
        self.assertGreater(len(slowed), 20)
        recorded = statistics.median(abs(row["error"]) for row in slowed)
        self.assertLess(statistics.median(abs(evaluate.best_error(row)) for row in slowed), recorded / 2)

    def test_light_recordings_predict_precision(self):
        """Where the host decides about the changed step, its noise counts: rounds of these trainings are up to 24 % apart."""
        for row in self.chosen("ftrace", "amp_from_fp32"):
            self.assertLess(abs(row["error"]), 0.12 + row["noise"], row["id"])

    def test_kernels_in_half_precision_take_the_predicted_time(self):
        for model in ("gpt2-small", "gpt2-medium", "bert-base", "resnet50"):
            for precision in ("fp32", "tf32"):
                predicted = answer(model, precision, "--with", "amp")["predicted"]["breakdown_ns"]["compute"]
                measured = answer(model, "amp")["baseline"]["breakdown_ns"]["compute"]
                self.assertLess(abs(predicted / measured - 1), 0.3, (model, precision))

    def test_peaks_of_memory_are_right_where_ops_were_recorded(self):
        for change, most in (("amp", 0.12), ("amp_from_fp32", 0.06), ("batch_x2", 0.045), ("fused_optimizer", 0.01)):
            for row in self.chosen("kineto", change):
                self.assertLess(abs(row["peak_error"]), most, row["id"])

    def test_no_answer_that_is_far_off_has_grade_good(self):
        # Noise is that between rounds of one process; two processes of the same training differ by up to twice that.
        far = [(row["id"], row["source"], evaluate.best_error(row)) for row in self.rows
               if row["grade"] == "good" and abs(evaluate.best_error(row)) > 0.25 + 2 * row["noise"]]
        self.assertEqual(far, [])


if __name__ == "__main__":
    unittest.main()
