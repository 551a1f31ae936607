#!/usr/bin/env python3
"""`check` finds changes that made a program slower, and is silent about harmless ones.

Real changes of a program are planted in copies of the sample traces, with their effects on all later times; so are
harmless differences between two recordings of one program. Each real change must fail, with its cause and its place;
no harmless one may.
"""

import dataclasses
import json
import os
import pathlib
import pickle
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))

import make_samples

import gate_table
from harmless_changes import (HARMLESS, more_metadata, one_step_less, other_profiler, renumber_streams, shift_times,
                              shuffle_events)
from planted_regressions import (NCCL, PAGEABLE, REGRESSIONS, SAMPLES, all_kernels_slower, in_each_step,
                                 new_syncs_in_forward, sample, single_precision, user_frame,
                                 with_collective)
from retimed_trace import Recording, copy_call, end_of, launch, op, sync_call

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("FORETRACE", str(ROOT / "build" / "foretrace"))


def framed(name):
    """A sample in which some work has stack frames of the user's own code."""
    trace = sample(name)
    in_each_step(trace, "aten::cross_entropy_loss" if name == "small" else "aten::relu_",
                 [user_frame(31, [op("aten::clone", [launch("copy_kernel", 3.0)])], "helper")])
    trace.retime()
    return trace


def corpus_traces():
    """Profiler recordings of three jobs, the smallest ones, which Python can edit quickly."""
    found = {}
    paths = [path for path in pathlib.Path(os.environ["FORETRACE_CORPUS"]).rglob("*.json*")
             if path.name.endswith((".json", ".json.gz")) and path.stat().st_size < 4_000_000]
    for path in sorted(paths, key=lambda path: (path.stat().st_size, path)):
        if path.parent in found:
            continue
        try:
            trace = Recording(path)
            if len(trace.steps()) >= 3 and 300 < len(trace.device_events()) < 40_000:
                found[path.parent] = path
        except (ValueError, KeyError, TypeError, AttributeError, OSError):
            continue
        if len(found) == 3:
            break
    return list(found.values())


def least_corpus_traces():
    """Recordings of several steps that Python can edit quickly, the smallest first."""
    found = []
    paths = [path for path in pathlib.Path(os.environ["FORETRACE_CORPUS"]).rglob("*.json*")
             if path.name.endswith((".json", ".json.gz")) and path.stat().st_size < 1_300_000]
    for path in sorted(paths, key=lambda path: (path.stat().st_size, str(path))):
        try:
            trace = Recording(path)
            if len(trace.steps()) >= 2 and len(trace.device_events()) > 20 and all(
                    "stream" in e["args"] for e in trace.device_events()):
                found.append(path)
        except (ValueError, KeyError, TypeError, AttributeError, OSError):
            continue
        if len(found) == 7:
            break
    return found


