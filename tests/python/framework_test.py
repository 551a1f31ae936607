#!/usr/bin/env python3
"""The Python module where people use it: notebooks, training loops, frameworks, a fresh environment. PYTHONPATH has the module, $FORETRACE_BUILD the build.

Stand-ins replace Lightning and transformers, which Debian does not have. Tests that need PyTorch are skipped without it.
"""

import contextlib
import io
import os
import pathlib
import subprocess
import sys
import tempfile
import types
import unittest
from unittest import mock

import foretrace

try:
    import torch
except ImportError:
    torch = None
try:
    import matplotlib

    matplotlib.use("Agg")
except ImportError:
    matplotlib = None

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LOADER = ROOT / "traces" / "resnet18-v100-loader0.pt.trace.json.gz"
LOADER4 = ROOT / "traces" / "resnet18-v100-loader4.pt.trace.json.gz"


class Answers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.answers = {"prediction": foretrace.predict(LOADER, "loader:workers=4"), "advice": foretrace.advise(LOADER),
                       "curve": foretrace.vary(LOADER, "loader", setting="loader.workers", values="0..4"), "diff": foretrace.diff(LOADER, LOADER4)}

    def test_kinds_are_those_of_their_schemas(self):
        for kind, answer in self.answers.items():
            self.assertEqual(answer.kind, kind)
            self.assertIsInstance(answer, dict)

    def test_headlines_begin_as_the_command_line_does(self):
        self.assertEqual(self.answers["prediction"].headline()[:28], "85.35 ms -> 48.91 ms a step,")
        self.assertEqual(self.answers["curve"].headline(), "5 values; 2 is the fastest with 48.91 ms a step")
        self.assertIn("data loading takes less", self.answers["diff"].headline())
        self.assertIn("loader:workers=2", self.answers["advice"]._repr_html_())

    def test_pages_hold_names_and_obey_none(self):
        answer = foretrace.Answer(self.answers["diff"])
        answer["ranks"] = [{**answer["ranks"][0], "verdict": "<script>", "causes": [{"effect_ns": 1, "text": "<img src=x onerror=alert(1)>"}]}]
        page = answer._repr_html_()
        self.assertNotIn("<script>", page)
        self.assertNotIn("<img", page)
        self.assertIn("&lt;img", page)

    def test_every_answer_shows_itself(self):
        for kind, answer in self.answers.items():
            page = answer._repr_html_()
            self.assertTrue(page.startswith("<div><b>"), kind)
            self.assertLess(len(page), 10_000, kind)

    @unittest.skipUnless(matplotlib, "needs matplotlib")
    def test_plots(self):
        for kind in ("prediction", "advice", "curve"):
            axes = self.answers[kind].plot()
            self.assertTrue(axes.get_xlabel(), kind)
        self.assertEqual(len(self.answers["curve"].plot().lines[0].get_xdata()), 5)
        with self.assertRaisesRegex(ValueError, "there is no figure for an answer of the kind"):
            self.answers["diff"].plot()


class Jobs(unittest.TestCase):
    def test_a_job_in_memory_answers_as_its_files_do(self):
        job = foretrace.job(LOADER)
        for steps in ((), ("amp",), ("loader:workers=4", "amp")):
            self.assertEqual(job.predict(*steps), foretrace.predict(LOADER, *steps))
        how = {"setting": "loader.workers", "values": "0..4"}
        self.assertEqual(job.vary("loader", **how), foretrace.vary(LOADER, "loader", **how))

    def test_it_does_not_need_its_file_any_more(self):
        with tempfile.TemporaryDirectory() as folder:
            copy = pathlib.Path(folder) / "job.json.gz"
            copy.write_bytes(LOADER.read_bytes())
            job = foretrace.job(copy, cache=False)
            copy.unlink()
            self.assertEqual(job.predict("amp")["predicted"], foretrace.predict(LOADER, "amp")["predicted"])

    def test_mistakes(self):
        with self.assertRaises(foretrace.TraceError):
            foretrace.job("/no/such/trace")
        with self.assertRaises(foretrace.Error):
            foretrace.job(LOADER).predict("no_such_transform")


def train(steps, recording):
    model = torch.nn.Linear(64, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.ones(16, 64)).sum().backward()
        optimizer.step()
        recording.step()


@contextlib.contextmanager
def quiet():
    with contextlib.redirect_stderr(io.StringIO()) as err:
        yield err


