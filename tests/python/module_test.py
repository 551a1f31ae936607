#!/usr/bin/env python3
"""The Python module gives what the command line gives. $FORETRACE is the program, PYTHONPATH has the module."""

import json
import os
import pathlib
import subprocess
import tempfile
import threading
import unittest

import foretrace

try:
    import pandas
except ImportError:
    pandas = None

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LOADER = ROOT / "traces" / "resnet18-v100-loader0.pt.trace.json.gz"
GPT = ROOT / "traces" / "gpt-a100-gpu-bound.pt.trace.json.gz"


def command_line(*arguments):
    command = [os.environ["FORETRACE"], *map(str, arguments), "--format", "json", "--no-cache", "--quiet"]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


class Module(unittest.TestCase):
    def test_predict_answers_as_the_command_line(self):
        answer = foretrace.predict(LOADER, "loader:workers=4", cache=False)
        self.assertEqual(answer.pop("asserts_that_do_not_hold"), [])
        self.assertEqual(answer, command_line("predict", LOADER, "--with", "loader:workers=4"))

    def test_a_step_may_be_a_dictionary(self):
        as_text = foretrace.predict(GPT, "scale:where.kind=kernel,factor=0.5", cache=False)
        as_dictionary = foretrace.predict(GPT, {"use": "scale", "where": {"kind": "kernel"}, "factor": 0.5}, cache=False)
        self.assertEqual(as_text["predicted"]["step_time_ns"], as_dictionary["predicted"]["step_time_ns"])

    def test_a_scenario_may_be_a_file_or_a_dictionary(self):
        path = ROOT / "scenarios" / "memory_fp32_needs_more_than_8GB.json"
        from_file = foretrace.predict(GPT, scenario=path, cache=False)
        text = json.loads(path.read_text())
        from_dictionary = foretrace.predict(GPT, scenario=text, cache=False)
        self.assertEqual(from_file["predicted"], from_dictionary["predicted"])

    def test_a_limit_of_memory_is_said_to_be_exceeded(self):
        answer = foretrace.predict(GPT, memory={"limit": "8GB"}, cache=False)
        self.assertIsNotNone(answer["predicted"]["memory"][0]["out_of_memory"])

    def test_vary_answers_as_the_command_line(self):
        curve = foretrace.vary(LOADER, "loader", setting="loader.workers", values=[1, 2, 4], cache=False)
        self.assertEqual(curve, command_line("predict", LOADER, "--with", "loader", "--vary", "loader.workers=1,2,4"))

    def test_sweep_answers_as_predict(self):
        scenario = {"version": 1, "trace": str(LOADER), "transforms": [{"use": "scale", "where": {"kind": "kernel"}}],
                    "sweep": {"scale.factor": [0.5, 1, 2]}}
        rows = foretrace.sweep(scenario, cache=False)
        self.assertEqual([row["settings"]["scale.factor"] for row in rows], [0.5, 1, 2])
        for row in rows:
            step = {"use": "scale", "where": {"kind": "kernel"}, "factor": row["settings"]["scale.factor"]}
            alone = foretrace.predict(LOADER, step, cache=False)
            self.assertEqual(row["step_time_ns"], alone["predicted"]["step_time_ns"])

    def test_a_sweep_of_a_file_answers_the_same(self):
        scenario = {"version": 1, "trace": str(LOADER), "transforms": [{"use": "loader"}], "sweep": {"loader.workers": [1, 2, 4]}}
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "sweep.json"
            path.write_text(json.dumps(scenario))
            self.assertEqual(foretrace.sweep(path, cache=False, jobs=1), foretrace.sweep(scenario, cache=False))

    def test_advise_and_diff_answer_as_the_command_line(self):
        self.assertEqual(foretrace.advise(LOADER, cache=False), command_line("advise", LOADER))
        after = ROOT / "traces" / "resnet18-v100-loader4.pt.trace.json.gz"
        self.assertEqual(foretrace.diff(LOADER, after, cache=False), command_line("diff", LOADER, after))

    def test_a_prediction_is_verified(self):
        after = ROOT / "traces" / "resnet18-v100-loader4.pt.trace.json.gz"
        prediction = foretrace.predict(LOADER, "loader:workers=4", cache=False)
        outcome = foretrace.verify(prediction, after, cache=False)
        self.assertEqual(outcome["agreement"], "inside")

    def test_a_job_is_checked_as_by_the_command_line(self):
        baseline = foretrace.bless(LOADER, cache=False)
        self.assertEqual(foretrace.check(LOADER, baseline=baseline, cache=False)["standing"], "passed")
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "baseline.json"
            path.write_text(json.dumps(foretrace.bless(ROOT / "traces" / "resnet18-v100-loader4.pt.trace.json.gz", cache=False)))
            answer = foretrace.check(LOADER, baseline=path, limits=["copies:off"], cache=False)
        self.assertEqual(answer["standing"], "failed")
        self.assertIn("loading slower", answer["causes"][0]["what"])
        with self.assertRaisesRegex(foretrace.Error, 'must be a baseline'):
            foretrace.check(LOADER, baseline={}, cache=False)

    def test_errors_are_of_the_scenario_or_of_the_trace(self):
        with self.assertRaisesRegex(foretrace.Error, 'there is no transform "ampp"'):
            foretrace.predict(LOADER, "ampp")
        with self.assertRaisesRegex(foretrace.TraceError, "no known format"):
            foretrace.predict(ROOT / "README.md", "amp")
        with self.assertRaisesRegex(foretrace.Error, "give all steps so"):
            foretrace.predict(LOADER, "amp", {"use": "amp"})
        with self.assertRaises(foretrace.Error):
            foretrace.predict(None, "amp")
        with self.assertRaises(TypeError):
            foretrace.predict(LOADER, chache=False)
        self.assertTrue(issubclass(foretrace.TraceError, ValueError))

    def test_other_threads_go_on(self):
        found = []
        threads = [threading.Thread(target=lambda: found.append(foretrace.predict(LOADER, cache=False)["speedup"])) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(found, [1.0] * 3)

    def test_transforms_explain_themselves(self):
        amp = next(transform for transform in foretrace.transforms() if transform["name"] == "amp")
        self.assertEqual(set(amp["defaults"]), set(amp["settings"]))

    def test_info_has_one_dictionary_for_each_trace(self):
        self.assertEqual([trace["format"] for trace in foretrace.info(LOADER, cache=False)], ["kineto"])

    @unittest.skipIf(pandas is None, "there is no pandas (scripts/setup.sh all)")
    def test_points_and_predictions_become_tables(self):
        curve = foretrace.vary(LOADER, "loader", setting="loader.workers", values="1,2", cache=False)
        self.assertEqual(list(foretrace.dataframe(curve)["value"]), ["1", "2"])
        table = foretrace.dataframe([foretrace.predict(LOADER, cache=False)])
        self.assertEqual(table["predicted.step_time_ns"][0], table["baseline.step_time_ns"][0])


if __name__ == "__main__":
    unittest.main()