def in_the_middle_of_steps(trace, items):
    for step in trace.steps():
        ops = sorted(e["ts"] for e in trace.events if e.get("cat") == "cpu_op" and e["tid"] == step["tid"]
                     and step["ts"] <= e["ts"] < end_of(step))
        if ops:
            trace.insert(ops[len(ops) // 2], items)


# (planted change, metric that must fail, words that the greatest causes must contain)
PLANTED_ANYWHERE = [
    (sync_call, "syncs", "new cudaStreamSynchronize|more cudaStreamSynchronize"),
    (lambda: op("aten::copy_", [copy_call(PAGEABLE, 1500.0, 8_000_000)]), "pageable_copies", "Memcpy HtoD"),
    (lambda: op("c10d::allreduce_", [launch(NCCL, 1500.0)]), "collectives", "AllReduce"),
]


def hottest_kernel(trace):
    work = {}
    for event in trace.device_events():
        if event["cat"] == "kernel" and "nccl" not in event["name"].lower():
            work[event["name"]] = work.get(event["name"], 0) + event["dur"]
    return max(work, key=work.get)


class Planted(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_check(self, trace, *more):
        return subprocess.run([PROGRAM, "check", str(trace), "--baseline", str(self.folder / "baseline.json"),
                               "--no-cache", *more], capture_output=True, text=True, cwd=self.folder)

    def bless(self, trace):
        path = self.folder / "before.json.gz"
        trace.write(path)
        done = self.run_check(path, "--bless")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_regressions_are_found_with_cause_and_place(self):
        for plant, metric, cause in REGRESSIONS:
            with self.subTest(plant.__name__):
                before, after = plant()
                for trace in (before, after):
                    trace.retime()
                self.bless(before)
                after.write(self.folder / "after.json.gz")
                done = self.run_check(self.folder / "after.json.gz", "--format", "json")
                answer = json.loads(done.stdout)
                failed = [m["name"] for m in answer["metrics"] if m["standing"] == "failed"]
                told = [c["what"] + " from " + c["where"] for c in answer["causes"]]
                self.assertEqual(done.returncode, 1, answer["headline"])
                self.assertIn(metric, failed)
                self.assertTrue(any(re.search(cause, text) for text in told[:4]), "\n".join(told))

    def test_what_a_step_hides_is_found(self):
        """Changes too small for the step time, or in one step alone, which gate_table.py counts on recordings of any job."""
        with_reduce = sample("small")
        in_each_step(with_reduce, "aten::cross_entropy_loss", [op("c10d::allreduce_", [launch(NCCL, 3000.0)])])
        with_reduce.retime()
        for before, names in ((sample("small"), ("one kernel +15 %", "one kernel +50 %", "all kernels +3 %", "a pause of 40 ms")),
                              (with_reduce, ("collectives x 1.5",))):
            self.bless(before)
            kept = pickle.dumps(before)
            for name, (edit, words) in gate_table.REGRESSIONS.items():
                if not name.startswith(names):
                    continue
                with self.subTest(name):
                    after = pickle.loads(kept)
                    words = words.replace("{}", edit(after) or "")
                    gate_table.noise(after, name)
                    after.retime()
                    after.write(self.folder / "after.json.gz")
                    answer = json.loads(self.run_check(self.folder / "after.json.gz", "--format", "json").stdout)
                    self.assertNotEqual(answer["standing"], "passed")
                    told = [c["what"] + " from " + c["where"] for c in answer["causes"]]
                    self.assertRegex(told[0] if told else "", words)

    def test_tiny_kernels_change_little_of_what_may_overlap(self):
        before = with_collective(sample("resnet"), 30)
        before.retime()
        self.bless(before)
        after = with_collective(sample("resnet"), 30)
        in_each_step(after, "aten::relu_", [op("aten::mul", [launch("tiny", 2.0)])] * 10, which=1)
        after.retime()
        after.write(self.folder / "after.json.gz")
        answer = json.loads(self.run_check(self.folder / "after.json.gz", "--format", "json").stdout)
        overlap = next(m for m in answer["metrics"] if m["name"] == "overlap_possible")
        self.assertGreater(overlap["before"], 0.4)
        self.assertAlmostEqual(overlap["before"], overlap["after"], delta=0.05)

    def test_a_trace_of_another_job_is_refused(self):
        self.bless(sample("resnet"))
        sample("small").write(self.folder / "after.json.gz")
        done = self.run_check(self.folder / "after.json.gz")
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertIn("must be of the same job as the baseline", done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1)

    def test_several_recordings_make_a_baseline(self):
        name = SAMPLES["small"] + ".pt.trace.json.gz"
        runs = []
        for seed in (101, 102, 103):
            self.run_anew(make_samples.SAMPLES[name](), seed=seed)
            runs.append(str(self.folder / f"run{seed}.json.gz"))
            os.replace(self.folder / "run.json.gz", runs[-1])
        done = self.run_check(runs[0], *runs[1:], "--bless")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("of 3 recordings", done.stdout)
        metrics = json.loads((self.folder / "baseline.json").read_text())["metrics"]
        self.assertEqual([len(metrics[m]["runs"]) for m in ("step_time", "syncs")], [3, 3])
        for run in (*runs, self.run_anew(make_samples.SAMPLES[name](), seed=104)):
            self.assertTrue(self.run_check(run).stdout.startswith("PASSED:"))
        done = self.run_check(runs[0], "--bless", "--add")
        self.assertIn("of 4 recordings", done.stdout)
        done = self.run_check(*runs)
        self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1))
        self.assertIn("several recordings are only allowed with --bless", done.stderr)

    def test_harmless_changes_are_not_flagged(self):
        for name in ("small", "resnet"):
            before = framed(name)
            self.bless(before)
            kept = pickle.dumps(before)  # Quicker to copy than to make again.
            for change in (*HARMLESS, gate_table.helper_thread):
                with self.subTest(name + " " + change.__name__):
                    trace = pickle.loads(kept)
                    change(trace)
                    path = self.folder / ("after" + getattr(trace, "ending", ".json.gz"))
                    trace.write(path)
                    done = self.run_check(path)
                    self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                    self.assertTrue(done.stdout.startswith("PASSED:"), done.stdout)

    def run_anew(self, settings, **changed):
        """The recording of another run of a sample's program, from its simulator."""
        for name, value in changed.items():
            self.assertTrue(hasattr(settings, name), name)
        path = self.folder / "run.json.gz"
        dataclasses.replace(settings, **changed).recording().run().write(path)
        return path

    def test_other_runs_of_the_same_program_pass(self):
        for name, settings in make_samples.SAMPLES.items():
            self.bless(Recording(ROOT / "traces" / name))
            for seed in (101, 102, 103):
                with self.subTest(f"{name}, seed {seed}"):
                    done = self.run_check(self.run_anew(settings(), seed=seed))
                    self.assertTrue(done.stdout.startswith("PASSED:"), done.stdout)

    def test_programs_that_changed_at_their_source_are_told(self):
        for sample_name, changed, cause in (
                ("resnet", {"reads_loss": True}, r"new cudaStreamSynchronize.*aten::item"),
                ("resnet", {"workers": 0}, r"loading slower"),
                ("gpt", {"pinned_prefetch": False}, r"2 new cudaStreamSynchronize, with Memcpy HtoD.*pageable memory")):
            with self.subTest(f"{sample_name} {changed}"):
                name = SAMPLES[sample_name] + ".pt.trace.json.gz"
                self.bless(Recording(ROOT / "traces" / name))
                done = self.run_check(self.run_anew(make_samples.SAMPLES[name](), seed=104, **changed), "--format", "json")
                self.assertEqual(done.returncode, 1, done.stdout)
                told = [c["what"] + " from " + c["where"] for c in json.loads(done.stdout)["causes"]]
                self.assertTrue(any(re.search(cause, text) for text in told[:3]), "\n".join(told))

    def test_the_same_trace_gives_the_same_bytes(self):
        self.bless(sample("small"))
        first = (self.folder / "baseline.json").read_bytes()
        self.bless(sample("small"))
        self.assertEqual(first, (self.folder / "baseline.json").read_bytes())
        _, after = new_syncs_in_forward()
        after.retime()
        after.write(self.folder / "after.json.gz")
        answers = {self.run_check(self.folder / "after.json.gz", "--format", form).stdout
                   for form in ("json", "junit", "markdown", "github", "text") for _ in range(3)}
        self.assertEqual(len(answers), 5)

    def test_one_run_writes_all_forms(self):
        self.bless(sample("small"))
        (self.folder / "src" / "project").mkdir(parents=True)
        (self.folder / "src" / "project" / "train.py").write_text("")
        _, after = new_syncs_in_forward()
        after.retime()
        after.write(self.folder / "after.json.gz")
        summary = self.folder / "summary.md"
        summary.write_text("earlier\n")
        env = dict(os.environ, GITHUB_STEP_SUMMARY=str(summary))
        done = subprocess.run(
            [PROGRAM, "check", "after.json.gz", "--baseline", "baseline.json", "--no-cache", "--github", "--junit", "j.xml",
             "--json", "a.json", "--bencher", "b.json", "--benchmark", "g.json", "--markdown", "m.md", "--source-root", "src"],
            capture_output=True, text=True, cwd=self.folder, env=env)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("::error file=project/train.py,line=88,title=foretrace%3A syncs::", done.stdout)
        self.assertTrue(summary.read_text().startswith("earlier\n### Foretrace: REGRESSION: syncs 3 -> 6"))
        suite = xml.etree.ElementTree.parse(self.folder / "j.xml").getroot()
        self.assertEqual((suite.get("failures"), suite.get("tests")), ("1", "23"))
        self.assertEqual(json.loads((self.folder / "a.json").read_text())["schema"], "foretrace.check/1")
        self.assertIn("latency", json.loads((self.folder / "b.json").read_text())["step_time"])
        self.assertIn("step_time", [one["name"] for one in json.loads((self.folder / "g.json").read_text())])

    def test_the_sample_jobs_are_yaml(self):
        try:
            import yaml
        except ImportError:
            self.skipTest("there is no yaml module (scripts/setup.sh all)")
        for name in ("github-workflow.yml", "gitlab-ci.yml"):
            text = (ROOT / "scenarios" / "ci" / name).read_text()
            self.assertIsInstance(yaml.safe_load(text), dict)
            for option in re.findall(r"--[a-z-]+", " ".join(re.findall(r"foretrace check[^#\n]*(?:\\\n[^#\n]*)?", text))):
                self.assertIn(option, self.run_help())

    def run_help(self):
        return subprocess.run([PROGRAM, "check", "--help"], capture_output=True, text=True).stdout

    def test_a_full_summary_is_cut(self):
        self.bless(sample("small"))
        summary = self.folder / "summary.md"
        summary.write_text("x" * (1024 * 1024 - 300))
        self.assertEqual(self.run_check(self.folder / "before.json.gz", "--summary", str(summary)).returncode, 0)
        self.assertLessEqual(summary.stat().st_size, 1024 * 1024)
        self.assertTrue(summary.read_text().endswith("(cut: the summary is full)\n"))

    def test_the_structure_alone_needs_no_quiet_device(self):
        self.bless(sample("resnet"))
        _, after = all_kernels_slower()
        after.retime()
        after.write(self.folder / "after.json.gz")
        done = self.run_check(self.folder / "after.json.gz", "--structure-only", "--format", "json")
        answer = json.loads(done.stdout)
        self.assertEqual(done.returncode, 0)
        self.assertIn("step_time", [m["name"] for m in answer["metrics"] if m["why"] == "times are not compared"])

    def test_what_does_not_belong_together_is_refused(self):
        self.bless(sample("small"))
        trace = self.folder / "before.json.gz"
        for more, words in ((["--with", "amp"], "must be of the same scenario"),
                            (["--max", "peak_allocated:5%"], "the trace does not contain peak_allocated"),
                            (["--max", "sync:+0"], 'did you mean "syncs"'),
                            (["--undecided", "maybe"], "must be pass or fail")):
            done = self.run_check(trace, *more)
            self.assertEqual(done.returncode, 2, done.stdout)
            self.assertIn(words, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1)

    def test_a_prediction_is_checked_like_a_recording(self):
        path = self.folder / "before.json.gz"
        before, after = single_precision()
        before.write(path)
        self.assertEqual(self.run_check(path, "--with", "op_fusion", "--bless").returncode, 0)
        self.assertEqual(self.run_check(path, "--with", "op_fusion").returncode, 0)
        after.retime()
        after.write(path)
        done = self.run_check(path, "--with", "op_fusion")
        self.assertEqual(done.returncode, 1, done.stdout)

    @unittest.skipUnless(os.environ.get("FORETRACE_CORPUS"), "FORETRACE_CORPUS names no folder of recordings")
    def test_recorded_traces_are_judged_alike(self):
        names = corpus_traces()
        self.assertTrue(names)
        for name in names:
            trace = Recording(name)
            hottest = hottest_kernel(trace)
            self.bless(trace)
            for change in (shuffle_events, shift_times, renumber_streams, more_metadata, other_profiler):
                with self.subTest(name.name + " " + change.__name__):
                    other = Recording(name)
                    change(other)
                    other.write(self.folder / "after.json.gz")
                    done = self.run_check(self.folder / "after.json.gz")
                    self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            for what, chosen, factor in (("all", lambda e: e["cat"] == "kernel", 1.3),
                                         ("one", lambda e: e["name"] == hottest, 3.0)):
                with self.subTest(name.name + " slower: " + what):
                    slower = Recording(name)
                    slower.slow(chosen, factor)
                    slower.retime()
                    slower.write(self.folder / "after.json.gz")
                    done = self.run_check(self.folder / "after.json.gz", "--format", "json")
                    answer = json.loads(done.stdout)
                    self.assertEqual(done.returncode, 1, answer["headline"])
                    told = [c["what"] for c in answer["causes"]]
                    words = "throughout" if what == "all" else " slower: "
                    self.assertTrue(any(words in text for text in told[:3]), "\n".join(told))

    @unittest.skipUnless(os.environ.get("FORETRACE_CORPUS"), "FORETRACE_CORPUS names no folder of recordings")
    def test_new_work_is_found_in_recorded_traces(self):
        names = least_corpus_traces()
        self.assertGreaterEqual(len(names), 6)
        for name in names:
            trace = Recording(name)
            trace.retime()
            self.bless(trace)
            for item, metric, cause in PLANTED_ANYWHERE:
                with self.subTest(f"{name.name}: {metric}"):
                    after = Recording(name)
                    in_the_middle_of_steps(after, [item()])
                    after.retime()
                    after.write(self.folder / "after.json")
                    done = self.run_check(self.folder / "after.json", "--format", "json")
                    answer = json.loads(done.stdout)
                    self.assertEqual(done.returncode, 1, answer["headline"])
                    self.assertIn(metric, [m["name"] for m in answer["metrics"] if m["standing"] == "failed"])
                    told = [c["what"] for c in answer["causes"]]
                    self.assertTrue(any(re.search(cause, text) for text in told[:3]), "\n".join(told))

    def test_a_step_more_is_no_change(self):
        trace = sample("gpt")
        one_step_less(trace)
        self.bless(trace)
        sample("gpt").write(self.folder / "after.json.gz")
        done = self.run_check(self.folder / "after.json.gz")
        self.assertTrue(done.stdout.startswith("PASSED"), done.stdout)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + (["-v"] if "-v" in sys.argv else []))
