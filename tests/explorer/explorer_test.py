#!/usr/bin/env python3
"""The explorer in a headless browser, with real recordings and no network.

FORETRACE_EXPLORER names the folder that scripts/explorer.py made (by default build-explorer/explorer); without it the test is skipped.
FORETRACE names the program, whose answers must be the page's to the byte; FORETRACE_CORPUS, where set, a folder with more recordings.
"""

import functools
import gzip
import http.server
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))
import browser
from browser import CONTRASTS, Browser

FORETRACE = os.environ.get("FORETRACE", "foretrace")
EXPLORER = pathlib.Path(os.environ.get("FORETRACE_EXPLORER", ROOT / "build-explorer" / "explorer"))
CORPUS = pathlib.Path(os.environ.get("FORETRACE_CORPUS", "/nowhere"))
TRACES = ROOT / "traces"
LARGE = CORPUS / "hta-ddp-v100-mem" / "df_index_resolver.json.gz"
# Recordings of all formats that the page reads, each with a question.
RECORDINGS = [
    (TRACES / "resnet18-v100-loader0.pt.trace.json.gz", "loader:workers=2"),
    (TRACES / "resnet18-v100-loader4.pt.trace.json.gz", "prefetch"),
    (TRACES / "gpt-a100-gpu-bound.pt.trace.json.gz", "amp,recompute"),
    (TRACES / "gpt-a100-launch-bound.pt.trace.json.gz", "cuda_graphs"),
    (TRACES / "input-bound-v100.pt.trace.json.gz", "loader"),
    (CORPUS / "nsys-h200-small" / "report3.sqlite", "amp"),
    (CORPUS / "nanogpt-8rank" / "rank2.json.gz", "amp"),
    (CORPUS / "nanogpt-8rank", "amp"),
    (CORPUS / "hta-resnet-ddp-a100" / "nccl_data.json.gz", "amp"),
    (CORPUS / "megatron-tp2" / "final.1.et", "scale:factor=0.5,where.kind=kernel"),
    (CORPUS / "rn50-autograd-api" / "w0.pt.trace.json.gz", "amp"),
    (CORPUS / "rn50-dl-v100" / "w0_runA.pt.trace.json.gz", "loader:workers=2,amp"),
    (CORPUS / "mi300-act-ckpt" / "resnet_act_checkpoint.json.gz", "cuda_graphs"),
    (CORPUS / "param-resnet" / "resnet_kineto.json.gz", "op_fusion"),
    (CORPUS / "snap-xl-forward" / "xl_ctx128_forward_none.pickle", ""),
    (CORPUS / "rocprof-mi350" / "908_results.json.gz", "amp"),
    (CORPUS / "hta-dlrm-a100" / "control.json.gz", "scale:factor=0.5,where.name=/gemm|sgemm/"),
    (CORPUS / "nsys-27b-eager-graph" / "result_2_7B_compile_ro.sqlite", "amp"),
    (CORPUS / "chakra-et" / "chakra.0.et", ""),
    (CORPUS / "vllm-capture" / "vllm_piecewise.json.gz", "cuda_graphs"),
    (LARGE, "fused_optimizer"),
]


class Quiet(http.server.SimpleHTTPRequestHandler):
    asked = []

    def log_message(self, *_):
        self.asked.append(self.path)


class ExplorerTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=EXPLORER))
        threading.Thread(target=cls.server.serve_forever, daemon=True).start()
        cls.folder = tempfile.TemporaryDirectory()
        cls.browser = Browser()
        cls.browser.command("Network.enable")

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.server.shutdown()
        cls.server.server_close()
        cls.folder.cleanup()

    def setUp(self):
        self.visit()

    def tearDown(self):
        self.offline(False)
        self.assertEqual(self.browser.complaints(), [])

    def visit(self, fragment=""):
        self.offline(False)
        self.browser.visit("about:blank")
        self.browser.visit(f"http://127.0.0.1:{self.server.server_port}/index.html{fragment}")
        self.browser.wait_for("document.body.dataset.ready === 'yes'")
        # The network is off: the page must already have everything that it needs.
        self.offline(True)

    def offline(self, is_off):
        self.browser.command("Network.emulateNetworkConditions", offline=is_off, latency=0, downloadThroughput=-1, uploadThroughput=-1)

    def open(self, *traces):
        """Milliseconds until the page shows its first picture."""
        self.browser.run("delete document.body.dataset.opened")
        self.browser.give_files("#files", traces)
        self.browser.wait_for("document.body.dataset.opened")
        return int(self.browser.run("return document.body.dataset.opened"))

    def add(self, steps):
        drawn = "+(document.body.dataset.drawn ?? 0)"
        before = self.browser.run(f"return {drawn}")
        self.browser.run(f"document.getElementById('add').value = {json.dumps(steps)}; document.getElementById('question').requestSubmit()")
        self.browser.wait_for(f"{drawn} > {before}")

    def text(self, selector):
        return self.browser.run(f"return document.querySelector('{selector}').innerText")

    def saved(self):
        """The answer and the command that the page offers for copying."""
        return self.browser.run("return [window.foretrace_answer.json, window.foretrace_answer.command]")

    def test_answers_are_those_of_the_program_to_the_byte(self):
        compared = 0
        for trace, steps in RECORDINGS:
            if not trace.exists():
                continue
            with self.subTest(trace=trace.name, steps=steps):
                self.visit()
                self.open(*(sorted(trace.iterdir()) if trace.is_dir() else [trace]))
                if steps:
                    self.add(steps)
                found, command = self.saved()
                program, *arguments = shlex.split(command)
                self.assertEqual(program, "foretrace")
                folder = trace.parent
                if trace.is_dir():
                    folder = pathlib.Path(self.folder.name)
                    shutil.copytree(trace, folder / "job", dirs_exist_ok=True)
                wanted = subprocess.run([FORETRACE, *arguments, "--no-cache", "--quiet", "--format", "json"], cwd=folder,
                                        capture_output=True, text=True, check=True).stdout
                self.assertEqual(found, wanted)
                compared += 1
        print(f"\n{compared} answers equal to the program's")

    def test_is_there_within_its_limits(self):
        if "CMAKE_BUILD_TYPE:UNINITIALIZED=Release" not in (EXPLORER.parent / "CMakeCache.txt").read_text():
            self.skipTest("the explorer was built by explorer.py --quick")
        size = sum(len(gzip.compress(path.read_bytes())) for path in EXPLORER.iterdir() if not path.name.endswith(".gz"))
        print(f"\ndownload {size / 1e6:.2f} MB compressed")
        self.assertLess(size, 4_000_000)

    def test_loads_nothing_after_the_page_is_there(self):
        del Quiet.asked[:]
        self.open(TRACES / "gpt-a100-gpu-bound.pt.trace.json.gz")
        self.add("amp")
        self.browser.wait_for("document.body.dataset.advised")
        self.assertEqual(Quiet.asked, [])

    def test_a_slider_moves_the_answer_and_the_timelines(self):
        self.open(TRACES / "gpt-a100-gpu-bound.pt.trace.json.gz")
        self.add("scale:where.kind=kernel,factor=0.5")
        step_time = "return document.querySelector('#figures .main').textContent"
        before, picture = self.browser.run(step_time), self.browser.run("return document.getElementById('timeline').toDataURL()")
        drawn = self.browser.run("return +document.body.dataset.drawn")
        self.browser.run("const s = document.querySelector('.step input[type=range]'); s.value = 0.1; s.dispatchEvent(new Event('input'))")
        self.browser.wait_for(f"+document.body.dataset.drawn > {drawn}")
        self.assertNotEqual(self.browser.run(step_time), before)
        self.assertNotEqual(self.browser.run("return document.getElementById('timeline').toDataURL()"), picture)
        self.assertIn("factor=0.1", self.saved()[1])

    def test_the_stretch_that_is_looked_at_stays(self):
        self.open(TRACES / "resnet18-v100-loader0.pt.trace.json.gz")
        self.add("scale:where.kind=kernel,factor=0.5")
        self.browser.run("document.getElementById('timeline').focus()")
        self.browser.keys(["+", "+"])
        self.browser.frame()
        seen = "const c = document.getElementById('timeline'); return [c.dataset.from, c.dataset.to]"
        before = self.browser.run(seen)
        drawn = self.browser.run("return +document.body.dataset.drawn")
        self.browser.run("const s = document.querySelector('.step input[type=range]'); s.value = 0.4; s.dispatchEvent(new Event('input'))")
        self.browser.wait_for(f"+document.body.dataset.drawn > {drawn}")
        self.browser.frame()
        self.assertEqual(self.browser.run(seen), before)

    def test_a_link_brings_the_question_but_not_the_trace(self):
        self.open(TRACES / "resnet18-v100-loader0.pt.trace.json.gz")
        self.add("loader:workers=2")
        fragment = self.browser.run("return location.hash")
        self.assertNotIn("resnet", fragment)
        self.visit(fragment)
        self.assertEqual(self.text(".step h3"), "loader")
        self.open(TRACES / "resnet18-v100-loader0.pt.trace.json.gz")
        self.assertIn("loader:workers=2", self.saved()[1])

    def test_a_forged_link_is_refused_in_words(self):
        self.visit("#%7Bno")
        self.assertIn("valid scenario", self.browser.run("return document.getElementById('refused').textContent"))
        self.visit("#" + json.dumps({"transforms": [{"use": "<img src=x onerror=alert(1)>"}], "machine": "x"}).replace(" ", "%20"))
        self.assertEqual(self.browser.run("return document.querySelectorAll('.step').length"), 0)

    def test_advice_can_be_tried(self):
        self.open(TRACES / "resnet18-v100-loader0.pt.trace.json.gz")
        self.browser.wait_for("document.body.dataset.advised")
        self.assertIn("Bound by", self.text("#advice"))
        self.assertIn("Ceilings", self.text("#advice"))
        self.browser.run("document.querySelector('#advice [aria-label=\"Try loader:workers=2\"]').click()")
        self.browser.wait_for("document.querySelector('.step h3')?.textContent === 'loader'")
        self.browser.wait_for("document.getElementById('figures').textContent.includes('-42.7 %')")

    def test_compares_two_recordings(self):
        self.open(TRACES / "resnet18-v100-loader0.pt.trace.json.gz")
        self.browser.give_files("#other", [TRACES / "resnet18-v100-loader4.pt.trace.json.gz"])
        self.browser.wait_for("document.querySelector('#difference li')")
        self.assertIn("data loading takes less", self.text("#difference"))

    def test_every_question_can_be_asked(self):
        self.visit()
        self.open(TRACES / "resnet18-v100-loader0.pt.trace.json.gz")
        names = self.browser.run("return [...document.querySelectorAll('#any option')].map(one => one.value)")
        self.assertIn("plan_show", names)
        self.assertGreater(len(names), 15)
        self.browser.run("document.getElementById('any').value = 'doctor'; document.getElementById('any').dispatchEvent(new Event('change'))")
        self.browser.run("document.getElementById('ask').click()")
        self.browser.wait_for("document.body.dataset.asked === 'doctor'")
        wanted = subprocess.run([FORETRACE, "doctor", "resnet18-v100-loader0.pt.trace.json.gz", "--format", "json", "--no-cache", "--quiet"],
                                cwd=TRACES, capture_output=True, text=True, check=True).stdout
        self.assertEqual(self.browser.run("return window.foretrace_other.json"), wanted)

    def test_a_folder_keeps_files_of_one_name_apart(self):
        ranks = [CORPUS / "nanogpt-8rank" / f"rank{rank}.json.gz" for rank in range(2)]
        if not ranks[0].is_file():
            self.skipTest("FORETRACE_CORPUS names no folder of recordings")
        folder = pathlib.Path(self.folder.name) / "apart"
        for rank, trace in enumerate(ranks):
            (folder / f"host{rank}").mkdir(parents=True)
            shutil.copy(trace, folder / f"host{rank}" / "trace.json.gz")
        self.browser.give_files("#folder", [folder])
        self.browser.wait_for("document.body.dataset.opened")
        found = json.loads(self.saved()[0])
        self.assertEqual([one["path"] for one in found["inputs"]], ["job/host0/trace.json.gz", "job/host1/trace.json.gz"])

    def test_wrong_input_gets_the_programs_words(self):
        broken = pathlib.Path(self.folder.name) / "broken.json"
        broken.write_text("{\"traceEvents\": [")
        empty = pathlib.Path(self.folder.name) / "empty.json"
        empty.write_text("")
        for path, words in (broken, "must contain events"), (empty, "empty"):
            self.browser.give_files("#files", [path])
            self.browser.wait_for(f"document.getElementById('status').textContent.includes({json.dumps(path.name)}) && "
                                  "!document.getElementById('status').textContent.startsWith('Reading')")
            self.assertIn(words, self.text("#status"))
        self.open(TRACES / "resnet18-v100-loader0.pt.trace.json.gz")
        self.browser.run("document.getElementById('add').value = 'lader'; document.getElementById('question').requestSubmit()")
        self.browser.wait_for("document.getElementById('refused').textContent.includes('did you mean \"loader\"')")

    def test_can_be_read_in_both_themes_and_in_a_narrow_window(self):
        self.open(TRACES / "gpt-a100-gpu-bound.pt.trace.json.gz")
        self.add("amp")
        self.browser.wait_for("document.body.dataset.advised")
        self.assertEqual(self.browser.run(CONTRASTS), [])
        self.browser.emulate(prefers_color_scheme="dark")
        self.browser.frame()
        self.assertEqual(self.browser.run(CONTRASTS), [])
        self.browser.emulate(prefers_color_scheme="light")
        self.browser.resize(380)
        self.browser.frame()
        try:
            self.assertLessEqual(self.browser.run("return document.documentElement.scrollWidth"), 380)
        finally:
            self.browser.resize()

    def test_axe_finds_nothing(self):
        axe = EXPLORER.parent / "sources" / "axe-core" / "axe.min.js"
        if not axe.is_file():
            self.skipTest("axe-core is not beside the explorer's sources")
        self.open(TRACES / "gpt-a100-gpu-bound.pt.trace.json.gz")
        self.add("amp,scale:where.kind=kernel")
        self.browser.wait_for("document.body.dataset.advised")
        self.browser.run(axe.read_text())
        found = self.browser.post("/execute/async", {"script": "const done = arguments[0]; axe.run().then(r => done(r.violations.map(v => "
                                                               "v.id + ': ' + v.nodes.slice(0, 3).map(n => n.html).join(' ; '))))", "args": []})
        self.assertEqual(found, [])

    def test_a_large_recording_answers_at_once(self):
        if not LARGE.is_file():
            self.skipTest("FORETRACE_CORPUS names no folder of recordings")
        first = self.open(LARGE)
        self.browser.wait_for("document.body.dataset.advised")
        times = {}
        for steps in "scale:where.kind=kernel,factor=0.5", "fused_optimizer", "cuda_graphs":
            self.browser.run("document.getElementById('reset').click()")
            self.add(steps)
            times[steps] = int(self.browser.run("return document.body.dataset.answered"))
        print(f"\nfirst picture after {first} ms; new answers after {times} ms")


if __name__ == "__main__":
    if not (EXPLORER / "foretrace.wasm").is_file():
        print("skipped: the explorer is not built (scripts/explorer.py)")
        sys.exit(browser.SKIPPED)
    browser.require()
    unittest.main()
