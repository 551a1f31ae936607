"""Predictions against the truth: a loop is simulated before and after a change, and foretrace predicts the one from the
recording of the other. Needs the program in the environment variable FORETRACE; skipped without."""

import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
sys.dont_write_bytecode = True

import make_samples  # noqa: E402
from samples.recorder import DEVICE  # noqa: E402
from samples.training import Training  # noqa: E402

FORETRACE = os.environ.get("FORETRACE")
GREATEST_ERROR = 0.03


def kernels(factor):
    def change(training):
        for thread in (training.main, training.autograd):
            def launch(kernel, unchanged=thread.launch):
                unchanged(dataclasses.replace(kernel, microseconds=kernel.microseconds * factor))
            thread.launch = launch
    return change


def host(factor):
    def change(training):
        for thread in (training.main, training.autograd):
            def work(microseconds, unchanged=thread.work):
                unchanged(microseconds * factor)
            thread.work = work
    return change


def scale(kind, factor):
    return f"scale:where.kind={kind},factor={factor}"


CHANGES = {
    "kernels at half the time": (kernels(0.5), [scale("kernel", 0.5)]),
    "kernels at a fifth": (kernels(0.2), [scale("kernel", 0.2)]),
    "kernels at three times the time": (kernels(3), [scale("kernel", 3)]),
    "host at half the time": (host(0.5), [scale(kind, 0.5) for kind in ("host", "launch", "input")]),
    "host at twice the time": (host(2), [scale(kind, 2) for kind in ("host", "launch", "input")]),
}


class Truth(unittest.TestCase):
    def setUp(self):
        if not FORETRACE:
            self.skipTest("FORETRACE is not set")
        self._folder = tempfile.TemporaryDirectory()
        self.addCleanup(self._folder.cleanup)

    def record(self, settings, change=lambda training: None, clock_us=0):
        """A recording whose device clock is late by `clock_us`."""
        training = Training(settings)
        change(training)
        training.run()
        for event in training.recorder.events:
            if event["pid"] == DEVICE:
                event["ts"] += clock_us * 1000
        path = pathlib.Path(self._folder.name) / "trace.json.gz"
        training.write(path)
        return path

    def step_time(self, of, trace, *changes):
        uses = [argument for change in changes for argument in ("--with", change)]
        answer = subprocess.run([FORETRACE, "predict", trace, "--format", "json", *uses], check=True,
                                capture_output=True, text=True)
        return json.loads(answer.stdout)[of]["step_time_ns"]

    def check(self, settings, recordings):
        """`recordings` are what the same loop may look like: whether sync records are in it, how late the clock is."""
        truths = {name: self.step_time("measured", self.record(settings, change))
                  for name, (change, _) in CHANGES.items()}
        for sync_records, clock_us in recordings:
            trace = self.record(dataclasses.replace(settings, sync_records=sync_records), clock_us=clock_us)
            for name, (_, uses) in CHANGES.items():
                with self.subTest(name, sync_records=sync_records, clock_us=clock_us):
                    predicted = self.step_time("predicted", trace, *uses)
                    self.assertLess(abs(predicted - truths[name]) / truths[name], GREATEST_ERROR,
                                    (predicted, truths[name]))

    def test_host_that_cannot_launch_fast_enough(self):
        self.check(make_samples.launch_bound(), [(False, 0)])

    def test_device_that_is_waited_for(self):
        self.check(make_samples.gpu_bound(), [(True, 0), (False, 0), (True, 50), (False, 50), (True, -50)])


if __name__ == "__main__":
    unittest.main()