@unittest.skipUnless(torch, "needs PyTorch")
class Profile(unittest.TestCase):
    def test_a_loop_becomes_a_job_that_doctor_calls_good(self):
        with tempfile.TemporaryDirectory() as folder, quiet() as err:
            with foretrace.profile(folder, steps=5, wait=1, warmup=1) as recording:
                train(12, recording)
            self.assertEqual(recording.path, pathlib.Path(folder) / "rank0.pt.trace.json.gz")
            self.assertIn("next: foretrace doctor", err.getvalue())
            diagnosis = foretrace.doctor(folder)["ranks"][0]
            self.assertTrue(diagnosis["usable"])
            self.assertEqual(diagnosis["replay_error"], 0)
            self.assertEqual([one for one in diagnosis["findings"] if one["severity"] == "warning"], [])
            self.assertGreaterEqual(foretrace.predict(folder)["measured"]["counted_steps"], 3)

    def test_too_few_steps_are_said(self):
        with tempfile.TemporaryDirectory() as folder, quiet():
            with self.assertRaisesRegex(foretrace.Error, "ended after 4 steps, and 7 are needed"):
                with foretrace.profile(folder, steps=5, wait=1, warmup=1) as recording:
                    train(4, recording)
            self.assertEqual(list(pathlib.Path(folder).iterdir()), [])

    def test_errors_of_the_loop_stay_its_own(self):
        with tempfile.TemporaryDirectory() as folder, quiet(), self.assertRaises(KeyError):
            with foretrace.profile(folder) as recording:
                train(1, recording)
                raise KeyError("mine")

    def test_ranks_are_those_of_the_launcher(self):
        with tempfile.TemporaryDirectory() as folder, quiet(), mock.patch.dict(os.environ, {"RANK": "3"}):
            with foretrace.profile(folder, steps=3, wait=0, warmup=1) as recording:
                train(5, recording)
            self.assertEqual(recording.path.name, "rank3.pt.trace.json.gz")

    def test_callbacks_record_the_loops_of_others(self):
        base = type("Callback", (), {})
        lightning = types.ModuleType("lightning.pytorch.callbacks")
        lightning.Callback = base
        transformers = types.ModuleType("transformers")
        transformers.TrainerCallback = base
        stands = {"lightning": types.ModuleType("lightning"), "lightning.pytorch": types.ModuleType("lightning.pytorch"),
                  "lightning.pytorch.callbacks": lightning, "transformers": transformers}
        with mock.patch.dict(sys.modules, stands), tempfile.TemporaryDirectory() as folder, quiet():
            for name, (begin, step, end) in {"LightningCallback": ("on_train_start", "on_train_batch_end", "on_train_end"),
                                             "TrainerCallback": ("on_train_begin", "on_step_end", "on_train_end")}.items():
                callback = getattr(foretrace, name)(pathlib.Path(folder) / name, steps=3, wait=0, warmup=1)
                self.assertIsInstance(callback, base)
                arguments = {"on_train_start": 2, "on_train_batch_end": 5}
                getattr(callback, begin)(*[None] * arguments.get(begin, 3))
                train(5, types.SimpleNamespace(step=lambda: getattr(callback, step)(*[None] * arguments.get(step, 3))))
                getattr(callback, end)(*[None] * (2 if name == "LightningCallback" else 3))
                self.assertTrue((pathlib.Path(folder) / name / "rank0.pt.trace.json.gz").exists(), name)


class Settings(unittest.TestCase):
    def test_mistakes_are_named(self):
        for settings in ({"steps": 2}, {"warmup": 0}, {"wait": -1}, {"steps": "6"}):
            with self.assertRaisesRegex(foretrace.Error, f"{next(iter(settings))}: must be a whole number"):
                foretrace.profile("never", **settings)
        self.assertFalse(pathlib.Path("never").exists())

    def test_what_is_not_there_is_named(self):
        with mock.patch.dict(sys.modules, {"torch": None, "torch.profiler": None, "transformers": None, "lightning": None,
                                           "lightning.pytorch.callbacks": None, "pytorch_lightning.callbacks": None}):
            for make, needs in ((foretrace.profile, "PyTorch"), (foretrace.LightningCallback, "Lightning"), (foretrace.TrainerCallback, "transformers")):
                with self.assertRaisesRegex(foretrace.Error, f"needs {needs}"):
                    make("never")


def can(*command):
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


@unittest.skipUnless(os.environ.get("FORETRACE_BUILD") and can(sys.executable, "-c", "import setuptools, pip, wheel, venv, ensurepip"),
                     "needs FORETRACE_BUILD, pip, setuptools, wheel and venv")
class Wheel(unittest.TestCase):
    def test_it_runs_the_notebook_in_a_fresh_environment(self):
        clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        with tempfile.TemporaryDirectory() as folder:
            before = sorted((ROOT / "src" / "python").rglob("*"))
            subprocess.run([sys.executable, "-m", "pip", "wheel", "-q", "--no-build-isolation", "--no-deps", "-w", folder, ROOT / "src" / "python"],
                           cwd=folder, env=clean, check=True)
            self.assertEqual(sorted((ROOT / "src" / "python").rglob("*")), before)
            wheel, = pathlib.Path(folder).glob("foretrace-*.whl")
            subprocess.run([sys.executable, "-m", "venv", f"{folder}/venv"], env=clean, check=True)
            subprocess.run([f"{folder}/venv/bin/pip", "install", "-q", "--no-deps", "--no-index", wheel], cwd=folder, env=clean, check=True)
            done = subprocess.run([f"{folder}/venv/bin/python", ROOT / "scenarios" / "notebook.py"], cwd=folder, env=clean, capture_output=True, text=True,
                                  check=True)
            self.assertIn("150.0 ms ->", done.stdout)


if __name__ == "__main__":
    unittest.main()
