"""The campaign's bookkeeping, tested without a GPU: finished work is kept, failures are reported, and no made-up data gets into traces/."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "ground_truth.py"
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests" / "support")]
sys.dont_write_bytecode = True

from ground_truth import evaluate, events, plan, results, statistics_of  # noqa: E402
from processes import wait_until  # noqa: E402

PYTHON = (sys.executable, "-B", "-S")
LOADER = ["image-loader/loader_workers", "image-loader/pinned", "image-loader/prefetch"]


class Campaign(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        """A finished campaign, for tests that look at one."""
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.finished = pathlib.Path(folder.name)
        cls.told = subprocess.run([*PYTHON, str(SCRIPT), "--dry-run", "--out", folder.name, "--only", "image-loader"],
                                  capture_output=True, text=True)

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.out = pathlib.Path(folder.name)

    def start_from_finished(self):
        shutil.copytree(self.finished, self.out, dirs_exist_ok=True)

    def command(self, *arguments):
        return [*PYTHON, str(SCRIPT), "--dry-run", "--out", str(self.out), *arguments]

    def environment(self, **faults):
        return {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "FORETRACE_PLAYED": json.dumps(faults)}

    def run_it(self, *arguments, **faults):
        return subprocess.run(self.command(*arguments), env=self.environment(**faults), capture_output=True, text=True)

    def results(self):
        return results.read(self.out / results.NAME)

    def statuses(self):
        return {case["id"]: case["status"] for case in self.results()["cases"]}

    def test_a_case_has_times_memory_and_traces_of_both_sides(self):
        self.start_from_finished()
        self.assertEqual((self.told.returncode, self.told.stdout), (0, "3 of 3 done, 0 failed, 0 left\n"))
        found = self.results()
        self.assertIs(found["dry_run"], True)
        case = found["cases"][0]
        self.assertEqual((case["model"], case["change"], case["predict"]), ("image-loader", "loader_workers", ["loader:workers=4"]))
        for name, workers in (("before", 0), ("after", 4)):
            side = case[name]
            self.assertEqual(side["settings"]["workers"], workers)
            self.assertEqual(len(side["steps_ns"]), 4)
            self.assertLessEqual(side["quartiles_ns"][0], side["step_time_ns"])
            self.assertGreater(side["memory"]["peak_allocated_bytes"], 0)
            for trace, steps in (("kineto", 4), ("ftrace", 6)):
                self.assertEqual(side["traces"][trace], {**results.Results(self.out, True).describe(
                    self.out / side["traces"][trace]["path"]), "steps": steps})
        self.assertAlmostEqual(case["before"]["step_time_ns"] / case["after"]["step_time_ns"], 85.0 / 48.9, delta=0.02)

    def test_what_is_done_is_not_done_again(self):
        self.start_from_finished()
        before = (self.out / results.NAME).read_bytes()
        again = self.run_it("--only", "image-loader")
        self.assertEqual((again.returncode, again.stderr), (0, ""))
        self.assertEqual({case["id"]: case for case in json.loads(before)["cases"]},
                         {case["id"]: case for case in self.results()["cases"]})

    def test_a_campaign_killed_at_any_case_goes_on(self):
        for finished in (0, 2):
            out = self.out / str(finished)
            command = [*PYTHON, str(SCRIPT), "--dry-run", "--out", str(out), "--only", "image-loader"]
            campaign = subprocess.Popen(command, env=self.environment(seconds=0.1), stderr=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL)
            try:
                wait_until(lambda: campaign.poll() is not None or self.progress(out) == (finished, 1))
                self.assertIsNone(campaign.poll(), "the campaign ended early")
            finally:
                campaign.send_signal(signal.SIGKILL)
                campaign.wait()
            self.assertEqual(list(out.glob(".*.part")), [])
            self.assertEqual(results.read(out / results.NAME)["attempts"], {LOADER[finished]: 1})
            done = subprocess.run(command, env=self.environment(), capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr.count(" times as fast")), (0, 3 - finished), done.stderr)
            self.assertEqual([case["id"] for case in results.read(out / results.NAME)["cases"]], LOADER)

    @staticmethod
    def progress(out):
        """(finished cases, cases begun and not finished)"""
        try:
            found = results.read(out / results.NAME)
        except (ValueError, OSError):
            return None
        return len(found["cases"]), sum(found["attempts"].values())

    def test_a_case_that_takes_the_campaign_down_again_and_again_is_given_up(self):
        self.start_from_finished()
        kept = results.Results(self.out, True)
        kept.all["cases"] = [case for case in kept.all["cases"] if case["id"] != LOADER[1]]
        for _ in range(results.MOST_ATTEMPTS):
            kept.begin(LOADER[1])
        self.assertEqual(self.run_it("--only", "image-loader").returncode, 1)
        self.assertEqual(self.statuses(), {LOADER[0]: "done", LOADER[1]: "failed", LOADER[2]: "done"})
        self.assertIn("took the campaign down", self.results()["cases"][2]["message"])

    def test_a_case_that_fails_is_told_and_does_not_stop_the_rest(self):
        done = self.run_it("--only", "image-loader", fail=["image-loader.amp.workers4.pinned"])
        self.assertEqual(done.returncode, 1)
        self.assertIn("failed: image-loader/pinned", done.stdout)
        self.assertEqual(self.statuses(), {LOADER[0]: "done", LOADER[1]: "failed", LOADER[2]: "done"})
        self.assertIn("CUDA out of memory", self.results()["cases"][1]["message"])
        self.assertEqual(self.run_it("--only", "image-loader").returncode, 1)  # Failed cases are not tried again unless requested.
        self.assertEqual(self.run_it("--only", "image-loader", "--retry").returncode, 0)
        self.assertEqual(set(self.statuses().values()), {"done"})

    def test_processes_that_die_or_hang_are_failures_with_a_reason(self):
        self.run_it("--only", "image-loader", "--limit", "20", die=["image-loader.amp"], hang=["image-loader.amp.workers4.pinned"])
        messages = {case["id"]: case.get("message") for case in self.results()["cases"]}
        self.assertIn("killed by signal 11", messages[LOADER[0]])
        self.assertIn("no answer within 20 s", messages[LOADER[1]])
        self.assertIsNone(messages[LOADER[2]])

    def test_a_side_without_a_trace_is_still_a_side(self):
        self.assertEqual(self.run_it("--only", LOADER[0], fail_profile=["image-loader.amp"]).returncode, 0)
        before = self.results()["cases"][0]["before"]
        self.assertEqual(list(before["traces"]), ["ftrace"])
        self.assertIn("the profiler failed", before["notes"][0])

    def test_nothing_is_begun_that_would_not_fit(self):
        self.start_from_finished()
        kept = self.results()
        kept["cases"] = [{**kept["cases"][0], "spent_s": 100}]
        (self.out / results.NAME).write_text(json.dumps(kept))
        done = self.run_it("--only", "image-loader", "--minutes", "1.5")
        self.assertEqual((done.returncode, done.stdout), (1, "1 of 3 done, 0 failed, 2 left\n"))
        self.assertIn("left for later, needs about 120 s", done.stderr)

    def test_time_that_runs_out_inside_a_case_is_not_held_against_it(self):
        done = self.run_it("--only", "image-loader", "--minutes", "0.2", hang=["image-loader.amp"])
        self.assertEqual((done.returncode, done.stdout), (1, "0 of 3 done, 0 failed, 3 left\n"))
        self.assertEqual((self.results()["cases"], self.results()["attempts"]), ([], {LOADER[0]: 0}))

    def test_traces_stay_within_their_budget(self):
        done = self.run_it("--only", LOADER[0], "--megabytes", "1", trace_bytes=2_000_000)
        self.assertEqual(done.returncode, 0)
        side = self.results()["cases"][0]["before"]
        self.assertEqual(side["traces"]["kineto"]["steps"], 1)  # Half of a half of what was asked for.
        self.assertLess(results.Results(self.out, True).used_bytes(), 1_000_000)
        self.assertIn("there is room for", self.results()["cases"][0]["after"]["notes"][0])

    def test_bundles_hold_everything_once(self):
        seen = []
        for case in LOADER[:2]:
            archive = self.out / f"{case.split('/')[1]}.tar"
            self.run_it("--only", case, "--bundle", str(archive))
            with tarfile.open(archive) as tar:
                names = tar.getnames()
            self.assertEqual(names[0], results.NAME)
            seen += names[1:]
        self.assertEqual(sorted(seen), sorted(f"ground_truth/{path.name}" for path in (self.out / "ground_truth").iterdir()))
        self.assertEqual(len(seen), len(set(seen)))

    def test_bundles_are_cut_into_parts(self):
        self.start_from_finished()
        parts = results.bundle(results.Results(self.out, True), self.out / "all.tar", part_bytes=500_000)
        self.assertGreater(len(parts), 1)
        self.assertTrue(all(part.stat().st_size < 500_000 for part in parts))

    def test_models_that_answer_are_measured_like_trainings(self):
        """Sides that no prediction begins from are not recorded by the collector."""
        case = "llama-1b-decode/fp8_graphs"
        self.assertEqual(self.run_it("--only", case).returncode, 0)
        before, after = (self.results()["cases"][0][side] for side in ("before", "after"))
        self.assertEqual((list(before["traces"]), list(after["traces"])), (["ftrace", "kineto"], ["kineto"]))
        self.assertAlmostEqual(after["step_time_ns"] / before["step_time_ns"], 0.6, delta=0.02)

    def test_overhead_is_told_for_each_level(self):
        self.assertEqual(self.run_it("--only", "overhead/gpt2-small").returncode, 0)
        levels = self.results()["overhead"][0]["levels"]
        self.assertEqual([level["level"] for level in levels], list(plan.LEVELS))
        self.assertEqual(levels[0]["slowdown"], 1.0)

    def test_made_up_results_stay_out_of_the_real_ones(self):
        refused = subprocess.run([*PYTHON, str(SCRIPT), "--dry-run"], capture_output=True, text=True)
        self.assertEqual(refused.returncode, 2)
        self.assertIn("--out", refused.stderr)
        refused = subprocess.run(self.command("--out", str(ROOT / "traces")), capture_output=True, text=True)
        self.assertEqual(refused.returncode, 2)
        (self.out / results.NAME).write_text(json.dumps({"schema": results.SCHEMA, "dry_run": False}))
        self.assertEqual(self.run_it("--only", LOADER[0]).returncode, 2)

    def test_wrong_arguments_name_what_is_allowed(self):
        done = self.run_it("--only", "resnet51")
        self.assertEqual(done.returncode, 2)
        self.assertIn("image-loader", done.stderr)
        (self.out / results.NAME).write_text("{")
        self.assertIn("must be JSON", self.run_it("--only", LOADER[0]).stderr)

    def test_the_check_of_the_collector_looks_at_a_sample(self):
        done = subprocess.run([*PYTHON, str(SCRIPT), "check", "--dry-run", "--out", str(self.out)],
                              env=self.environment(), capture_output=True, text=True)
        self.assertEqual([line[:6] for line in done.stdout.splitlines()],
                         ["PASS 1", "PASS 2", "PASS 3", "SKIP 4", "PASS 5", "SKIP 6", "PASS 7", "SKIP 8"])
        self.assertEqual(len(json.loads((self.out / "collector_check.json").read_text())["points"]), 8)

    def test_predictions_are_compared_with_what_was_measured(self):
        foretrace = os.environ.get("FORETRACE")
        if not foretrace:
            self.skipTest("FORETRACE names no program")
        self.start_from_finished()
        done = subprocess.run([*PYTHON, str(SCRIPT), "evaluate", str(self.out / results.NAME), "--format", "json"],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads(done.stdout)
        self.assertEqual([row["source"] for row in found["rows"]], ["kineto", "ftrace"] * 3)
        for row in found["rows"]:
            if row["change"] == "pinned":
                continue  # The samples have no side with pinned memory alone.
            self.assertLess(abs(row["error"]), 0.05)  # The made-up times are those of the samples.
            self.assertLess(abs(row["speedup_error"]), 0.05)


class WithoutGpu(unittest.TestCase):
    def test_one_sentence_says_why_nothing_can_be_measured(self):
        with tempfile.TemporaryDirectory() as modules, tempfile.TemporaryDirectory() as out:
            (pathlib.Path(modules) / "torch.py").write_text("class cuda:\n    is_available = staticmethod(lambda: False)\n")
            done = subprocess.run([sys.executable, "-B", str(SCRIPT), "--out", out], capture_output=True, text=True,
                                  env={**os.environ, "PYTHONPATH": modules})
            self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (3, "", 1))
            self.assertIn("torch finds no GPU", done.stderr)
            self.assertEqual(list(pathlib.Path(out).iterdir()), [])


class Plan(unittest.TestCase):
    def test_the_sides_of_a_case_differ_in_what_the_change_says(self):
        for item in plan.items():
            if isinstance(item, plan.Case):
                before, after = item.before.as_json(), item.after.as_json()
                changed = {name for name in before if before[name] != after[name]}
                self.assertTrue(changed and changed <= set(plan.CHANGES[item.change].after), item.id)

    def test_different_sides_have_different_names(self):
        cases = [item for item in plan.items() if isinstance(item, plan.Case)]
        for case in cases:
            for side in (case.before, case.after):
                self.assertEqual(plan.sides(cases)[side.key], side)

    def test_models_that_only_answer_have_no_settings_of_trainings(self):
        cases = {item.id: item for item in plan.items() if item.id.startswith("llama-")}
        for case in cases.values():
            for side in (case.before, case.after):
                self.assertIn(side.precision, ("bf16", "fp8", "int8_weights"))
                self.assertFalse(side.capturable)
        longer = cases["llama-1b-decode/context_x4"].after
        self.assertEqual(longer.key, "llama-1b-decode.bf16.context4096.cuda_graphs")
        self.assertEqual(cases["llama-wide-decode/fp8_and_graphs"].predict, ["quantize:to=fp8", "cuda_graphs"])

    def test_settings_survive_json(self):
        for side in plan.sides(plan.items()).values():
            self.assertEqual(plan.Side.from_json(json.dumps(side.as_json())), side)

    def test_transforms_of_the_plan_exist(self):
        foretrace = os.environ.get("FORETRACE")
        if not foretrace:
            self.skipTest("FORETRACE names no program")
        told = subprocess.run([foretrace, "list", "transforms"], capture_output=True, text=True, check=True).stdout
        known = {line.split()[0] for line in told.splitlines()}
        for change in plan.CHANGES.values():
            self.assertLessEqual({step.split(":")[0] for step in change.predict or ()}, known)


class Numbers(unittest.TestCase):
    def test_the_first_step_of_a_round_does_not_count(self):
        rounds = [{"device_ns": [900, 10, 20, 30], "host_ns": [1, 1, 1, 1], "wall_ns": 960},
                  {"device_ns": [900, 40], "host_ns": [1, 1], "wall_ns": 940}]
        found = statistics_of.of_rounds(rounds)
        self.assertEqual((found["step_time_ns"], found["quartiles_ns"]), (25, [18, 25, 32]))
        self.assertEqual(found["round_medians_ns"], [20, 40])
        self.assertAlmostEqual(statistics_of.noise(found), 20 / 30)

    def test_what_loaders_had_ready_does_not_count(self):
        steps = [900] + [10] * 4 + [70, 10, 90, 10, 50]  # Two loaders: four batches were ready; the last turn is not complete.
        found = statistics_of.of_rounds([{"device_ns": steps, "host_ns": steps, "wall_ns": sum(steps)}], workers=2)
        self.assertEqual((found["step_time_ns"], found["quartiles_ns"]), (45, [42, 45, 48]))
        few = [{"device_ns": [900, 10, 20], "host_ns": [1, 1, 1], "wall_ns": 930}]
        self.assertEqual(statistics_of.of_rounds(few, workers=2)["step_time_ns"], 15)

    def test_errors_are_those_of_the_time_and_of_the_speedup(self):
        side = {"noise": 0.01}
        case = {"id": "m/c", "change": "c", "before": {"step_time_ns": 100, **side}, "after": {"step_time_ns": 50, **side}}
        case["after"]["memory"] = {"peak_allocated_bytes": 40}
        answer = {"predicted": {"step_time_ns": 66, "lower_ns": 45, "upper_ns": 70,
                                "memory": [{"device": 0, "peak_allocated_bytes": 44}]},
                  "baseline": {"step_time_ns": 120}, "unprofiled": {"predicted_step_time_ns": 55},
                  "trust": {"grade": "good"}}
        row = evaluate.row_of(case, "kineto", answer)
        self.assertAlmostEqual(row["unprofiled_error"], 0.1)
        self.assertAlmostEqual(row["peak_error"], 0.1)
        self.assertAlmostEqual(row["error"], 0.32)
        self.assertAlmostEqual(row["baseline_error"], 0.2)
        self.assertAlmostEqual(row["speedup_error"], 0.1)
        self.assertIs(row["covered"], True)
        self.assertEqual(evaluate.row_of(case, "kineto", "no such trace")["message"], "no such trace")

    def test_lists_of_numbers_take_one_line(self):
        document = {"a": [1, 2.5, -3], "b": [[1], [2]], "c": "[1,\n2]", "d": []}
        text = results.as_text(document)
        self.assertIn('"a": [1, 2.5, -3]', text)
        self.assertEqual(json.loads(text), document)


class TraceEvents(unittest.TestCase):
    def events(self, *raw):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "trace.json"
            path.write_text(json.dumps({"traceEvents": list(raw)}))
            return events.Events(path)

    @staticmethod
    def event(category, start, duration, name="e", thread=1, correlation=None):
        arguments = {} if correlation is None else {"correlation": correlation}
        return {"ph": "X", "cat": category, "name": name, "ts": start, "dur": duration, "pid": 1, "tid": thread, "args": arguments}

    def test_what_starts_before_its_call_is_found(self):
        found = self.events(self.event("cuda_runtime", 10, 2, correlation=1), self.event("kernel", 9.5, 2, correlation=1),
                            self.event("cuda_runtime", 20, 2, correlation=2), self.event("kernel", 23, 2, correlation=2),
                            self.event("kernel", 30, 2, correlation=3))
        self.assertEqual((found.early(), found.joined()), ([500], (2, 3)))

    def test_what_ends_behind_the_wait_for_it_is_found(self):
        raw = [self.event("cuda_runtime", 10, 2, correlation=1), self.event("kernel", 13, 8, correlation=1)]
        self.assertIsNone(self.events(*raw).late())
        wait = self.event("cuda_runtime", 13, 6, "cudaDeviceSynchronize", correlation=2)
        self.assertEqual(self.events(*raw, wait).late(), [2000])

    def test_ranges_that_cross_are_found(self):
        crossing = [self.event("cpu_op", 0, 10), self.event("cpu_op", 5, 10), self.event("cpu_op", 0, 20, thread=2),
                    self.event("cpu_op", 3, 4, thread=2)]
        self.assertEqual(self.events(*crossing).crossings(), 1)

    def test_launches_outside_operators_are_found(self):
        found = self.events(self.event("cpu_op", 0, 10), self.event("cpu_op", 2, 2), self.event("cuda_runtime", 8, 1, correlation=1),
                            self.event("kernel", 12, 1, correlation=1), self.event("cuda_runtime", 11, 1, correlation=2),
                            self.event("kernel", 15, 1, correlation=2), self.event("cuda_runtime", 16, 1, correlation=3))
        self.assertEqual(found.launches_in_ops(), (1, 2))


if __name__ == "__main__":
    unittest.main()
