#!/usr/bin/env python3
"""The steps of the action for GitHub's workflows, run as its runner runs them: with its expressions filled in, by bash -e."""

import os
import pathlib
import re
import subprocess
import tempfile
import unittest

try:
    import yaml
except ImportError:
    yaml = None

ROOT = pathlib.Path(__file__).resolve().parents[2]
FORETRACE = os.environ["FORETRACE"]
SLOW = ROOT / "traces" / "resnet18-v100-loader0.pt.trace.json.gz"
FAST = ROOT / "traces" / "resnet18-v100-loader4.pt.trace.json.gz"


@unittest.skipUnless(yaml, "needs the yaml module")
class Action(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.temporary.name)
        self.baseline = self.folder / "baseline.json"
        subprocess.run([FORETRACE, "check", FAST, "--baseline", self.baseline, "--bless", "--no-cache"], check=True, capture_output=True)

    def tearDown(self):
        self.temporary.cleanup()

    def ran(self, **given):
        """The exit status of the first step that fails, the verdict, the summary, and what was printed."""
        action = yaml.safe_load((ROOT / "scenarios" / "ci" / "action" / "action.yml").read_text())
        inputs = {name: one.get("default", "") for name, one in action["inputs"].items()}
        inputs |= {"foretrace": FORETRACE, "baseline": str(self.baseline)} | {name.replace("_", "-"): str(value) for name, value in given.items()}
        self.assertLessEqual(set(inputs), set(action["inputs"]))

        def filled(text):
            return re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda match: inputs[match[1]], text)

        output, summary = self.folder / "output", self.folder / "summary"
        output.write_text(""), summary.write_text("")
        status, printed = 0, ""
        for step in action["runs"]["steps"]:
            self.assertEqual(step["shell"], "bash")
            condition = step.get("if", "")
            if "inputs.before" in condition and not inputs["before"] or "inputs.comment" in condition:
                continue
            environment = {**os.environ, "GITHUB_OUTPUT": str(output), "GITHUB_STEP_SUMMARY": str(summary), "GITHUB_ACTIONS": "true",
                           **{name: filled(value) for name, value in step["env"].items()}}
            self.assertNotIn("${{", step["run"])  # A name in it would be run as a command.
            done = subprocess.run(["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]], cwd=self.folder, env=environment,
                                  capture_output=True, text=True, check=False)
            status, printed = status or done.returncode, printed + done.stdout + done.stderr
        return status, output.read_text().strip(), summary.read_text(), printed

    def test_what_is_the_same_passes(self):
        status, verdict, summary, _ = self.ran(trace=FAST)
        self.assertEqual((status, verdict), (0, "verdict=passed"))
        self.assertIn("step_time", summary)

    def test_a_regression_fails_with_its_cause(self):
        status, verdict, summary, printed = self.ran(trace=SLOW, before=FAST)
        self.assertEqual((status, verdict), (1, "verdict=failed"))
        self.assertIn("::error", printed)
        self.assertIn("data loading takes longer", summary)
        self.assertTrue((self.folder / "foretrace.xml").exists())

    def test_what_cannot_be_used_fails(self):
        status, verdict, *_ = self.ran(trace=self.folder / "none")
        self.assertEqual((status, verdict), (3, "verdict=unusable"))

    def test_a_trace_called_like_an_option_is_none(self):
        for name in ("--help", "--version", "-h"):
            status, verdict, *_ = self.ran(trace=name, before=name)
            self.assertEqual((status, verdict), (3, "verdict=unusable"))

    def test_undecided_is_what_its_user_says(self):
        other = ROOT / "traces" / "gpt-a100-gpu-bound.pt.trace.json.gz"
        status, verdict, *_ = self.ran(trace=other)
        self.assertNotEqual(status, 0)  # Another job is refused.
        self.assertEqual(verdict, "verdict=unusable")
        stand_in = self.folder / "stand-in"
        stand_in.write_text("#!/bin/sh\nexit 4\n")
        stand_in.chmod(0o700)
        for undecided, expected in (("pass", 0), ("fail", 4)):
            self.assertEqual(self.ran(trace=FAST, foretrace=stand_in, undecided=undecided)[:2], (expected, "verdict=undecided"))

    def test_paths_are_not_run(self):
        evil = self.folder / "$(touch made) `touch made`; touch made"
        evil.write_bytes(FAST.read_bytes())
        status, verdict, *_ = self.ran(trace=evil)
        self.assertEqual((status, verdict), (0, "verdict=passed"))
        self.assertFalse((self.folder / "made").exists())


if __name__ == "__main__":
    unittest.main()
