#!/usr/bin/env python3
"""The Python module gives the same answers as the command line. $FORETRACE is the program, PYTHONPATH has the module: the compiled one, or
src/python, which runs the program."""

import csv
import json
import os
import pathlib
import subprocess
import sys
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
IS_COMPILED = hasattr(foretrace._foretrace, "OpenJob")


def command_line(*arguments):
    command = [os.environ["FORETRACE"], *map(str, arguments), "--format", "json", "--no-cache", "--quiet"]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


class Module(unittest.TestCase):
    def test_predict_answers_as_the_command_line(self):
        answer = foretrace.predict(LOADER, "loader:workers=4", cache=False)
        self.assertEqual(answer.pop("asserts_that_do_not_hold"), [])
        self.assertEqual(answer, command_line("predict", LOADER, "--with", "loader:workers=4"))

    def test_every_question_answers_as_the_command_line(self):
        os.chdir(ROOT)
        with tempfile.TemporaryDirectory() as folder:
            inside = pathlib.Path(folder)
            (inside / "baseline.json").write_text(json.dumps(foretrace.bless(LOADER, cache=False)))
            (inside / "prediction.json").write_text(json.dumps(command_line("predict", LOADER, "--with", "loader:workers=4")))
            (inside / "program.txt").write_text("malloc a 12MiB\nfree a\nmalloc b 4MiB\n")
            (inside / "jobs.json").write_text('{"jobs": [{"name": "a", "least": 1, "most": 8, "up": "18s", "down": "12s", "samples": 1e8, '
                                              '"rates": {"1": 2831, "8": 20379}}]}')
            examples = json.loads((ROOT / "tests" / "support" / "questions.json").read_text().replace("FOLDER/", f"{folder}/"))
            self.assertEqual(set(foretrace.questions()), set(examples) - {"$comment"})
            for name, settings in examples.items():
                if name == "$comment":
                    continue
                with self.subTest(question=name):
                    self.assertTrue(foretrace.ask(name, **settings))
            self.assertEqual(foretrace.ask("info", trace=LOADER), command_line("info", LOADER))
            with self.assertRaisesRegex(foretrace.Error, "there is no question 'predikt'"):
                foretrace.ask("predikt", trace=LOADER)
            with self.assertRaisesRegex(foretrace.Error, 'did you mean "trace"'):
                foretrace.ask("predict", trase=LOADER)

    def test_an_answer_prints_as_the_command_line_does(self):
        text = subprocess.run([os.environ["FORETRACE"], "predict", LOADER, "--with", "amp", "--no-cache"], capture_output=True, text=True,
                              check=True).stdout
        self.assertEqual(str(foretrace.predict(LOADER, "amp", cache=False)), text)
        self.assertTrue(str(foretrace.advise(LOADER, cache=False)).startswith("Bound by"))
        self.assertEqual(str(foretrace.Answer({"a": 1})), "{'a': 1}")

    def test_steps_may_be_keywords(self):
        asked = {"amp": True, "prefetch": False, "num_workers": 2, "scale": {"where": {"kind": "host"}, "factor": 0.5}, "cache": False}
        self.assertEqual(foretrace.predict(LOADER, **asked), foretrace.predict(LOADER, "amp", "num_workers=2", "scale:where.kind=host,factor=0.5", cache=False))
        self.assertEqual(foretrace.job(LOADER).predict(amp=True), foretrace.predict(LOADER, "amp"))

    def test_messages_name_arguments(self):
        for named, said in (({"ttft": True}, '^ttft: there is no transform "ttft": ask `foretrace serve'), ({"window": "5"}, "^window: ")):
            with self.assertRaisesRegex(foretrace.Error, said):
                foretrace.predict(LOADER, **named)
        with self.assertRaisesRegex(foretrace.Error, '^vary: .*add it with the step "batch_size"'):
            foretrace.vary(LOADER, "batch_size.factor", "1..3")

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
        self.assertEqual(curve, foretrace.vary(LOADER, "loader", "loader.workers", "1,2,4", cache=False))
        with self.assertRaisesRegex(foretrace.Error, "^setting, values: must be given"):
            foretrace.vary(LOADER, "loader")

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

    def test_a_sweep_is_continued_in_its_file(self):
        scenario = {"version": 1, "trace": str(LOADER), "transforms": [{"use": "loader"}], "sweep": {"loader.workers": [1, 2, 4]}}
        with tempfile.TemporaryDirectory() as folder:
            output = pathlib.Path(folder) / "answers.jsonl"
            rows = foretrace.sweep(scenario, output=output, cache=False)
            whole = output.read_text()
            output.write_text(whole[:-5])
            self.assertEqual(foretrace.sweep(scenario, output=output, cache=False), rows)
            self.assertEqual(output.read_text(), whole)
            if IS_COMPILED:
                self.assertEqual(foretrace.sweep(scenario, output=output, shard="2/3", cache=False), rows[1:2])
            with self.assertRaisesRegex(foretrace.Error, "need output"):
                foretrace.sweep(scenario, shard="2/3")

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

    def test_a_baseline_stands_for_several_recordings(self):
        with tempfile.TemporaryDirectory() as folder:
            again = pathlib.Path(folder) / "again.pt.trace.json.gz"
            again.write_bytes(LOADER.read_bytes())
            both = foretrace.bless([LOADER, again], cache=False)
            added = foretrace.bless(again, add_to=foretrace.bless(LOADER, cache=False), cache=False)
            self.assertEqual(foretrace.check(LOADER, baseline=both, cache=False)["standing"], "passed")
        self.assertEqual(len(both["metrics"]["step_time"]["runs"]), 2)
        self.assertEqual(len(added["metrics"]["step_time"]["runs"]), 2)
        with self.assertRaisesRegex(foretrace.Error, "a list of at least one"):
            foretrace.bless([])
        with self.assertRaisesRegex(foretrace.Error, "trace: must be a path"):
            foretrace.bless([1])

    def test_errors_are_of_the_scenario_or_of_the_trace(self):
        with self.assertRaisesRegex(foretrace.Error, 'there is no transform "ampp"'):
            foretrace.predict(LOADER, "ampp")
        with self.assertRaisesRegex(foretrace.TraceError, "an unknown format"):
            foretrace.predict(ROOT / "README.md", "amp")
        with self.assertRaisesRegex(foretrace.Error, "give all steps so"):
            foretrace.predict(LOADER, "amp", {"use": "amp"})
        with self.assertRaisesRegex(foretrace.Error, "must be JSON, got .*surrogate"):
            foretrace.predict(LOADER, scenario={"version": 1, "machine": "\ud800"})
        deep = []
        for _ in range(100):
            deep = [deep]
        with self.assertRaisesRegex(foretrace.Error, "must be at most 64 levels deep"):
            foretrace.predict(LOADER, scenario={"version": 1, "machine": deep})
        with self.assertRaises(foretrace.Error):
            foretrace.predict(None, "amp")
        with self.assertRaises(TypeError):
            foretrace.predict(LOADER, chache=False)
        self.assertTrue(issubclass(foretrace.TraceError, ValueError))

    def test_wrong_types_are_errors_with_their_name(self):
        cases = {
            "trace": lambda: foretrace.predict(5, "amp"),
            "steps": lambda: foretrace.predict(LOADER, 5),
            "cache": lambda: foretrace.predict(LOADER, cache=5),
            "strict": lambda: foretrace.predict(LOADER, strict="yes"),
            "html": lambda: foretrace.predict(LOADER, html=1),
            "scenario": lambda: foretrace.predict(LOADER, scenario=5),
            "memory": lambda: foretrace.predict(LOADER, memory="8GB"),
            "samples_per_step": lambda: foretrace.predict(LOADER, samples_per_step="8"),
            "values": lambda: foretrace.vary(LOADER, "loader", setting="loader.workers", values=5),
            "setting": lambda: foretrace.vary(LOADER, "loader", setting=5, values="1,2"),
            "jobs": lambda: foretrace.sweep({"version": 1}, LOADER, jobs=-1),
            "top": lambda: foretrace.advise(LOADER, top="all"),
            "limits": lambda: foretrace.check(LOADER, baseline={}, limits="step_time:5%"),
            "cached_share": lambda: foretrace.input(LOADER, cached_share=2),
            "cache_policy": lambda: foretrace.input(LOADER, cache_policy="fifo"),
            "host_bandwidth": lambda: foretrace.memory(GPT, host_bandwidth=5.5),
            "against": lambda: foretrace.validate(LOADER, against=5),
        }
        for name, call in cases.items():
            with self.subTest(name=name), self.assertRaisesRegex(foretrace.Error, f"^{name}: "):
                call()

    def test_memory_input_and_validate_answer_as_the_command_line(self):
        memory = foretrace.memory(GPT, limit="8GB", cache=False)
        self.assertFalse(memory["fits"])
        done = subprocess.run([os.environ["FORETRACE"], "memory", GPT, "--memory-limit", "8GB", "--format", "json", "--no-cache", "--quiet"],
                              capture_output=True, text=True)
        self.assertEqual((done.returncode, memory), (1, json.loads(done.stdout)))
        self.assertEqual(foretrace.input(LOADER, cache=False), command_line("input", LOADER))
        rows = foretrace.validate(LOADER, cache=False)
        self.assertEqual([row["broken"] for row in rows], [[]])
        self.assertEqual(rows, command_line("validate", LOADER))

    def test_copies_are_kept_in_the_folder_that_was_named(self):
        with tempfile.TemporaryDirectory() as folder:
            foretrace.info(LOADER, cache=folder)
            first = {path.name for path in pathlib.Path(folder).rglob("*.ftrace")}
        self.assertEqual(len(first), 1)

    def test_common_names_and_lists_of_steps_are_understood(self):
        answer = foretrace.predict(LOADER, "num_workers=4,amp", cache=False)
        self.assertEqual([step["use"] for step in answer["steps"]], ["loader:workers=4", "amp"])

    def test_ctrl_c_ends_every_call(self):
        script = (
            "import os, signal, sys, threading\n"
            "import foretrace\n"
            "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # A shell in the background makes its children ignore it.
            "call = compile(sys.argv[1], 'call', 'eval')\n"
            "try:\n"
            "    threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()\n"  # clock: calls are repeated until then
            "    while True:\n"
            "        eval(call)\n"
            "except KeyboardInterrupt:\n"
            "    print('interrupted')\n")
        calls = [f"foretrace.{name}({str(LOADER)!r}, cache=False)" for name in ("predict", "advise", "info", "input", "validate", "bless")]
        calls += [f"foretrace.memory({str(GPT)!r}, cache=False)", f"foretrace.diff({str(LOADER)!r}, {str(LOADER)!r}, cache=False)"]
        for call in calls:
            with self.subTest(call=call):
                done = subprocess.run([sys.executable, "-c", script, call], capture_output=True, text=True)
                self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "interrupted\n", ""))

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

    def test_doctor_says_for_each_rank_what_is_missing(self):
        self.assertEqual([rank["usable"] for rank in foretrace.doctor(LOADER, cache=False)["ranks"]], [True])

    def test_info_has_one_dictionary_for_each_trace(self):
        self.assertEqual([trace["format"] for trace in foretrace.info(LOADER, cache=False)], ["kineto"])

    def test_tables_have_the_columns_of_csv(self):
        def csv_of(*arguments):
            command = [os.environ["FORETRACE"], *map(str, arguments), "--format", "csv", "--no-cache", "--quiet"]
            return list(csv.DictReader(subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()))

        def as_text(value):
            return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)

        with_loader = foretrace.predict(LOADER, "loader:workers=2", cache=False, samples_per_step=32)
        curve = foretrace.vary(LOADER, "loader", setting="loader.workers", values="1,2", cache=False)
        for answers, asked in (([with_loader], ("--with", "loader:workers=2", "--samples-per-step", 32)),
                               (curve, ("--with", "loader", "--vary", "loader.workers=1,2"))):
            rows, expected = list(foretrace._rows(answers)), csv_of("predict", LOADER, *asked)
            self.assertEqual(len(rows), len(expected))
            for row, cells in zip(rows, expected):
                for name, cell in cells.items():
                    if name == "figures":
                        continue
                    self.assertIn(name, row)
                    try:
                        self.assertAlmostEqual(float(row[name]), float(cell))
                    except (TypeError, ValueError):
                        self.assertEqual(as_text(row[name]), cell, name)
        self.assertEqual(list(foretrace._rows([with_loader]))[0].keys(), csv_of("predict", LOADER)[0].keys())

    @unittest.skipIf(pandas is None, "there is no pandas (scripts/setup.sh all)")
    def test_points_and_predictions_become_tables(self):
        curve = foretrace.vary(LOADER, "loader", setting="loader.workers", values="1,2", cache=False)
        self.assertEqual(list(foretrace.dataframe(curve)["value"]), ["1", "2"])
        table = foretrace.dataframe([foretrace.predict(LOADER, cache=False)])
        self.assertEqual(table["predicted_ns"][0], table["baseline_ns"][0])


if __name__ == "__main__":
    unittest.main()
